// A bounded queue as its users hold it: the ring, who sleeps on it, who is dead, when to look for them.
#pragma once

#include "bounded_items.hpp"
#include "bounded_recovery.hpp"
#include "wait.hpp"

namespace penstock {

// How long to wait before falling asleep. A sleep and its wake-up cost tens of microseconds, so a short
// spin pays when the other side runs on another core, and only then.
struct SpinPolicy {
  std::int64_t spin_ns = 25'000;
  bool crowded = false;  // more workers than cores: give the core away instead
};

// Both kinds of queue wait in the same way: spin on `ready`, announce, look again, sleep.
// `ready` is a cheap hint. Returns after a wake-up, a signal, or limit_ns; the caller tries again.
template <class Ready>
void wait_until(Event event, Ready ready, SpinPolicy spin, std::int64_t limit_ns) noexcept {
  const std::int64_t spin_end = monotonic_ns() + (spin.spin_ns < limit_ns ? spin.spin_ns : limit_ns);
  if (spin.crowded) {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return;
      sched_yield();
    }
  } else {
    for (int pauses = 4; spin.spin_ns > 0; pauses = pauses < 64 ? pauses * 2 : 64) {
      if (ready()) return;
      for (int i = 0; i < pauses; ++i) cpu_pause();
      if (pauses == 64 && monotonic_ns() >= spin_end) break;
    }
  }
  const std::uint32_t ticket = event.announce();
  if (ready()) return;  // W1
  event.park(ticket, limit_ns < park_limit_ns ? limit_ns : park_limit_ns);
}

[[nodiscard]] inline bool is_ended(const Ring& ring) noexcept {
  const std::uint64_t pushed = ring.push_position->load(std::memory_order_relaxed);
  return (pushed & closed_bit) && (pushed & ~closed_bit) == ring.pop_position->load(std::memory_order_relaxed);
}

// From here on no claim of the closed side succeeds: its compare-and-swap expects a word without the bit.
inline void shut_down(const Ring& ring, Event items, Event room, bool immediate) noexcept {
  ring.push_position->fetch_or(closed_bit, std::memory_order_acq_rel);
  PENSTOCK_FAILPOINT("shutdown.push_closed");
  if (immediate) ring.pop_position->fetch_or(closed_bit, std::memory_order_acq_rel);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
  items.wake_all();
  room.wake_all();
}

