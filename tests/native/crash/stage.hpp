// Where cases are played: one segment and one history of a worker, used again for every case.
#pragma once

#include <memory>

#include "autopsy.hpp"

namespace penstock::crash {

struct Case {
  const char* group;
  Scene scene;
  std::vector<Step> steps;
  Closing closing = {};
  bool peers_go_on = false;  // while those are stopped that the script has stopped

  [[nodiscard]] std::string name() const {
    std::string name = std::string(group) + "/" + scene.name();
    for (const Step& step : steps) name.append("/").append(step.name());
    return name + "/" + closing.name();
  }
};

struct Result {
  std::string problem;  // empty: all as it must be
  std::uint32_t kills = 0;
  std::uint32_t stops = 0;
};

class Stage {
 public:
  explicit Stage(const Shape& shape) : segment_(shape), history_(History::create()) {}
  ~Stage() { munmap(history_, sizeof(History)); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] const Segment& segment() const noexcept { return segment_; }
  [[nodiscard]] History& history() noexcept { return *history_; }

  // The queue as the scene says, put there by nobody who could die.
  void prepare(const Scene& scene) {
    clear_stage();
    segment_.reset(scene.occupancy.start);
    history_->reset();
    autopsy_.reset();
    std::uint64_t left = scene.occupancy.slots;
    for (bool is_long = true; left > 0; is_long = !is_long) {
      const bool take_long = is_long && scene.long_slots() <= left;
      const std::uint16_t length = take_long ? scene.long_length() : scene.short_length();
      const std::uint32_t id = history_->new_item(length, 0);
      unsigned char bytes[4096];
      write_item(id, length, bytes);
      (void)try_put_bytes(segment_.ring(), NoLedger{}, bytes, length);
      history_->items[id].is_in.store(true);
      left -= segment_.ring().slots_for(length);
    }
    if (scene.shape.producers != 0) make_plan(scene);
    // as if somebody slept on either side, so that wake-ups are places to die, too
    segment_.control().items.word.store(1);
    segment_.control().room.word.store(1);
  }

  // The failpoints that `op` reaches after these steps, in order.
  [[nodiscard]] std::vector<Point> record(const Scene& scene, const std::vector<Step>& before, Op op) {
    prepare(scene);
    Result ignored;
    std::vector<Point> points;
    for (const Step& step : before)
      if (!play(scene, step, ignored)) return points;
    if (!play(scene, {op}, ignored)) return points;
    const Probe& probe = history_->probes[history_->probes_used - 1];
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
      survivors = start([&] { close_case(segment_, *history_, played.scene, played.closing); });
      if (finish(survivors) != Ended::stopped) return failed(result, "survivors could not attach");
    }
    for (const Step& step : played.steps) {
      if (play(played.scene, step, result)) continue;
      if (survivors != 0) put_down(survivors);
      return result;
    }
    if (played.peers_go_on) {
      const Ended how = finish(start([&] { go_on_beside_the_stopped(segment_, *history_, played.scene); }));
      if (how != Ended::exited) failed(result, how == Ended::hung ? "peers hang" : "peers failed");
      note_problem(survivor_probe, result);
    }
    while (result.problem.empty() && !stopped_.empty()) (void)handle_stopped({Op::resume}, result);
    if (survivors == 0)
      survivors = start([&] { close_case(segment_, *history_, played.scene, played.closing); });
    else
      kill(survivors, SIGCONT);
    const Ended how = finish(survivors);
    if (how != Ended::exited) failed(result, how == Ended::hung ? "survivors hang" : "survivors failed");
    judge(result);
    return result;
  }

  // One step: true if it went as the script says.
  [[nodiscard]] bool play(const Scene& scene, const Step& step, Result& result) {
    if (is_about_stopped(step.op)) return handle_stopped(step, result);
    const std::uint32_t number = history_->probes_used++;
    Probe& probe = history_->probes[number];
    probe.fire = step.fire;
    probe.point = step.point.name;
    probe.hit = step.point.hit;
    const pid_t pid = start([&] { act(segment_, *history_, scene, step, number); });
    const Ended how = finish(pid);
    if (how == Ended::hung) return failed(result, step.name() + ": hangs"), false;
    if (how == Ended::failed) return failed(result, step.name() + ": failed"), false;
    if (how == Ended::stopped) {
      stopped_.push_back({pid, number});
      ++result.stops;
    }
    if (how == Ended::killed) bury(number, result);
    note_problem(number, result);
    const Ended expected = step.fire == Fire::kill   ? Ended::killed
                           : step.fire == Fire::stop ? Ended::stopped
                                                     : Ended::exited;
    if (how != expected && step.point.name != nullptr) failed(result, step.name() + ": the point was not reached");
    return result.problem.empty();
  }

  // Kill the first one who is stopped.
  void kill_stopped(Result& result) { (void)handle_stopped({Op::slay}, result); }

  void judge(Result& result) {
    for (std::uint32_t i = 0; i < history_->probes_used; ++i) note_problem(i, result);
    note_problem(survivor_probe, result);
    if (const char* problem = judge_items(segment_, *history_)) failed(result, problem);
    if (const char* problem = autopsy_.judge(segment_)) failed(result, problem);
  }

  static Result& failed(Result& result, const std::string& problem) {
    if (result.problem.empty()) result.problem = problem;
    return result;
  }

 private:
  void make_plan(const Scene& scene) {
    const std::uint16_t one = scene.short_length();
    const std::vector<std::uint16_t> lengths[Plan::sequences] = {{one, one}, {scene.long_length(), one, one}};
    for (std::uint32_t s = 0; s < Plan::sequences; ++s)
      for (const std::uint16_t length : lengths[s])
        history_->plan.ids[s][history_->plan.counts[s]++] = history_->new_item(length, planned_putter);
  }

  struct Stopped {
    pid_t pid;
    std::uint32_t number;
  };

  void bury(std::uint32_t number, Result& result) {
    ++result.kills;
    history_->settle(history_->probes[number]);
    autopsy_.examine(segment_, history_->probes[number]);
  }

  // Something happens to one of those who are stopped. If there are fewer than the script thinks, count on.
  [[nodiscard]] bool handle_stopped(const Step& step, Result& result) {
    if (stopped_.empty()) return true;
    const auto whom = stopped_.begin() + (step.whom - 1) % static_cast<std::uint32_t>(stopped_.size());
    const Stopped each = *whom;
    if (step.op == Op::slay) {
      stopped_.erase(whom);
      bury(each.number, result);  // what it leaves is written down while it is still being left alone
      put_down(each.pid);
      return true;
    }
    Probe& probe = history_->probes[each.number];
    probe.fire = step.op == Op::advance ? Fire::stop : Fire::never;
    probe.point = nullptr;
    probe.hits = 0;
    probe.hit = step.point.hit;
    kill(each.pid, SIGCONT);
    const Ended how = finish(each.pid);
    note_problem(each.number, result);
    if (how == Ended::stopped) return result.problem.empty();
    stopped_.erase(whom);
    if (how != Ended::exited) failed(result, how == Ended::hung ? "resumed, and hangs" : "resumed, and failed");
    return result.problem.empty();
  }

  void clear_stage() noexcept {
    for (const Stopped& each : stopped_) put_down(each.pid);
    stopped_.clear();
  }

  void note_problem(std::uint32_t number, Result& result) {
    if (history_->probes[number].problem[0] != 0) failed(result, history_->probes[number].problem);
  }

  Segment segment_;
  History* history_;
  Autopsy autopsy_;
  std::vector<Stopped> stopped_;
};

}  // namespace penstock::crash
