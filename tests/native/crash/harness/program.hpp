// A crash campaign as a program: kill at every step, and see whether everything is in order afterwards.
//
//   <program> [--long] [--filter TEXT] [--list] [--seed N] [--workers N] [--json] [--sabotage NAME]
//
// --long      all single deaths, all occupancies, more sizes, and a share of the pairs of deaths, another with each
//             seed (minutes on two cores); else a selection (a minute at most)
// --filter    only cases whose name contains TEXT: a failed case is played again by its name
// --list      the cases' names only
// --seed      for what is drawn: which pairs are played, who closes a case, the random scripts, the soak
// --workers   so many cases at a time: most of a case is waiting
// --json      the totals as one JSON object
// --sabotage  break the queue's users in the named way: then failures are what should happen
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "crash/harness/campaign.hpp"

namespace queueduct::crash {

struct NamedSabotage {
  const char* name;
  int way;
};

struct Program {
  const char* name;
  std::vector<NamedSabotage> sabotages;
  void (*choose)(int way);

  [[nodiscard]] int usage() const {
    std::fprintf(stderr, "usage: %s [--long] [--filter TEXT] [--list] [--seed N] [--workers N] [--json] ", name);
    std::fprintf(stderr, "[--sabotage NAME]\n");
    std::fprintf(stderr, "sabotages:");
    for (const NamedSabotage& each : sabotages) std::fprintf(stderr, " %s", each.name);
    std::fprintf(stderr, "\n");
    return 2;
  }

  [[nodiscard]] bool parse(int argc, char** argv, Options& options) const {
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
      if (word == "--long") {
        options.is_long = true;
      } else if (word == "--list") {
        options.only_list = true;
      } else if (word == "--json") {
        options.as_json = true;
      } else if (word == "--filter" && value != nullptr) {
        options.filter = argv[++i];
      } else if (word == "--seed" && value != nullptr) {
        options.seed = std::strtoull(argv[++i], nullptr, 10);
      } else if (word == "--workers" && value != nullptr) {
        options.workers = static_cast<std::uint32_t>(std::clamp(std::atoi(argv[++i]), 1, 64));
      } else if (word == "--sabotage" && value != nullptr) {
        ++i;
        if (!sabotage(value)) return false;
        options.failure_limit = 3;
      } else {
        return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] bool sabotage(std::string_view wanted) const {
    for (const NamedSabotage& each : sabotages) {
      if (wanted != each.name) continue;
      choose(each.way);
      return true;
    }
    return false;
  }
};

class Report {
 public:
  Report(const char* program, const Options& options, const Totals& totals)
      : program_(program), options_(options), totals_(totals) {}

  void hear(const std::string& line) {
    if (!line.empty() && line[0] == 'L') std::printf("%s\n", line.c_str() + 1);
    if (!line.empty() && line[0] == 'F') {
      failed_.push_back(line.substr(1));
      std::fprintf(stderr, "FAILED %s\n", line.c_str() + 1);
    }
    const std::int64_t now = monotonic_ns();
    if (now - last_ns_ < 5'000 * millisecond || options_.only_list) return;
    last_ns_ = now;
    std::fprintf(stderr, "%4.0f s  %llu cases, %llu kills, %llu failures\n", seconds(), cases(), kills(), failures());
  }

  void fail(const char* what) {
    failed_.emplace_back(what);
    std::fprintf(stderr, "FAILED %s\n", what);
  }

  [[nodiscard]] int finish() const {
    if (options_.as_json)
      print_json();
    else
      std::printf("%llu cases, %llu kills, %llu failures\n", cases(), kills(), failures());
    if (!failed_.empty())
      std::fprintf(stderr, "play a case again: %s%s --seed %llu --filter '<its name>'\n", program_,
                   options_.is_long ? " --long" : "", static_cast<unsigned long long>(options_.seed));
    return failed_.empty() && cases() > 0 ? 0 : 1;
  }

 private:
  void print_json() const {
    std::printf("{\"cases\": %llu, \"kills\": %llu, \"stops\": %llu, \"failures\": %llu, \"repeated\": %llu, ", cases(),
                kills(), static_cast<unsigned long long>(totals_.stops.load()), failures(),
                static_cast<unsigned long long>(totals_.repeated.load()));
    std::printf("\"seconds\": %.1f, \"seed\": %llu, \"points\": [", seconds(),
                static_cast<unsigned long long>(options_.seed));
    const char* comma = "";
    for (const auto& point : totals_.points) {
      if (point.load() == nullptr) break;
      std::printf("%s\"%s\"", comma, point.load());
      comma = ", ";
    }
    std::printf("], \"failed\": [");
    comma = "";
    for (const std::string& each : failed_) {
      std::printf("%s\"%s\"", comma, each.c_str());  // names and problems hold no quotes
      comma = ", ";
    }
    std::printf("]}\n");
  }

  [[nodiscard]] double seconds() const { return static_cast<double>(monotonic_ns() - start_ns_) / 1e9; }
  [[nodiscard]] unsigned long long cases() const { return totals_.cases.load(); }
  [[nodiscard]] unsigned long long kills() const { return totals_.kills.load(); }
  [[nodiscard]] unsigned long long failures() const { return failed_.size(); }

  const char* program_;
  const Options& options_;
  const Totals& totals_;
  std::int64_t start_ns_ = monotonic_ns();
  std::int64_t last_ns_ = monotonic_ns();
  std::vector<std::string> failed_;
};

// `shifts(options)` says what there is to play.
template <class Play, class Shifts>
[[nodiscard]] int run_program(const Program& program, int argc, char** argv, Shifts shifts) {
  Options options;
  if (!program.parse(argc, argv, options)) return program.usage();
  mallopt(M_MXFAST, 0);  // no fast bins: each child would consolidate them, and so copy most pages of its heap
  expect_children();
  Totals& totals = *Totals::create();
  Report report(program.name, options, totals);
  const auto hear = [&](const std::string& line) { report.hear(line); };
  const std::vector<Shift<Play>> all = shifts(options);
  for (const Shift<Play>& shift : all)
    if (!play_shift(shift, options, totals, 300'000 * millisecond, hear))
      report.fail("no worker has begun anything for five minutes");
  return report.finish();
}

}  // namespace queueduct::crash
