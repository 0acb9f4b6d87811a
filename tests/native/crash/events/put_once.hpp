// put_once as EventQueue does it for Python: own the line under the lock, then append what is missing, each time under
// the lock. And the ways to do it wrong that the campaign has to notice.
#pragma once

#include "crash/events/operations.hpp"

namespace queueduct::crash {

enum class Planned : std::uint8_t {
  done,
  full,
  busy,  // somebody alive is at it, or holds the lock
  closed,
  wrong,
};

[[nodiscard]] inline std::uint64_t owner_word(EventsContext& context) {
  return owner::word_of(context.queue().participant_table(), context.attached.line());
}

// Under the lock.
[[nodiscard]] inline Appended append_planned(EventsContext& context, ProducerLine& line, const Buffer* items,
                                             std::uint64_t count, std::uint64_t& put) {
  EventsQueue& queue = context.queue();
  const bool is_early = events_sabotage == EventsSabotage::early_count;
  if (!is_early && events_sabotage != EventsSabotage::unintended)
    return context.map().varies ? queue.append_bytes(items, count, put, &line)
                                : queue.append_records(items->data, count, put, &line);
  if (is_early) complete(line, count);
  const Appended outcome = context.map().varies ? queue.append_bytes(items, count, put)
                                                : queue.append_records(items->data, count, put);
  if (!is_early && outcome == Appended::done) complete(line, put);
  return outcome;
}

// What is missing of a sequence of the plan, as far as there is room. The line is ours.
[[nodiscard]] inline Planned put_missing(EventsContext& context, ProducerLine& line, const std::vector<Buffer>& items,
                                         std::uint32_t sequence) {
  EventsProbe& probe = context.probe;
  for (std::uint64_t done = progress_of(line).done; done < items.size();) {
    if (!enter(context)) return Planned::busy;
    probe.published_end = 0;
    probe.put_count = 0;
    for (std::uint64_t i = done; i < items.size(); ++i)
      probe.put_ids[probe.put_count++] = context.history.plan.ids[sequence][i];
    probe.first_position = context.end();
    std::uint64_t put = 0;
    const Appended outcome = append_planned(context, line, items.data() + done, items.size() - done, put);
    probe.published_end = probe.first_position + put;
    context.history.settle(probe);
    context.queue().leave();
    if (outcome == Appended::full) return Planned::full;
    if (outcome == Appended::closed) return Planned::closed;
    if (outcome != Appended::done) return probe.complain("an append of put_once failed"), Planned::wrong;
    context.queue().items().notify();
    done += put;
  }
  return Planned::done;
}

[[nodiscard]] inline Planned put_sequence(EventsContext& context, std::uint32_t sequence) {
  const PlannedItems planned(context.history, sequence);
  const std::uint64_t total = planned.buffers.size();
  ProducerLine* line = nullptr;
  if (!enter(context)) return Planned::busy;
  const Producers::Taken taken =
      context.attached.producers().take(name_of_producer("planned"), owner_word(context), sequence, total, line);
  if (taken == Producers::Taken::yes && context.queue().confirm_once(*line) != 0)
    context.probe.complain("a sync failed");
  const Begun begun = taken == Producers::Taken::yes ? begin(*line, sequence, total) : Begun::yes;
  context.queue().leave();
  if (taken == Producers::Taken::in_use || taken == Producers::Taken::table_busy) return Planned::busy;
  if (taken != Producers::Taken::yes)
    return context.probe.complain("put_once found no line for its producer"), Planned::wrong;
  Planned outcome = Planned::done;
  if (begun == Begun::yes) {
    outcome = put_missing(context, *line, planned.buffers, sequence);
  } else if (begun != Begun::complete) {
    context.probe.complain("put_once could not begin its sequence");
    outcome = Planned::wrong;
  }
  Producers::leave(*line);
  return outcome;
}

// The plan from its beginning, as a process does that was started again and knows nothing.
inline Planned put_planned(EventsContext& context) {
  context.probe.begin_operation();
  Planned outcome = Planned::done;
  for (std::uint32_t s = 0; s < Plan::sequences && outcome == Planned::done; ++s) outcome = put_sequence(context, s);
  context.probe.has_returned = true;
  return outcome;
}

}  // namespace queueduct::crash
