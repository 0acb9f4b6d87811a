// Groups of cases: which operations die where, beside whom. Failpoints are learned by recording, so a new one is picked
// up by itself. `Derived` is a queue's own part: it has names(), and may have its own record() and closing().
#pragma once

#include <random>

#include "crash/harness/campaign.hpp"

namespace queueduct::crash {

template <class Derived, class Play>
class GroupsOf {
 protected:
  using Worker = WorkerOf<Play>;
  using Turns = TurnsOf<Play>;
  using Stage = StageOf<Play>;
  using Scene = typename Play::Scene;
  using Op = typename Play::Op;
  using Step = typename Stage::Step;
  using Case = typename Stage::Case;

  // One case of so many is played, others with each seed.
  struct OneOf {
    std::size_t in_short = 1;
    std::size_t in_long = 1;
  };

  explicit GroupsOf(Turns& turns) : options_(turns.options()), turns_(turns) {}

  template <class Body>
  void add(const std::string& name, const Body& body) {
    ++added_;
    turns_.pass(name, Derived::names(), body);
  }

  [[nodiscard]] static std::size_t many(const Worker& worker, OneOf one_of) {
    return worker.options().is_long ? one_of.in_long : one_of.in_short;
  }
  [[nodiscard]] static bool is_turn(const Worker& worker, OneOf one_of, std::size_t turn) {
    return (turn + worker.options().seed) % many(worker, one_of) == 0;
  }

  // The four kinds of survivors take turns.
  [[nodiscard]] static Closing closing(const Options& options, std::size_t turn, const Case&) {
    return {(turn + options.seed) % 2 == 0, (turn + options.seed) % 4 < 2};
  }

  [[nodiscard]] static std::vector<Point> record(Worker& worker, const Scene& scene, const std::vector<Step>& before,
                                                 Op op) {
    return worker.record(scene, before, op);
  }

  // A participant that waits comes to the same point again and again: the first times and the last are enough. At a
  // lock that others hold, how often depends on their speed: then the last time is another with each run.
  [[nodiscard]] static std::vector<Point> record_first_and_last(Worker& worker, const Scene& scene,
                                                                const std::vector<Step>& before, Op op,
                                                                std::uint32_t often, std::uint32_t spinning) {
    const std::vector<Point> all = worker.record(scene, before, op);
    std::vector<Point> points;
    for (const Point& point : all) {
      std::uint32_t times = 0;
      for (const Point& other : all) times += std::strcmp(point.name, other.name) == 0;
      if (point.hit <= often || (point.hit == times && times <= spinning)) points.push_back(point);
    }
    return points;
  }

  static void run_one(Worker& worker, OneOf one_of, std::size_t turn, Case played) {
    if (!is_turn(worker, one_of, turn)) return;
    played.closing = Derived::closing(worker.options(), turn / many(worker, one_of), played);
    worker.run(played);
  }

  // One process is killed at every point of its operation, or is stopped there while its peers go on.
  void add_each(const char* group, const Scene& scene, Op op, Fire fire, OneOf one_of = {}) {
    add(std::string(group) + "/" + scene.name() + "/" + name_of(op), [=](Worker& worker) {
      const bool is_stop = fire == Fire::stop;
      std::size_t turn = is_stop ? 1 : 0;
      for (const Point& point : Derived::record(worker, scene, {}, op))
        run_one(worker, one_of, turn++, {group, scene, {{op, fire, point}}, {}, is_stop});
    });
  }

  // The first one is stopped or killed at each of its points, the second one killed at each of its own. Those of
  // `before` are stopped until the first one is dead, and then killed.
  void add_two(const char* group, const Scene& scene, const std::vector<Step>& before, Op first, Fire fire, Op second,
               std::size_t firsts_in_short = 1, OneOf one_of = {}) {
    add(std::string(group) + "/" + scene.name() + "/" + name_of(before.empty() ? first : before[0].op),
        [=, unit = added_](Worker& worker) {
          std::size_t turn = unit;  // so that units do not all begin alike
          std::size_t first_turn = unit;
          for (const Point& point : Derived::record(worker, scene, before, first)) {
            if (!is_turn(worker, {firsts_in_short, 1}, first_turn++)) continue;
            std::vector<Step> steps = before;
            steps.push_back({first, fire, point});
            for (std::size_t i = 0; i < before.size(); ++i) steps.push_back({Op::slay});
            const std::vector<Point> points = Derived::record(worker, scene, steps, second);
            steps.push_back({second, Fire::kill, {}});
            for (const Point& next : points) {
              steps.back().point = next;
              run_one(worker, one_of, turn++, {group, scene, steps});
            }
          }
        });
  }

  // Schedules drawn from the seed: units of so many, each a call of Derived::draw(group, random).
  void add_drawn(const char* group, std::uint32_t units, std::uint32_t cases) {
    for (std::uint32_t number = 0; number < units; ++number) {
      const std::string unit = group + ("/" + std::to_string(options_.seed)) + "-" + std::to_string(number);
      add(unit, [=](Worker& worker) {
        for (std::uint32_t i = 0; i < cases; ++i) {
          const std::string name = unit + "-" + std::to_string(i);
          Random random((worker.options().seed << 32) + number * 1000 + i);
          worker.run(Derived::draw(name.c_str(), random));
        }
      });
    }
  }

  struct Random {
    explicit Random(std::uint64_t seed) : engine(seed) {}
    [[nodiscard]] std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(engine() % n); }
    [[nodiscard]] auto choose(const auto& from) { return from[below(from.size())]; }

    std::mt19937_64 engine;
  };

  struct Schedule {
    std::uint32_t stopped_limit = 4;  // processes at a time
    std::uint32_t few_points = 12;    // that one goes on for, when it is its turn
    std::uint32_t many_points = 80;   // one time in four
    std::uint32_t slain_one_in = 4;
  };

  // Several processes at a time, each of which goes on for some points when it is its turn.
  template <class Choose>
  [[nodiscard]] static Case drawn(const char* group, Random& random, const Schedule& schedule, const Scene& scene,
                                  Choose choose_op) {
    std::vector<Step> steps;
    std::uint32_t started = 0;
    std::uint32_t stopped = 0;
    for (std::uint32_t left = 8 + random.below(24); left > 0; --left) {
      const std::uint32_t points = 1 + random.below(random.below(4) == 0 ? schedule.many_points : schedule.few_points);
      if (stopped == 0 || (stopped < schedule.stopped_limit && random.below(3) == 0)) {
        if (++started > process_limit) break;
        steps.push_back({choose_op(), Fire::stop, {nullptr, points}});
        ++stopped;
      } else if (random.below(schedule.slain_one_in) == 0) {
        steps.push_back({Op::slay, Fire::never, {nullptr, 1}, 1 + random.below(stopped--)});
      } else {
        steps.push_back({Op::advance, Fire::never, {nullptr, points}, 1 + random.below(stopped)});
      }
    }
    return {group, scene, steps, {random.below(2) == 0, random.below(2) == 0}};
  }

  [[nodiscard]] static std::vector<Step> with(std::vector<Step> steps, const Step& next) {
    steps.push_back(next);
    return steps;
  }

  const Options& options_;
  Turns& turns_;
  std::size_t added_ = 0;  // those that the filter leaves out as well
};

}  // namespace queueduct::crash
