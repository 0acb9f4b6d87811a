// The operations whose every step is a place to die, as SlotQueue does them for Python.
#pragma once

#include <string>
#include <vector>

#include "crash/slots/history.hpp"
#include "slots/lease.hpp"
#include "crash/harness/staging.hpp"

namespace queueduct::crash {

using testing::SlotsAttachment;
using testing::SlotsSegment;
using testing::SlotsSizes;

// Ways to be wrong that the campaign has to notice; used by its own test only.
enum class SlotsSabotage : std::uint8_t {
  none,
  unlocked,   // lives without the lock that says so
  forgetful,  // takes over a dead one's line, and leaves what it had
  nameless,   // does not mark its line: nobody asks whether it lives
  unwritten,  // publishes, and then writes
  // of a named producer: see put_once.hpp
  uncut,       // recovers without a look at the producers
  unintended,  // puts, and writes nothing down before
  early_count, // counts an item before it is in
  hasty,       // takes what is not decided yet for put
  fresh,       // takes what a predecessor left for nothing
};
inline SlotsSabotage slots_sabotage = SlotsSabotage::none;

enum class SlotsOp : std::uint8_t {
  put,
  get,
  overwrite,
  cancel,       // holds a slot, and gives it back
  put_back,     // takes an item, and lets another have it
  lease,        // takes some items, releases the first, gives the rest back
  put_once,     // the plan's items, from its beginning: in put_once.hpp
  forget,
  wait_put,
  wait_get,
  recover,
  set_capacity,
  shutdown,
  shutdown_now,
  join,
  leave,
  // not operations, but what happens to those who are stopped in one
  resume,
  advance,
  slay,
};

[[nodiscard]] inline const char* name_of(SlotsOp op) noexcept {
  constexpr const char* names[] = {"put",      "get",      "overwrite", "cancel",       "put_back", "lease",
                                   "put_once", "forget",   "wait_put",  "wait_get",     "recover",  "set_capacity",
                                   "shutdown", "shutdown_now", "join",  "leave",        "resume",   "advance",
                                   "slay"};
  return names[static_cast<std::size_t>(op)];
}

using SlotsStep = StepOf<SlotsOp>;

struct SlotsScene {
  SlotsSizes shape;
  const char* occupancy;
  std::uint64_t rounds;  // that came and went before
  std::uint64_t items;

  [[nodiscard]] std::string name() const {
    return "slots" + std::to_string(shape.count) + "/" + occupancy;
  }
};

struct SlotsContext {
  SlotsAttachment& attached;
  SlotsHistory& history;
  SlotsProbe& probe;

