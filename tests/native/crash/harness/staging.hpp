// Where cases are played: one segment and one history of a worker, used again for every case.
//
// `Play` is a queue's own part: its Shape, Scene and Op, a segment() and a history() with probes, and
//   prepare(scene)              the queue as the scene says, put there by nobody who could die
//   act(scene, step, number)    one process of a case, with the probe of that number
//   close(scene, closing)       the survivors: the queue must be as good as new
//   go_on(scene)                peers of those who are stopped: what can go on, goes on
//   abandon(number)                somebody is dead: what it has done for certain
//   judge()                     after the survivors; nullptr, or what is wrong
#pragma once

#include "crash/harness/process.hpp"
#include "crash/harness/steps.hpp"

namespace queueduct::crash {

inline constexpr std::int64_t recovery_limit_ns = 250 * millisecond;
inline constexpr std::uint32_t survivor_probe = probe_limit - 1;
inline constexpr std::uint32_t process_limit = probe_limit - 4;  // of a script; the last probes are the survivors'

template <class Play>
class StageOf {
 public:
  using Shape = typename Play::Shape;
  using Scene = typename Play::Scene;
  using Op = typename Play::Op;
  using Step = StepOf<Op>;
  using Case = CaseOf<Scene, Op>;

  explicit StageOf(const Shape& shape) : play_(shape) {}
  StageOf(const StageOf&) = delete;
  StageOf& operator=(const StageOf&) = delete;

  [[nodiscard]] const auto& segment() const noexcept { return play_.segment(); }
  [[nodiscard]] auto& history() noexcept { return play_.history(); }
  [[nodiscard]] Play& play() noexcept { return play_; }

  void prepare(const Scene& scene) {
    clear_stage();
    play_.prepare(scene);
  }

  // The failpoints that `op` reaches after these steps, in order.
  [[nodiscard]] std::vector<Point> record(const Scene& scene, const std::vector<Step>& before, Op op) {
    prepare(scene);
    Result ignored;
    std::vector<Point> points;
    for (const Step& step : before)
      if (!play(scene, step, ignored)) return points;
    if (!play(scene, {op}, ignored)) return points;
    const auto& probe = history().probes[history().probes_used - 1];
    for (std::uint32_t i = 0; i < probe.reached && i < trace_limit; ++i) {
      std::uint32_t hit = 1;
      for (const Point& earlier : points) hit += std::strcmp(earlier.name, probe.trace[i]) == 0;
      points.push_back({probe.trace[i], hit});
    }
    clear_stage();
    return points;
  }

  [[nodiscard]] Result run(const Case& played) {
    Result result;
    prepare(played.scene);
    pid_t survivors = 0;
    if (played.closing.attached_before) {
      survivors = start([&] { play_.close(played.scene, played.closing); });
      if (finish(survivors) != Ended::stopped) {
        result.fail("survivors could not attach");
        return result;
      }
    }
    for (const Step& step : played.steps) {
      if (play(played.scene, step, result)) continue;
      if (survivors != 0) put_down(survivors);
      return result;
    }
    if (played.peers_go_on) {
      const Ended how = finish(start([&] { play_.go_on(played.scene); }));
      if (how != Ended::exited) result.fail(how == Ended::hung ? "peers hang" : "peers failed");
      note_problem(survivor_probe, result);
    }
    while (result.problem.empty() && !stopped_.empty()) (void)handle_stopped({Op::resume}, result);
    if (survivors == 0)
      survivors = start([&] { play_.close(played.scene, played.closing); });
    else
      kill(survivors, SIGCONT);
    const Ended how = finish(survivors);
    if (how != Ended::exited) result.fail(how == Ended::hung ? "survivors hang" : "survivors failed");
    judge(result);
    return result;
  }

  // One step: true if it went as the script says.
  [[nodiscard]] bool play(const Scene& scene, const Step& step, Result& result) {
    if (is_about_stopped(step.op)) return handle_stopped(step, result);
    const std::uint32_t number = history().probes_used++;
    auto& probe = history().probes[number];
    probe.fire = step.fire;
    probe.point = step.point.name;
    probe.hit = step.point.hit;
    const pid_t pid = start([&] { play_.act(scene, step, number); });
    const Ended how = finish(pid);
    if (how == Ended::hung || how == Ended::failed) {
      result.fail(step.name() + (how == Ended::hung ? ": hangs" : ": failed"));
      return false;
    }
    if (how == Ended::stopped) {
      stopped_.push_back({pid, number});
      ++result.stops;
    }
    if (how == Ended::killed) abandon(number, result);
    note_problem(number, result);
    const Ended expected = step.fire == Fire::kill   ? Ended::killed
                           : step.fire == Fire::stop ? Ended::stopped
                                                     : Ended::exited;
    if (how != expected && step.point.name != nullptr) result.fail(step.name() + ": the point was not reached");
    return result.problem.empty();
  }

  // Kill the first one who is stopped.
  void kill_stopped(Result& result) { (void)handle_stopped({Op::slay}, result); }

  void judge(Result& result) {
    for (std::uint32_t i = 0; i < history().probes_used; ++i) note_problem(i, result);
    note_problem(survivor_probe, result);
    if (const char* problem = play_.judge()) result.fail(problem);
  }

 private:
  struct Stopped {
    pid_t pid;
    std::uint32_t number;
  };

  void abandon(std::uint32_t number, Result& result) {
    ++result.kills;
    play_.abandon(number);
  }

  // Something happens to one of those who are stopped. If there are fewer than the script thinks, count on.
  [[nodiscard]] bool handle_stopped(const Step& step, Result& result) {
    if (stopped_.empty()) return true;
    const auto whom = stopped_.begin() + (step.whom - 1) % static_cast<std::uint32_t>(stopped_.size());
    const Stopped each = *whom;
    if (step.op == Op::slay) {
      stopped_.erase(whom);
      abandon(each.number, result);  // what it leaves is written down while it is still being left alone
      put_down(each.pid);
      return true;
    }
    auto& probe = history().probes[each.number];
    probe.fire = step.op == Op::advance ? Fire::stop : Fire::never;
    probe.point = nullptr;
    probe.hits = 0;
    probe.hit = step.point.hit;
    kill(each.pid, SIGCONT);
    const Ended how = finish(each.pid);
    note_problem(each.number, result);
    if (how == Ended::stopped) return result.problem.empty();
    stopped_.erase(whom);
    if (how != Ended::exited) result.fail(how == Ended::hung ? "resumed, and hangs" : "resumed, and failed");
    return result.problem.empty();
  }

  void clear_stage() noexcept {
    for (const Stopped& each : stopped_) put_down(each.pid);
    stopped_.clear();
  }

  void note_problem(std::uint32_t number, Result& result) {
    if (history().probes[number].problem[0] != 0) result.fail(history().probes[number].problem);
  }

  Play play_;
  std::vector<Stopped> stopped_;
};

}  // namespace queueduct::crash
