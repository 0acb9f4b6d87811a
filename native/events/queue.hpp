// An events queue as one process has it: the log, its lock, its readers, its idempotent producers, its sleepers.
//
// Shape      a put_once, under the lock:  intend(end, n)  ──►  publish  ──►  sync  ──►  complete(n)
//            The first half of an intent's extent is `done` as it will be after the publish. So an idle line tells
//            whether its extent is that of the last counted publish, or of an intent that a kill cut short.
// Roles      the holder of the lock writes; readers read beside it (events/cursor.hpp).
// Invariants T1  an intent is written after the items and before `end` is stored.
//            T2  a participant that takes the lock over from a dead one first undoes every intent that is not before
//                `end`. So if a line is found intended later, its publish has happened.
//            T3  a publish is counted when it cannot be taken back any more: on a disk, after a sync. Until then the
//                line stays intended, and its producer, when it returns, syncs and counts it.
// Progress   writers block each other (segment/robust_lock.hpp); readers never block.
#pragma once

#include "events/boot.hpp"
#include "events/cursor.hpp"
#include "events/log.hpp"
#include "segment/idle.hpp"
#include "segment/producers.hpp"
#include "segment/robust_lock.hpp"

namespace queueduct {

enum class Entered : std::uint8_t { yes, no, corrupt };

enum class Subscribed : std::uint8_t { yes, table_full, busy, beyond };

enum class Settling : std::uint8_t {
  alone,  // no other process has the log open: settle it, then end_settling()
  done,   // another process has it open, so it is settled
  busy,   // another process is settling it
};

[[nodiscard]] inline bool has_happened(const ProducerLine& line, std::uint64_t end) noexcept {
  return end >= line.position.load(std::memory_order_relaxed) +
                    Extent::unpack(line.extent.load(std::memory_order_relaxed)).items;  // T2
}

// After the lock was taken over from a dead participant, before anything is published: keeps T2.
inline void undo_unpublished_intents(const Producers& producers, std::uint64_t end) noexcept {
  for (std::uint32_t i = 0; i < producers.count(); ++i) {
    ProducerLine& line = producers.lines()[i];
    const Progress now = progress_of(line);
    if (now.is_used && now.phase != Phase::idle && !has_happened(line, end)) complete(line, 0);
  }
}

// After the log was cut at `position`, when no other participant lives: what was removed is not done, and no producer
// is at work. Only a line's last publish can have been removed, since each was on the disk before it was counted.
inline void roll_back_producers(const Producers& producers, std::uint64_t position) noexcept {
  producers.disown_all();
  for (std::uint32_t i = 0; i < producers.count(); ++i) {
    ProducerLine& line = producers.lines()[i];
    Progress now = progress_of(line);
    if (!now.is_used) continue;
    const std::uint64_t begin = line.position.load(std::memory_order_relaxed);
    const Extent extent = Extent::unpack(line.extent.load(std::memory_order_relaxed));
    const std::uint64_t items = extent.items;
    const std::uint64_t kept = position <= begin ? 0 : std::min(position - begin, items);
    if (now.phase == Phase::idle) {
      if (kept == items || now.done == 0 || extent.slots != now.done) continue;
      now.phase = Phase::intended;  // as before the publish: from there it can be repeated
      now.done -= std::min<std::uint64_t>(items, now.done);
      store_progress(line, now, "once.before_undo", "once.undone");
    }
    line.extent.store(Extent{now.done + kept, kept}.packed(), std::memory_order_relaxed);  // published by release N2
    complete(line, kept);
  }
}

class EventsQueue {
 public:
  // `durable`: on a disk, and meant to survive a crash of the machine.
  EventsQueue(std::byte* base, const EventsOffsets& at, EventsMap shape, std::uint32_t participants,
              std::uint32_t producers, int lock_fd, Identity identity, bool durable, BootWitnesses boot = {}) noexcept
      : log_(placed(base, at, shape)),
        participant_table_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), participants,
                           &control().participants_used, identity),
        producers_(at.producers == 0 ? nullptr : reinterpret_cast<ProducersHead*>(base + at.producers), producers,
                   participant_table_),
        lock_(&control().lock),
        arena_offset_(at.arena),
        boot_(boot),
        is_durable_(durable) {}

  [[nodiscard]] EventLog& log() noexcept { return log_; }
  [[nodiscard]] const EventsMap& map() const noexcept { return log_.map(); }
  [[nodiscard]] EventsControl& control() const noexcept { return *log_.map().control; }
  [[nodiscard]] ParticipantTable& participant_table() noexcept { return participant_table_; }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }
  [[nodiscard]] Backing backing() const noexcept {
    if (participant_table_.is_one_process()) return {-1, arena_offset_, is_durable_, nullptr, is_on_disk()};
    const LockFile& file = participant_table_.file();
    const int fd = file.number() < 0 ? INT_MAX : file.number();  // a lost file is not private memory: it gives none
    return {fd, arena_offset_, is_durable_, &file, is_on_disk()};
  }
  [[nodiscard]] Event items() const noexcept { return Event(&control().items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control().room.word); }

  [[nodiscard]] bool find_line(std::uint32_t& line) const noexcept {
    const std::uint32_t mine = participant_table_.mine_plus_one();
    line = mine - 1;
    return mine != 0;
  }

  static constexpr std::uint64_t outside = 1;
  static constexpr std::uint64_t at_the_lock = 2;
  // In an events queue a line's intent word says that the line has an owner, and whether that owner is at the lock. The
  // line's next owner first takes the dead owner's number from the lock (K4).
  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    const auto orphan = [this](std::uint32_t line) {
      lock_.orphan(line);
      return true;
    };
    const ParticipantTable::Joined joined =
        participant_table_.patiently([&] { return participant_table_.join(orphan); });
    std::uint32_t line;
    if (joined == ParticipantTable::Joined::yes && find_line(line)) note(line, outside);
    return joined;
  }

  [[nodiscard]] Entered try_enter(std::uint32_t line) noexcept {
    note(line, at_the_lock);
    return after_lock(lock_.try_lock(line), line);
  }

  // A lock that already names the caller is corrupt: no participant enters twice, and it would never become free.
  [[nodiscard]] Entered enter(std::uint32_t line, std::int64_t limit_ns) noexcept {
    if (lock_.is_held_by(line)) return Entered::corrupt;
    note(line, at_the_lock);
    const auto is_alive = [this](std::uint32_t owner) {
      return owner < participant_table_.count() && participant_table_.is_alive(owner);
    };
    const Entered entered = after_lock(lock_.lock(line, is_alive, limit_ns), line);
    if (entered != Entered::no) return entered;
    return lock_.is_corrupt(participant_table_, at_the_lock) ? Entered::corrupt : Entered::no;
  }

  void leave() noexcept {
    lock_.unlock();
    std::uint32_t line;
    if (find_line(line)) note(line, outside);
  }
  // The same after a put.
  void leave_after_put(std::uint64_t items, std::uint64_t bytes) noexcept {
    lock_.unlock();
    std::uint32_t line;
    if (!find_line(line)) return;
    count_put(participant_table_.lines()[line].counters, items, bytes);
    note(line, outside);
  }
  // The sum of all participants and readers.
  [[nodiscard]] Counted counted() noexcept {
    Counted sum = queueduct::counted(participant_table_);
    for (std::uint32_t i = 0; i < log_.readers().used(); ++i) sum.add(log_.readers().line(i).counters);
    return sum;
  }
  [[nodiscard]] bool is_within(std::uint32_t line) const noexcept { return lock_.is_held_by(line); }

  // Under the lock. Returns true if a dead reader now needs less of the log. Costs a system call a reader, so unless
  // `now` it is done only once an interval.
  [[nodiscard]] bool abandon_dead_readers(bool now) noexcept {
    const std::int64_t clock = monotonic_ns();
    if (!now && clock - last_abandon_ns_.load(std::memory_order_relaxed) < abandon_interval_ns) return false;
    last_abandon_ns_.store(clock, std::memory_order_relaxed);
    return log_.readers().abandon(participant_table_, map().start().position()) > 0;
  }

  // Under the lock: forgets all but the last `items`.
  void keep_last(std::uint64_t items) noexcept {
    log_.keep_last(backing(), items);
    if (abandon_dead_readers(true)) log_.reclaim(backing());
    log_.trim(backing());
  }

  // Under the lock. Puts as much as fits. With a producer's line, what was put is recorded as done (T1, T3).
  [[nodiscard]] Appended append_records(const void* data, std::uint64_t count, std::uint64_t& put,
                                        ProducerLine* producer = nullptr) noexcept {
    return append(producer, put, [&](auto tell) { return log_.append_records(backing(), data, count, put, tell); });
  }
  [[nodiscard]] Appended append_bytes(const Buffer* items, std::uint64_t count, std::uint64_t& put,
                                      ProducerLine* producer = nullptr) noexcept {
    return append(producer, put, [&](auto tell) { return log_.append_bytes(backing(), items, count, put, tell); });
  }

  // Under the lock. Counts a publish that was not counted because the disk failed or the producer was killed. While a
  // crash of the machine could take it back, the intent stays (T3). Returns 0, or the error number.
  [[nodiscard]] int confirm_once(ProducerLine& line) noexcept {
    if (progress_of(line).phase == Phase::idle) return 0;
    if (is_on_disk()) {
      const std::uint64_t failed = failures();
      if (failed != 0) write_again(map());
      if (const int error = sync(failed); error != 0) return error;
    }
    const std::uint64_t items = Extent::unpack(line.extent.load(std::memory_order_relaxed)).items;
    complete(line, has_happened(line, map().end(std::memory_order_relaxed).position()) ? items : 0);
    return 0;
  }
  // Under the lock: the error number of no_memory or no_disk. After no_disk a producer's append may have put items.
  [[nodiscard]] int error() const noexcept { return once_error_ != 0 ? once_error_ : log_.error(); }

  // Under the lock. An existing durable reader of that name is found again, and `start` is then ignored.
  [[nodiscard]] Subscribed subscribe(const char* name, std::uint32_t length, bool is_durable, std::uint64_t start,
                                     std::uint32_t& line, Cursor& cursor) noexcept {
    Readers& readers = log_.readers();
    (void)abandon_dead_readers(true);
    const EventsWord end = map().end(std::memory_order_relaxed);
    cursor = {};
    cursor.epoch = end.epoch();
    if (is_durable && (line = readers.find(name, length)) != Readers::none) {
      if (!participant_table_.hold(reader_lock_number(line))) return Subscribed::busy;
      ReaderLine& found = readers.line(line);
      found.pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
      const std::uint64_t place = found.place.load(std::memory_order_relaxed) & ~dropped_bit;
      cursor.position = std::max(place, map().start().position());
      note_cuts(found, cursor);
      return Subscribed::yes;
    }
    if (start > end.position()) return Subscribed::beyond;
    line = readers.take_line(participant_table_);
    if (line == Readers::none) return Subscribed::table_full;
    cursor.position = start;
    readers.write(line, is_durable ? ReaderKind::durable : ReaderKind::ephemeral, name, length, start);
    return Subscribed::yes;
  }

  // Under the lock: a dropped reader continues where it is or, if that is later, at the earliest kept position: then it
  // has lost items. What is kept now was kept all the time. Returns the earliest kept position.
  std::uint64_t rejoin(std::uint32_t line, Cursor& cursor) noexcept {
    const std::uint64_t earliest = earliest_position(map());
    cursor.position = std::max(cursor.position, earliest);
    cursor.epoch = map().end(std::memory_order_relaxed).epoch();
    cursor.chunk = {};
    ReaderLine& reader = log_.readers().line(line);
    const std::uint64_t before = reader.place.load(std::memory_order_relaxed) & ~dropped_bit;
    QUEUEDUCT_FAILPOINT("readers.before_rejoin");
    reader.place.store(std::max(before, earliest), std::memory_order_relaxed);
    reader.beyond.store(0, std::memory_order_relaxed);  // D5: the reader is told
    QUEUEDUCT_FAILPOINT("readers.rejoined");
    return earliest;
  }

  // Under the lock, by the reader's owner.
  void unsubscribe(std::uint32_t line) noexcept {
    log_.readers().remove(line);
    participant_table_.let_go(reader_lock_number(line));
    log_.reclaim(backing());
    room().notify_all();
  }

  // Under the lock, by the reader's owner. A durable reader keeps its place.
  void leave_reader(std::uint32_t line) noexcept {
    if (log_.readers().kind(line) == ReaderKind::ephemeral)
      unsubscribe(line);
    else
      participant_table_.let_go(reader_lock_number(line));
  }

  // Without the lock: the next abandon_dead_readers(), which is now due, removes an ephemeral reader.
  void abandon_reader(std::uint32_t line) noexcept {
    participant_table_.let_go(reader_lock_number(line));
    last_abandon_ns_.store(0, std::memory_order_relaxed);
    room().notify_all();
  }

  // Under the lock, by any participant. Returns false if a process holds the reader.
  [[nodiscard]] bool forget_reader(std::uint32_t line) noexcept {
    if (!participant_table_.hold(reader_lock_number(line))) return false;
    unsubscribe(line);
    return true;
  }

  void wait_for_items(std::uint64_t position, std::int64_t limit_ns) noexcept {
    const auto is_beyond = [this, position](std::uint64_t items) {
      const EventsWord end = map().end(std::memory_order_relaxed);
      return end.position() > position + items || end.is_closed();
    };
    const auto near = [&] { return is_beyond(0); };
    if (idle_.wait(near, [&] { return is_beyond(lingering_items); }, limit_ns)) return;
    const std::uint32_t ticket = items().announce();
    if (near()) return;  // W1
    items().park_and_relay(ticket, std::min(limit_ns, park_limit_ns));
  }

  // After room().announce() and another attempt. The sleep is short: if the reader that holds the room back dies, no
  // participant wakes us, but our next append finds it dead.
  void wait_for_room(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    room().park_for_all(ticket, std::min(limit_ns, abandon_interval_ns));
  }

  // Returns how many syncs have failed since the last success. If not 0, write_again() under the lock comes first (Y3).
  [[nodiscard]] std::uint64_t failures() const noexcept {
    return control().sync_failures.load(std::memory_order_relaxed);
  }
  // Writes everything up to now to the disk, and notes the boot with it. See sync_log().
  [[nodiscard]] int sync(std::uint64_t failures = 0) noexcept {
    if (boot_.is_on_disk) note_boot(control(), boot_, false);
    return sync_log(map(), participant_table_.descriptor(), failures);
  }
  [[nodiscard]] std::uint64_t synced() const noexcept { return control().synced.load(std::memory_order_relaxed); }

  // A process that opens the log first settles whether the machine was restarted since the last use. Keeps V2.
  [[nodiscard]] Settling begin_settling() noexcept {
    const int fd = participant_table_.descriptor();
    if (boot_.is_on_disk && fd >= 0) {
      QUEUEDUCT_FAILPOINT("boot.before_settling");
      if (ofd::lock(fd, settling_lock_number, F_WRLCK)) return compare_boots();
      if (!ofd::lock(fd, settling_lock_number, F_RDLCK)) return Settling::busy;
    }
    is_settled_ = true;
    return Settling::done;
  }
  [[nodiscard]] bool must_settle() const noexcept { return !is_settled_; }
  void end_settling(bool is_settled) noexcept {
    QUEUEDUCT_FAILPOINT("boot.before_end");
    (void)ofd::lock(participant_table_.descriptor(), settling_lock_number, is_settled ? F_RDLCK : F_UNLCK);
  }

  // Returns true if the machine was restarted since the queue was last used: then settle_boot() under the lock.
  [[nodiscard]] bool is_of_another_boot() const noexcept {
    return boot_.is_on_disk && count_other_boot(control(), boot_) >= 2;  // V1
  }
  // Under the lock. Returns false if the segment contradicts itself, or if the disk fails: see boot_error().
  [[nodiscard]] bool settle_boot() noexcept {
    boot_error_ = 0;
    // if the witnesses do not suffice, a log that contradicts itself proves a restart
    const bool is_cut =
        boot_.is_on_disk && !is_settled_ && (is_of_another_boot() || !log_.repair().is_whole_from(synced()));
    if (is_cut) {
      const std::uint64_t position = log_.repair().roll_back_to(synced());
      roll_back_producers(producers_, position);
      control().synced.store(position, std::memory_order_relaxed);
      control().confirmed.store(position, std::memory_order_relaxed);
      if (!log_.repair().after_kill(backing())) return false;
      QUEUEDUCT_FAILPOINT("boot.settled");
      count_cut(control(), position);
      boot_error_ = write_out(control(), participant_table_.descriptor());
      if (boot_error_ != 0) return false;
    }
    if (boot_.is_on_disk) note_boot(control(), boot_, is_cut);
    is_settled_ = true;
    QUEUEDUCT_FAILPOINT("boot.noted");
    return true;
  }
  [[nodiscard]] int boot_error() const noexcept { return boot_error_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return control().cuts.load(std::memory_order_acquire); }

  [[nodiscard]] static EventsMap placed(std::byte* base, const EventsOffsets& at, EventsMap shape) noexcept {
    shape.control = reinterpret_cast<EventsControl*>(base + at.control);
    shape.readers = reinterpret_cast<ReaderLine*>(base + at.readers);
    shape.chunks = reinterpret_cast<ChunkLine*>(base + at.chunks);
    shape.blocks = reinterpret_cast<std::atomic<std::uint32_t>*>(base + at.blocks);
    shape.arena = base + at.arena;
    return shape;
  }

 private:
  static constexpr std::int64_t abandon_interval_ns = 10'000'000;
  static constexpr std::uint64_t lingering_items = 64;

  [[nodiscard]] bool is_on_disk() const noexcept { return is_durable_ || boot_.is_on_disk; }

  // Dead readers are abandoned after a chunk was made, or if there was no room for one.
  template <class Append>
  [[nodiscard]] Appended append(ProducerLine* producer, const std::uint64_t& put, Append append_once) noexcept {
    const auto tell = [producer](std::uint64_t position, std::uint64_t items) {
      if (producer != nullptr) intend(*producer, position, {progress_of(*producer).done + items, items});  // T1
    };
    once_error_ = 0;
    const std::uint64_t made = map().made();
    Appended outcome = append_once(tell);
    if (outcome == Appended::full && abandon_dead_readers(false))
      outcome = append_once(tell);
    else if (map().made() != made && abandon_dead_readers(false))
      log_.reclaim(backing());
    if (producer == nullptr || outcome != Appended::done || put == 0) return outcome;
    once_error_ = confirm_once(*producer);
    return once_error_ == 0 ? outcome : Appended::no_disk;
  }

  // release: a participant that sees us outside sees the lock as we left it
  void note(std::uint32_t line, std::uint64_t where) noexcept {
    participant_table_.lines()[line].intent.store(where, std::memory_order_release);
  }

  // A holder that cannot repair leaves the lock as an orphan: the next one finds the same.
  [[nodiscard]] Entered after_lock(Locked locked, std::uint32_t line) noexcept {
    if (locked == Locked::yes) return Entered::yes;
    if (locked == Locked::from_the_dead) {
      control().repairs.fetch_add(1, std::memory_order_relaxed);  // a statistic
      // the machine may have crashed while the lock was held: then what was not synced must not be read
      const bool is_another = !is_settled_ && is_of_another_boot();
      if ((!is_another && repair()) || (boot_.is_on_disk && !is_settled_ && settle_boot())) return Entered::yes;
      lock_.orphan(line);
    }
    note(line, outside);
    return locked == Locked::no ? Entered::no : Entered::corrupt;
  }

  [[nodiscard]] bool repair() noexcept {
    undo_unpublished_intents(producers_, map().end(std::memory_order_relaxed).position());
    return log_.repair().after_kill(backing());
  }

  // Under the exclusive settling lock. A line that is still held belongs to a forked child of an earlier user.
  [[nodiscard]] Settling compare_boots() noexcept {
    QUEUEDUCT_FAILPOINT("boot.alone");
    const bool is_used = ofd::is_any_owned_elsewhere(participant_table_.descriptor(), lock_numbers);
    const int others = count_other_boot(control(), boot_);
    const bool is_certain = others == 0 && control().boot_id[0].load(std::memory_order_relaxed) != 0 && boot_.has_id();
    const bool has_all_synced = others < 2 && synced() == map().end(std::memory_order_relaxed).position();
    is_settled_ = is_used || is_certain || has_all_synced;
    if (is_settled_)
      note_boot(control(), boot_, false);
    else if (others >= 2)
      lock_.orphan_whoever();
    return Settling::alone;
  }

  // For a durable reader that returns: moves it back if its place is beyond a cut. Its cursor has no epoch until it is
  // told.
  void note_cuts(ReaderLine& line, Cursor& cursor) noexcept {
    const std::uint64_t until = valid_until(control(), line.epoch.load(std::memory_order_relaxed));
    if (cursor.position > until) {  // the cut itself moved it back, unless the line on the disk is older than the cut
      line.beyond.store(cursor.position, std::memory_order_relaxed);
      line.place.store(until, std::memory_order_relaxed);
      cursor.position = until;
    }
    QUEUEDUCT_FAILPOINT("readers.before_epoch");
    line.epoch.store(static_cast<std::uint32_t>(epoch()), std::memory_order_relaxed);
    if (line.beyond.load(std::memory_order_relaxed) != 0) cursor.epoch = Cursor::no_epoch;
  }

  EventLog log_;
  ParticipantTable participant_table_;
  Producers producers_;
  RobustLock lock_;
  IdleStrategy idle_;
  std::uint64_t arena_offset_;
  BootWitnesses boot_;
  bool is_durable_;
  bool is_settled_ = false;  // of this handle: it will not cut the log any more
  int boot_error_ = 0;
  int once_error_ = 0;  // under the lock
  std::atomic<std::int64_t> last_abandon_ns_{0};
};

}  // namespace queueduct
