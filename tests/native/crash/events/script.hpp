// The events queue's operations, the states in which a case begins, and one process of a case.
//
// Every case has two durable readers: the witness, which needs all that must not be lost, and the mover, which the
// operations move, drop and remove.
#pragma once

#include "crash/events/put_once.hpp"
#include "crash/harness/staging.hpp"

namespace queueduct::crash {

enum class EventsOp : std::uint8_t {
  put_one,
  put_many,  // over several chunks
  put_long,  // an item of several blocks
  put_once,  // the plan of a named producer
  forget,    // another producer's name
  clear,
  keep_last,
  subscribe,            // a new durable reader
  subscribe_ephemeral,
  unsubscribe,
  commit,
  read,       // an ephemeral reader, over all chunks
  read_late,  // one that needs the last item only
  look,       // somebody who is not registered, over all chunks
  witness,    // reads all that there is as the witness, and commits it
  wait,
  rejoin,
  abandon,
  sync,
  boot,  // opens the log after a crash of the machine, and finds the mover again
  shutdown,
  join,
  leave,
  resume,
  advance,
  slay,
};

[[nodiscard]] inline const char* name_of(EventsOp op) noexcept {
  constexpr const char* names[] = {
      "put_one",   "put_many",  "put_long",            "put_once",    "forget", "clear",  "keep_last",
      "subscribe", "subscribe_ephemeral",              "unsubscribe", "commit", "read",   "read_late",
      "look",      "witness",   "wait",                "rejoin",      "abandon",   "sync",   "boot",
      "shutdown",  "join",      "leave",               "resume",      "advance", "slay"};
  return names[static_cast<std::size_t>(op)];
}

using EventsStep = StepOf<EventsOp>;

struct EventsKind {
  const char* name;
  EventsSettings settings;
};

// How many items there are, and how many of them both readers have passed; `all`: as many as fit.
struct EventsOccupancy {
  static constexpr std::uint64_t all = 1000;
  const char* name;
  std::uint64_t items;
  std::uint64_t passed = 0;
  bool is_rebooted = false;
  bool has_mover = true;
  bool has_dropped = false;  // where readers may be dropped: filling it has dropped them
};

inline const std::vector<EventsOccupancy> events_occupancies = {
    {"empty", 0},
    {"one", 1},
    {"chunk_full", 4},
    {"across", 11, 5},
    {"passed", 24, 17},  // the open chunk is full: the next item makes one, and three can be freed for it
    {"budget_full", EventsOccupancy::all},
    {"budget_read", EventsOccupancy::all, EventsOccupancy::all},
};
inline constexpr EventsOccupancy events_alone = {.name = "alone", .items = 0, .has_mover = false};  // but the witness
inline constexpr EventsOccupancy events_dropped = {
    .name = "dropped", .items = EventsOccupancy::all, .has_dropped = true};
inline constexpr EventsOccupancy events_rebooted = {"rebooted", 11, 5, true};
inline constexpr std::uint64_t synced_before_boot = 7;
inline constexpr std::uint64_t planned_before_boot = 6;  // the plan's first two items: the crash takes one of them
inline constexpr std::uint64_t moved_before_boot = 9;    // the mover's place, beyond what is left
inline constexpr Identity today{{3, 4}, 0};

struct EventsScene {
  EventsKind shape;
  EventsOccupancy occupancy;

