// A bounded queue as its users hold it: the ring, who sleeps on it, who is dead, when to look for them.
#pragma once

#include "ring/items.hpp"
#include "ring/recovery.hpp"
#include "segment/idle.hpp"
#include "segment/rest.hpp"

namespace queueduct {

[[nodiscard]] inline bool is_ended(const Ring& ring) noexcept {
  const std::uint64_t pushed = ring.push_position->load(std::memory_order_relaxed);
  return (pushed & closed_bit) && (pushed & ~closed_bit) == ring.pop_position->load(std::memory_order_relaxed);
}

// From here on no claim of the closed side succeeds: its compare-and-swap expects a word without the bit.
// True: gets were ended by this call, and what is left belongs to the caller.
inline bool shut_down(const Ring& ring, Event items, Event room, bool immediate) noexcept {
  QUEUEDUCT_FAILPOINT("shutdown.before");
  ring.push_position->fetch_or(closed_bit, std::memory_order_acq_rel);
  QUEUEDUCT_FAILPOINT("shutdown.push_closed");
  const bool ended_gets =
      immediate && !(ring.pop_position->fetch_or(closed_bit, std::memory_order_acq_rel) & closed_bit);
  QUEUEDUCT_FAILPOINT("shutdown.closed");
  std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
  items.wake_all();
  room.wake_all();
  return ended_gets;
}

// A queue in shared memory, as one process has it.
class BoundedQueueHandle {
 public:
  using Ring = queueduct::Ring;
  using Recovery = queueduct::Recovery;

