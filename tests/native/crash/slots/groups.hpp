// The groups of cases of the slot queue. As for the others, failpoints are learned by recording.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: the others go on with the slots that it does not have, and it goes on later
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   pair        one is killed, then the next one is killed at every point of what it does about it
//   inherit     the same, where the dead one's line stays its own: the next one recovers it while it works
#pragma once

#include "crash/harness/campaign.hpp"
#include "crash/slots/stage.hpp"

namespace queueduct::crash {

using SlotsWorker = WorkerOf<SlotsPlay>;
using SlotsUnit = UnitOf<SlotsPlay>;
using SlotsCase = StageOf<SlotsPlay>::Case;

inline const std::vector<SlotsOp> every_slots_op = {
    SlotsOp::put,      SlotsOp::get,      SlotsOp::overwrite, SlotsOp::cancel,       SlotsOp::put_back, SlotsOp::lease,
    SlotsOp::wait_put, SlotsOp::wait_get, SlotsOp::recover,   SlotsOp::set_capacity, SlotsOp::shutdown,
    SlotsOp::shutdown_now, SlotsOp::join, SlotsOp::leave};

[[nodiscard]] inline std::vector<SlotsScene> slots_scenes() {
  std::vector<SlotsScene> scenes;
  for (const std::uint64_t count : {1u, 2u, 3u}) {
    const SlotsSizes shape{.count = count, .slot_bytes = 24, .participants = 6};
    scenes.push_back({shape, "empty", 0, 0});
    scenes.push_back({shape, "full", 0, count});
    scenes.push_back({shape, "wrap", 2 * count - 1, (count + 1) / 2});
    if (count > 2) scenes.push_back({shape, "one", 0, 1});
    if (count > 2) scenes.push_back({shape, "but_one", count - 1, count - 1});
  }
  return scenes;
}

class SlotsGroups {
 public:
  explicit SlotsGroups(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<SlotsUnit> units() {
    for (const SlotsScene& scene : slots_scenes()) {
      for (const SlotsOp op : every_slots_op) {
        add_single(scene, op);
        add_stop(scene, op);
      }
      for (const SlotsOp first : every_slots_op) {
        for (const SlotsOp second : seconds()) {
          add_two("pair", scene, {}, first, Fire::kill, second);
          add_two("contending", scene, {}, first, Fire::stop, second);
        }
        // whoever comes third gets the line of one who was there before the second, and not the second's
        for (const SlotsOp second : {SlotsOp::recover, SlotsOp::wait_get, SlotsOp::wait_put})
          add_two("inherit", scene, {{SlotsOp::join, Fire::stop, {"slots.joined", 1}}}, first, Fire::kill, second);
      }
    }
    return std::move(units_);
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"single", "stop", "contending", "pair", "inherit", "soak"};
    return names;
  }

 private:
  [[nodiscard]] std::vector<SlotsOp> seconds() const {
    if (options_.is_long) return every_slots_op;
    return {SlotsOp::put, SlotsOp::get, SlotsOp::overwrite, SlotsOp::lease, SlotsOp::recover, SlotsOp::join};
  }

  void add(std::string name, std::function<void(SlotsWorker&)> body) {
    ++added_;
    if (options_.may_match(name, names())) units_.push_back({std::move(name), std::move(body)});
  }

  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn) {
    return {(turn + options.seed) % 2 == 0, (turn + options.seed) % 4 < 2};
  }

  // Who waits looks again and again, as often as the time allows: the first times are enough.
  [[nodiscard]] static std::vector<Point> record(SlotsWorker& worker, const SlotsScene& scene,
                                                 const std::vector<SlotsStep>& before, SlotsOp op) {
    std::vector<Point> points = worker.record(scene, before, op);
    if (op == SlotsOp::wait_put || op == SlotsOp::wait_get)
      std::erase_if(points, [](const Point& point) { return point.hit > 3; });
    return points;
  }

  void add_single(const SlotsScene& scene, SlotsOp op) {
    add("single/" + scene.name() + "/" + name_of(op), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const Point& point : record(worker, scene, {}, op))
        worker.run({"single", scene, {{op, Fire::kill, point}}, closing(worker.options(), turn++)});
    });
  }

  void add_stop(const SlotsScene& scene, SlotsOp op) {
    add("stop/" + scene.name() + "/" + name_of(op), [=](SlotsWorker& worker) {
      std::size_t turn = 1;
      for (const Point& point : record(worker, scene, {}, op))
        worker.run({"stop", scene, {{op, Fire::stop, point}}, closing(worker.options(), turn++), true});
    });
  }

  // The first one is stopped or killed at each of its points, the second one killed at each of its own: in the short
  // form a selection of both, another with each seed. Those of `before` are stopped until the first one is dead, and
  // then killed.
  void add_two(const char* group, const SlotsScene& scene, const std::vector<SlotsStep>& before, SlotsOp first, Fire fire,
               SlotsOp second) {
    add(std::string(group) + "/" + scene.name() + "/" + name_of(before.empty() ? first : before[0].op),
        [=, unit = added_](SlotsWorker& worker) {
          const bool is_long = worker.options().is_long;
          std::size_t turn = unit;  // so that units do not all begin alike
          std::size_t first_turn = unit;
          for (const Point& point : record(worker, scene, before, first)) {
            if (!is_long && (first_turn++ + worker.options().seed) % 4 != 0) continue;
            std::vector<SlotsStep> steps = before;
            steps.push_back({first, fire, point});
            for (std::size_t i = 0; i < before.size(); ++i) steps.push_back({SlotsOp::slay});
            const std::vector<Point> points = record(worker, scene, steps, second);
            steps.push_back({second, Fire::kill, {}});
            for (const Point& next : points) {
              if (!is_long && (turn++ + worker.options().seed) % 8 != 0) continue;
              steps.back().point = next;
              worker.run({group, scene, steps, closing(worker.options(), turn / 8)});
            }
          }
        });
  }

  const Options& options_;
  std::vector<SlotsUnit> units_;
  std::size_t added_ = 0;  // those that the filter leaves out as well
};

}  // namespace queueduct::crash
