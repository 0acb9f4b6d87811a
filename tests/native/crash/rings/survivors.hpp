// What live processes do after a case, or while others are stopped in it, and what they must be able to do.
#pragma once

#include "crash/rings/script.hpp"

namespace queueduct::crash {

inline constexpr std::uint8_t survivor_putter = 200;

// Both survivors, in one process with two attachments: to the queue they are two.
struct Survivors {
  Survivors(const Segment& segment_, History& history_, const Scene& scene_)
      : segment(segment_), history(history_), scene(scene_), consumer(segment_), producer(segment_) {
    join(consumer, probe);
    join(producer, probe);
  }

  const Segment& segment;
  History& history;
  const Scene& scene;
  Attachment consumer;
  Attachment producer;
  Probe& probe = history.probes[survivor_probe];
  Context getting{consumer, history, probe, survivor_putter};
  Context putting{producer, history, probe, survivor_putter};

  [[nodiscard]] std::uint64_t capacity() const noexcept { return scene.shape.capacity; }

  // One-slot items until it says full; how many.
  [[nodiscard]] std::uint64_t fill() {
    std::uint64_t put = 0;
    while (put <= 2 * capacity() && put_items(putting, {scene.short_length()}) == Outcome::done) ++put;
    return put;
  }

  // All that there is; how many. Only beside a stopped producer may a slot stay claimed.
  [[nodiscard]] std::uint64_t drain(bool may_stay_claimed = false) {
    Outcome outcome = Outcome::done;
    std::uint64_t got = 0;
    while (got <= 8 * capacity() && (outcome = get_items(getting, 1)) == Outcome::done) ++got;
    if (outcome == Outcome::busy && !may_stay_claimed)
      probe.complain("a slot stays claimed and nobody will publish it");
    return got;
  }
};

[[nodiscard]] inline bool is_shut(const Segment& segment) noexcept {
  return segment.control().push_position.load() & closed_bit;
}

// Slots of items that are in the queue, or that a dead consumer had taken, and that somebody is owed.
[[nodiscard]] inline std::uint64_t slots_owed(const Segment& segment, const History& history) noexcept {
  std::uint64_t slots = 0;
  for (std::uint32_t id = 1; id < history.next_id.load() && id < item_limit; ++id) {
    const Item& item = history.items[id];
    if (item.is_in.load() && item.delivered.load() + item.gone.load() == 0)
      slots += segment.ring().slots_for(item.length.load());
  }
  return slots;
}

// The producer is started again, with somebody who takes what is in its way: afterwards all of its plan is in.
inline void finish_plan(Survivors& survivors) {
  if (!survivors.history.plan.exists()) return;
  Outcome outcome = Outcome::full;
  for (int tries = 0; tries < 64 && outcome == Outcome::full; ++tries) {
    outcome = put_planned(survivors.putting);
    if (outcome == Outcome::full) (void)get_items(survivors.getting, 1);
  }
  if (outcome != Outcome::done)
    return survivors.probe.complain("a producer that was started again did not come to its end");
  survivors.history.plan.for_each([&](std::uint32_t id) { survivors.history.items[id].is_in.store(true); });
  if (put_planned(survivors.putting) != Outcome::done)
    survivors.probe.complain("a plan that is complete was not let be");
  if (!every_line_is_usable(survivors.producer.producers(), owner_word(survivors.putting)))
    survivors.probe.complain("a line of the table of producers has leaked");
}

// The end of every case: the queue must be as good as new.
inline void close_case(const Segment& segment, History& history, const Scene& scene, Closing closing) {
  Survivors survivors(segment, history, scene);
  Probe& probe = survivors.probe;
  if (closing.attached_before) raise(SIGSTOP);  // until the case has happened
  const std::int64_t start = monotonic_ns();
  finish_plan(survivors);
  const bool is_discarded_now = is_discarded(segment.ring());
  if (closing.producer_first && !is_shut(segment)) {
    const bool is_free = slots_owed(segment, history) == 0;
    const std::uint64_t put = survivors.fill();
    if (is_free && put != survivors.capacity()) probe.complain("a producer alone did not get the whole ring");
  }
  (void)survivors.drain();
  if (monotonic_ns() - start > recovery_limit_ns) probe.complain("slow");
  if (!is_shut(segment)) {
    if (survivors.fill() != survivors.capacity()) probe.complain("slots have leaked: it holds less than its capacity");
    if (survivors.drain() != survivors.capacity()) probe.complain("the ring does not give what it was given");
  } else if (!is_discarded_now && segment.ring().pop_position->load() !=
                                      (segment.ring().push_position->load() & ~closed_bit)) {
    probe.complain("shut down, and not drained");
  }
  Attachment others(segment);
  std::uint32_t joined = 0;
  while (others.queue().join() == ParticipantTable::Joined::yes) ++joined;
  if (joined + 2 != scene.shape.participants) probe.complain("lines of the dead cannot be used again");
}

// While others are stopped, and nobody has died: what the ring offers can be had, and the living are left alone.
inline void go_on_beside_the_stopped(const Segment& segment, History& history, const Scene& scene) {
  Survivors survivors(segment, history, scene);
  const Ring ring = segment.ring();
  std::uint64_t position = ring.pop_position->load();
  std::uint64_t items = 0;
  while (!(position & closed_bit) && ring.generation_of(position).load() == generation::published(position)) {
    position += ring.lengths == nullptr ? 1 : ring.slots_for(ring.length_of(position).load());
    ++items;
  }
  if (survivors.drain(true) != items) survivors.probe.complain("beside a stopped process gets did not go on");
  std::uint64_t room = 0;
  position = ring.push_position->load();
  while (!(position & closed_bit) && room < ring.capacity &&
         ring.generation_of(position + room).load() == generation::free(position + room))
    ++room;
  if (survivors.fill() != room) survivors.probe.complain("beside a stopped process puts did not go on");
  if (segment.control().tombstones.load() != 0) survivors.probe.complain("a living process was abandoned");
  if (segment.control().redelivered.load() != 0)
    survivors.probe.complain("an item of a living process was redelivered");
}

}  // namespace queueduct::crash
