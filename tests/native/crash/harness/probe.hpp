// One process's own account of where it is, in shared memory that no kill can take away, and where it has to die.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "core/failpoint.hpp"

namespace queueduct::crash {

inline constexpr std::uint32_t probe_limit = 16;
inline constexpr std::uint32_t trace_limit = 512;

enum class Fire : std::uint8_t { never, kill, stop, stop_then_kill };

// A queue's probe derives from it, adds what the operation's outcome depends on, and has note(name) for each point.
struct Trace {
  // written before the operation
  Fire fire = Fire::never;
  const char* point = nullptr;  // nullptr: any
  std::uint32_t hit = 1;
  std::uint32_t second_hit = 0;  // of stop_then_kill: so many points later
  // written during it
  std::uint32_t line = UINT32_MAX;
  std::uint32_t hits = 0;
  std::uint32_t reached = 0;
  const char* trace[trace_limit] = {};  // string literals: every process here is a fork of one image
  bool has_fired = false;
  bool has_returned = false;
  char problem[160] = {};

  [[nodiscard]] const char* last_point() const noexcept {
    return reached == 0 || reached > trace_limit ? "" : trace[reached - 1];
  }
  [[nodiscard]] bool is_used() const noexcept { return line != UINT32_MAX || reached != 0 || problem[0] != 0; }
  void complain(const char* what) noexcept {
    if (problem[0] == 0) std::strncpy(problem, what, sizeof problem - 1);
  }
};

inline void fire_at(Fire fire) noexcept {
  if (fire == Fire::kill) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  raise(SIGSTOP);
}

template <class Probe>
inline Probe* my_probe = nullptr;

// The failpoint hook: writes down where this process is, and fires.
template <class Probe>
void on_failpoint(const char* name) noexcept {
  Probe& probe = *my_probe<Probe>;
  if (probe.reached < trace_limit) probe.trace[probe.reached] = name;
  ++probe.reached;
  probe.note(name);
  if (probe.fire == Fire::never) return;
  if (probe.point != nullptr && std::strcmp(probe.point, name) != 0) return;
  if (++probe.hits != probe.hit) return;
  const Fire fire = probe.fire;
  probe.has_fired = true;
  if (fire == Fire::stop_then_kill) {
    probe.fire = Fire::kill;
    probe.hit += probe.second_hit;
  }
  fire_at(fire == Fire::kill ? Fire::kill : Fire::stop);
}

template <class Probe>
void arm(Probe& probe) noexcept {
  my_probe<Probe> = &probe;
  failpoint::armed = on_failpoint<Probe>;
}

inline void disarm() noexcept { failpoint::disarm(); }

}  // namespace queueduct::crash
