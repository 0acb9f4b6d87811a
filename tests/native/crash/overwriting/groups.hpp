// The groups of cases of the overwriting queue. As for the others, failpoints are learned by recording.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: all others go on unless it has what they need, and it goes on later
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   pair        one is killed, then the next one is killed at every point of what it does about it
//   inherit     the same, where the dead one's line is not the next one's: the lock is taken over from another line
#pragma once

#include "crash/harness/campaign.hpp"
#include "crash/overwriting/stage.hpp"

namespace queueduct::crash {

using OverwritingWorker = WorkerOf<OverwritingPlay>;
using OverwritingUnit = UnitOf<OverwritingPlay>;
using OverwritingCase = StageOf<OverwritingPlay>::Case;

inline const std::vector<OverwritingOp> every_overwriting_op = {
    OverwritingOp::put,       OverwritingOp::put_kept, OverwritingOp::put_many, OverwritingOp::get,
    OverwritingOp::get_many,  OverwritingOp::wait_put, OverwritingOp::wait_get, OverwritingOp::wait_copy,
    OverwritingOp::shutdown,  OverwritingOp::shutdown_now, OverwritingOp::join, OverwritingOp::leave,
    OverwritingOp::lease,     OverwritingOp::lease_back, OverwritingOp::lease_late,
    OverwritingOp::convert};

[[nodiscard]] inline std::vector<OverwritingScene> overwriting_scenes() {
  std::vector<OverwritingScene> scenes;
  for (const std::uint32_t capacity : {1u, 3u, 5u})
    for (const OverwritingOccupancy& occupancy : overwriting_occupancies(capacity))
      scenes.push_back({{.capacity = capacity, .words = 4, .participants = 8}, occupancy});
  return scenes;
}

class OverwritingGroups {
 public:
  explicit OverwritingGroups(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<OverwritingUnit> units() {
    for (const OverwritingScene& scene : overwriting_scenes()) {
      for (const OverwritingOp op : every_overwriting_op) {
        add_single(scene, op);
        if (op != OverwritingOp::lease_back) add_stop(scene, op);  // what it gives back would not be the living's
      }
      for (const OverwritingOp first : {OverwritingOp::put, OverwritingOp::get, OverwritingOp::put_many}) {
        for (const OverwritingOp second : {OverwritingOp::put, OverwritingOp::put_kept, OverwritingOp::get,
                                           OverwritingOp::wait_get, OverwritingOp::wait_copy, OverwritingOp::join}) {
          add_pair("pair", scene, {}, first, second);
          add_pair("inherit", scene, {{OverwritingOp::join, Fire::stop, {"roster.joined", 1}}}, first, second);
          add_contending(scene, first, second);
        }
      }
      for (const OverwritingOp first : {OverwritingOp::lease, OverwritingOp::lease_back, OverwritingOp::lease_late})
        for (const OverwritingOp second : {OverwritingOp::lease, OverwritingOp::get})
          add_pair("pair", scene, {}, first, second);
      add_pair("inherit", scene, {{OverwritingOp::join, Fire::stop, {"roster.joined", 1}}}, OverwritingOp::lease,
               OverwritingOp::lease);
      add_contending(scene, OverwritingOp::lease, OverwritingOp::put_many);  // which laps it
      add_contending(scene, OverwritingOp::lease, OverwritingOp::lease_back);
    }
    return std::move(units_);
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"single", "stop", "contending", "pair", "inherit", "soak"};
    return names;
  }

 private:
  void add(std::string name, std::function<void(OverwritingWorker&)> body) {
    ++added_;
    if (options_.may_match(name, names())) units_.push_back({std::move(name), std::move(body)});
  }

  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn) {
    return {(turn + options.seed) % 2 == 0, (turn + options.seed) % 4 < 2};
  }

