// A case as a script: a queue in some state, processes that each do one operation and die or stop at one point
// of it, and survivors who then have to find everything in order. Its name says all of it.
//
// `Op` is a queue's enum of operations. Besides them it has what happens to those who are stopped in one: resume
// (goes on to its end), advance (goes on for so many points), slay (is killed), in this order, after all others.
#pragma once

#include <string>
#include <vector>

#include "crash/harness/probe.hpp"

namespace queueduct::crash {

struct Point {
  const char* name;   // nullptr: any
  std::uint32_t hit;  // the n-th time that the operation comes there
};

template <class Op>
[[nodiscard]] constexpr bool is_about_stopped(Op op) noexcept {
  return op >= Op::resume;
}

template <class Op>
struct StepOf {
  Op op;
  Fire fire = Fire::never;
  Point point = {nullptr, 1};
  std::uint32_t whom = 1;  // of those who are stopped, in the order in which they came

  [[nodiscard]] std::string name() const {
    std::string what = name_of(op);
    if (is_about_stopped(op)) {
      what.append("-").append(std::to_string(whom));
      if (op == Op::advance) what.append("+").append(std::to_string(point.hit));
    }
    if (fire == Fire::never) return what;
    return what + (fire == Fire::kill ? "=kill@" : "=stop@") + (point.name == nullptr ? "any" : point.name) + "#" +
           std::to_string(point.hit);
  }
};

// Who comes afterwards: the first of them to move, and whether they were attached all the time.
struct Closing {
  bool producer_first = false;
  bool attached_before = false;

  [[nodiscard]] const char* name() const noexcept {
    constexpr const char* names[] = {"consumer_anew", "consumer_attached", "producer_anew", "producer_attached"};
    return names[(producer_first ? 2 : 0) + (attached_before ? 1 : 0)];
  }
};

template <class Scene, class Op>
struct CaseOf {
  const char* group;
  Scene scene;
  std::vector<StepOf<Op>> steps;
  Closing closing = {};
  bool peers_go_on = false;  // while those are stopped that the script has stopped

  [[nodiscard]] std::string name() const {
    std::string name = std::string(group) + "/" + scene.name();
    for (const StepOf<Op>& step : steps) name.append("/").append(step.name());
    return name + "/" + closing.name();
  }
};

struct Result {
  std::string problem;  // empty: all as it must be
  std::uint32_t kills = 0;
  std::uint32_t stops = 0;

  void fail(const std::string& what) {
    if (problem.empty()) problem = what;
  }
};

}  // namespace queueduct::crash
