// The groups of cases of the events queue. As for the bounded one, failpoints are learned by recording.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: readers go on, writers too unless it holds the lock, and it goes on later
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   pair        one is killed, then the next one is killed at every point of what it does about it
//   inherit     the same, where the dead one's line stays its own: the next one takes the lock over from it
#pragma once

#include "crash/harness/campaign.hpp"
#include "crash/events/stage.hpp"

namespace queueduct::crash {

using EventsWorker = WorkerOf<EventsPlay>;
using EventsUnit = UnitOf<EventsPlay>;
using EventsCase = StageOf<EventsPlay>::Case;

inline const std::vector<EventsOp> every_events_op = {
    EventsOp::put_one,   EventsOp::put_many,  EventsOp::put_long,    EventsOp::put_once,
    EventsOp::forget,    EventsOp::clear,     EventsOp::keep_last,   EventsOp::subscribe,
    EventsOp::subscribe_ephemeral,            EventsOp::unsubscribe, EventsOp::commit,
    EventsOp::read,      EventsOp::read_late, EventsOp::look,        EventsOp::wait,
    EventsOp::abandon,      EventsOp::sync,      EventsOp::shutdown,    EventsOp::join,
    EventsOp::leave};

[[nodiscard]] inline std::vector<EventsScene> events_scenes() {
  constexpr EventsSettings records{.max_bytes = 1024, .block_bytes = 4096, .blocks = 24, .chunk_lines = 32, .readers = 6};
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

class EventsGroups {
 public:
  explicit EventsGroups(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<EventsUnit> units() {
    for (const EventsScene& scene : events_scenes()) {
      for (const EventsOp op : every_events_op) {
        if (is_left_to_the_long_form(scene, op)) continue;
        add_single(scene, op);
        add_stop(scene, op);
      }
      if (scene.shape.settings.may_drop) add_single(scene, EventsOp::rejoin);
      for (const EventsOp first : every_events_op) {
        for (const EventsOp second : seconds(first)) {
          if (is_left_to_the_long_form(scene, first)) continue;
          add_pair("pair", scene, {}, first, second);
          add_contending(scene, first, second);
        }
      }
      if (options_.is_long || scene.occupancy.passed != 0) add_inheritances(scene);
    }
    const EventsScene rebooted{events_scenes().front().shape, events_rebooted};
    add_single(rebooted, EventsOp::boot);
    add_pair("pair", rebooted, {}, EventsOp::boot, EventsOp::boot);
    return std::move(units_);
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

  void add(std::string name, std::function<void(EventsWorker&)> body) {
    ++added_;
    if (options_.may_match(name, names())) units_.push_back({std::move(name), std::move(body)});
  }

  // Of the machine's last boot nobody is left: whoever had the log open before would have settled it.
  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn, const EventsScene& scene) {
    return {(turn + options.seed) % 2 == 0, !scene.occupancy.is_rebooted && (turn + options.seed) % 4 < 2};
  }

  // Who waits comes to the same point again and again: the first times and the last are enough.
  [[nodiscard]] static std::vector<Point> record(EventsWorker& worker, const EventsScene& scene,
                                                 const std::vector<EventsStep>& before, EventsOp op) {
    const std::vector<Point> all = worker.record(scene, before, op);
    const std::uint32_t often = worker.options().is_long ? 8 : 3;
    std::vector<Point> points;
    for (const Point& point : all) {
      std::uint32_t times = 0;
      for (const Point& other : all) times += std::strcmp(point.name, other.name) == 0;
      if (point.hit <= often || point.hit == times) points.push_back(point);
    }
    return points;
  }

  // One of so many, others with each seed.
  struct OneOf {
    std::size_t in_short;
    std::size_t in_long;
  };
  static void run_one(EventsWorker& worker, OneOf one_of, std::size_t turn, EventsCase played) {
    const std::size_t many = worker.options().is_long ? one_of.in_long : one_of.in_short;
    if ((turn + worker.options().seed) % many != 0) return;
    played.closing = closing(worker.options(), turn / many, played.scene);
    worker.run(played);
  }

  // A producer's call has more steps than all others together: of its meetings the long form plays a selection, too.
  [[nodiscard]] static std::size_t in_long(EventsOp first, EventsOp second) {
    return first == EventsOp::put_once || second == EventsOp::put_once ? 11 : 1;
  }

  void add_single(const EventsScene& scene, EventsOp op) {
    add("single/" + scene.name() + "/" + name_of(op), [=](EventsWorker& worker) {
      std::size_t turn = 0;
      for (const Point& point : record(worker, scene, {}, op))
        worker.run({"single", scene, {{op, Fire::kill, point}}, closing(worker.options(), turn++, scene)});
    });
  }

  void add_stop(const EventsScene& scene, EventsOp op) {
    add("stop/" + scene.name() + "/" + name_of(op), [=](EventsWorker& worker) {
      std::size_t turn = 1;
      for (const Point& point : record(worker, scene, {}, op))
        run_one(worker, {4, 1}, turn++, {"stop", scene, {{op, Fire::stop, point}}, {}, true});
    });
  }

  // Whoever comes third gets the line of one who was there before the second, and not the second's.
  void add_inheritances(const EventsScene& scene) {
    const std::vector<EventsStep> before = {{EventsOp::join, Fire::stop, {"roster.joined", 1}}};
    for (const EventsOp first : {EventsOp::put_many, EventsOp::put_once})
      for (const EventsOp second : {EventsOp::put_one, EventsOp::put_once})
        if (!is_left_to_the_long_form(scene, first)) add_pair("inherit", scene, before, first, second);
  }

  // Those of `before` are stopped until the first one is dead, and then killed.
  void add_pair(const char* group, const EventsScene& scene, const std::vector<EventsStep>& before, EventsOp first,
                EventsOp second) {
    const EventsOp beginning = before.empty() ? first : before[0].op;
    add(std::string(group) + "/" + scene.name() + "/" + name_of(beginning), [=, unit = added_](EventsWorker& worker) {
      std::size_t turn = unit;  // so that units do not all begin alike
      std::size_t first_turn = unit;
      for (const Point& point : record(worker, scene, before, first)) {
        if (!worker.options().is_long && (first_turn++ + worker.options().seed) % 24 != 0) continue;
        std::vector<EventsStep> steps = before;
        steps.push_back({first, Fire::kill, point});
        for (std::size_t i = 0; i < before.size(); ++i) steps.push_back({EventsOp::slay});
        const std::vector<Point> points = record(worker, scene, steps, second);
        steps.push_back({second, Fire::kill, {}});
        for (const Point& next : points) {
          steps.back().point = next;
          run_one(worker, {9, in_long(first, second)}, turn++, {group, scene, steps});
        }
      }
    });
  }

  void add_contending(const EventsScene& scene, EventsOp first, EventsOp second) {
    add("contending/" + scene.name() + "/" + name_of(first), [=, unit = added_](EventsWorker& worker) {
      std::size_t turn = unit;  // so that units do not all begin alike
      std::size_t first_turn = unit;
      for (const Point& point : record(worker, scene, {}, first)) {
        const EventsStep stopped{first, Fire::stop, point};
        if (!worker.options().is_long && (first_turn++ + worker.options().seed) % 24 != 0) continue;
        for (const Point& next : record(worker, scene, {stopped}, second))
          run_one(worker, {5, in_long(first, second)}, turn++,
                  {"contending", scene, {stopped, {second, Fire::kill, next}}});
      }
    });
  }

  const Options& options_;
  std::vector<EventsUnit> units_;
  std::size_t added_ = 0;  // those that the filter leaves out as well
};

}  // namespace queueduct::crash
