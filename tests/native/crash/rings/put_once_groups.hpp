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

class OnceGroups {
 public:
  explicit OnceGroups(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<Unit> units() {
    for (Shape shape : shapes(options_.is_long)) {
      shape.producers = 3;
      for (const Scene& scene : scenes(shape)) {
        for (const Op op : {Op::put_once, Op::forget}) {
          add_alone(scene, op);
          add_stopped(scene, op);
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
    const std::uint32_t drawn_units = options_.is_long ? 200 : 4;
    for (std::uint32_t i = 0; i < drawn_units; ++i) add_drawn(i);
    return std::move(units_);
  }

 private:
  static const std::vector<std::string>& names() {
    static const std::vector<std::string> names = {"alone",  "stopped",  "again",  "thrice", "late",
                                                   "beside", "replaced", "misled", "drawn"};
    return names;
  }

  void add(std::string name, std::function<void(Worker&)> body) {
    if (options_.may_match(name, names())) units_.push_back({std::move(name), std::move(body)});
  }

  // One of so many, others with each seed; the long form plays more of them.
  struct OneOf {
    std::size_t in_short;
    std::size_t in_long;
  };
  static bool is_turn(const Worker& worker, OneOf one_of, std::size_t turn) {
    return (turn + worker.options().seed) % (worker.options().is_long ? one_of.in_long : one_of.in_short) == 0;
  }

  void add_alone(const Scene& scene, Op op) {
    add("alone/" + scene.name() + "/" + name_of(op), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Point& point : worker.record(scene, {}, op))
        for (const Closing& closing : closings(worker.options(), turn++))
          worker.run({"alone", scene, {{op, Fire::kill, point}}, closing});
    });
  }

  void add_stopped(const Scene& scene, Op op) {
    add("stopped/" + scene.name() + "/" + name_of(op), [=](Worker& worker) {
      std::size_t turn = 1;
      for (const Point& point : worker.record(scene, {}, op))
        worker.run({"stopped", scene, {{op, Fire::stop, point}}, one_closing(worker.options(), turn++), true});
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
          if (!is_turn(worker, {7, 13}, turn++)) continue;
          worker.run({"again", scene, {death, {next, Fire::kill, point}}, one_closing(worker.options(), turn / 7)});
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
            if (is_turn(worker, {19, 29}, third_turn++))
              worker.run({"thrice", scene, with(before, {Op::put_once, Fire::kill, third}),
                          one_closing(worker.options(), third_turn / 3)});
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
          if (turn % 2 == 0) steps.back() = {Op::put_once, Fire::kill, {nullptr, static_cast<std::uint32_t>(turn % 97 + 1)}};
          worker.run({"late", scene, steps, one_closing(worker.options(), turn / 5)});
        }
      }
    });
  }

  void add_beside(const Scene& scene, Op next) {
    add("beside/" + scene.name(), [=](Worker& worker) {
      std::size_t turn = 0;
      for (const Step& stop : deaths(worker, scene, 5, Fire::stop)) {
        for (const Point& point : worker.record(scene, {stop}, next)) {
          if (!is_turn(worker, {5, 19}, turn++)) continue;
          worker.run({"beside", scene, {stop, {next, Fire::kill, point}}, one_closing(worker.options(), turn / 5)});
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
        worker.run({"replaced", scene, steps, one_closing(worker.options(), turn++)});
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
            if (!is_turn(worker, {3, 2}, turn++)) continue;
            std::vector<Step> steps = with(before, {Op::make_room, Fire::stop, next});
            steps.push_back({Op::advance, Fire::never, {nullptr, more}});
            for (const Op op : {Op::slay, Op::resume, Op::put_once, Op::get_many}) steps.push_back({op});
            worker.run({"misled", scene, steps, one_closing(worker.options(), turn / 3)});
          }
        }
      }
    });
  }

  void add_drawn(std::uint32_t number) {
    add("drawn/" + std::to_string(options_.seed) + "-" + std::to_string(number), [=](Worker& worker) {
      for (std::uint64_t i = 0; i < 50; ++i) {
        const std::string name =
            "drawn/" + std::to_string(worker.options().seed) + "-" + std::to_string(number) + "-" + std::to_string(i);
        worker.run(drawn_case(name.c_str(), (worker.options().seed << 32) + number * 1000 + i));
      }
    });
  }

  // A schedule: up to four processes at a time, each of which goes on for some points when it is its turn.
  static Case drawn_case(const char* group, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    const auto choose = [&](const auto& from) { return from[below(from.size())]; };
    const std::vector<Op> others = {Op::get, Op::get_many, Op::make_room, Op::put_many, Op::put_one, Op::join, Op::forget};
    Shape shape = choose(shapes(true));
    shape.producers = 3;
    const Scene scene = choose(scenes(shape));
    std::vector<Step> steps;
    std::uint32_t started = 0;
    std::uint32_t stopped = 0;
    for (std::uint32_t left = 8 + below(24); left > 0; --left) {
      const std::uint32_t points = 1 + below(below(4) == 0 ? 80 : 12);
      if (stopped == 0 || (stopped < 4 && below(3) == 0)) {
        if (++started > process_limit) break;
        steps.push_back({below(2) == 0 ? Op::put_once : choose(others), Fire::stop, {nullptr, points}});
        ++stopped;
      } else if (below(4) == 0) {
        steps.push_back({Op::slay, Fire::never, {nullptr, 1}, 1 + below(stopped--)});
      } else {
        steps.push_back({Op::advance, Fire::never, {nullptr, points}, 1 + below(stopped)});
      }
    }
    return {group, scene, steps, {below(2) == 0, below(2) == 0}};
  }

  const Options& options_;
  std::vector<Unit> units_;
};

}  // namespace queueduct::crash
