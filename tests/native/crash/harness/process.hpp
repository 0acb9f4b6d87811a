// Processes of a case. Every wait has a limit: what does not end is killed and reported.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "segment/event.hpp"

namespace queueduct::crash {

inline constexpr std::int64_t millisecond = 1'000'000;
inline constexpr std::int64_t process_limit_ns = 4'000 * millisecond;  // no operation takes a hundredth of it
inline constexpr unsigned alarm_seconds = 60;                          // should a worker lose sight of a child

enum class Ended : std::uint8_t { exited, killed, stopped, failed, hung };

// SIGCHLD is blocked and waited for with a limit; call once in every process that forks.
inline void expect_children() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

inline Ended ended(int status) noexcept {
  if (WIFSTOPPED(status)) return Ended::stopped;
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGKILL ? Ended::killed : Ended::failed;
  return WEXITSTATUS(status) == 0 ? Ended::exited : Ended::failed;
}

// Returns true if the process is ready to run, and has run for less than a tenth of the limit: the machine did not let
// it run. A process that waits is asleep, and one that spins has run.
inline bool is_starved(pid_t pid, std::int64_t limit_ns) noexcept {
  char text[512] = {};
  std::snprintf(text, sizeof text, "/proc/%d/stat", static_cast<int>(pid));
  std::FILE* const file = std::fopen(text, "r");
  if (file == nullptr) return false;
  const std::size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[got] = 0;
  const char* const rest = std::strrchr(text, ')');  // behind the name
  char state = 0;
  unsigned long user = 0;
  unsigned long system = 0;
  if (rest == nullptr ||
      std::sscanf(rest + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &state, &user, &system) != 3)
    return false;
  const auto ran_ns = static_cast<std::int64_t>(user + system) * (1'000 * millisecond / sysconf(_SC_CLK_TCK));
  return (state == 'R' || state == 'D') && ran_ns < limit_ns / 10;
}

// Until `pid` (-1: any child) stops or ends. The pid of who it was goes to `who`.
inline Ended wait_for(pid_t pid, std::int64_t limit_ns = process_limit_ns, pid_t* who = nullptr) noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  std::int64_t end = monotonic_ns() + limit_ns;
  for (int more = 10;;) {
    int status = 0;
    const pid_t found = waitpid(pid, &status, WNOHANG | WUNTRACED);
    if (found > 0) {
      if (who != nullptr) *who = found;
      return ended(status);
    }
    const std::int64_t left = end - monotonic_ns();
    if (found >= 0 && left <= 0 && pid > 0 && more-- > 0 && is_starved(pid, limit_ns)) {
      end += limit_ns;
      continue;
    }
    if (found < 0 || left <= 0) return Ended::hung;
    const std::int64_t nap = left < 50 * millisecond ? left : 50 * millisecond;  // another child's signal may be ours
    const timespec limit{.tv_sec = 0, .tv_nsec = nap};
    sigtimedwait(&set, nullptr, &limit);
  }
}

// The same, but what does not end is killed.
inline Ended finish(pid_t pid, std::int64_t limit_ns = process_limit_ns) noexcept {
  const Ended how = wait_for(pid, limit_ns);
  if (how != Ended::hung) return how;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return how;
}

inline void put_down(pid_t pid) noexcept {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// Run `work` in a child that dies with its parent; what it throws ends it with 1.
template <class Work>
[[nodiscard]] pid_t start(Work work) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  alarm(alarm_seconds);
  try {
    work();
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

}  // namespace queueduct::crash
