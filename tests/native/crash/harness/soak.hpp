// Random kills by the hundred: processes that work as fast as they can, each of which is stopped or killed after a
// number of failpoints that the seed draws, and replaced. Nothing is quiet here, so what is judged is what each probe
// proves; that the dead left nothing is judged at the end.
//
// Besides what a stage needs, `Play` has
//   work(scene, lane, seed, me)    a worker's life, until the case is over
//   settle(lane)                   somebody is dead, while others go on: what it has done for certain
//   judge_soak()                   as judge(), of what the probes alone prove
#pragma once

#include <random>

#include "crash/harness/campaign.hpp"

namespace queueduct::crash {

template <class Play>
class SoakOf {
 public:
  using Stage = StageOf<Play>;
  using Scene = typename Play::Scene;

  SoakOf(Stage& stage, const Scene& scene, std::uint64_t seed, std::uint32_t kills)
      : stage_(stage), scene_(scene), random_(seed), kills_(kills) {}

  [[nodiscard]] Result run() {
    Result result;
    stage_.prepare(scene_);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) hire(lane);
    while (result.kills < kills_ && result.problem.empty()) watch(result);
    stage_.history().is_over.store(true);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) kill(pids_[lane], SIGCONT);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      Ended how = finish(pids_[lane]);
      while (how == Ended::stopped) {  // its hour had not come before
        kill(pids_[lane], SIGCONT);
        how = finish(pids_[lane]);
      }
      if (how == Ended::killed) settle(lane, result);
      if (how == Ended::hung || how == Ended::failed) result.fail("a process did not end");
    }
    if (!result.problem.empty()) return result;
    const pid_t closing = start([&] { stage_.play().close(scene_, {}); });
    if (finish(closing) != Ended::exited) result.fail("survivors failed");
    const Trace& survivors = stage_.history().probes[survivor_probe];
    if (survivors.problem[0] != 0) result.fail(survivors.problem);
    if (const char* problem = stage_.play().judge_soak()) result.fail(problem);
    return result;
  }

 private:
  static constexpr std::uint32_t lanes = 4;

  void hire(std::uint32_t lane) {
    auto& probe = stage_.history().probes[lane];
    probe = {};
    probe.fire = random_() % 4 == 0 ? Fire::stop_then_kill : Fire::kill;
    probe.hit = 1 + static_cast<std::uint32_t>(random_() % 250);
    probe.second_hit = 1 + static_cast<std::uint32_t>(random_() % 60);
    const std::uint64_t seed = random_();
    const auto me = static_cast<std::uint8_t>(++hired_);
    pids_[lane] = start([&] { stage_.play().work(scene_, lane, seed, me); });
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
    auto& probe = stage_.history().probes[lane];
    ++result.kills;
    if (probe.problem[0] != 0) result.fail(probe.problem);
    stage_.play().settle(lane);
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

// So many rounds over these scenes, each with a seed of its own.
template <class Play>
void pass_soak(TurnsOf<Play>& turns, const std::vector<typename Play::Scene>& scenes,
               const std::vector<std::string>& groups, std::uint32_t rounds) {
  const std::uint64_t drawn = turns.options().seed;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const typename Play::Scene& scene = scenes[i % scenes.size()];
    const std::string name = "soak/" + scene.name() + "/" + std::to_string(drawn) + "-" + std::to_string(i);
    turns.pass(name, groups, [&](WorkerOf<Play>& worker) {
      worker.run(name, [&] { return SoakOf<Play>(worker.stage(scene.shape), scene, drawn * 7919 + i, 100).run(); });
    });
  }
}

}  // namespace queueduct::crash