  [[nodiscard]] SlotsQueue& queue() const noexcept { return attached.queue(); }
  [[nodiscard]] Slots& slots() const noexcept { return attached.slots(); }
};

inline void join(SlotsAttachment& attached, SlotsProbe& probe) {
  if (slots_sabotage == SlotsSabotage::forgetful)
    (void)attached.queue().participant_table().join([](std::uint32_t) { return true; });
  probe.line = attached.me() - 1;
  if (slots_sabotage == SlotsSabotage::nameless)
    attached.queue().participant_table().lines()[probe.line].intent.store(0);
}

// Of those who will be killed or stopped; the survivors live with their locks.
inline void lose_lock(SlotsAttachment& attached, const SlotsProbe& probe) noexcept {
  if (slots_sabotage == SlotsSabotage::unlocked)
    ofd::lock(attached.queue().participant_table().descriptor(), probe.line, F_UNLCK);
}

// Lengths differ, and follow from nothing but the id.
[[nodiscard]] inline std::uint16_t length_of(const SlotsContext& context) noexcept {
  return static_cast<std::uint16_t>(item_header +
                                    context.history.next_id.load() % (context.slots().slot_bytes() - item_header));
}

// Fill a slot that we hold, and publish it.
[[nodiscard]] inline SlotOutcome fill(SlotsContext& context, Lease& lease) {
  const std::uint32_t id = context.history.new_item(length_of(context));
  if (id == 0) return SlotOutcome::full;
  const std::uint16_t length = context.history.items[id].length.load();
  auto* to = reinterpret_cast<unsigned char*>(lease.data);
  context.probe.put_id = id;
  context.probe.doing = Doing::publishing;
  if (slots_sabotage != SlotsSabotage::unwritten) write_item(id, length, to);
  const SlotOutcome outcome = context.slots().publish(lease, length);
  if (slots_sabotage == SlotsSabotage::unwritten) write_item(id, length, to);
  context.history.settle(context.probe);
  context.queue().items().notify();
  return outcome;
}

inline void end_item(SlotsContext& context, Lease& lease) {
  context.probe.doing = Doing::ending;
  if (!context.slots().leave(lease)) context.probe.complain("a slot could not be given back");
  context.history.settle(context.probe);
  context.queue().room().notify();
}

[[nodiscard]] inline SlotOutcome put_item(SlotsContext& context) {
  context.probe.begin_operation();
  Lease lease;
  const SlotOutcome outcome = context.attached.hold(lease);
  return outcome == SlotOutcome::done ? fill(context, lease) : outcome;
}

[[nodiscard]] inline SlotOutcome get_item(SlotsContext& context) {
  context.probe.begin_operation();
  Lease lease;
  const SlotOutcome outcome = context.attached.take(lease);
  if (outcome != SlotOutcome::done) return outcome;
  context.probe.got_id = context.history.see(lease);
  context.history.hand(context.probe, lease, context.probe.got_id);
  end_item(context, lease);
  return outcome;
}

// Which item an eviction ends is known only when it has it: so the claim is not watched, and whoever dies between
// the claim and the look has evicted what lies there, which abandon() finds out.
[[nodiscard]] inline SlotOutcome overwrite_item(SlotsContext& context) {
  context.probe.begin_operation();
  Lease lease;
  SlotOutcome outcome = context.attached.hold(lease);
  if (outcome == SlotOutcome::full) {
    context.probe.doing = Doing::evicting;
    outcome = context.slots().try_evict(context.attached.me(), lease);
    if (outcome != SlotOutcome::done) return outcome;
    context.probe.evicted_id = context.history.see(lease);
    context.history.settle(context.probe);
  }
  return outcome == SlotOutcome::done ? fill(context, lease) : outcome;
}

// What the dead had first, else what is new; the first is released, the others go to somebody else.
[[nodiscard]] inline SlotOutcome lease_items(SlotsContext& context) {
  SlotsProbe& probe = context.probe;
  probe.begin_operation();
  Lease leases[lease_limit];
  std::uint64_t count = 0;
  (void)context.queue().recover_if_due(context.attached.me(), true);
  const SlotOutcome outcome = try_lease(context.slots(), context.attached.me(), leases, lease_limit, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    probe.leased_ids[i] = context.history.see(leases[i]);
    context.history.hand(probe, leases[i], probe.leased_ids[i]);
    if (leases[i].redelivered != leases[0].redelivered) probe.complain("a lease is redelivered in part");
    if (i > 0 && leases[i].position <= leases[i - 1].position) probe.complain("a lease is not in order");
  }
  if (count == 0) return outcome;
  probe.leased = static_cast<std::uint32_t>(count);
  probe.doing = Doing::releasing;
  if (!end_lease(context.slots(), leases, count, (count + 1) / 2)) probe.complain("a leased slot was not ours");
  context.history.settle(probe);
  context.queue().room().notify();
  context.queue().items().notify();
  return outcome;
}

inline void change_capacity(SlotsContext& context) {
  context.probe.begin_operation();
  context.queue().set_capacity(1);
  for (;;) {
    Lease lease;
    context.probe.evicted_id = 0;
    context.probe.doing = Doing::evicting;
    const SlotOutcome outcome = context.slots().try_evict_surplus(context.attached.me(), lease);
    if (outcome != SlotOutcome::done) return;
    context.probe.evicted_id = context.history.see(lease);
    context.history.settle(context.probe);
    if (!context.slots().leave(lease)) context.probe.complain("an evicted slot could not be given back");
    context.queue().room().notify();
  }
}

inline void put_planned(SlotsContext& context);
inline void forget_a_name(SlotsContext& context);

// Do the operation once, as a participant that has joined.
inline void perform(SlotsContext& context, SlotsOp op) {
  SlotsQueue& queue = context.queue();
  Lease lease;
  SlotOutcome outcome = SlotOutcome::done;
  switch (op) {
    case SlotsOp::put: outcome = put_item(context); break;
    case SlotsOp::get: outcome = get_item(context); break;
    case SlotsOp::overwrite: outcome = overwrite_item(context); break;
    case SlotsOp::cancel:
      outcome = context.attached.hold(lease);
      if (outcome == SlotOutcome::done && !context.slots().leave(lease)) context.probe.complain("a slot was not ours");
      break;
    case SlotsOp::put_back:
      context.probe.begin_operation();
      outcome = context.attached.take(lease);
      if (outcome != SlotOutcome::done) break;
      context.history.hand(context.probe, lease, context.history.see(lease));
      if (!context.slots().put_back(lease)) context.probe.complain("an item was not ours");
      break;
    case SlotsOp::lease: outcome = lease_items(context); break;
    case SlotsOp::put_once: put_planned(context); break;
    case SlotsOp::forget: forget_a_name(context); break;
    case SlotsOp::wait_put:
      outcome = put_item(context);
      if (outcome == SlotOutcome::full && queue.recover_if_due(context.attached.me(), true))
        outcome = put_item(context);
      if (outcome == SlotOutcome::full) queue.wait_for_room(300'000);
      break;
    case SlotsOp::wait_get:
      outcome = get_item(context);
      if (outcome == SlotOutcome::empty && queue.recover_if_due(context.attached.me(), true))
        outcome = get_item(context);
      if (outcome == SlotOutcome::empty) queue.wait_for_items(300'000);
      break;
    case SlotsOp::recover: (void)queue.recover_if_due(context.attached.me(), true); break;
    case SlotsOp::set_capacity: change_capacity(context); break;
    case SlotsOp::shutdown: queue.shut_down(false); break;
    case SlotsOp::shutdown_now: queue.shut_down(true); break;
    case SlotsOp::join: break;  // done on the way here
    case SlotsOp::leave: queue.participant_table().leave(); break;
    default: break;  // the stage's, not ours
  }
  if (outcome == SlotOutcome::corrupt) context.probe.complain("the queue is called corrupt");
  context.probe.has_returned = true;
}

}  // namespace queueduct::crash
