// The idempotent producer of an events queue: one lock serialises all puts, so one look tells whether one happened.
//
// Shape      under the lock:  intend(end, n)  ──►  publish  ──►  sync  ──►  complete(n)
// Roles      the holder of the queue's lock; whoever takes it over from the dead settles first.
//            the extent's first half is `done` as it will be then: so of an idle line it tells whether the extent is that of
//            what was counted last, or of an intent that a kill cut short
// Invariants T1  an intent is written after the items and before `end` is stored.
//            T2  whoever takes the lock over from the dead undoes what was intended and is not beyond `end`, before anything
//                else is published. So of a line that is found intended later, the publish has happened.
//            T3  it is counted when it cannot be taken back any more: on a disk after a sync. Until then the line stays
//                intended, and its producer, when it comes again, syncs and counts.
// Progress   under the lock.
#pragma once

#include "events/log.hpp"
#include "segment/producers.hpp"

namespace queueduct {

[[nodiscard]] inline bool has_happened(const ProducerLine& line, std::uint64_t end) noexcept {
  return end >= line.position.load(std::memory_order_relaxed) +
                    Extent::unpack(line.extent.load(std::memory_order_relaxed)).items;  // T2
}

// Under the lock, by its producer.
inline void settle_intent(ProducerLine& line, const EventsMap& map) noexcept {
  const std::uint64_t items = Extent::unpack(line.extent.load(std::memory_order_relaxed)).items;
  complete(line, has_happened(line, map.end(std::memory_order_relaxed).position()) ? items : 0);
}

// After a take-over of the lock, before anything else is published: what did not happen must not seem to later.
inline void settle_intents(const Producers& producers, const EventsMap& map) noexcept {
  const std::uint64_t end = map.end(std::memory_order_relaxed).position();
  for (std::uint32_t i = 0; i < producers.count(); ++i) {
    ProducerLine& line = producers.lines()[i];
    const Progress now = progress_of(line);
    if (!now.is_used || now.phase == Phase::idle) continue;
    // what happened is counted by the producer itself, when it comes again: it must be on the disk before
    if (!has_happened(line, end)) complete(line, 0);
  }
}

// After the log was cut at `position`, by who knows that nobody else lives: what is gone is not done, and nobody is at
// work. Of a line's publishes only the last can be gone, since each was on the disk before it was counted.
inline void roll_back_producers(const Producers& producers, std::uint64_t position) noexcept {
  producers.disown_all();
  for (std::uint32_t i = 0; i < producers.count(); ++i) {
    ProducerLine& line = producers.lines()[i];
    Progress now = progress_of(line);
    if (!now.is_used) continue;
    const std::uint64_t begin = line.position.load(std::memory_order_relaxed);
    const Extent extent = Extent::unpack(line.extent.load(std::memory_order_relaxed));
    const std::uint64_t items = extent.items;
    const std::uint64_t kept = position <= begin ? 0 : position - begin < items ? position - begin : items;
    if (now.phase == Phase::idle) {
      if (kept == items || now.done == 0 || extent.slots != now.done) continue;
      now.phase = Phase::intended;  // as it was before the publish: from there it can be done twice
      now.done -= items < now.done ? items : now.done;
      store_progress(line, now, "once.before_undo", "once.undone");
    }
    line.extent.store(Extent{now.done + kept, kept}.packed(), std::memory_order_relaxed);  // carried out by release N2
    complete(line, kept);
  }
}

// Tells a producer's line of each publish.
struct IntendFirst {
  ProducerLine* line;
  void operator()(std::uint64_t position, std::uint64_t items) const noexcept {
    intend(*line, position, {progress_of(*line).done + items, items});  // T1
  }
};

}  // namespace queueduct
