// The groups of cases of the events queue. As for the bounded one, failpoints are learned by recording.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: readers go on, writers too unless it holds the lock, and it goes on later
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   pair        one is killed, then the next one is killed at every point of what it does about it
#pragma once

#include "campaign.hpp"
#include "events_stage.hpp"

namespace penstock::crash {

using EventsWorker = WorkerOf<EventsPlay>;
using EventsUnit = UnitOf<EventsPlay>;
using EventsCase = StageOf<EventsPlay>::Case;

inline const std::vector<EventsOp> every_events_op = {
    EventsOp::put_one, EventsOp::put_many, EventsOp::put_long, EventsOp::clear, EventsOp::keep_last,
    EventsOp::subscribe, EventsOp::subscribe_ephemeral, EventsOp::unsubscribe, EventsOp::commit, EventsOp::read,
    EventsOp::read_late, EventsOp::look, EventsOp::wait, EventsOp::bury, EventsOp::sync, EventsOp::shutdown, EventsOp::join, EventsOp::leave};

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
  return scenes;
}

class EventsGroups {
 public:
  explicit EventsGroups(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<EventsUnit> units() {
    for (const EventsScene& scene : events_scenes()) {
      for (const EventsOp op : every_events_op) {
        add_single(scene, op);
        add_stop(scene, op);
      }
      if (scene.shape.settings.may_drop) add_single(scene, EventsOp::rejoin);
      for (const EventsOp first : every_events_op) {
        for (const EventsOp second : seconds()) {
          add_pair(scene, first, second);
          add_contending(scene, first, second);
        }
      }
    }
    const EventsScene rebooted{events_scenes().front().shape, events_rebooted};
    add_single(rebooted, EventsOp::boot);
    add_pair(rebooted, EventsOp::boot, EventsOp::boot);
    return std::move(units_);
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"single", "stop", "contending", "pair", "soak"};
    return names;
  }

 private:
  [[nodiscard]] std::vector<EventsOp> seconds() const {
    if (!options_.is_long) return {EventsOp::put_many, EventsOp::join};
    return {EventsOp::put_one,     EventsOp::put_many, EventsOp::put_long, EventsOp::clear, EventsOp::subscribe,
            EventsOp::unsubscribe, EventsOp::commit,   EventsOp::read,     EventsOp::bury,  EventsOp::join};
  }

  void add(std::string name, std::function<void(EventsWorker&)> body) {
    if (options_.may_match(name, names())) units_.push_back({std::move(name), std::move(body)});
  }

  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn) {
    return {(turn + options.seed) % 2 == 0, (turn + options.seed) % 4 < 2};
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

  // In the short form one of so many, another with each seed.
  static void run_one_in(EventsWorker& worker, std::size_t many, std::size_t turn, EventsCase played) {
    if (!worker.options().is_long && (turn + worker.options().seed) % many != 0) return;
    played.closing = closing(worker.options(), turn / (worker.options().is_long ? 1 : many));
    worker.run(played);
  }

  void add_single(const EventsScene& scene, EventsOp op) {
    add("single/" + scene.name() + "/" + name_of(op), [=](EventsWorker& worker) {
      std::size_t turn = 0;
      for (const Point& point : record(worker, scene, {}, op))
        worker.run({"single", scene, {{op, Fire::kill, point}}, closing(worker.options(), turn++)});
    });
  }

  void add_stop(const EventsScene& scene, EventsOp op) {
    add("stop/" + scene.name() + "/" + name_of(op), [=](EventsWorker& worker) {
      std::size_t turn = 1;
      for (const Point& point : record(worker, scene, {}, op))
        run_one_in(worker, 3, turn++, {"stop", scene, {{op, Fire::stop, point}}, {}, true});
    });
  }

  void add_pair(const EventsScene& scene, EventsOp first, EventsOp second) {
    add("pair/" + scene.name() + "/" + name_of(first), [=](EventsWorker& worker) {
      std::size_t turn = 0;
      for (const Point& point : record(worker, scene, {}, first)) {
        const EventsStep death{first, Fire::kill, point};
        if (!worker.options().is_long && (turn++ + worker.options().seed) % 16 != 0) continue;
        for (const Point& next : record(worker, scene, {death}, second))
          run_one_in(worker, 7, turn++, {"pair", scene, {death, {second, Fire::kill, next}}});
      }
    });
  }

  void add_contending(const EventsScene& scene, EventsOp first, EventsOp second) {
    add("contending/" + scene.name() + "/" + name_of(first), [=](EventsWorker& worker) {
      std::size_t turn = 0;
      for (const Point& point : record(worker, scene, {}, first)) {
        const EventsStep stopped{first, Fire::stop, point};
        if (!worker.options().is_long && (turn++ + worker.options().seed) % 16 != 0) continue;
        for (const Point& next : record(worker, scene, {stopped}, second))
          run_one_in(worker, 7, turn++, {"contending", scene, {stopped, {second, Fire::kill, next}}});
      }
    });
  }

  const Options& options_;
  std::vector<EventsUnit> units_;
};

}  // namespace penstock::crash
