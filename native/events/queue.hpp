// An events queue in shared memory, as one process has it: the log, its lock, its readers, who sleeps on it.
#pragma once

#include "events/boot.hpp"
#include "events/cursor.hpp"
#include "events/put_once.hpp"
#include "segment/robust_lock.hpp"
#include "segment/idle.hpp"

namespace queueduct {

enum class Entered : std::uint8_t { yes, no, corrupt };

enum class Subscribed : std::uint8_t { yes, table_full, busy, beyond };

enum class Settling : std::uint8_t {
  alone,  // nobody else has the log open: see to it, then end_settling()
  done,   // somebody has, so it is settled
  busy,   // somebody is just at it
};

class EventsQueue {
 public:
  // `durable`: on a disk, and to outlive the machine.
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
  // A file that was lost is not memory of our own: it gives none.
  [[nodiscard]] Backing backing() const noexcept {
    const int fd = participant_table_.is_one_process() ? -1 : participant_table_.file().number() < 0 ? INT_MAX : participant_table_.file().number();
    return {fd, arena_offset_, is_durable_, participant_table_.is_one_process() ? nullptr : &participant_table_.file(),
            is_durable_ || boot_.is_on_disk};
  }
  [[nodiscard]] Event items() const noexcept { return Event(&control().items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control().room.word); }

  [[nodiscard]] bool find_line(std::uint32_t& line) const noexcept {
    const std::uint32_t mine = participant_table_.mine_plus_one();
    line = mine - 1;
    return mine != 0;
  }

  // The word that the bounded queue keeps its intents in says here that the line has had an owner, so that the next
  // one sees to it that the lock does not bear its number (K4), and whether that owner is at the lock.
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
    return noted(line, after_lock(lock_.try_lock(line), line));
  }

  // Nobody enters twice: a lock that names who comes has been written to by somebody else, and would never be free.
  [[nodiscard]] Entered enter(std::uint32_t line, std::int64_t limit_ns) noexcept {
    if (lock_.is_held_by(line)) return Entered::corrupt;
    note(line, at_the_lock);
    const auto is_alive = [this](std::uint32_t owner) { return owner < participant_table_.count() && participant_table_.is_alive(owner); };
    const Entered entered = noted(line, after_lock(lock_.lock(line, is_alive, limit_ns), line));
    return entered == Entered::no && lock_.names_a_bystander(participant_table_, at_the_lock) ? Entered::corrupt : entered;
  }

  void leave() noexcept {
    lock_.unlock();
    std::uint32_t line;
    if (find_line(line)) note(line, outside);
  }
  [[nodiscard]] bool is_within(std::uint32_t line) const noexcept { return lock_.is_held_by(line); }

  // Readers that died hold nothing back. Not asked each time: that is a system call a reader.
  [[nodiscard]] bool bury_readers(bool now) noexcept {
    const std::int64_t clock = monotonic_ns();
    if (!now && clock - last_burial_ns_.load(std::memory_order_relaxed) < burial_interval_ns) return false;
    last_burial_ns_.store(clock, std::memory_order_relaxed);
    const EventsWord start{control().start.load(std::memory_order_relaxed)};
    return log_.readers().abandon(participant_table_, start.position()) > 0;
  }

  // Under the lock: forget all but the last so many.
  void keep_last(std::uint64_t items) noexcept {
    log_.keep_last(backing(), items);
    if (bury_readers(true)) log_.reclaim(backing());
    log_.trim(backing());
  }

  // Under the lock. What dead readers held back is looked at when a chunk was made, or there was no room for one.
  [[nodiscard]] Appended append_records(const void* data, std::uint64_t count, std::uint64_t& put) noexcept {
    return append([&] { return log_.append_records(backing(), data, count, put); });
  }
  [[nodiscard]] Appended append_bytes(const Buffer* items, std::uint64_t count, std::uint64_t& put) noexcept {
    return append([&] { return log_.append_bytes(backing(), items, count, put); });
  }

  // The same for a producer: what is in is recorded as done.
  [[nodiscard]] Appended append_records_once(ProducerLine* line, const void* data, std::uint64_t count,
                                             std::uint64_t& put) noexcept {
    return append_once(line, put, [&] {
      return log_.append_records(backing(), data, count, put, IntendFirst{line});
    });
  }
  [[nodiscard]] Appended append_bytes_once(ProducerLine* line, const Buffer* items, std::uint64_t count,
                                           std::uint64_t& put) noexcept {
    return append_once(line, put, [&] { return log_.append_bytes(backing(), items, count, put, IntendFirst{line}); });
  }

  // Under the lock, what is published and was not counted: because it could not be written to the disk, or since its
  // producer was killed. What a crash of the machine would take back must not be counted: the intent stays until it
  // cannot (T2). 0, or the error number.
  [[nodiscard]] int confirm_once(ProducerLine& line) noexcept {
    if (progress_of(line).phase == Phase::idle) return 0;
    const int error = boot_.is_on_disk || is_durable_ ? sync_under_lock() : 0;
    if (error == 0) settle_intent(line, map());
    return error;
  }
  // Under the lock: of no_memory or no_disk. With the latter an append for a producer may have put something.
  [[nodiscard]] int error() const noexcept { return once_error_ != 0 ? once_error_ : log_.error(); }

