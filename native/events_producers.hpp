// The idempotent producer of an events queue: one lock serialises all puts, so one look tells whether one happened.
//
// Shape      under the lock:  intend(end, n)  ──►  publish  ──►  complete(n)
// Roles      the holder of the queue's lock; whoever takes it over from the dead settles first.
// Invariants T1  an intent is written after the items and before `end` is stored.
//            T2  a line is found intended only by whoever took the lock over: its writer died between the two. Until
//                then nobody else could publish, so `end` is beyond the intent's position if, and only if, that
//                publish happened.
// Progress   under the lock.
#pragma once

#include "events_log.hpp"
#include "producers.hpp"

namespace penstock {

// After a take-over of the lock, before anything else is published.
inline void settle_intents(const Producers& producers, const EventsMap& map) noexcept {
  const std::uint64_t end = map.end(std::memory_order_relaxed).position();
  for (std::uint32_t i = 0; i < producers.count(); ++i) {
    ProducerLine& line = producers.lines()[i];
    const Progress now = progress_of(line);
    if (!now.is_used || now.phase == Phase::idle) continue;
    const std::uint64_t items = Extent::unpack(line.extent.load(std::memory_order_relaxed)).items;
    const bool happened = end >= line.position.load(std::memory_order_relaxed) + items;  // T2
    complete(line, happened ? items : 0);
  }
}

// Tells a producer's line of each publish.
struct IntendFirst {
  ProducerLine* line;
  void operator()(std::uint64_t position, std::uint64_t items) const noexcept {
    intend(*line, position, {items, items});  // T1
  }
};

}  // namespace penstock
