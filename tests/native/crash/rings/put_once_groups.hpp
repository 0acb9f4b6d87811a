// The groups of cases about named producers. In each the producer is started again at the end, from the beginning of
// its plan; then every item of the plan must have come out exactly once and in order.
//
//   alone       put_once is killed at every point, at every occupancy; so is a forget beside it
//   stopped     it is stopped instead: the others go on, and leave it and its line alone
//   again       it is killed, then who comes next is killed at every point of what it does about it: the producer
//               itself, started again, a consumer, another producer, a newcomer
//   thrice      it is killed, and killed again when it was started again, and a third time
//   late        it is killed; somebody who recovers from it is stopped at every point; meanwhile the producer is
//               started again and others use its slots; then the recoverer goes on
//   beside      it is stopped at every point, another one killed at every point of what it does
//   replaced    it is stopped, its successor turned away; then it is killed, and the next successor comes to its end
//   misled      a dead one names what put_once has claimed; somebody who looks into that is stopped at every point,
//               put_once publishes a little more and is killed; then the other one goes on
//   drawn       schedules of several processes, stops and deaths, drawn from the seed
#pragma once

#include "crash/rings/groups.hpp"

namespace queueduct::crash {

class PutOnceGroups : public GroupsOf<PutOnceGroups, BoundedPlay> {
 public:
  explicit PutOnceGroups(Turns& turns) : GroupsOf(turns) {}

  void pass_units() {
    for (Shape shape : shapes(options_.is_long)) {
      shape.producers = 3;
      for (const Scene& scene : scenes(shape)) {
        for (const Op op : {Op::put_once, Op::forget}) {
          add_alone(scene, op);
          add_each("stopped", scene, op, Fire::stop);
        }
        const std::string occupancy = scene.occupancy.name;
        if (!options_.is_long && occupancy != "wrap" && occupancy != "but_one") continue;
        for (const Op next : {Op::put_once, Op::get, Op::get_many, Op::make_room, Op::put_many, Op::join, Op::forget}) {
          add_again(scene, next);
          add_beside(scene, next);
        }
        for (const Op recoverer : {Op::get, Op::make_room, Op::put_once}) add_late(scene, recoverer);
        add_thrice(scene);
        add_replaced(scene);
        add_misled(scene);
      }
    }
    add_drawn("drawn", options_.is_long ? 200 : 4, 50);
  }

 private:
  friend GroupsOf;

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"alone",  "stopped",  "again",  "thrice", "late",
                                                   "beside", "replaced", "misled", "drawn"};
    return names;
  }

  void add_alone(const Scene& scene, Op op) {
    add("alone/" + scene.name() + "/" + name_of(op), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Point& point : worker.record(scene, {}, op))
        for (const Closing& closing : closings(worker.options(), turn++))
          worker.run({"alone", scene, {{op, Fire::kill, point}}, closing});
    });
  }

  // put_once is killed at every point, or in the short form at every so many.
  static std::vector<Step> deaths(Worker& worker, const Scene& scene, std::size_t in_short, Fire fire = Fire::kill) {
    std::vector<Step> deaths;
    std::size_t turn = 0;
    for (const Point& point : worker.record(scene, {}, Op::put_once))
      if (is_turn(worker, {in_short, 1}, turn++)) deaths.push_back({Op::put_once, fire, point});
    return deaths;
  }

  void add_again(const Scene& scene, Op next) {
    add("again/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& death : deaths(worker, scene, 3)) {
        for (const Point& point : worker.record(scene, {death}, next)) {
          run_one(worker, {7, 13}, turn++, {"again", scene, {death, {next, Fire::kill, point}}});
        }
      }
    });
  }

  void add_thrice(const Scene& scene) {
    add("thrice/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& death : deaths(worker, scene, 11)) {
        for (const Point& second : worker.record(scene, {death}, Op::put_once)) {
          if (!is_turn(worker, {5, 13}, turn++)) continue;
          const std::vector<Step> before = {death, {Op::put_once, Fire::kill, second}};
          std::size_t third_turn = turn;
          for (const Point& third : worker.record(scene, before, Op::put_once))
            run_one(worker, {19, 29}, third_turn++,
                    {"thrice", scene, with(before, {Op::put_once, Fire::kill, third})});
        }
      }
    });
  }

  void add_late(const Scene& scene, Op recoverer) {
    add("late/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& death : deaths(worker, scene, 3)) {
        for (const Point& point : worker.record(scene, {death}, recoverer)) {
          if (!is_turn(worker, {5, 17}, turn++)) continue;
          std::vector<Step> steps = {death, {recoverer, Fire::stop, point}};
          for (const Op op : {Op::get_many, Op::put_once, Op::get_many, Op::put_many, Op::resume, Op::put_once})
            steps.push_back({op});
          // and the producer dies once more, after it was told what its predecessor had done
          if (turn % 2 == 0)
            steps.back() = {Op::put_once, Fire::kill, {nullptr, static_cast<std::uint32_t>(turn % 97 + 1)}};
          run_one(worker, {}, turn, {"late", scene, steps});
        }
      }
    });
  }

  void add_beside(const Scene& scene, Op next) {
    add("beside/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& stop : deaths(worker, scene, 5, Fire::stop)) {
        for (const Point& point : worker.record(scene, {stop}, next)) {
          run_one(worker, {5, 19}, turn++, {"beside", scene, {stop, {next, Fire::kill, point}}});
        }
      }
    });
  }

  void add_replaced(const Scene& scene) {
    add("replaced/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& stop : deaths(worker, scene, 1, Fire::stop)) {
        std::vector<Step> steps = {stop};
        for (const Op op : {Op::put_once, Op::get_many, Op::put_many, Op::slay, Op::put_once, Op::get_many})
          steps.push_back({op});
        run_one(worker, {}, turn++, {"replaced", scene, steps});
      }
    });
  }

  void add_misled(const Scene& scene) {
    add("misled/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      const Step named{Op::put_many, Fire::stop, {"ledger.after_declare", 1}};
      for (const Point& point : worker.record(scene, {named}, Op::put_once)) {
        if (std::strncmp(point.name, "push.", 5) != 0 && std::strncmp(point.name, "once.", 5) != 0) continue;
        const std::vector<Step> before = {named, {Op::put_once, Fire::stop, point}, {Op::slay}};
        for (const Point& next : worker.record(scene, before, Op::make_room)) {
          if (std::strncmp(next.name, "recover.", 8) != 0) continue;
          for (const std::uint32_t more : {1u, 2u, 3u}) {
            std::vector<Step> steps = with(before, {Op::make_room, Fire::stop, next});
            steps.push_back({Op::advance, Fire::never, {nullptr, more}});
            for (const Op op : {Op::slay, Op::resume, Op::put_once, Op::get_many}) steps.push_back({op});
            run_one(worker, {3, 2}, turn++, {"misled", scene, steps});
          }
        }
      }
    });
  }

  [[nodiscard]] static Case draw(const char* group, Random& random) {
    const std::vector<Op> others = {Op::get,     Op::get_many, Op::make_room, Op::put_many,
                                    Op::put_one, Op::join,     Op::forget};
    Shape shape = random.choose(shapes(true));
    shape.producers = 3;
    return drawn(group, random, {}, random.choose(scenes(shape)),
                 [&] { return random.below(2) == 0 ? Op::put_once : random.choose(others); });
  }
};

}  // namespace queueduct::crash
