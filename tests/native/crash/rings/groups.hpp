// The groups of cases: which operations die where, beside whom. Nothing here names a failpoint that an operation
// merely reaches: each is learned by recording, so a new one is picked up by itself.
//
//   single      one process is killed at every point of every operation, at every occupancy; nobody else is about
//   stop        one is stopped instead: the others go on as far as the ring allows and leave the living alone
//   contending  one is stopped at every point of its operation, another killed at every point of its own
//   recovering  the same, where the stopped one was recovering from a third one's death
//   crossing    two recover from a third one's death, each stopped at every point of it; the first goes on, somebody
//               puts into what it freed, then the second goes on
//   rivals      the same, where the third one died recovering from a fourth one's death
//   pair        one is killed, then the next one is killed at every point of what it does about it
//   crowd       the same in a table with room for two, so that the dead fill it
//   overtaken   one is stopped, then another, then the first one is killed
//   random      schedules of several processes, stops and deaths, drawn from the seed
#pragma once

#include "crash/harness/groups.hpp"
#include "crash/rings/stage.hpp"

namespace queueduct::crash {

using Worker = WorkerOf<BoundedPlay>;
using Turns = TurnsOf<BoundedPlay>;

inline const std::vector<Op> every_op = {Op::put_one,  Op::put_long,  Op::put_many, Op::get,          Op::get_many,
                                         Op::wait_put, Op::wait_get,  Op::make_room, Op::shutdown,
                                         Op::shutdown_now, Op::join,  Op::leave};

// They need a line beside their thread's, so they are not among those that fill the table.
inline const std::vector<Op> lease_ops = {Op::lease, Op::lease_back};

[[nodiscard]] inline std::vector<Shape> shapes(bool is_long) {
  std::vector<Shape> shapes = {{.capacity = 8}, {.capacity = 8, .varying = false}};
  shapes.push_back({.capacity = 1});
  shapes.push_back({.capacity = 3});
  if (is_long) {
    shapes.push_back({.capacity = 2});
    shapes.push_back({.capacity = 4});
    shapes.push_back({.capacity = 5});
    shapes.push_back({.capacity = 1, .varying = false});
  }
  return shapes;
}

[[nodiscard]] inline std::vector<Scene> scenes(const Shape& shape) {
  std::vector<Scene> scenes;
  for (const Occupancy& occupancy : occupancies(shape.capacity)) scenes.push_back({shape, occupancy});
  return scenes;
}

// In the short form the four kinds of survivors take turns; in the long one every case is closed by each.
[[nodiscard]] inline std::vector<Closing> closings(const Options& options, std::size_t turn) {
  const std::vector<Closing> all = {{false, false}, {true, false}, {false, true}, {true, true}};
  if (options.is_long) return all;
  return {all[(turn + options.seed) % all.size()]};
}

class RingGroups : public GroupsOf<RingGroups, BoundedPlay> {
 public:
  explicit RingGroups(Turns& turns) : GroupsOf(turns) {}

  void pass_units() {
    for (const Shape& shape : shapes(options_.is_long)) {
      for (const Scene& scene : scenes(shape)) {
        for (const Op op : every_op) {
          add_single(scene, op);
          add_stop(scene, op);
        }
        for (const Op op : lease_ops) add_single(scene, op);
        add_stop(scene, Op::lease);
        for (const Op op : {Op::convert, Op::convert_back}) add_single(scene, op);
        add_stop(scene, Op::convert);
      }
    }
    for (const Shape& shape : shapes(options_.is_long))
      if (meets(shape)) add_meetings(shape);
    add_drawn("random", options_.is_long ? 200 : 10, 100);
  }

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {
        "single", "stop", "contending", "overtaken", "recovering", "crossing", "rivals", "pair",
        "crowd",  "random", "asleep", "soak"};
    return names;
  }

 private:
  friend GroupsOf;

  // 1 is the narrowest ring, 3 a narrow one of no power of two, 8 a wide one: enough of them.
  [[nodiscard]] bool meets(const Shape& shape) const noexcept {
    return shape.capacity == 8 || (options_.is_long && shape.capacity <= 3);
  }

