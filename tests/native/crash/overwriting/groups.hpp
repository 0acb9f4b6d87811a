// The groups of cases of the overwriting queue. As for the others, failpoints are learned by recording.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: all others go on unless it has what they need, and it goes on later
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   pair        one is killed, then the next one is killed at every point of what it does about it
//   inherit     the same, where the dead one's line is not the next one's: the lock is taken over from another line
#pragma once

#include "crash/harness/groups.hpp"
#include "crash/overwriting/stage.hpp"

namespace queueduct::crash {

using OverwritingWorker = WorkerOf<OverwritingPlay>;
using OverwritingTurns = TurnsOf<OverwritingPlay>;
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

class OverwritingGroups : public GroupsOf<OverwritingGroups, OverwritingPlay> {
 public:
  explicit OverwritingGroups(OverwritingTurns& turns) : GroupsOf(turns) {}

  void pass_units() {
    for (const OverwritingScene& scene : overwriting_scenes()) {
      for (const OverwritingOp op : every_overwriting_op) {
        add_each("single", scene, op, Fire::kill);
        // what a stopped one gives back would not be the living's
        if (op != OverwritingOp::lease_back) add_each("stop", scene, op, Fire::stop, {3});
      }
      for (const OverwritingOp first : {OverwritingOp::put, OverwritingOp::get, OverwritingOp::put_many}) {
        for (const OverwritingOp second : {OverwritingOp::put, OverwritingOp::put_kept, OverwritingOp::get,
                                           OverwritingOp::wait_get, OverwritingOp::wait_copy, OverwritingOp::join}) {
          add_pair("pair", scene, {}, first, second);
          add_pair("inherit", scene, {{OverwritingOp::join, Fire::stop, {"participants.joined", 1}}}, first, second);
          add_contending(scene, first, second);
        }
      }
      for (const OverwritingOp first : {OverwritingOp::lease, OverwritingOp::lease_back, OverwritingOp::lease_late})
        for (const OverwritingOp second : {OverwritingOp::lease, OverwritingOp::get})
          add_pair("pair", scene, {}, first, second);
      add_pair("inherit", scene, {{OverwritingOp::join, Fire::stop, {"participants.joined", 1}}}, OverwritingOp::lease,
               OverwritingOp::lease);
      add_contending(scene, OverwritingOp::lease, OverwritingOp::put_many);  // which laps it
      add_contending(scene, OverwritingOp::lease, OverwritingOp::lease_back);
    }
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"single", "stop", "contending", "pair", "inherit", "soak"};
    return names;
  }

 private:
  friend GroupsOf;

  // Where peers go on beside a stopped one, the survivors come anew.
  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn, const OverwritingCase& played) {
    return played.peers_go_on ? Closing{} : GroupsOf::closing(options, turn, played);
  }

  [[nodiscard]] static std::vector<Point> record(OverwritingWorker& worker, const OverwritingScene& scene,
                                                 const std::vector<OverwritingStep>& before, OverwritingOp op) {
    return record_first_and_last(worker, scene, before, op, worker.options().is_long ? 6 : 2, 50);
  }

  void add_pair(const char* group, const OverwritingScene& scene, const std::vector<OverwritingStep>& before,
                OverwritingOp first, OverwritingOp second) {
    add_two(group, scene, before, first, Fire::kill, second, 24, {9, 3});
  }

  void add_contending(const OverwritingScene& scene, OverwritingOp first, OverwritingOp second) {
    add_two("contending", scene, {}, first, Fire::stop, second, 24, {9, 3});
  }
};

}  // namespace queueduct::crash