// A queue in shared memory, as one process has it.
class SharedQueue {
 public:
  SharedQueue(std::byte* base, const BoundedOffsets& at, std::uint64_t capacity, std::uint64_t slot_bytes,
              std::uint32_t participants, int lock_fd, Identity identity) noexcept
      : control_(reinterpret_cast<BoundedControl*>(base + at.control)),
        ring_(make_ring(base, at, control_, capacity, slot_bytes)),
        roster_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), participants,
                &control_->participants_used, identity),
        recovery_(ring_, roster_, {&control_->tombstones, &control_->adopted}),
        cores_(usable_cores()) {}

  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }
  [[nodiscard]] BoundedControl& control() const noexcept { return *control_; }
  [[nodiscard]] Roster& roster() noexcept { return roster_; }
  [[nodiscard]] Recovery& recovery() noexcept { return recovery_; }
  [[nodiscard]] Event items() const noexcept { return Event(&control_->items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control_->room.word); }

  // The calling thread's line. False: it has none yet, call join(); after a fork it must join again.
  [[nodiscard]] bool find_ledger(SharedLedger& ledger) const noexcept {
    const std::uint32_t line = roster_.mine_plus_one();
    if (line == 0) [[unlikely]] return false;
    ledger = {roster_.lines() + line - 1, line - 1};
    return true;
  }
  [[nodiscard]] Roster::Joined join() noexcept {
    return roster_.join([this](std::uint32_t line) { return recovery_.is_settled(line); });
  }

  // A `try_` that met a slot in mid-copy, or found nothing, looks for the dead, but not each time:
  // looking is a pass over the table. Nobody is declared dead by this clock; it only says when to ask.
  [[nodiscard]] bool recovery_is_due(Outcome outcome) noexcept {
    const std::int64_t now = monotonic_ns();
    const std::int64_t interval = outcome == Outcome::busy ? 200'000 : 10'000'000;
    if (now - last_recovery_ns_.load(std::memory_order_relaxed) < interval) return false;
    last_recovery_ns_.store(now, std::memory_order_relaxed);
    return true;
  }

  // For a producer: bury the dead, skip what is buried at the front, and send a consumer for the rest.
  [[nodiscard]] bool make_room(SharedLedger ledger) noexcept {
    const Recovery::Found found = recovery_.run();
    if (found.adoptable) items().wake_one();
    Peeked front;
    (void)peek(ring_, ledger, front);
    return found.changed || front.skipped > 0;
  }

  void note_long_items() noexcept {
    if (control_->has_long_items.load(std::memory_order_relaxed) == 0)
      control_->has_long_items.store(1, std::memory_order_relaxed);  // a hint for qsize
  }

  [[nodiscard]] std::uint32_t count_alive() const noexcept {
    std::uint32_t alive = 0;
    for (std::uint32_t line = 0; line < roster_.used(); ++line) alive += roster_.is_alive(line);
    return alive;
  }

  void wait_for_items(std::int64_t limit_ns) noexcept {
    wait_until(items(), [this] { return looks_poppable(ring_) || is_ended(ring_); }, spin_policy(), limit_ns);
  }
  void wait_for_room(std::uint64_t slots, std::int64_t limit_ns) noexcept {
    wait_until(room(), [this, slots] { return looks_pushable(ring_, slots); }, spin_policy(), limit_ns);
  }

 private:
  friend class LocalQueue;

  static Ring make_ring(std::byte* base, const BoundedOffsets& at, BoundedControl* control, std::uint64_t capacity,
                        std::uint64_t slot_bytes) noexcept {
    Ring ring;
    ring.push_position = &control->push_position;
    ring.pop_position = &control->pop_position;
    ring.generations = reinterpret_cast<std::atomic<std::uint64_t>*>(base + at.generations);
    if (at.lengths != 0) ring.lengths = reinterpret_cast<std::atomic<std::uint32_t>*>(base + at.lengths);
    ring.payload = base + at.payload;
    ring.capacity = capacity;
    ring.mask = capacity - 1;
    ring.slot_bytes = slot_bytes;
    return ring;
  }

  [[nodiscard]] SpinPolicy spin_policy() const noexcept {
    return {25'000, static_cast<int>(roster_.used()) > cores_};
  }

  BoundedControl* control_;
  Ring ring_;
  Roster roster_;
  Recovery recovery_;
  int cores_;
  std::atomic<std::int64_t> last_recovery_ns_{0};
};

// A queue of references within this process: the same ring on private memory, laid out as a segment
// with no participants.
class LocalQueue {
 public:
  [[nodiscard]] static BoundedOffsets offsets(std::uint64_t capacity) noexcept {
    return bounded_offsets(capacity, sizeof(void*), 0, 0, false);
  }

  // `base`: page-aligned, zeroed, offsets(capacity).total bytes.
  LocalQueue(std::byte* base, std::uint64_t capacity) noexcept
      : control_(new (base + offsets(capacity).control) BoundedControl{}),
        ring_(SharedQueue::make_ring(base, offsets(capacity), control_, capacity, sizeof(void*))) {
    for (std::uint64_t i = 0; i < capacity; ++i) ring_.generations[i].store(i, std::memory_order_relaxed);
  }

  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }
  [[nodiscard]] Event items() const noexcept { return Event(&control_->items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control_->room.word); }

 private:
  BoundedControl* control_;
  Ring ring_;
};

}  // namespace penstock