  // In a narrow table survivors that were attached all the time would leave no line to the dead.
  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn, const Case& played) {
    Closing closing = GroupsOf::closing(options, turn, played);
    closing.attached_before &= played.scene.shape.participants > 4;
    return closing;
  }

  void add_single(const Scene& scene, Op op) {
    add("single/" + scene.name() + "/" + name_of(op), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Point& point : worker.record(scene, {}, op))
        for (const Closing& closing : closings(worker.options(), turn++))
          worker.run({"single", scene, {{op, Fire::kill, point}}, closing});
    });
  }

  void add_stop(const Scene& scene, Op op) { add_each("stop", scene, op, Fire::stop); }

  // Two who meet: in the long form all with all at every occupancy, in the short one a selection.
  void add_meetings(const Shape& shape) {
    const bool is_long = options_.is_long;
    const std::vector<Op> seconds = is_long ? data_ops : std::vector<Op>{Op::put_long, Op::get_many};
    for (const Scene& scene : scenes(shape)) {
      const std::string occupancy = scene.occupancy.name;
      for (const Op first : is_long ? every_op : data_ops) {
        if (is_long || occupancy == "wrap" || occupancy == "full")
          add_pair("pair", scene, first, {Op::get, Op::put_one});
        if (is_long) add_pair("pair", scene, first, {Op::get_many, Op::put_long, Op::make_room, Op::join});
      }
      if (is_long) {
        add_pair("pair", scene, Op::get_many, lease_ops);
        for (const Op first : lease_ops) add_pair("pair", scene, first, {Op::lease, Op::get, Op::put_one});
      } else if (occupancy == "wrap" && shape.varying) {
        add_pair("pair", scene, Op::lease_back, {Op::lease});
        add_pair("pair", scene, Op::convert_back, {Op::convert});
      }
      if (occupancy != "wrap" && (!is_long || (occupancy != "one" && occupancy != "full"))) continue;
      for (const Op first : seconds) {
        for (const Op second : seconds) {
          add_two("contending", scene, {}, first, Fire::stop, second, 1, {2});
          add_overtaken(scene, first, second);
        }
        add_recovering(scene, first);
      }
      add_crossing(scene);
      if (occupancy == "wrap" || occupancy == "one") add_rivals(scene);
      Scene crowded = scene;
      crowded.shape.participants = 2;
      for (const Op first : seconds) add_pair("crowd", crowded, first, {Op::get, Op::put_one, Op::join});
    }
  }

  void add_pair(const char* group, const Scene& scene, Op first, const std::vector<Op>& seconds) {
    for (const Op second : seconds) add_two(group, scene, {}, first, Fire::kill, second, 1, {2});
  }

  // The first one's death leaves something to recover: somebody is stopped at it, and meanwhile another dies.
  void add_recovering(const Scene& scene, Op victim) {
    add("recovering/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& death : deaths(worker, scene, {2})) {
        for (const Op recoverer : {Op::get, Op::make_room}) {
          for (const Point& point : worker.record(scene, {death}, recoverer)) {
            const std::vector<Step> before = {death, {recoverer, Fire::stop, point}};
            for (const Point& next : worker.record(scene, before, victim))
              run_one(worker, {2}, turn++, {"recovering", scene, with(before, {victim, Fire::kill, next})});
          }
        }
      }
    });
  }

  void add_crossing(const Scene& scene) {
    add("crossing/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& death : deaths(worker, scene, {1, 2})) {
        for (const Op one : {Op::get, Op::make_room}) {
          for (const Point& first : worker.record(scene, {death}, one)) {
            const std::vector<Step> before = {death, {one, Fire::stop, first}};
            for (const Point& second : worker.record(scene, before, Op::get)) {
              std::vector<Step> steps = with(before, {Op::get, Fire::stop, second});
              for (const Op next : {Op::resume, Op::put_many, Op::put_one}) steps.push_back({next});
              run_one(worker, {}, turn++, {"crossing", scene, steps});
            }
          }
        }
      }
    });
  }

  // Two want to redeliver what a dead redeliverer had redelivered: the first judge must not take it from the other.
  void add_rivals(const Scene& scene) {
    add("rivals/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& death : deaths(worker, scene, {1})) {
        for (const Point& redelivering : worker.record(scene, {death}, Op::get)) {
          const std::vector<Step> deaths = {death, {Op::get, Fire::kill, redelivering}};
          for (const Point& first : worker.record(scene, deaths, Op::get)) {
            const std::vector<Step> before = with(deaths, {Op::get, Fire::stop, first});
            for (const Point& second : worker.record(scene, before, Op::get)) {
              const std::vector<Step> steps = with(with(before, {Op::get, Fire::stop, second}), {Op::resume});
              run_one(worker, {20}, turn++, {"rivals", scene, steps});
            }
          }
        }
      }
    });
  }

  // The deaths that leave most behind: in the middle of what they had claimed, so many thirds of the way.
  static std::vector<Step> deaths(Worker& worker, const Scene& scene, const std::vector<std::size_t>& thirds) {
    std::vector<Step> deaths;
    for (const Op op : {Op::put_long, Op::get_many}) {
      const std::vector<Point> points = worker.record(scene, {}, op);
      for (const std::size_t third : thirds)
        if (!points.empty()) deaths.push_back({op, Fire::kill, points[points.size() * third / 3]});
    }
    return deaths;
  }

  // Somebody declared a slot, another one claimed it and was stopped with it, then the first was killed: what the
  // dead one names belongs to the living.
  void add_overtaken(const Scene& scene, Op first, Op second) {
    add("overtaken/" + scene.name() + "/" + name_of(first), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Point& point : worker.record(scene, {}, first)) {
        const Step overtaken{first, Fire::stop, point};
        for (const Point& next : worker.record(scene, {overtaken}, second)) {
          std::vector<Step> steps = {overtaken, {second, Fire::stop, next}};
          // the last get finds nothing more, and looks for the dead
          for (const Op op : {Op::slay, Op::get_many, Op::get, Op::put_one}) steps.push_back({op});
          run_one(worker, {}, turn++, {"overtaken", scene, steps});
        }
      }
    });
  }

  [[nodiscard]] static Case draw(const char* group, Random& random) {
    return drawn(group, random, {.few_points = 8, .many_points = 40, .slain_one_in = 6},
                 random.choose(scenes(random.choose(shapes(true)))),
                 [&] { return random.choose(random.below(8) == 0 ? every_op : data_ops); });
  }
};

}  // namespace queueduct::crash