  [[nodiscard]] std::string name() const { return std::string(shape.name) + "/" + occupancy.name; }
  [[nodiscard]] std::uint16_t short_length() const noexcept {
    return static_cast<std::uint16_t>(shape.settings.varies ? 20 : shape.settings.item_bytes);
  }
  [[nodiscard]] std::uint16_t long_length() const noexcept {
    return static_cast<std::uint16_t>(shape.settings.varies ? 9000 : shape.settings.item_bytes);
  }
  [[nodiscard]] std::vector<std::uint16_t> several() const {
    std::vector<std::uint16_t> lengths(14, short_length());
    if (shape.settings.varies) lengths[5] = 200;
    return lengths;
  }
};

// What an operation needs before it begins; no place to die.
inline void get_ready(EventsContext& context, EventsOp op, EventsSubscription& subscription) {
  const bool uses_mover = op == EventsOp::commit || op == EventsOp::unsubscribe || op == EventsOp::rejoin;
  const bool reads = op == EventsOp::read || op == EventsOp::read_late;
  if (!uses_mover && !reads && op != EventsOp::wait) return;
  if (!enter(context)) return;
  std::uint64_t from = earliest_position(context.map());
  if (op == EventsOp::read_late && from < context.end()) from = context.end() - 1;
  const bool is_there = !uses_mover || context.attached.log().readers().find("mover", 5) != Readers::none;
  if (!is_there || subscribe(context, uses_mover ? "mover" : "", from, subscription) != Subscribed::yes)
    subscription.line = Readers::none;
  context.queue().leave();
  if (op == EventsOp::commit && subscription.line != Readers::none) (void)read_all(context, subscription);
}

inline void commit(EventsContext& context, EventsSubscription& subscription) {
  context.probe.target = subscription.cursor.position;
  if (move_to(context.map(), context.map().readers[subscription.line], subscription.cursor.position))
    context.probe.has_moved = true;
}

inline void do_inside(EventsContext& context, EventsOp op, EventsSubscription& subscription) {
  EventsQueue& queue = context.queue();
  const std::uint64_t end = context.end();
  switch (op) {
    case EventsOp::clear:
      context.probe.target = end;
      queue.log().keep_last(queue.backing(), 0);
      break;
    case EventsOp::keep_last:
      context.probe.target = end < 3 ? nowhere : end - 3;
      queue.log().keep_last(queue.backing(), 3);
      break;
    case EventsOp::subscribe:
      context.probe.target = end;
      (void)subscribe(context, "fresh", end, subscription);
      break;
    case EventsOp::subscribe_ephemeral:
      (void)subscribe(context, "", earliest_position(context.map()), subscription);
      break;
    case EventsOp::unsubscribe: queue.unsubscribe(subscription.line); break;
    case EventsOp::rejoin: (void)queue.rejoin(subscription.line, subscription.cursor); break;
    case EventsOp::abandon: (void)queue.abandon_dead_readers(true); break;
    case EventsOp::boot: (void)subscribe(context, "mover", 0, subscription); break;
    case EventsOp::forget: forget_another(context.attached.producers(), owner_word(context)); break;
    case EventsOp::shutdown: queue.log().shut_down(); break;
    default: break;
  }
}

// If nobody else is the witness.
inline void read_as_witness(EventsContext& context, EventsSubscription& witness) {
  if (!enter(context)) return;
  const Subscribed subscribed = subscribe(context, "witness", 0, witness);
  context.queue().leave();
  if (subscribed != Subscribed::yes) return;
  ReadResult found = ReadResult::lost;
  if (!(context.map().readers[witness.line].place.load() & dropped_bit)) found = read_all(context, witness);
  if (found == ReadResult::lost && context.map().may_drop) {
    if (!enter(context)) return context.queue().participant_table().let_go(reader_lock_number(witness.line));
    (void)context.queue().rejoin(witness.line, witness.cursor);
    context.queue().leave();
  } else if (found == ReadResult::lost || found == ReadResult::corrupt) {
    context.probe.complain("the witness cannot read to the end");
  } else {
    commit(context, witness);
  }
  context.queue().participant_table().let_go(reader_lock_number(witness.line));
}

// Do the operation once, as a participant that has joined.
inline void perform(EventsContext& context, const EventsScene& scene, EventsOp op, EventsSubscription& subscription) {
  EventsQueue& queue = context.queue();
  const bool has_line = subscription.line != Readers::none;
  switch (op) {
    case EventsOp::put_one: (void)put_items(context, {scene.short_length()}); return;
    case EventsOp::put_many: (void)put_items(context, scene.several()); return;
    case EventsOp::put_long: (void)put_items(context, {scene.long_length()}); return;
    case EventsOp::put_once: (void)put_planned(context); return;
    case EventsOp::join: return;  // done on the way here
    default: break;
  }
  context.probe.begin_operation();
  if (op == EventsOp::boot) open_log(context);
  if (op == EventsOp::commit && has_line) {
    commit(context, subscription);
  } else if (op == EventsOp::witness) {
    read_as_witness(context, subscription);
  } else if (op == EventsOp::look) {
    (void)look_from(context, earliest_position(context.map()));
  } else if ((op == EventsOp::read || op == EventsOp::read_late) && has_line) {
    if (read_all(context, subscription) == ReadResult::corrupt)
      context.probe.complain("a reader found the queue corrupt");
  } else if (op == EventsOp::wait && has_line) {
    if (move_to(context.map(), context.map().readers[subscription.line], subscription.cursor.position))
      queue.wait_for_items(context.end(), 300'000);
  } else if (op == EventsOp::sync) {
    if (queue.sync() != 0) context.probe.complain("a sync failed");
  } else if (op == EventsOp::leave) {
    queue.participant_table().leave();
  } else if (has_line || (op != EventsOp::unsubscribe && op != EventsOp::rejoin)) {
    if (!enter(context)) return;
    do_inside(context, op, subscription);
    queue.leave();
    queue.items().notify();
  }
  context.probe.has_returned = true;
}

// What is expected of the durable readers after an operation, or what its process has done of it.
inline void expect(EventsHistory& history, const EventsProbe& probe, EventsOp op) {
  history.settle(probe);
  if (op == EventsOp::commit && probe.has_moved) history.mover.place = probe.target;
  if (op == EventsOp::witness && probe.has_moved && probe.target != nowhere && history.base < probe.target)
    history.base = probe.target;
  if (op == EventsOp::unsubscribe && probe.has_removed) history.mover.place = nowhere;
  if (op == EventsOp::subscribe && probe.has_joined) history.fresh.place = probe.target;
}

}  // namespace queueduct::crash
