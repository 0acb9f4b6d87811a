// A lease as BoundedQueue takes it for Python: what the dead had first, then what is at the front.
#pragma once

#include "crash/rings/operations.hpp"

namespace queueduct::crash {

// What is held, in the probe: from it follows what became of it if its holder is killed.
inline void note_held(Context& context, const BoundedLease& lease, const Redelivered* items, std::uint64_t count) {
  Probe& probe = context.probe;
  probe.released = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    unsigned char bytes[4096];
    copy_out(context.ring(), items[i].span.position, bytes, items[i].bytes);
    probe.taken_ids[i] = read_item(context.history, bytes, items[i].bytes);
    // of an redelivered item only the head is released by a store
    probe.taken_slots[i] = lease.is_redelivered() ? 1 : static_cast<std::uint32_t>(items[i].span.slots);
  }
  probe.taken_count = static_cast<std::uint32_t>(count);
  QUEUEDUCT_FAILPOINT("lease.held");
}

[[nodiscard]] inline std::uint64_t hold(Context& context, BoundedLease& lease, Redelivered* items,
                                        std::uint64_t limit) {
  std::uint64_t count = 0;
  context.queue().recover_at_once();
  const Outcome outcome = lease.claim(items, limit, count, true, run_here);
  if (outcome == Outcome::corrupt) context.probe.complain("a lease found the queue corrupt");
  return outcome == Outcome::done ? count : 0;
}

// After the release of the first `kept` of what is held.
inline void note_released(Context& context, std::uint64_t count, std::uint64_t kept) {
  Probe& probe = context.probe;
  for (std::uint64_t i = 0; i < count; ++i)
    if (probe.taken_ids[i] == 0) context.history.torn.fetch_add(1);
  for (std::uint64_t i = 0; i < kept; ++i) {
    context.history.items[probe.taken_ids[i]].delivered.fetch_add(1);
    context.history.delivered_in_all.fetch_add(1);
  }
  probe.taken_count = 0;  // from here on it is settled: what was released is delivered, the rest is not
}

// Up to `limit` items, of which so many are released; the rest is given back.
inline Outcome lease_items(Context& context, std::uint64_t limit, std::uint64_t released) {
  Probe& probe = context.probe;
  probe.begin_operation();
  BoundedLease lease(context.queue());
  if (lease.join() != ParticipantTable::Joined::yes) {
    probe.complain("no line for a lease");
    return Outcome::full;
  }
  probe.line = lease.line();
  Redelivered items[operation_items];
  const std::uint64_t count = hold(context, lease, items, limit);
  if (count != 0) {
    note_held(context, lease, items, count);
    if (sabotage == Sabotage::early_end) lease.let_go();
    const std::uint64_t kept = released < count ? released : count;
    lease.release(items, kept, kept == count);
    note_released(context, count, kept);
    lease.let_go();
    context.queue().room().notify();
    context.queue().items().notify();
  }
  return count == 0 ? Outcome::empty : Outcome::done;
}

// The same as a get whose items somebody else's code converts: with the thread's line, and more than is released is
// given back only if that code fails.
inline Outcome convert_items(Context& context, std::uint64_t limit, std::uint64_t released) {
  context.probe.begin_operation();
  BoundedLease lease(context.queue());
  lease.borrow(context.attached.ledger());
  Redelivered items[operation_items];
  const std::uint64_t count = hold(context, lease, items, limit);
  if (count == 0) return Outcome::empty;
  lease.set_apart();
  note_held(context, lease, items, count);
  const std::uint64_t kept = released < count ? released : count;
  if (kept == count) {
    lease.finish(items, count);
    note_released(context, count, kept);
  } else {
    lease.release(items, kept, false);
    note_released(context, count, kept);
    lease.let_go();
  }
  context.queue().room().notify();
  context.queue().items().notify();
  return Outcome::done;
}

}  // namespace queueduct::crash
