// A handle on a bounded queue: one ring, whose memory stays. The protocol is in ring/operations.hpp.
#pragma once

#include "ring/lease.hpp"
#include "ring/local.hpp"

namespace queueduct {

[[nodiscard]] inline Ring bounded_ring(std::byte* base, const BoundedOffsets& at, std::uint64_t capacity,
                                       std::uint64_t slot_bytes) noexcept {
  auto* const control = reinterpret_cast<BoundedControl*>(base + at.control);
  Ring ring;
  ring.push_position = &control->push_position;
  ring.pop_position = &control->pop_position;
  ring.generations = reinterpret_cast<std::atomic<std::uint64_t>*>(base + at.generations);
  if (at.lengths != 0) ring.lengths = reinterpret_cast<std::atomic<std::uint32_t>*>(base + at.lengths);
  ring.payload = base + at.payload;
  ring.set_capacity(capacity);
  ring.slot_bytes = slot_bytes;
  return ring;
}

[[nodiscard]] inline bool is_ended(const Ring& ring) noexcept {
  const std::uint64_t pushed = ring.push_position->load(std::memory_order_relaxed);
  return (pushed & closed_bit) && (pushed & ~closed_bit) == ring.pop_position->load(std::memory_order_relaxed);
}

// From here on no claim of the closed side succeeds: its compare-and-swap expects a word without the bit.
// Returns true if this call ended the gets: the items left belong to the caller.
[[nodiscard]] inline bool close_ring(const Ring& ring, bool immediate) noexcept {
  QUEUEDUCT_FAILPOINT("shutdown.before");
  ring.push_position->fetch_or(closed_bit, std::memory_order_acq_rel);
  QUEUEDUCT_FAILPOINT("shutdown.push_closed");
  const bool ended_gets =
      immediate && !(ring.pop_position->fetch_or(closed_bit, std::memory_order_acq_rel) & closed_bit);
  QUEUEDUCT_FAILPOINT("shutdown.closed");
  return ended_gets;
}

// One process's handle on a queue in shared memory.
class BoundedQueueHandle final : public RingOperations<BoundedQueueHandle, OneRing> {
 public:
  static constexpr bool recovers_with_own_line = false;
  static constexpr bool has_tickets = true;  // positions of items have no gaps but tombstones

  BoundedQueueHandle(std::byte* base, const BoundedOffsets& at, std::uint64_t capacity, std::uint64_t slot_bytes,
                     std::uint32_t participants, std::uint32_t producers, int lock_fd, Identity identity) noexcept
      : RingOperations(words_of(*reinterpret_cast<BoundedControl*>(base + at.control)), base, at, slot_bytes,
                       {participants, producers}, lock_fd, identity, OneRing(ring_)),
        control_(reinterpret_cast<BoundedControl*>(base + at.control)),
        ring_(bounded_ring(base, at, capacity, slot_bytes)) {}

  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }
  [[nodiscard]] BoundedControl& control() const noexcept { return *control_; }
  [[nodiscard]] std::uint64_t item_slots_limit() const noexcept override { return ring_.claim_limit(); }

  // What RingOperations needs. Memory neither comes nor goes, so nothing is guarded and there is no upkeep.
  [[nodiscard, gnu::always_inline]] inline Outcome put_into_ring(Participant, std::uint64_t, auto attempt) noexcept {
    return attempt(ring_);
  }
  [[nodiscard, gnu::always_inline]] inline Outcome peek(Participant me, Item& item) noexcept {
    return queueduct::peek(ring_, me, item);
  }
  [[nodiscard]] const Ring* ring_of(Participant, const Item&) const noexcept { return &ring_; }
  [[nodiscard]] RecoveryScan recover() noexcept { return recovery().run(); }
  void remember(Participant, const RecoveryScan&) noexcept {}
  [[nodiscard]] const Ring& remembered_ring(Participant) const noexcept { return ring_; }
  [[nodiscard]] static bool may_redeliver() noexcept { return true; }
  void drop_guard() noexcept override {}
  [[nodiscard]] static bool with_guard(Participant, const Ring&, auto use) noexcept {
    use();
    return true;
  }
  static void with_full_guard(Participant, auto use) noexcept { use(); }
  static void with_upkeep_lock(auto use) noexcept { use(); }
  [[nodiscard]] static bool try_with_upkeep_lock(auto use) noexcept {
    use();
    return true;
  }
  static void as_joiner(auto use) noexcept { use(true); }
  static void before_new_owner(std::uint32_t) noexcept {}
  [[nodiscard]] static bool is_lock_corrupt() noexcept { return false; }
  static void after_get(const Ring&) noexcept {}
  static void after_release(const Ring&) noexcept {}
  using RingOperations::after_get;
  [[nodiscard]] static bool reclaim_some() noexcept { return false; }
  void upkeep_while_empty() noexcept override {}
  [[nodiscard]] Outcome try_settle(ProducerLine& line) noexcept { return settle(ring_, line); }
  [[nodiscard]] bool close_rings(bool immediate) noexcept { return close_ring(ring_, immediate); }
  [[nodiscard]] bool is_shut() const noexcept {
    return (ring_.push_position->load(std::memory_order_relaxed) & closed_bit) != 0;
  }
  [[nodiscard]] bool is_ended() const noexcept { return queueduct::is_ended(ring_); }
  [[nodiscard]] bool is_discarded() const noexcept override { return queueduct::is_discarded(ring_); }
  [[nodiscard]] std::uint64_t count_in_rings(bool walk) const noexcept { return queueduct::count_items(ring_, walk); }

