// A named producer as SlotQueue lets it put for Python: own the line, settle what a dead predecessor left, go on where
// it stopped. And the ways to do it wrong that the campaign has to notice.
#pragma once

#include <algorithm>

#include "crash/slots/operations.hpp"

namespace queueduct::crash {

// One item, and then more than there are slots, so that a producer finds no room in the middle, and goes on later.
inline void make_plan(SlotsHistory& history, const SlotsScene& scene) {
  for (std::uint32_t s = 0; s < Plan::sequences; ++s)
    for (std::uint64_t i = 0; i < (s == 0 ? 1 : scene.shape.count + 1); ++i) {
      const std::uint32_t next = history.next_id.load();
      history.plan.add(s, history.new_item(static_cast<std::uint16_t>(
                              item_header + next % (scene.shape.slot_bytes - item_header))));
    }
}

[[nodiscard]] inline SlotOutcome publish_planned(SlotsContext& context, ProducerLine& line, Lease& lease,
                                                 std::uint64_t bytes) {
  if (slots_sabotage == SlotsSabotage::unintended || slots_sabotage == SlotsSabotage::early_count) {
    const bool is_early = slots_sabotage == SlotsSabotage::early_count;
    if (is_early) complete(line, 1);
    const SlotOutcome outcome = context.slots().publish(lease, bytes);
    if (!is_early && outcome == SlotOutcome::done) complete(line, 1);
    return outcome;
  }
  return publish_once(context.slots(), line, lease, bytes);
}

[[nodiscard]] inline bool settle_predecessor(SlotsContext& context, ProducerLine& line) {
  const bool is_open = progress_of(line).phase != Phase::idle;
  if (slots_sabotage == SlotsSabotage::fresh && is_open) complete(line, 0);
  if (slots_sabotage == SlotsSabotage::hasty && is_open)
    complete(line, slot_word::state_of(line.kept.load()) == slot_word::State::held);
  return context.queue().settle_producer(line);
}

// What is missing of a sequence of the plan, as far as there is room. The line is ours. False: there was none.
[[nodiscard]] inline bool put_missing(SlotsContext& context, ProducerLine& line, std::uint32_t sequence) {
  const Plan& plan = context.history.plan;
  if (!settle_predecessor(context, line)) context.probe.complain("put_once found the line of its producer corrupt");
  const Begun begun = begin(line, sequence, plan.counts[sequence]);
  if (begun == Begun::complete) return true;
  if (begun != Begun::yes) return context.probe.complain("put_once could not begin its sequence"), false;
  for (std::uint64_t i = progress_of(line).done; i < plan.counts[sequence]; ++i) {
    Lease lease;
    SlotOutcome outcome = context.attached.hold(lease);
    if (outcome == SlotOutcome::full && context.queue().recover_if_due(context.attached.me(), true))
      outcome = context.attached.hold(lease);
    if (outcome != SlotOutcome::done) return false;
    const std::uint32_t id = plan.ids[sequence][i];
    const std::uint16_t length = context.history.items[id].length.load();
    write_item(id, length, reinterpret_cast<unsigned char*>(lease.data));
    context.probe.put_id = id;
    context.probe.doing = Doing::publishing;
    outcome = publish_planned(context, line, lease, length);
    context.history.settle(context.probe);
    if (outcome == SlotOutcome::corrupt) context.probe.complain("put_once found the queue corrupt");
    if (outcome != SlotOutcome::done) return false;
    context.queue().items().notify();
  }
  return true;
}

// The plan from its beginning, as a process does that was started again and knows nothing.
inline void put_planned(SlotsContext& context) {
  context.probe.begin_operation();
  bool has_gone_on = true;
  for (std::uint32_t s = 0; s < Plan::sequences && has_gone_on; ++s) {
    ProducerLine* line = nullptr;
    const Producers::Taken taken =
        context.attached.producers().take(name_of_producer("planned"), context.queue().owner_word(), s,
                                          context.history.plan.counts[s], line);
    has_gone_on = taken == Producers::Taken::yes;
    if (!has_gone_on) {
      if (taken == Producers::Taken::table_full) context.probe.complain("put_once found no line for its producer");
      return;  // else somebody alive is at it
    }
    has_gone_on = put_missing(context, *line, s);
    Producers::leave(*line);
  }
}

inline void forget_a_name(SlotsContext& context) {
  context.probe.begin_operation();
  forget_another(context.attached.producers(), context.queue().owner_word());
}

[[nodiscard]] inline bool is_plan_complete(SlotsContext& context) {
  Producers& producers = context.attached.producers();
  const std::uint32_t last = Plan::sequences - 1;
  for (std::uint32_t i = 0; i < producers.count(); ++i) {
    Producers::Listed listed;
    if (producers.snapshot(i, listed) && std::strcmp(listed.name.text(), "planned") == 0)
      return listed.sequence == last && listed.done == context.history.plan.counts[last];
  }
  return false;
}

}  // namespace queueduct::crash
