// A lease on slots: items that are taken and copied, and given back only when their holder says so.
//
// Shape      take some ─► copy ─► … the holder works … ─┬─► leave all
//                                                      ├─► leave some, put the rest back
//                                                      └─► killed
//            A taken slot is a lease of one item already (slots/slots.hpp): this is several of them at a time.
// Roles      one holder, one call at a time. The memory for the leases is the caller's.
// Invariants E1  a slot that was neither left nor put back names its holder, and is recovered when the holder dies: its
//                item is redelivered, at its position. Only recovery and put_back() make a slot ORPHANED, so an item
//                that may have been delivered before is always flagged.
//            E2  a lease has redelivered items only, or new ones only.
//            E3  items are left in order: a released item is never redelivered, one that was not released always is.
// Progress   as a take. The holder of a lease keeps its slots from others, and nothing else.
// Source     ours; killed at every step in tests/native/crash_slots.cpp.
#pragma once

#include <algorithm>

#include "slots/queue.hpp"

namespace queueduct {

// The oldest `limit` ORPHANED slots by position, into leases. Returns how many.
[[nodiscard]] inline std::uint64_t list_orphans(const Slots& slots, Lease* leases, std::uint64_t limit) noexcept {
  const auto is_older = [](const Lease& one, const Lease& other) { return one.position < other.position; };
  std::uint64_t count = 0;
  for (std::uint64_t slot = 0; slot < slots.count(); ++slot) {
    if (slot_word::state_of(slots.word_of(slot)) != slot_word::State::orphaned) continue;
    Lease found{slot};
    found.position = slots.position_of(slot);
    if (count == limit) {  // a heap: the youngest goes
      if (!is_older(found, leases[0])) continue;
      std::pop_heap(leases, leases + count--, is_older);
    }
    leases[count++] = found;
    std::push_heap(leases, leases + count, is_older);
  }
  std::sort_heap(leases, leases + count, is_older);
  return count;
}

// Leases up to `limit` ORPHANED items or, where there are none, new ones: done, empty, closed or corrupt. keeps E2
[[nodiscard]] inline SlotOutcome try_lease(Slots& slots, std::uint32_t me, Lease* leases, std::uint64_t limit,
                                           std::uint64_t& count) noexcept {
  count = 0;
  if (slots.closed() & Slots::gets_closed) return SlotOutcome::closed;
  std::atomic<std::uint32_t>& hint = slots.control().may_be_orphaned;
  if (hint.load(std::memory_order_acquire) != 0) {
    hint.store(0, std::memory_order_relaxed);  // before the scan, as in claim_orphan()
    const std::uint64_t listed = list_orphans(slots, leases, limit);
    QUEUEDUCT_FAILPOINT("lease.listed");
    for (std::uint64_t i = 0; i < listed; ++i)
      if (Lease one; slots.claim_orphan(leases[i].slot, slot_word::State::taken, me, one)) leases[count++] = one;
    if (listed != 0) hint.store(1, std::memory_order_release);  // there may be more
    if (count != 0) return SlotOutcome::done;
  }
  SlotOutcome outcome = SlotOutcome::done;
  while (count < limit && outcome == SlotOutcome::done) {
    outcome = slots.try_take_new(me, leases[count]);
    count += outcome == SlotOutcome::done;
  }
  return count != 0 ? SlotOutcome::done : outcome;
}

// The bytes of the first `count` items.
[[nodiscard]] inline std::uint64_t bytes_of(const Lease* leases, std::uint64_t count) noexcept {
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < count; ++i) bytes += leases[i].bytes;
  return bytes;
}

// Releases the first `released` for good; the others are redelivered. Returns false if the words contradict each other.
// keeps E3
[[nodiscard]] inline bool end_lease(Slots& slots, Lease* leases, std::uint64_t count, std::uint64_t released) noexcept {
  bool is_sound = true;
  for (std::uint64_t i = 0; i < released; ++i) {
    QUEUEDUCT_FAILPOINT("lease.before_release");
    is_sound &= slots.leave(leases[i]);
  }
  QUEUEDUCT_FAILPOINT("lease.released");
  for (std::uint64_t i = released; i < count; ++i) is_sound &= slots.put_back(leases[i]);
  return is_sound;
}

// The positions of items that were taken and not left, by the living or the dead: at most one a slot. Returns how many.
[[nodiscard]] inline std::uint64_t list_unreleased(const Slots& slots, std::uint64_t* positions) noexcept {
  std::uint64_t count = 0;
  for (std::uint64_t slot = 0; slot < slots.count(); ++slot) {
    for (;;) {
      const std::uint64_t word = slots.word_of(slot);
      const slot_word::State state = slot_word::state_of(word);
      if (state != slot_word::State::taken && state != slot_word::State::orphaned) break;
      const std::uint64_t position = slots.position_of(slot);
      // so that a position of the slot's next item comes with its next word
      std::atomic_thread_fence(std::memory_order_acquire);
      if (slots.word_of(slot) != word) continue;
      positions[count++] = position;
      break;
    }
  }
  return count;
}

}  // namespace queueduct
