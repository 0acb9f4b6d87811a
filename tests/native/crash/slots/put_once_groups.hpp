// The groups of cases about named producers of a slot queue. In each the producer is started again at the end, from the
// beginning of its plan; then every item of the plan must have been put exactly once.
//
//   alone      put_once is killed at every point, at every occupancy; so is a forget beside it
//   stopped    it is stopped instead: the others go on, and leave it and its line alone
//   again      it is killed, then who comes next is killed at every point of what it does about it
//   thrice     it is killed, and killed again when it was started again, and a third time
//   late       it is killed; somebody who recovers from it is stopped at every point; meanwhile the producer is started
//              again and others use its slots; then the recoverer goes on
//   beside     it is stopped at every point, another one killed at every point of what it does
//   replaced   it is stopped, its successor turned away; then it is killed, and the next successor comes to its end
//   drawn      schedules of several processes, stops and deaths, drawn from the seed
#pragma once

#include "crash/slots/groups.hpp"

namespace queueduct::crash {

class SlotsPutOnceGroups : public GroupsOf<SlotsPutOnceGroups, SlotsPlay> {
 public:
  explicit SlotsPutOnceGroups(SlotsTurns& turns) : GroupsOf(turns) {}

  void pass_units() {
    for (const SlotsScene& scene : scenes()) {
      for (const SlotsOp op : {SlotsOp::put_once, SlotsOp::forget}) {
        add_each("alone", scene, op, Fire::kill);
        add_each("stopped", scene, op, Fire::stop, {3});
      }
      for (const SlotsOp next : {SlotsOp::put_once, SlotsOp::get, SlotsOp::recover, SlotsOp::overwrite, SlotsOp::put,
                                 SlotsOp::lease, SlotsOp::set_capacity, SlotsOp::shutdown, SlotsOp::join}) {
        add_again(scene, next);
        add_beside(scene, next);
      }
      for (const SlotsOp recoverer : {SlotsOp::recover, SlotsOp::put_once, SlotsOp::join}) add_late(scene, recoverer);
      add_thrice(scene);
      add_replaced(scene);
    }
    add_drawn("drawn", options_.is_long ? 200 : 3, 100);
  }

 private:
  friend GroupsOf;

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"alone", "stopped", "again",    "thrice",
                                                   "late",  "beside",  "replaced", "drawn"};
    return names;
  }

  [[nodiscard]] static std::vector<SlotsScene> scenes() {
    std::vector<SlotsScene> scenes = slots_scenes();
    for (SlotsScene& scene : scenes) scene.shape.producers = 3;
    return scenes;
  }

  // put_once ends at every point, or in the short form at every so many. Its line is not the first free one: so whoever
  // comes next does not recover it by joining, but while it works.
  [[nodiscard]] static std::vector<std::vector<SlotsStep>> ends(SlotsWorker& worker, const SlotsScene& scene,
                                                                std::size_t in_short, Fire fire = Fire::kill) {
    const SlotsStep holder{SlotsOp::join, Fire::stop, {"slots.joined", 1}};
    std::vector<std::vector<SlotsStep>> ends;
    std::size_t turn = 0;
    for (const Point& point : worker.record(scene, {holder}, SlotsOp::put_once))
      if (is_turn(worker, {in_short, 1}, turn++))
        ends.push_back({holder, {SlotsOp::put_once, fire, point}, {SlotsOp::slay}});
    return ends;
  }

  // The second one is killed at every so many of its points.
  void add_two(const char* group, const SlotsScene& scene, SlotsOp next, Fire fire, OneOf one_of) {
    add(std::string(group) + "/" + scene.name() + "/" + name_of(next), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const std::vector<SlotsStep>& before : ends(worker, scene, 5, fire))
        for (const Point& point : worker.record(scene, before, next))
          run_one(worker, one_of, turn++, {group, scene, with(before, {next, Fire::kill, point})});
    });
  }
  void add_again(const SlotsScene& scene, SlotsOp next) { add_two("again", scene, next, Fire::kill, {43, 7}); }
  void add_beside(const SlotsScene& scene, SlotsOp next) { add_two("beside", scene, next, Fire::stop, {59, 11}); }

  void add_thrice(const SlotsScene& scene) {
    add("thrice/" + scene.name(), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const std::vector<SlotsStep>& once : ends(worker, scene, 17)) {
        for (const Point& second : worker.record(scene, once, SlotsOp::put_once)) {
          if (!is_turn(worker, {17, 13}, turn++)) continue;
          const std::vector<SlotsStep> twice = with(once, {SlotsOp::put_once, Fire::kill, second});
          std::size_t third_turn = turn;
          for (const Point& third : worker.record(scene, twice, SlotsOp::put_once))
            run_one(worker, {41, 29}, third_turn++,
                    {"thrice", scene, with(twice, {SlotsOp::put_once, Fire::kill, third})});
        }
      }
    });
  }

  void add_late(const SlotsScene& scene, SlotsOp recoverer) {
    add("late/" + scene.name() + "/" + name_of(recoverer), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const std::vector<SlotsStep>& before : ends(worker, scene, 5)) {
        for (const Point& point : worker.record(scene, before, recoverer)) {
          if (!is_turn(worker, {23, 5}, turn++)) continue;
          std::vector<SlotsStep> steps = with(before, {recoverer, Fire::stop, point});
          for (const SlotsOp op : {SlotsOp::get, SlotsOp::put_once, SlotsOp::get, SlotsOp::put, SlotsOp::overwrite,
                                   SlotsOp::resume, SlotsOp::put_once})
            steps.push_back({op});
          // and the producer dies once more, after it was told what its predecessor had done
          if (turn % 2 == 0)
            steps.back() = {SlotsOp::put_once, Fire::kill, {nullptr, static_cast<std::uint32_t>(turn % 97 + 1)}};
          run_one(worker, {}, turn, {"late", scene, steps});
        }
      }
    });
  }

  void add_replaced(const SlotsScene& scene) {
    add("replaced/" + scene.name(), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const std::vector<SlotsStep>& before : ends(worker, scene, 3, Fire::stop)) {
        std::vector<SlotsStep> steps = before;
        for (const SlotsOp op :
             {SlotsOp::put_once, SlotsOp::get, SlotsOp::put, SlotsOp::slay, SlotsOp::put_once, SlotsOp::get})
          steps.push_back({op});
        run_one(worker, {}, turn++, {"replaced", scene, steps});
      }
    });
  }

  // The table has six lines, and two of them are the survivors'.
  [[nodiscard]] static SlotsCase draw(const char* group, Random& random) {
    const std::vector<SlotsOp> others = {SlotsOp::get,  SlotsOp::put,     SlotsOp::overwrite,    SlotsOp::put_back,
                                         SlotsOp::lease, SlotsOp::recover, SlotsOp::set_capacity, SlotsOp::join,
                                         SlotsOp::forget};
    return drawn(group, random, {.stopped_limit = 3}, random.choose(scenes()),
                 [&] { return random.below(2) == 0 ? SlotsOp::put_once : random.choose(others); });
  }
};

}  // namespace queueduct::crash
