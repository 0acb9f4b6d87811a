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

template <class Play>
struct UnitOf {
  std::string name;  // what the names of its cases begin with
  std::function<void(WorkerOf<Play>&)> body;
};

// Play the units with so many workers; each line that one has to say goes to `hear`. False: out of time.
template <class Play, class Hear>
[[nodiscard]] bool play_units(const std::vector<UnitOf<Play>>& units, const Options& options, Totals& totals,
                              std::uint32_t workers, std::int64_t limit_ns, Hear hear) {
  int report[2];
  if (pipe(report) != 0) throw std::runtime_error("no pipe");
  totals.next_unit.store(0);
  std::vector<pid_t> pids;
  for (std::uint32_t i = 0; i < workers; ++i)
    pids.push_back(start([&] {
      alarm(0);  // a worker's time is watched below
      close(report[0]);
      expect_children();
      WorkerOf<Play> worker(options, totals, report[1]);
      for (;;) {
        const std::uint32_t next = totals.next_unit.fetch_add(1);
        if (next >= units.size() || worker.is_enough()) return;
        units[next].body(worker);
      }
    }));
  close(report[1]);
  std::string text;
  const std::int64_t end = monotonic_ns() + limit_ns;
  bool is_in_time = true;
  for (;;) {
    pollfd waiting{report[0], POLLIN, 0};
    const std::int64_t left = end - monotonic_ns();
    is_in_time = left > 0;
    if (!is_in_time) break;
    const int ready = poll(&waiting, 1, static_cast<int>(left < 500 * millisecond ? left / millisecond + 1 : 500));
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
