// Random kills by the hundred: processes that put and get as fast as they can, each of which is stopped or killed
// after a number of failpoints that the seed draws, and replaced. Nothing is quiet here, so what is judged is
// what each probe proves; that the dead left nothing is judged at the end.
#pragma once

#include "groups.hpp"

namespace penstock::crash {

class Soak {
 public:
  Soak(Stage& stage, const Scene& scene, std::uint64_t seed, std::uint32_t kills)
      : stage_(stage), scene_(scene), random_(seed), kills_(kills) {}

  [[nodiscard]] Result run() {
    Result result;
    stage_.prepare(scene_);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) hire(lane);
    while (result.kills < kills_ && result.problem.empty()) watch(result);
    stage_.history().is_over.store(true);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) kill(pids_[lane], SIGCONT);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const Ended how = finish(pids_[lane]);
      if (how == Ended::killed) settle(lane, result);
      if (how == Ended::hung || how == Ended::failed) result.fail("a process did not end");
    }
    if (!result.problem.empty()) return result;
    const pid_t closing = start([&] { close_case(stage_.segment(), stage_.history(), scene_, {}); });
    if (finish(closing) != Ended::exited) result.fail("survivors failed");
    const Probe& survivors = stage_.history().probes[survivor_probe];
    if (survivors.problem[0] != 0) result.fail(survivors.problem);
    if (const char* problem = judge_items(stage_.segment(), stage_.history())) result.fail(problem);
    return result;
  }

 private:
  static constexpr std::uint32_t lanes = 4;

  void hire(std::uint32_t lane) {
    Probe& probe = stage_.history().probes[lane];
    new (&probe) Probe;
    probe.fire = random_() % 4 == 0 ? Fire::stop_then_kill : Fire::kill;
    probe.hit = 1 + static_cast<std::uint32_t>(random_() % 250);
    probe.second_hit = 1 + static_cast<std::uint32_t>(random_() % 60);
    const std::uint64_t seed = random_();
    const auto me = static_cast<std::uint8_t>(++hired_);
    pids_[lane] = start([&] { work(lane, seed, me); });
  }

  void work(std::uint32_t lane, std::uint64_t seed, std::uint8_t me) {
    Probe& probe = stage_.history().probes[lane];
    Attachment attached(stage_.segment());
    join(attached, probe);
    lose_lock(attached, probe);
    arm(probe);
    Context context{attached, stage_.history(), probe, me};
    std::mt19937_64 random(seed);
    while (!stage_.history().is_over.load()) {
      const bool puts = random() % 2 == 0;
      const Op op = puts ? data_ops[random() % 3] : data_ops[3 + random() % 2];
      perform(context, scene_, op);
    }
    disarm();
    _exit(0);
  }

  void watch(Result& result) {
    pid_t who = 0;
    const Ended how = wait_for(-1, process_limit_ns, &who);
    std::uint32_t lane = 0;
    while (lane < lanes && pids_[lane] != who) ++lane;
    if (lane == lanes || how == Ended::hung || how == Ended::failed)
      return void(result.fail(how == Ended::hung ? "nothing moves any more" : "a process failed"));
    if (how == Ended::stopped) {
      ++result.stops;
      asleep_.push_back(who);
      if (asleep_.size() == lanes - 1) wake_oldest();  // somebody has to be awake for anything to happen
      return;
    }
    if (how == Ended::exited) return void(result.fail("a process ended by itself"));
    settle(lane, result);
    hire(lane);
    if (!asleep_.empty() && random_() % 2 == 0) wake_oldest();
  }

  void wake_oldest() {
    kill(asleep_.front(), SIGCONT);
    asleep_.erase(asleep_.begin());
  }

  void settle(std::uint32_t lane, Result& result) {
    Probe& probe = stage_.history().probes[lane];
    ++result.kills;
    if (probe.problem[0] != 0) result.fail(probe.problem);
    stage_.history().settle(probe);
    probe.has_returned = true;  // settled: not again at the end
  }

  Stage& stage_;
  const Scene& scene_;
  std::mt19937_64 random_;
  std::uint32_t kills_;
  std::uint32_t hired_ = 0;
  pid_t pids_[lanes] = {};
  std::vector<pid_t> asleep_;
};

[[nodiscard]] inline std::vector<Unit> soak_units(const Options& options) {
  std::vector<Unit> units;
  const std::uint32_t rounds = options.is_long ? 400 : 20;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const std::vector<Shape> all = shapes(true);
    const Scene scene{all[i % all.size()], {"empty", 0, 0}};
    const std::string name = "soak/" + scene.name() + "/" + std::to_string(options.seed) + "-" + std::to_string(i);
    if (!options.may_match(name, Groups::names())) continue;
    units.push_back({name, [=](Worker& worker) {
                       worker.run(name, [&] {
                         const std::uint64_t seed = worker.options().seed * 7919 + i;
                         return Soak(worker.stage(scene.shape), scene, seed, 100).run();
                       });
                     }});
  }
  return units;
}

}  // namespace penstock::crash
