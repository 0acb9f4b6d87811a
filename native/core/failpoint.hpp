// Named crash points: one before and after each shared access that matters.
//
// In a release build QUEUEDUCT_FAILPOINT is nothing at all. In the crash-test build
// (-DQUEUEDUCT_FAILPOINTS) a process arms one point with an action and the hit at which it fires.
#pragma once

#ifndef QUEUEDUCT_FAILPOINTS

#define QUEUEDUCT_FAILPOINT(name) ((void)0)

#else

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace queueduct::failpoint {

enum class Action : std::uint8_t { none, kill, stop, yield, record };

struct Armed {
  Action action = Action::none;
  const char* name = nullptr;  // nullptr: any point counts
  std::uint64_t hit = 1;       // fires at this hit, counted from 1
  std::uint64_t hits = 0;
  void (*recorder)(const char* name) = nullptr;
};

inline Armed armed;

inline void arm(Action action, const char* name, std::uint64_t hit) noexcept {
  armed = Armed{action, name, hit, 0, nullptr};
}

inline void disarm() noexcept { armed = Armed{}; }

inline void reached(const char* name) noexcept {
  if (armed.action == Action::none) return;
  if (armed.action == Action::record) return armed.recorder(name);
  if (armed.name != nullptr && std::strcmp(armed.name, name) != 0) return;
  if (++armed.hits != armed.hit) return;
  switch (armed.action) {
    case Action::kill: kill(getpid(), SIGKILL); break;
    case Action::stop: raise(SIGSTOP); break;
    case Action::yield: sched_yield(); break;
    default: break;
  }
}

}  // namespace queueduct::failpoint

#define QUEUEDUCT_FAILPOINT(name) ::queueduct::failpoint::reached(name)

#endif