  // Who waits comes to the same point again and again: the first times and the last are enough.
  [[nodiscard]] static std::vector<Point> record(OverwritingWorker& worker, const OverwritingScene& scene,
                                                 const std::vector<OverwritingStep>& before, OverwritingOp op) {
    const std::vector<Point> all = worker.record(scene, before, op);
    const std::uint32_t often = worker.options().is_long ? 6 : 2;
    std::vector<Point> points;
    for (const Point& point : all) {
      std::uint32_t times = 0;
      for (const Point& other : all) times += std::strcmp(point.name, other.name) == 0;
      const bool is_spinning = times > 50;  // at the header's lock: how often depends on the other one's speed
      if (point.hit <= often || (point.hit == times && !is_spinning)) points.push_back(point);
    }
    return points;
  }

  // The short form plays one of so many, others with each seed.
  static void run_one(OverwritingWorker& worker, std::size_t one_of, std::size_t turn, OverwritingCase played) {
    const std::size_t many = worker.options().is_long ? 1 : one_of;
    if ((turn + worker.options().seed) % many != 0) return;
    if (!played.peers_go_on) played.closing = closing(worker.options(), turn / many);
    worker.run(played);
  }

  void add_single(const OverwritingScene& scene, OverwritingOp op) {
    add("single/" + scene.name() + "/" + name_of(op), [=](OverwritingWorker& worker) {
      std::size_t turn = 0;
      for (const Point& point : record(worker, scene, {}, op))
        run_one(worker, 1, turn++, {"single", scene, {{op, Fire::kill, point}}});
    });
  }

  void add_stop(const OverwritingScene& scene, OverwritingOp op) {
    add("stop/" + scene.name() + "/" + name_of(op), [=](OverwritingWorker& worker) {
      std::size_t turn = 1;
      for (const Point& point : record(worker, scene, {}, op))
        run_one(worker, 3, turn++, {"stop", scene, {{op, Fire::stop, point}}, {}, true});
    });
  }

  // Those of `before` are stopped until the first one is dead, and then killed.
  void add_pair(const char* group, const OverwritingScene& scene, const std::vector<OverwritingStep>& before,
                OverwritingOp first, OverwritingOp second) {
    add(std::string(group) + "/" + scene.name() + "/" + name_of(before.empty() ? first : before[0].op),
        [=, unit = added_](OverwritingWorker& worker) {
          std::size_t turn = unit;  // so that units do not all begin alike
          std::size_t first_turn = unit;
          for (const Point& point : record(worker, scene, before, first)) {
            if (!worker.options().is_long && (first_turn++ + worker.options().seed) % 24 != 0) continue;
            std::vector<OverwritingStep> steps = before;
            steps.push_back({first, Fire::kill, point});
            for (std::size_t i = 0; i < before.size(); ++i) steps.push_back({OverwritingOp::slay});
            const std::vector<Point> points = record(worker, scene, steps, second);
            steps.push_back({second, Fire::kill, {}});
            for (const Point& next : points) {
              steps.back().point = next;
              run_one(worker, 5, turn++, {group, scene, steps});
            }
          }
        });
  }

  void add_contending(const OverwritingScene& scene, OverwritingOp first, OverwritingOp second) {
    add("contending/" + scene.name() + "/" + name_of(first), [=, unit = added_](OverwritingWorker& worker) {
      std::size_t turn = unit;
      std::size_t first_turn = unit;
      for (const Point& point : record(worker, scene, {}, first)) {
        const OverwritingStep stopped{first, Fire::stop, point};
        if (!worker.options().is_long && (first_turn++ + worker.options().seed) % 24 != 0) continue;
        for (const Point& next : record(worker, scene, {stopped}, second))
          run_one(worker, 5, turn++, {"contending", scene, {stopped, {second, Fire::kill, next}}});
      }
    });
  }

  const Options& options_;
  std::vector<OverwritingUnit> units_;
  std::size_t added_ = 0;  // those that the filter leaves out as well
};

}  // namespace queueduct::crash
