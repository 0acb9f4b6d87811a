// The operations whose every step is a place to die, as EventQueue does them for Python: enter, do it, leave, wake.
#pragma once

#include <vector>

#include "crash/events/history.hpp"

namespace queueduct::crash {

using testing::EventsAttachment;
using testing::EventsSegment;
using testing::EventsSettings;

// Ways to be wrong that the campaign has to notice; used by its own test only.
enum class EventsSabotage : std::uint8_t {
  none,
  unlocked,    // lives without the lock that says so
  unrepaired,  // takes a dead one's lock as if it had been free
  forgetful,   // takes over a dead one's line and leaves the lock its number
  early,       // a reader that moves its place before it has read
  // of named producers, see put_once.hpp
  unsettled,    // takes a dead one's lock, and asks no producer what it was about to publish
  unintended,   // publishes without a word before
  early_count,  // counts as done what it is about to publish
};
inline EventsSabotage events_sabotage = EventsSabotage::none;

struct EventsContext {
  EventsAttachment& attached;
  EventsHistory& history;
  EventsProbe& probe;
  std::int64_t patience_ns = 0;  // for the lock: whoever holds it may be stopped

  [[nodiscard]] EventsQueue& queue() const noexcept { return attached.queue(); }
  [[nodiscard]] const EventsMap& map() const noexcept { return attached.map(); }
  [[nodiscard]] std::uint64_t end() const noexcept { return map().end(std::memory_order_acquire).position(); }
};

inline void join(EventsAttachment& attached, EventsProbe& probe) {
  if (events_sabotage == EventsSabotage::forgetful)
    (void)attached.queue().participant_table().join([](std::uint32_t) { return true; });
  probe.line = attached.line();
  probe.control = attached.map().control;
}

// Of those who will be killed or stopped; the survivors live with their locks.
inline void lose_lock(EventsAttachment& attached, const EventsProbe& probe) noexcept {
  if (events_sabotage == EventsSabotage::unlocked)
    ofd::lock(attached.queue().participant_table().descriptor(), probe.line, F_UNLCK);
}

// False: whoever holds the lock does not give it back in time.
[[nodiscard]] inline bool enter(EventsContext& context) {
  if (events_sabotage == EventsSabotage::unrepaired) {
    std::atomic<std::uint64_t>& lock = context.map().control->lock;
    const std::uint32_t owner = static_cast<std::uint32_t>(lock.load() & 0xffff);
    if (owner != 0 && (owner == 0xffff || !context.queue().participant_table().is_alive(owner - 1)))
      lock.fetch_and(~0xffffull);
  }
  const Entered entered = context.queue().enter(context.attached.line(), context.patience_ns);
  if (entered == Entered::corrupt) context.probe.complain("the queue is called corrupt");
  return entered == Entered::yes;
}

// What every participant does that opens a log on a disk, before anything else.
inline void open_log(EventsContext& context) {
  EventsQueue& queue = context.queue();
  const Settling settling = queue.begin_settling();
  if (settling == Settling::busy) context.probe.complain("a dead one's settling lock is held");
  if (settling != Settling::alone) return;
  bool is_settled = true;
  if (queue.must_settle()) {
    if (!enter(context)) return context.probe.complain("the lock of the last boot is not to be had");
    is_settled = queue.settle_boot();
    queue.leave();
  }
  if (!is_settled) context.probe.complain("another boot could not be settled");
  queue.end_settling(is_settled);
}

// Items of these lengths, by one append. How many went in.
inline std::uint64_t put_items(EventsContext& context, const std::vector<std::uint16_t>& lengths) {
  EventsProbe& probe = context.probe;
  probe.begin_operation();
  std::uint64_t all = 0;
  for (const std::uint16_t length : lengths) all += length;
  std::vector<unsigned char> bytes(all);
  std::vector<Buffer> items;
  unsigned char* at = bytes.data();
  for (const std::uint16_t length : lengths) {
    const std::uint32_t id = context.history.new_item(length);
    if (id == 0) return 0;
    write_item(id, length, at);
    items.push_back({at, length});
    at += length;
    probe.put_ids[probe.put_count++] = id;
  }
  if (!enter(context)) return 0;
  probe.first_position = context.end();
  std::uint64_t put = 0;
  const Appended outcome = context.map().varies
                               ? context.queue().append_bytes(items.data(), items.size(), put)
                               : context.queue().append_records(bytes.data(), items.size(), put);
  if (outcome == Appended::corrupt || outcome == Appended::no_memory || outcome == Appended::too_long)
    probe.complain("an append failed");
  probe.published_end = probe.first_position + put;
  context.history.settle(probe);
  context.queue().leave();
  context.queue().items().notify();
  probe.has_returned = true;
  return put;
}

// A reader's own part of a case.
struct EventsSubscription {
  std::uint32_t line = Readers::none;
  bool follows = false;
  Cursor cursor = {};
};

[[nodiscard]] inline Subscribed subscribe(EventsContext& context, const char* name, std::uint64_t start,
                                          EventsSubscription& subscription) {
  subscription.follows = name[0] == 0;
  return context.queue().subscribe(name, static_cast<std::uint32_t>(std::strlen(name)), !subscription.follows, start,
                                   subscription.line, subscription.cursor);
}

inline void see_item(EventsContext& context, const Run& run, std::uint64_t i, std::vector<unsigned char>& copy) {
  const EventsMap& map = context.map();
  auto begin = static_cast<std::uint32_t>(i * map.item_bytes);
  auto end = static_cast<std::uint32_t>(begin + map.item_bytes);
  copy.clear();
  if (map.varies && !item_bounds(map, run.chunk, i, begin, end)) return;
  const auto* from = reinterpret_cast<const unsigned char*>(items_of(map, run.chunk));
  copy.assign(from + begin, from + end);
}

// All that there is, session by session. Why it ended.
inline ReadResult read_all(EventsContext& context, EventsSubscription& subscription) {
  const EventsMap& map = context.map();
  ReaderLine& line = map.readers[subscription.line];
  Cursor& cursor = subscription.cursor;
  std::vector<unsigned char> copy;
  for (;;) {
    std::uint64_t end = 0;
    ReadResult found = begin_session(map, line, cursor, end);
    if (found != ReadResult::items) return found;
    if (events_sabotage == EventsSabotage::early && !move_to(map, line, end)) return ReadResult::lost;
    while (cursor.position < end) {
      Run run;
      found = next_run(map, line, subscription.follows, cursor, end, 3, run);
      if (found != ReadResult::items) return found;
      for (std::uint64_t i = run.at; i < run.at + run.items; ++i) {
        see_item(context, run, i, copy);
        if (!still_holds(map, line)) return ReadResult::lost;
        context.history.see(cursor.position++, copy.data(), copy.size());
      }
    }
  }
}

// Without being registered, from `position` on. How far it came.
inline std::uint64_t look_from(EventsContext& context, std::uint64_t position) {
  const std::uint64_t end = context.end();
  std::vector<unsigned char> copy;
  while (position < end) {
    Run run;
    if (run_at(context.map(), position, end, 5, run) != ReadResult::items) break;
    for (std::uint64_t i = run.at; i < run.at + run.items; ++i) {
      see_item(context, run, i, copy);
      if (!is_still_kept(context.map(), run.chunk.number)) return position;
      context.history.see(position++, copy.data(), copy.size());
    }
  }
  return position;
}

}  // namespace queueduct::crash
