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

class SlotsOnceGroups {
 public:
  explicit SlotsOnceGroups(const Options& options) : options_(options) {}

  [[nodiscard]] std::vector<SlotsUnit> units() {
    for (const SlotsScene& scene : scenes()) {
      for (const SlotsOp op : {SlotsOp::put_once, SlotsOp::forget}) {
        add_alone(scene, op);
        add_stopped(scene, op);
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
    const std::uint32_t drawn_units = options_.is_long ? 200 : 3;
    for (std::uint32_t i = 0; i < drawn_units; ++i) add_drawn(i);
    return std::move(units_);
  }

 private:
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

  void add(std::string name, std::function<void(SlotsWorker&)> body) {
    if (options_.may_match(name, names())) units_.push_back({std::move(name), std::move(body)});
  }

  [[nodiscard]] static Closing closing(const SlotsWorker& worker, std::size_t turn) {
    const std::size_t drawn = turn + worker.options().seed;
    return {drawn % 2 == 0, drawn % 4 < 2};
  }

  // One of so many, others with each seed; the long form plays more of them.
  struct OneOf {
    std::size_t in_short;
    std::size_t in_long;
  };
  [[nodiscard]] static bool is_turn(const SlotsWorker& worker, OneOf one_of, std::size_t turn) {
    return (turn + worker.options().seed) % (worker.options().is_long ? one_of.in_long : one_of.in_short) == 0;
  }

  void add_alone(const SlotsScene& scene, SlotsOp op) {
    add("alone/" + scene.name() + "/" + name_of(op), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const Point& point : worker.record(scene, {}, op))
        worker.run({"alone", scene, {{op, Fire::kill, point}}, closing(worker, turn++)});
    });
  }

  void add_stopped(const SlotsScene& scene, SlotsOp op) {
    add("stopped/" + scene.name() + "/" + name_of(op), [=](SlotsWorker& worker) {
      std::size_t turn = 1;
      for (const Point& point : worker.record(scene, {}, op))
        if (is_turn(worker, {3, 1}, turn++))
          worker.run({"stopped", scene, {{op, Fire::stop, point}}, closing(worker, turn), true});
    });
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

  [[nodiscard]] static std::vector<SlotsStep> with(std::vector<SlotsStep> steps, const SlotsStep& last) {
    steps.push_back(last);
    return steps;
  }

  // The second one is killed at every so many of its points.
  void add_two(const char* group, const SlotsScene& scene, SlotsOp next, Fire fire, OneOf one_of) {
    add(std::string(group) + "/" + scene.name() + "/" + name_of(next), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const std::vector<SlotsStep>& before : ends(worker, scene, 5, fire))
        for (const Point& point : worker.record(scene, before, next))
          if (is_turn(worker, one_of, turn++))
            worker.run({group, scene, with(before, {next, Fire::kill, point}), closing(worker, turn / one_of.in_short)});
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
            if (is_turn(worker, {41, 29}, third_turn++))
              worker.run({"thrice", scene, with(twice, {SlotsOp::put_once, Fire::kill, third}), closing(worker, third_turn)});
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
          worker.run({"late", scene, steps, closing(worker, turn / 5)});
        }
      }
    });
  }

  void add_replaced(const SlotsScene& scene) {
    add("replaced/" + scene.name(), [=](SlotsWorker& worker) {
      std::size_t turn = 0;
      for (const std::vector<SlotsStep>& before : ends(worker, scene, 3, Fire::stop)) {
        std::vector<SlotsStep> steps = before;
        for (const SlotsOp op : {SlotsOp::put_once, SlotsOp::get, SlotsOp::put, SlotsOp::slay, SlotsOp::put_once, SlotsOp::get})
          steps.push_back({op});
        worker.run({"replaced", scene, steps, closing(worker, turn++)});
      }
    });
  }

  void add_drawn(std::uint32_t number) {
    const std::string unit = "drawn/" + std::to_string(options_.seed) + "-" + std::to_string(number);
    add(unit, [=](SlotsWorker& worker) {
      for (std::uint32_t i = 0; i < 100; ++i) {
        const std::string name = unit + "-" + std::to_string(i);
        worker.run(drawn_case(name.c_str(), (worker.options().seed << 32) + number * 1000 + i));
      }
    });
  }

  // A schedule: up to four processes at a time, each of which goes on for some points when it is its turn.
  [[nodiscard]] static SlotsCase drawn_case(const char* group, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    const auto choose = [&](const auto& from) { return from[below(from.size())]; };
    const std::vector<SlotsOp> others = {SlotsOp::get,  SlotsOp::put,     SlotsOp::overwrite,    SlotsOp::put_back,
                                         SlotsOp::lease, SlotsOp::recover, SlotsOp::set_capacity, SlotsOp::join,
                                         SlotsOp::forget};
    const SlotsScene scene = choose(scenes());
    std::vector<SlotsStep> steps;
    std::uint32_t started = 0;
    std::uint32_t stopped = 0;
    for (std::uint32_t left = 8 + below(24); left > 0; --left) {
      const std::uint32_t points = 1 + below(below(4) == 0 ? 80 : 12);
      // the table has six lines, and two of them are the survivors'
      if (stopped == 0 || (stopped < 3 && below(3) == 0)) {
        if (++started > process_limit) break;
        steps.push_back({below(2) == 0 ? SlotsOp::put_once : choose(others), Fire::stop, {nullptr, points}});
        ++stopped;
      } else if (below(4) == 0) {
        steps.push_back({SlotsOp::slay, Fire::never, {nullptr, 1}, 1 + below(stopped--)});
      } else {
        steps.push_back({SlotsOp::advance, Fire::never, {nullptr, points}, 1 + below(stopped)});
      }
    }
    return {group, scene, steps, {below(2) == 0, below(2) == 0}};
  }

  const Options& options_;
  std::vector<SlotsUnit> units_;
};

}  // namespace queueduct::crash
