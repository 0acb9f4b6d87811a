// The groups of cases of the events queue. As for the bounded one, failpoints are learned by recording.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: readers go on, writers too unless it holds the lock, and it goes on later
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   pair        one is killed, then the next one is killed at every point of what it does about it
//   inherit     the same, where the dead one's line stays its own: the next one takes the lock over from it
#pragma once

#include "crash/harness/groups.hpp"
#include "crash/events/stage.hpp"

namespace queueduct::crash {

using EventsWorker = WorkerOf<EventsPlay>;
using EventsTurns = TurnsOf<EventsPlay>;
using EventsCase = StageOf<EventsPlay>::Case;

inline const std::vector<EventsOp> every_events_op = {
    EventsOp::put_one,   EventsOp::put_many,  EventsOp::put_long,    EventsOp::put_once,
    EventsOp::forget,    EventsOp::clear,     EventsOp::keep_last,   EventsOp::subscribe,
    EventsOp::subscribe_ephemeral,            EventsOp::unsubscribe, EventsOp::commit,
    EventsOp::read,      EventsOp::read_late, EventsOp::look,        EventsOp::wait,
    EventsOp::abandon,      EventsOp::sync,      EventsOp::shutdown,    EventsOp::join,
    EventsOp::leave};

[[nodiscard]] inline std::vector<EventsScene> events_scenes() {
  constexpr EventsSettings records{
      .max_bytes = 1024, .block_bytes = 4096, .blocks = 24, .chunk_lines = 32, .readers = 6};
  constexpr EventsSettings bytes{.max_bytes = 20'000, .block_bytes = 4096, .blocks = 32, .chunk_lines = 32,
                                 .readers = 6, .varies = true};
  EventsSettings narrow = records;  // lines of the directory are used again before the budget is
  narrow.chunk_lines = 8;
  EventsSettings dropping = records;
  dropping.may_drop = true;
  std::vector<EventsScene> scenes;
  for (const EventsKind& kind : {EventsKind{"records", records}, EventsKind{"bytes", bytes},
                                 EventsKind{"narrow", narrow}, EventsKind{"dropping", dropping}})
    for (const EventsOccupancy& occupancy : events_occupancies) scenes.push_back({kind, occupancy});
  scenes.push_back({{"dropping", dropping}, events_dropped});
  return scenes;
}

class EventsGroups : public GroupsOf<EventsGroups, EventsPlay> {
 public:
  explicit EventsGroups(EventsTurns& turns) : GroupsOf(turns) {}

  void pass_units() {
    for (const EventsScene& scene : events_scenes()) {
      for (const EventsOp op : every_events_op) {
        if (is_left_to_the_long_form(scene, op)) continue;
        add_each("single", scene, op, Fire::kill);
        add_each("stop", scene, op, Fire::stop, {4});
      }
      if (scene.shape.settings.may_drop) add_each("single", scene, EventsOp::rejoin, Fire::kill);
      for (const EventsOp first : every_events_op) {
        for (const EventsOp second : seconds(first)) {
          if (is_left_to_the_long_form(scene, first)) continue;
          add_pair("pair", scene, {}, first, second);
          add_two("contending", scene, {}, first, Fire::stop, second, 24, {5, in_long(first, second)});
        }
      }
      if (options_.is_long || scene.occupancy.passed != 0) add_inheritances(scene);
    }
    const EventsScene rebooted{events_scenes().front().shape, events_rebooted};
    add_each("single", rebooted, EventsOp::boot, Fire::kill);
    add_pair("pair", rebooted, {}, EventsOp::boot, EventsOp::boot);
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"single", "stop", "contending", "pair", "inherit", "soak"};
    return names;
  }

 private:
  // What producers do depends little on how full it is, and not on the directory.
  [[nodiscard]] bool is_left_to_the_long_form(const EventsScene& scene, EventsOp op) const {
    if (options_.is_long) return false;
    if (op == EventsOp::forget) return scene.occupancy.items != 1;
    return op == EventsOp::put_once && scene.name().starts_with("narrow/");
  }

  [[nodiscard]] std::vector<EventsOp> seconds(EventsOp first) const {
    if (options_.is_long)
      return {EventsOp::put_one,     EventsOp::put_many, EventsOp::put_long, EventsOp::put_once,
              EventsOp::clear,       EventsOp::subscribe, EventsOp::unsubscribe, EventsOp::commit,
              EventsOp::read,        EventsOp::abandon,     EventsOp::join};
    if (first == EventsOp::put_once) return {EventsOp::put_many, EventsOp::put_once, EventsOp::join};
    return {EventsOp::put_many, EventsOp::join};
  }

  friend GroupsOf;

  // Of the machine's last boot nobody is left: whoever had the log open before would have settled it.
  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn, const EventsCase& played) {
    Closing closing = GroupsOf::closing(options, turn, played);
    closing.attached_before &= !played.scene.occupancy.is_rebooted;
    return closing;
  }

  [[nodiscard]] static std::vector<Point> record(EventsWorker& worker, const EventsScene& scene,
                                                 const std::vector<EventsStep>& before, EventsOp op) {
    return record_first_and_last(worker, scene, before, op, worker.options().is_long ? 8 : 3, ~0u);
  }

  // Of two deaths the long form plays a selection, too: all would take an hour. A producer's call has more steps than
  // all others together.
  [[nodiscard]] static std::size_t in_long(EventsOp first, EventsOp second) {
    return first == EventsOp::put_once || second == EventsOp::put_once ? 31 : 3;
  }

  // Whoever comes third gets the line of one who was there before the second, and not the second's.
  void add_inheritances(const EventsScene& scene) {
    const std::vector<EventsStep> before = {{EventsOp::join, Fire::stop, {"participants.joined", 1}}};
    for (const EventsOp first : {EventsOp::put_many, EventsOp::put_once})
      for (const EventsOp second : {EventsOp::put_one, EventsOp::put_once})
        if (!is_left_to_the_long_form(scene, first)) add_pair("inherit", scene, before, first, second);
  }

  void add_pair(const char* group, const EventsScene& scene, const std::vector<EventsStep>& before, EventsOp first,
                EventsOp second) {
    add_two(group, scene, before, first, Fire::kill, second, 24, {9, in_long(first, second)});
  }
};

}  // namespace queueduct::crash