  // Under the lock. An existing durable reader of that name is found again, wherever `start` would be.
  [[nodiscard]] Subscribed subscribe(const char* name, std::uint32_t length, bool is_durable, std::uint64_t start,
                                     std::uint32_t& line, Cursor& cursor) noexcept {
    Readers& readers = log_.readers();
    (void)bury_readers(true);
    const EventsWord end = map().end(std::memory_order_relaxed);
    cursor = {};
    cursor.epoch = end.epoch();
    if (is_durable && (line = readers.find(name, length)) != Readers::none) {
      if (!participant_table_.hold(reader_lock_number(line))) return Subscribed::busy;
      readers.line(line).pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
      cursor.position = readers.line(line).place.load(std::memory_order_relaxed) & ~dropped_bit;
      jump_to_start(cursor);
      note_cuts(readers.line(line), cursor);
      return Subscribed::yes;
    }
    if (start > end.position()) return Subscribed::beyond;
    line = readers.take_line(participant_table_);
    if (line == Readers::none) return Subscribed::table_full;
    cursor.position = start;
    readers.write(line, is_durable ? ReaderKind::durable : ReaderKind::ephemeral, name, length, start);
    return Subscribed::yes;
  }

  // Under the lock: a reader that was dropped goes on where it is, or with the earliest that is kept if that is
  // later: then it has lost something. What is kept by now was kept all the time.
  std::uint64_t rejoin(std::uint32_t line, Cursor& cursor) noexcept {
    const std::uint64_t earliest = earliest_position(map());
    if (cursor.position < earliest) cursor.position = earliest;
    cursor.epoch = map().end(std::memory_order_relaxed).epoch();
    cursor.chunk = {};
    std::atomic<std::uint64_t>& place = log_.readers().line(line).place;
    const std::uint64_t before = place.load(std::memory_order_relaxed) & ~dropped_bit;
    QUEUEDUCT_FAILPOINT("readers.before_rejoin");
    place.store(before < earliest ? earliest : before, std::memory_order_relaxed);
    log_.readers().line(line).beyond.store(0, std::memory_order_relaxed);  // D5: it is told
    QUEUEDUCT_FAILPOINT("readers.rejoined");
    return earliest;
  }

  // Under the lock, by its owner.
  void unsubscribe(std::uint32_t line) noexcept {
    log_.readers().remove(line);
    participant_table_.let_go(reader_lock_number(line));
    log_.reclaim(backing());
    room().notify_all();
  }

  // Under the lock: a durable one keeps its place.
  void leave_reader(std::uint32_t line) noexcept {
    if (log_.readers().kind(line) == ReaderKind::ephemeral)
      unsubscribe(line);
    else
      participant_table_.let_go(reader_lock_number(line));
  }

  // Without the lock: an ephemeral one is abandoned by whoever looks next, and we look at the next chance.
  void abandon_reader(std::uint32_t line) noexcept {
    participant_table_.let_go(reader_lock_number(line));
    last_burial_ns_.store(0, std::memory_order_relaxed);
    room().notify_all();
  }