  [[nodiscard]] bool may_be_gettable() const noexcept override { return may_be_poppable(ring_); }
  [[nodiscard]] bool may_be_puttable() const noexcept override { return may_be_pushable(ring_, 1); }
  [[nodiscard]] bool is_worth_a_try(Outcome) noexcept override { return false; }
  void wait_for_front(std::int64_t limit_ns) noexcept {
    const std::uint64_t far = ring_.pop_position->load(std::memory_order_relaxed) + distance() - 1;
    wait_until(
        items(), item_idle_, [this] { return may_be_poppable(ring_) || is_ended(); },
        [this, far] { return ring_.generation_of(far).load(std::memory_order_relaxed) == generation::published(far); },
        limit_ns);
  }
  void wait_for_room(Outcome, std::uint64_t slots, std::int64_t limit_ns) noexcept override {
    const std::uint64_t far = ring_.push_position->load(std::memory_order_relaxed) + distance() - 1;
    wait_until(
        room(), room_idle_, [this, slots] { return may_be_pushable(ring_, slots); },
        [this, far] { return ring_.generation_of(far).load(std::memory_order_relaxed) == generation::free(far); },
        limit_ns);
  }
  [[nodiscard]] std::size_t lease_bytes() const noexcept override { return sizeof(BasicLease<BoundedQueueHandle>); }
  [[nodiscard]] RingLease* lease_at(void* memory) noexcept override {
    return new (memory) BasicLease<BoundedQueueHandle>(*this);
  }

 private:
  // The distance of `far`: a few cache lines of generations, if the ring has them.
  [[nodiscard]] std::uint64_t distance() const noexcept { return ring_.capacity < 256 ? ring_.capacity / 4 + 1 : 64; }

  BoundedControl* control_;
  Ring ring_;
};
using BoundedLease = BasicLease<BoundedQueueHandle>;

// A queue of references within this process: the same ring on private memory, laid out as a segment without
// participants.
template <class Claim>
class BoundedLocal final : public LocalOperations<BoundedLocal<Claim>, Claim, Ring> {
  using Operations = LocalOperations<BoundedLocal<Claim>, Claim, Ring>;

 public:
  // Memory for the constructor; its base() is null if there is none.
  [[nodiscard]] static PrivateMemory memory(std::uint64_t capacity) noexcept { return {offsets(capacity).total, true}; }
  BoundedLocal(PrivateMemory memory, std::uint64_t capacity) noexcept
      : Operations(std::move(memory)), ring_(bounded_ring(this->base(), offsets(capacity), capacity, sizeof(void*))) {
    this->set_events(*reinterpret_cast<BoundedControl*>(this->base() + offsets(capacity).control));
    for (std::uint64_t i = 0; i < capacity; ++i) ring_.generations[i].store(i, std::memory_order_relaxed);
  }
  [[nodiscard]] static BoundedOffsets offsets(std::uint64_t capacity) noexcept {
    return bounded_offsets(capacity, sizeof(void*), 0, 0, 0, false);
  }
  [[nodiscard]] const Ring& ring() const noexcept { return ring_; }

  // What LocalOperations needs.
  [[nodiscard, gnu::always_inline]] inline Outcome put_into_ring(auto attempt) noexcept {
    return attempt(ring_);
  }
  [[nodiscard, gnu::always_inline]] inline Outcome peek(LocalFound& found, Ring&, const Ring*& ring) noexcept {
    ring = &ring_;
    return queueduct::peek(ring_, Claim{}, found);
  }
  [[nodiscard]] const Ring* ring_of(const LocalFound&, Ring&) const noexcept { return &ring_; }
  static void after_get(const Ring&) noexcept {}
  void each_ring(auto use) const noexcept { use(ring_); }
  [[nodiscard]] bool close_rings(bool immediate) noexcept { return close_ring(ring_, immediate); }

  [[nodiscard]] std::uint64_t pushed() const noexcept override {
    return ring_.push_position->load(std::memory_order_acquire) & ~closed_bit;
  }
  [[nodiscard]] std::uint64_t claim_limit() const noexcept override { return ring_.capacity; }
  [[nodiscard]] bool may_be_gettable() const noexcept override { return may_be_poppable(ring_) || is_ended(ring_); }
  [[nodiscard]] bool may_be_puttable() const noexcept override { return may_be_pushable(ring_, 1); }
  [[nodiscard]] bool is_worth_a_try(Outcome) noexcept override { return false; }
  void upkeep_while_empty() noexcept override {}

 private:
  Ring ring_;
};

}  // namespace queueduct
