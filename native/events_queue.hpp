// An events queue in shared memory, as one process has it: the log, its lock, its readers, who sleeps on it.
#pragma once

#include "events_cursor.hpp"
#include "events_producers.hpp"
#include "owner_lock.hpp"
#include "patience.hpp"

namespace penstock {

enum class Entered : std::uint8_t { yes, no, corrupt };

enum class Subscribed : std::uint8_t { yes, table_full, busy, beyond };

class EventsQueue {
 public:
  // `durable`: on a disk, and to outlive the machine.
  EventsQueue(std::byte* base, const EventsOffsets& at, EventsMap shape, std::uint32_t participants,
              std::uint32_t producers, int lock_fd, Identity identity, bool durable) noexcept
      : log_(placed(base, at, shape)),
        roster_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), participants,
                &control().participants_used, identity),
        producers_(at.producers == 0 ? nullptr : reinterpret_cast<ProducersHead*>(base + at.producers), producers,
                   roster_),
        lock_(&control().lock),
        arena_offset_(at.arena),
        identity_(identity),
        is_durable_(durable) {}

  [[nodiscard]] EventLog& log() noexcept { return log_; }
  [[nodiscard]] const EventsMap& map() const noexcept { return log_.map(); }
  [[nodiscard]] EventsControl& control() const noexcept { return *log_.map().control; }
  [[nodiscard]] Roster& roster() noexcept { return roster_; }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }
  [[nodiscard]] Backing backing() const noexcept { return {roster_.descriptor(), arena_offset_, is_durable_}; }
  [[nodiscard]] Event items() const noexcept { return Event(&control().items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control().room.word); }

  [[nodiscard]] bool find_line(std::uint32_t& line) const noexcept {
    const std::uint32_t mine = roster_.mine_plus_one();
    line = mine - 1;
    return mine != 0;
  }

  // The word that the bounded queue keeps its intents in says here that the line has had an owner, so that the next
  // one sees to it that the lock does not bear its number (K4), and whether that owner is at the lock.
  [[nodiscard]] Roster::Joined join() noexcept {
    const Roster::Joined joined = roster_.join([this](std::uint32_t line) {
      lock_.orphan(line);
      return true;
    });
    std::uint32_t line;
    if (joined == Roster::Joined::yes && find_line(line))
      note(line, outside);
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
    const auto is_alive = [this](std::uint32_t owner) { return owner < roster_.count() && roster_.is_alive(owner); };
    const Entered entered = noted(line, after_lock(lock_.lock(line, is_alive, limit_ns), line));
    return entered == Entered::no && lock_names_a_bystander() ? Entered::corrupt : entered;
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
    return log_.readers().bury(roster_, start.position()) > 0;
  }

  // Under the lock: forget all but the last so many.
  void keep_last(std::uint64_t items) noexcept {
    log_.keep_last(backing(), items);
    if (bury_readers(true)) log_.reclaim(backing());
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

  // Under the lock. An existing durable reader of that name is found again, wherever `start` would be.
  [[nodiscard]] Subscribed subscribe(const char* name, std::uint32_t length, bool is_durable, std::uint64_t start,
                                     std::uint32_t& line, Cursor& cursor) noexcept {
    Readers& readers = log_.readers();
    (void)bury_readers(true);
    const EventsWord end = map().end(std::memory_order_relaxed);
    cursor = {};
    cursor.epoch = end.epoch();
    if (is_durable && (line = readers.find(name, length)) != Readers::none) {
      if (!roster_.hold(reader_lock_number(line))) return Subscribed::busy;
      readers.line(line).pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
      cursor.position = readers.line(line).place.load(std::memory_order_relaxed) & ~dropped_bit;
      jump_to_start(cursor);
      return Subscribed::yes;
    }
    if (start > end.position()) return Subscribed::beyond;
    line = readers.take_line(roster_);
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
    PENSTOCK_FAILPOINT("readers.before_rejoin");
    place.store(before < earliest ? earliest : before, std::memory_order_relaxed);
    PENSTOCK_FAILPOINT("readers.rejoined");
    return earliest;
  }

  // Under the lock, by its owner.
  void unsubscribe(std::uint32_t line) noexcept {
    log_.readers().remove(line);
    roster_.let_go(reader_lock_number(line));
    log_.reclaim(backing());
    room().notify_all();
  }

  // Under the lock: a durable one keeps its place.
  void leave_reader(std::uint32_t line) noexcept {
    if (log_.readers().kind(line) == ReaderKind::ephemeral)
      unsubscribe(line);
    else
      roster_.let_go(reader_lock_number(line));
  }

  // Without the lock: an ephemeral one is buried by whoever looks next, and we look at the next chance.
  void abandon_reader(std::uint32_t line) noexcept {
    roster_.let_go(reader_lock_number(line));
    last_burial_ns_.store(0, std::memory_order_relaxed);
    room().notify_all();
  }

  // Under the lock, by anybody; false: somebody holds it.
  [[nodiscard]] bool forget_reader(std::uint32_t line) noexcept {
    if (!roster_.hold(reader_lock_number(line))) return false;
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

  // Everything up to now is on the disk, and will be believed after a crash of the machine. 0, or the error number.
  [[nodiscard]] int sync() noexcept {
    const std::uint64_t position = map().end(std::memory_order_acquire).position();
    if (fdatasync(roster_.descriptor()) != 0) return errno;
    PENSTOCK_FAILPOINT("sync.written");
    std::uint64_t before = synced();
    // relaxed: the two syncs order it for the disk, and nobody else reads it
    while (before < position &&
           !control().synced.compare_exchange_weak(before, position, std::memory_order_relaxed)) {
    }
    PENSTOCK_FAILPOINT("sync.noted");
    return fdatasync(roster_.descriptor()) == 0 ? 0 : errno;
  }
  [[nodiscard]] std::uint64_t synced() const noexcept { return control().synced.load(std::memory_order_relaxed); }

  // Has the machine been started anew since somebody last used the queue? Then settle_boot(), under the lock.
  [[nodiscard]] bool is_of_another_boot() const noexcept {
    return control().boot_id[0].load(std::memory_order_relaxed) != identity_.boot_id[0] ||
           control().boot_id[1].load(std::memory_order_relaxed) != identity_.boot_id[1];
  }
  [[nodiscard]] bool settle_boot() noexcept {
    if (!is_of_another_boot()) return true;
    // The first half is stored last: a kill in between leaves a new queue new, and an old one to be settled again.
    const bool is_new = control().boot_id[0].load(std::memory_order_relaxed) == 0;
    if (!is_new) log_.repair().roll_back_to(synced());
    if (!repair()) return false;
    PENSTOCK_FAILPOINT("boot.settled");
    control().boot_id[1].store(identity_.boot_id[1], std::memory_order_relaxed);
    PENSTOCK_FAILPOINT("boot.half_noted");
    control().boot_id[0].store(identity_.boot_id[0], std::memory_order_relaxed);
    return true;
  }

  [[nodiscard]] std::uint32_t count_alive() const noexcept {
    std::uint32_t alive = 0;
    for (std::uint32_t line = 0; line < roster_.used(); ++line) alive += roster_.is_alive(line);
    return alive;
  }

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
    if (outcome == Appended::done && put > 0) {
      // What a crash of the machine would take back must not be counted: the intent stays until it cannot (T2).
      if (is_durable_) (void)sync();
      complete(*line, put);
    }
    return outcome;
  }

  static constexpr std::uint64_t outside = 1;
  static constexpr std::uint64_t at_the_lock = 2;

  // release: whoever sees us outside sees the lock as we left it
  void note(std::uint32_t line, std::uint64_t where) noexcept {
    roster_.lines()[line].intent.store(where, std::memory_order_release);
  }

  [[nodiscard]] Entered noted(std::uint32_t line, Entered entered) noexcept {
    if (entered != Entered::yes) note(line, outside);
    return entered;
  }

  // Somebody alive whom the lock names, and who is not at it: then its word was written by nobody of us, and would
  // name that one for ever. An owner is at the lock from before it takes it until after it has left, and the word
  // changes with each who takes it (K2): the same word before and after means that it was held meanwhile.
  [[nodiscard]] bool lock_names_a_bystander() const noexcept {
    const std::uint64_t before = control().lock.load(std::memory_order_acquire);
    std::uint32_t line;
    if (!lock_.names(before, line) || line >= roster_.count()) return false;
    const std::uint64_t where = roster_.lines()[line].intent.load(std::memory_order_acquire);
    return where != at_the_lock && control().lock.load(std::memory_order_relaxed) == before;
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
    if (is_of_another_boot() ? settle_boot() : repair()) return Entered::yes;
    lock_.orphan(line);
    return Entered::corrupt;
  }

  void jump_to_start(Cursor& cursor) const noexcept {
    const std::uint64_t start = EventsWord{control().start.load(std::memory_order_relaxed)}.position();
    if (cursor.position < start) cursor.position = start;
  }

  EventLog log_;
  Roster roster_;
  Producers producers_;
  OwnerLock lock_;
  Patience patience_;
  std::uint64_t arena_offset_;
  Identity identity_;
  bool is_durable_;
  std::atomic<std::int64_t> last_burial_ns_{0};
};

}  // namespace penstock
