// The campaign's machinery: units of work, workers that take them, and what they add up to.
#pragma once

#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>

#include "crash/harness/staging.hpp"

namespace queueduct::crash {

struct Options {
  bool is_long = false;
  bool only_list = false;
  bool as_json = false;
  std::string filter;
  std::uint64_t seed = 1;
  std::uint32_t failure_limit = 20;  // after so many it stops: they are printed, and waiting for more helps nobody
  std::uint32_t workers = 4;

  // A filter that begins with a unit's name, or the reverse, needs only that unit; any other is a text in a name.
  [[nodiscard]] bool may_match(const std::string& unit, const std::vector<std::string>& groups) const {
    for (const std::string& group : groups)
      if (filter.starts_with(group + "/")) return filter.starts_with(unit) || unit.starts_with(filter);
    return true;
  }
};

inline constexpr std::uint32_t point_limit = 128;

// What all workers count together, in shared memory.
struct Totals {
  std::atomic<std::uint32_t> next_unit{0};
  std::atomic<std::uint64_t> cases{0};
  std::atomic<std::uint64_t> kills{0};
  std::atomic<std::uint64_t> stops{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::uint64_t> repeated{0};  // cases that were slow once, and not again
  std::atomic<const char*> points[point_limit] = {};  // literals of this image, as in the traces

  static Totals* create() {
    void* memory = mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for the totals");
    return new (memory) Totals;
  }

  void note_point(const char* name) noexcept {
    for (auto& point : points) {
      const char* known = nullptr;
      if (point.compare_exchange_strong(known, name) || std::strcmp(known, name) == 0) return;
    }
  }
};

template <class Play>
class WorkerOf {
 public:
  using Stage = StageOf<Play>;

  WorkerOf(const Options& options, Totals& totals, int report) : options_(options), totals_(totals), report_(report) {}

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] bool is_enough() const noexcept { return totals_.failures.load() >= options_.failure_limit; }

  [[nodiscard]] Stage& stage(const typename Play::Shape& shape) {
    auto& stage = stages_[Play::key(shape)];
    if (stage == nullptr) stage = std::make_unique<Stage>(shape);
    return *stage;
  }

  [[nodiscard]] std::vector<Point> record(const typename Play::Scene& scene,
                                          const std::vector<typename Stage::Step>& before, typename Play::Op op) {
    return is_enough() ? std::vector<Point>{} : stage(scene.shape).record(scene, before, op);
  }

  void run(const typename Stage::Case& played) {
    run(played.name(), [&] { return stage(played.scene.shape).run(played); });
    for (const auto& step : played.steps)
      if (step.fire == Fire::kill && step.point.name != nullptr) totals_.note_point(step.point.name);
  }

  void note_point(const char* name) noexcept { totals_.note_point(name); }

  // Time alone is the machine's, not the queue's: a case that was only slow is played again, and a true stall
  // repeats, since cases are deterministic.
  template <class Perform>
  void run(const std::string& name, Perform perform) {
    if (is_enough() || name.find(options_.filter) == std::string::npos) return;
    totals_.cases.fetch_add(1);
    if (options_.only_list) return say("L" + name);
    Result result = perform();
    for (int again = 0; again < 3 && result.problem == "slow"; ++again) {
      totals_.repeated.fetch_add(1);
      result = perform();
    }
    totals_.kills.fetch_add(result.kills);
    totals_.stops.fetch_add(result.stops);
    if (result.problem.empty()) return;
    totals_.failures.fetch_add(1);
    say("F" + name + ": " + result.problem);
  }

 private:
  // Short enough to be written at once, so that lines of several workers do not mix.
  void say(std::string line) const {
    line += '\n';
    if (write(report_, line.data(), line.size()) < 0) _exit(1);
  }

  const Options& options_;
  Totals& totals_;
  int report_;
  std::map<std::string, std::unique_ptr<Stage>> stages_;
};

// A worker's turns: of the units of work, which every worker passes in the same order, it plays those that are its own.
// A unit is made when it is passed, and not kept: each process of each case would copy the memory of them all.
template <class Play>
class TurnsOf {
 public:
  TurnsOf(WorkerOf<Play>& worker, Totals& totals) : worker_(worker), totals_(totals) { next_turn(); }

  [[nodiscard]] const Options& options() const noexcept { return worker_.options(); }

  // `name` is what the names of its cases begin with, `groups` are all that there are.
  template <class Body>
  void pass(const std::string& name, const std::vector<std::string>& groups, const Body& body) {
    if (!options().may_match(name, groups) || passed_++ != mine_ || worker_.is_enough()) return;
    body(worker_);
    next_turn();
  }

 private:
  void next_turn() noexcept { mine_ = totals_.next_unit.fetch_add(1); }

  WorkerOf<Play>& worker_;
  Totals& totals_;
  std::uint32_t passed_ = 0;
  std::uint32_t mine_ = 0;
};

// Workers that play the units which `pass_units` passes to their turns.
template <class Play>
struct Shift {
  std::function<void(TurnsOf<Play>&)> pass_units;
  std::uint32_t workers;
};

// Each line that a worker has to say goes to `hear`. False: no worker has begun a case or a unit for `limit_ns`.
template <class Play, class Hear>
[[nodiscard]] bool play_shift(const Shift<Play>& shift, const Options& options, Totals& totals, std::int64_t limit_ns,
                              Hear hear) {
  int report[2];
  if (pipe(report) != 0) throw std::runtime_error("no pipe");
  totals.next_unit.store(0);
  std::vector<pid_t> pids;
  for (std::uint32_t i = 0; i < shift.workers; ++i)
    pids.push_back(start([&] {
      alarm(0);  // a worker's time is watched below
      close(report[0]);
      expect_children();
      WorkerOf<Play> worker(options, totals, report[1]);
      TurnsOf<Play> turns(worker, totals);
      shift.pass_units(turns);
    }));
  close(report[1]);
  std::string text;
  std::uint64_t known_progress = 0;
  std::int64_t end = 0;
  bool is_in_time = true;
  for (;;) {
    pollfd waiting{report[0], POLLIN, 0};
    const std::int64_t now = monotonic_ns();
    // units, too: with a filter, many have no case to play
    const std::uint64_t progress = totals.cases.load() + totals.next_unit.load();
    if (progress != known_progress || end == 0) {
      known_progress = progress;
      end = now + limit_ns;
    }
    is_in_time = now < end;
    if (!is_in_time) break;
    const int ready = poll(&waiting, 1, 500);
    char bytes[4096];
    const ssize_t got = ready > 0 ? read(report[0], bytes, sizeof bytes) : -1;
    if (ready > 0 && got <= 0) break;  // every worker has closed its end
    if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t line; (line = text.find('\n')) != std::string::npos; text.erase(0, line + 1))
      hear(text.substr(0, line));
    hear("");
  }
  close(report[0]);
  bool all_ended = is_in_time;
  for (const pid_t pid : pids) {
    if (!is_in_time) kill(pid, SIGKILL);
    all_ended &= finish(pid) == Ended::exited;
  }
  return all_ended;
}

}  // namespace queueduct::crash