  // Under the lock, by anybody; false: somebody holds it.
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
    if (patience_.wait(near, [&] { return is_beyond(lingering_items); }, limit_ns)) return;
    const std::uint32_t ticket = items().announce();
    if (near()) return;  // W1
    items().park_and_relay(ticket, limit_ns < park_limit_ns ? limit_ns : park_limit_ns);
  }

  // After room().announce() and a look. Short, since what holds the room back may be a reader that dies meanwhile:
  // then the next append finds it, and nobody wakes us for that.
  void wait_for_room(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    room().park_for_all(ticket, limit_ns < burial_interval_ns ? limit_ns : burial_interval_ns);
  }

  // Syncs that failed since the last that did not: then write_again() under the lock comes first (Y3).
  [[nodiscard]] std::uint64_t failures() const noexcept {
    return control().sync_failures.load(std::memory_order_relaxed);
  }
  // Everything up to now is on the disk, and will be believed after a crash of the machine. 0, or the error number.
  [[nodiscard]] int sync(std::uint64_t failures = 0) noexcept {
    if (boot_.is_on_disk) note_boot(control(), boot_, false);
    return sync_log(map(), participant_table_.descriptor(), failures);
  }
  [[nodiscard]] int sync_under_lock() noexcept {
    const std::uint64_t failed = failures();
    if (failed != 0) write_again(map());
    return sync(failed);
  }
  [[nodiscard]] std::uint64_t synced() const noexcept { return control().synced.load(std::memory_order_relaxed); }

  // Whoever opens the log settles first whether the machine was started anew since it was last in use. Keeps V2.
  [[nodiscard]] Settling begin_settling() noexcept {
    const int fd = participant_table_.descriptor();
    if (boot_.is_on_disk && fd >= 0) {
      QUEUEDUCT_FAILPOINT("boot.before_settling");
      if (ofd::lock(fd, settling_lock_number, F_WRLCK)) return look_at_boot();
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

  // Has the machine been started anew since somebody last used the queue? Then settle_boot(), under the lock.
  [[nodiscard]] bool is_of_another_boot() const noexcept {
    return boot_.is_on_disk && count_other_boot(control(), boot_) >= 2;  // V1
  }
  // False: the segment contradicts itself, or, with an error number in boot_error(), the disk refuses to know of it.
  [[nodiscard]] bool settle_boot() noexcept {
    boot_error_ = 0;
    // Where the witnesses do not suffice, a log that contradicts itself tells as much.
    const bool is_cut = boot_.is_on_disk && !is_settled_ &&
                        (is_of_another_boot() || !log_.repair().is_whole_from(synced()));
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
  template <class Append>
  [[nodiscard]] Appended append(Append append) noexcept {
    once_error_ = 0;
    const std::uint64_t before = control().chunks_made.load(std::memory_order_relaxed);
    Appended outcome = append();
    if (outcome == Appended::full && bury_readers(false)) outcome = append();
    else if (control().chunks_made.load(std::memory_order_relaxed) != before && bury_readers(false))
      log_.reclaim(backing());
    return outcome;
  }

  template <class Append>
  [[nodiscard]] Appended append_once(ProducerLine* line, const std::uint64_t& put, Append append_intended) noexcept {
    const Appended outcome = append(append_intended);
    if (outcome != Appended::done || put == 0) return outcome;
    once_error_ = confirm_once(*line);
    return once_error_ == 0 ? outcome : Appended::no_disk;
  }

  static constexpr std::uint64_t outside = 1;
  static constexpr std::uint64_t at_the_lock = 2;

  // release: whoever sees us outside sees the lock as we left it
  void note(std::uint32_t line, std::uint64_t where) noexcept {
    participant_table_.lines()[line].intent.store(where, std::memory_order_release);
  }

  [[nodiscard]] Entered noted(std::uint32_t line, Entered entered) noexcept {
    if (entered != Entered::yes) note(line, outside);
    return entered;
  }

  [[nodiscard]] bool repair() noexcept {
    settle_intents(producers_, map());
    return log_.repair().after_kill(backing());
  }

  static constexpr std::int64_t burial_interval_ns = 10'000'000;
  static constexpr std::uint64_t lingering_items = 64;

  // A holder that cannot repair gives the lock back as an orphan: the next one finds the same.
  [[nodiscard]] Entered after_lock(Locked locked, std::uint32_t line) noexcept {
    if (locked == Locked::no) return Entered::no;
    if (locked == Locked::yes) return Entered::yes;
    control().repairs.fetch_add(1, std::memory_order_relaxed);  // a statistic
    // the machine may have crashed with the lock held: then what was not synced must not be looked at
    const bool is_another = !is_settled_ && is_of_another_boot();
    if ((!is_another && repair()) || (boot_.is_on_disk && !is_settled_ && settle_boot())) return Entered::yes;
    lock_.orphan(line);
    return Entered::corrupt;
  }

  void jump_to_start(Cursor& cursor) const noexcept {
    const std::uint64_t start = EventsWord{control().start.load(std::memory_order_relaxed)}.position();
    if (cursor.position < start) cursor.position = start;
  }

  // With the settling lock held alone. A line that is held is a child's of somebody who had the log open.
  [[nodiscard]] Settling look_at_boot() noexcept {
    QUEUEDUCT_FAILPOINT("boot.alone");
    const bool is_used = ofd::is_any_owned_elsewhere(participant_table_.descriptor(), lock_numbers);
    const int others = count_other_boot(control(), boot_);
    const bool is_certain = others == 0 && control().boot_id[0].load(std::memory_order_relaxed) != 0 &&
                            (boot_.boot_id[0] != 0 || boot_.boot_id[1] != 0);
    const bool is_nothing_at_stake = others < 2 && synced() == map().end(std::memory_order_relaxed).position();
    is_settled_ = is_used || is_certain || is_nothing_at_stake;
    if (is_settled_)
      note_boot(control(), boot_, false);
    else if (others >= 2)
      lock_.orphan_whoever();
    return Settling::alone;
  }

  // A reader that comes again: what it committed lies beyond a cut, or not. Its cursor gets no epoch until it is told.
  void note_cuts(ReaderLine& line, Cursor& cursor) noexcept {
    const std::uint64_t until = valid_until(control(), line.epoch.load(std::memory_order_relaxed));
    if (cursor.position > until) {  // the cut has lowered it, unless the line is older than the cut on the disk
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
  OwnerLock lock_;
  IdleStrategy patience_;
  std::uint64_t arena_offset_;
  BootWitnesses boot_;
  bool is_durable_;
  bool is_settled_ = false;  // of this handle: nothing is cut any more
  int boot_error_ = 0;
  int once_error_ = 0;  // under the lock
  std::atomic<std::int64_t> last_burial_ns_{0};
};

}  // namespace queueduct
