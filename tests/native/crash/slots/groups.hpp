// The groups of cases of the slot queue. As for the others, failpoints are learned by recording.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: the others go on with the slots that it does not have, and it goes on later
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   pair        one is killed, then the next one is killed at every point of what it does about it
//   inherit     the same, where the dead one's line stays its own: the next one recovers it while it works
#pragma once

#include "crash/harness/groups.hpp"
#include "crash/slots/stage.hpp"

namespace queueduct::crash {

using SlotsWorker = WorkerOf<SlotsPlay>;
using SlotsTurns = TurnsOf<SlotsPlay>;
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

class SlotsGroups : public GroupsOf<SlotsGroups, SlotsPlay> {
 public:
  explicit SlotsGroups(SlotsTurns& turns) : GroupsOf(turns) {}

  void pass_units() {
    for (const SlotsScene& scene : slots_scenes()) {
      for (const SlotsOp op : every_slots_op) {
        add_each("single", scene, op, Fire::kill);
        add_each("stop", scene, op, Fire::stop);
      }
      for (const SlotsOp first : every_slots_op) {
        for (const SlotsOp second : seconds()) {
          add_two("pair", scene, {}, first, Fire::kill, second, 4, {12, 2});
          add_two("contending", scene, {}, first, Fire::stop, second, 4, {12, 2});
        }
        // whoever comes third gets the line of one who was there before the second, and not the second's
        for (const SlotsOp second : {SlotsOp::recover, SlotsOp::wait_get, SlotsOp::wait_put})
          add_two("inherit", scene, {{SlotsOp::join, Fire::stop, {"slots.joined", 1}}}, first, Fire::kill, second, 4,
                  {12, 2});
      }
    }
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

  friend GroupsOf;
  // Who waits looks again and again, as often as the time allows: the first times are enough.
  [[nodiscard]] static std::vector<Point> record(SlotsWorker& worker, const SlotsScene& scene,
                                                 const std::vector<SlotsStep>& before, SlotsOp op) {
    std::vector<Point> points = worker.record(scene, before, op);
    if (op == SlotsOp::wait_put || op == SlotsOp::wait_get)
      std::erase_if(points, [](const Point& point) { return point.hit > 3; });
    return points;
  }
};

}  // namespace queueduct::crash