  BoundedQueueHandle(std::byte* base, const BoundedOffsets& at, std::uint64_t capacity, std::uint64_t slot_bytes,
              std::uint32_t participants, std::uint32_t producers, int lock_fd, Identity identity) noexcept
      : control_(reinterpret_cast<BoundedControl*>(base + at.control)),
        ring_(make_ring(base, at, control_, capacity, slot_bytes)),
        participant_table_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), participants,
                &control_->participants_used, identity),
        producers_(at.producers == 0 ? nullptr : reinterpret_cast<ProducersHead*>(base + at.producers), producers, participant_table_),
        recovery_(OneRing(ring_), participant_table_, producers_, {&control_->tombstones, &control_->redelivered}) {}

  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }
  [[nodiscard]] BoundedControl& control() const noexcept { return *control_; }
  [[nodiscard]] ParticipantTable& participant_table() noexcept { return participant_table_; }
  [[nodiscard]] const ParticipantTable& participant_table() const noexcept { return participant_table_; }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }
  [[nodiscard]] Recovery& recovery() noexcept { return recovery_; }
  [[nodiscard]] Event items() const noexcept { return Event(&control_->items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control_->room.word); }

  // The calling thread's line. False: it has none yet, call join(); after a fork it must join again.
  [[nodiscard]] bool find_participant(Participant& ledger) const noexcept {
    const std::uint32_t line = participant_table_.mine_plus_one();
    if (line == 0) [[unlikely]] return false;
    ledger = {participant_table_.lines() + line - 1, line - 1};
    return true;
  }
  // The same as an owner word, by which this participant owns things in the segment.
  [[nodiscard]] std::uint64_t owner_word(Participant ledger) const noexcept {
    return owner::word_of(participant_table_, ledger.number());
  }
  // A table is full of the living or not at all: lines of the dead are kept back until what they claimed is
  // recovered, and perhaps nobody else is here to do it; and somebody may just look whether one is settled.
  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    return join_by([this](auto is_settled) { return participant_table_.join(is_settled); });
  }
  // A line that is no thread's: see BoundedLease.
  [[nodiscard]] ParticipantTable::Joined join_apart(Participant& ledger) noexcept {
    std::uint32_t line = 0;
    const ParticipantTable::Joined joined =
        join_by([this, &line](auto is_settled) { return participant_table_.join_apart(is_settled, line); });
    if (joined == ParticipantTable::Joined::yes) ledger = {participant_table_.lines() + line, line};
    return joined;
  }

  // For a lease, which may be on any queue of rings.
  [[nodiscard]] Outcome peek(Participant ledger, Peeked& peeked, Ring& ring) noexcept {
    ring = ring_;
    return queueduct::peek(ring_, ledger, peeked);
  }
  [[nodiscard]] Recovery::RecoveryScan recover() noexcept { return recovery_.run(); }
  [[nodiscard]] std::uint64_t try_redeliver_many(Participant ledger, const Recovery::RecoveryScan& found, Redelivered* items,
                                             std::uint64_t limit) noexcept {
    return recovery_.try_redeliver_many(ledger, found, items, limit);
  }
  // Where memory comes and goes a look has to be announced: see growing_looks.hpp. Here it stays.
  template <class Use>
  [[nodiscard]] static bool with_guard(Participant, const Ring&, Use use) noexcept {
    use();
    return true;
  }
  template <class Use>
  static void with_full_guard(Participant, Use use) noexcept {
    use();
  }
  void after_release(const Ring&) noexcept {}

  // Of a queue that is shut down and empty: is anything out that may come back, and that the caller may wait for?
  [[nodiscard]] bool may_come_again() noexcept {
    return !rest_.has_this_thread_any() && recovery_.count_out(1) != 0;  // O1, O3
  }
  [[nodiscard]] std::uint64_t count_leased() noexcept { return recovery_.count_out(~std::uint64_t{0}); }
  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  void wake_the_rest() noexcept {
    Rest::wake(items(), [this] { return (ring_.push_position->load(std::memory_order_relaxed) & closed_bit) != 0; });
  }

  // A `try_` that met a slot in mid-copy, or found nothing, looks for the dead, but not each time:
  // looking is a pass over the table. Nobody is declared dead by this clock; it only says when to ask.
  [[nodiscard]] bool recovery_is_due(Outcome outcome) noexcept {
    const std::int64_t now = monotonic_ns();
    const std::int64_t interval = outcome == Outcome::busy ? 200'000 : 10'000'000;
    if (now - last_recovery_ns_.load(std::memory_order_relaxed) < interval && !recovery_.has_more()) return false;
    last_recovery_ns_.store(now, std::memory_order_relaxed);
    return true;
  }

  // For a producer: abandon the dead, skip what is abandoned at the front, and send a consumer for the rest.
  [[nodiscard]] bool make_room(Participant ledger) noexcept {
    const Recovery::RecoveryScan found = recovery_.run();
    if (found.redeliverable) items().wake_one();
    return skip_buried(ledger) > 0 || found.changed;
  }
  // What is abandoned at the front. Returns how many slots.
  std::uint64_t skip_buried(Participant ledger) noexcept {
    Peeked front;
    (void)queueduct::peek(ring_, ledger, front);
    return front.skipped;
  }

  // For a named producer whose predecessor was killed: find out what of its last put is in. busy: not yet known,
  // since somebody else who lives is in the way of burying the rest.
  [[nodiscard]] Outcome settle_producer(ProducerLine& line) noexcept {
    for (int look = 0;; ++look) {
      const Outcome outcome = settle(ring_, line);
      if (outcome != Outcome::busy || look == settle_looks) return outcome;
      const Recovery::RecoveryScan found = recovery_.run();
      if (found.unclaimed) return Outcome::corrupt;
      if (found.redeliverable) items().wake_one();
      if (found.changed) continue;
      const timespec moment{.tv_sec = 0, .tv_nsec = 200'000};
      nanosleep(&moment, nullptr);
    }
  }

  // After try_redeliver: the last two steps of a pop.
  void finish_redelivered(Participant ledger, const Peeked& peeked, void* to) noexcept {
    copy_out(ring_, peeked.span.position, to, peeked.bytes);
    QUEUEDUCT_FAILPOINT("recover.copied");
    Recovery::release_redelivered(ring_, ledger, peeked.span);
    wake_the_rest();
  }

  void note_long_items() noexcept {
    if (control_->has_long_items.load(std::memory_order_relaxed) == 0)
      control_->has_long_items.store(1, std::memory_order_relaxed);  // a hint for qsize
  }

  // Are there slots between the positions that hold no item of their own?
  [[nodiscard]] bool may_hold_gaps() const noexcept {
    return control_->has_long_items.load(std::memory_order_relaxed) != 0 ||
           control_->tombstones.load(std::memory_order_relaxed) != 0;
  }

  [[nodiscard]] std::uint32_t count_alive() const noexcept {
    std::uint32_t alive = 0;
    for (std::uint32_t line = 0; line < participant_table_.used(); ++line) alive += participant_table_.is_alive(line);
    return alive;
  }

  void wait_for_items(std::int64_t limit_ns) noexcept {
    if (is_ended(ring_)) [[unlikely]] return rest_.wait(items(), [this] { return !may_come_again(); }, limit_ns);
    const std::uint64_t far = ring_.pop_position->load(std::memory_order_relaxed) + distance() - 1;
    wait_until(
        items(), item_patience_, [this] { return looks_poppable(ring_) || is_ended(ring_); },
        [this, far] { return ring_.generation_of(far).load(std::memory_order_relaxed) == generation::published(far); },
        limit_ns);
  }
  void wait_for_room(std::uint64_t slots, std::int64_t limit_ns) noexcept {
    const std::uint64_t far = ring_.push_position->load(std::memory_order_relaxed) + distance() - 1;
    wait_until(
        room(), room_patience_, [this, slots] { return looks_pushable(ring_, slots); },
        [this, far] { return ring_.generation_of(far).load(std::memory_order_relaxed) == generation::free(far); },
        limit_ns);
  }

 private:
  friend class LocalQueue;

  static constexpr int join_looks = 500;
  static constexpr int settle_looks = 50;

  template <class Join>
  [[nodiscard]] ParticipantTable::Joined join_by(Join join) noexcept {
    for (int look = 0;; ++look) {
      const ParticipantTable::Joined joined = join([this](std::uint32_t line) { return recovery_.hand_over_claims(line); });
      if (joined != ParticipantTable::Joined::table_full || look == join_looks || participant_table_.is_full_for_good(look)) return joined;
      (void)recovery_.run();
      const timespec moment{.tv_sec = 0, .tv_nsec = 200'000};
      nanosleep(&moment, nullptr);
    }
  }

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

  // How far behind is far: a few cache lines of generations, if the ring has them.
  [[nodiscard]] std::uint64_t distance() const noexcept { return ring_.capacity < 256 ? ring_.capacity / 4 + 1 : 64; }

  BoundedControl* control_;
  Ring ring_;
  ParticipantTable participant_table_;
  Producers producers_;
  Recovery recovery_;
  IdleStrategy item_patience_;
  IdleStrategy room_patience_;
  Rest rest_;
  std::atomic<std::int64_t> last_recovery_ns_{0};
};

// A queue of references within this process: the same ring on private memory, laid out as a segment
// with no participants.
class LocalQueue {
 public:
  [[nodiscard]] static BoundedOffsets offsets(std::uint64_t capacity) noexcept {
    return bounded_offsets(capacity, sizeof(void*), 0, 0, 0, false);
  }

  // `base`: page-aligned, zeroed, offsets(capacity).total bytes.
  LocalQueue(std::byte* base, std::uint64_t capacity) noexcept
      : control_(new (base + offsets(capacity).control) BoundedControl{}),
        ring_(BoundedQueueHandle::make_ring(base, offsets(capacity), control_, capacity, sizeof(void*))) {
    for (std::uint64_t i = 0; i < capacity; ++i) ring_.generations[i].store(i, std::memory_order_relaxed);
  }

  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }
  [[nodiscard]] Event items() const noexcept { return Event(&control_->items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control_->room.word); }

 private:
  BoundedControl* control_;
  Ring ring_;
};

}  // namespace queueduct
