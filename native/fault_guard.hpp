// A segment file that somebody truncates while we have it mapped must not kill us.
//
// Touching a page beyond the end of the file raises SIGBUS. Our handler knows the mapped ranges: it puts
// zero pages over the whole range, marks it broken and returns. The interrupted operation then ends on
// zeros, whatever that means to it, and its caller looks at the mark before it believes the result.
// Any other SIGBUS goes to whoever had the signal before us.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::fault_guard {

struct Range {
  std::atomic<std::uintptr_t> begin{0};  // 0: unused
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> broken{false};
};

inline constexpr std::size_t limit = 4096;
inline Range ranges[limit];
inline struct sigaction previous;

inline void pass_on(int number, siginfo_t* info, void* context) noexcept {
  static std::atomic<bool> is_passing{false};
  if (is_passing.exchange(true)) {  // the other one had it from us, and gives it back: a circle
    signal(SIGBUS, SIG_DFL);
  } else if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else {
    signal(SIGBUS, SIG_DFL);  // the instruction runs again and the process dies of it, as it would have
  }
  is_passing.store(false);
}

// Async-signal-safe: loads, stores and mmap.
inline void on_fault(int number, siginfo_t* info, void* context) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Range& range : ranges) {
    const std::uintptr_t begin = range.begin.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at >= begin + range.bytes.load(std::memory_order_relaxed)) continue;
    range.broken.store(true, std::memory_order_release);
    mmap(reinterpret_cast<void*>(begin), range.bytes.load(std::memory_order_relaxed), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return;
  }
  pass_on(number, info, context);
}

// Each time: Python's faulthandler may have been enabled since, and has the signal now.
inline void install() noexcept {
  struct sigaction current {};
  if (sigaction(SIGBUS, nullptr, &current) != 0) return;
  if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_fault) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  previous = current;
  sigaction(SIGBUS, &ours, nullptr);
}

// nullptr when the table is full: then the range is simply not guarded.
inline Range* watch(void* begin, std::size_t bytes) noexcept {
  install();
  for (Range& range : ranges) {
    std::uintptr_t unused = 0;
    if (range.begin.load(std::memory_order_relaxed) != 0) continue;
    // claim with a begin that no fault can match, then fill in, then switch on
    if (!range.begin.compare_exchange_strong(unused, UINTPTR_MAX, std::memory_order_acq_rel)) continue;
    range.bytes.store(bytes, std::memory_order_relaxed);
    range.broken.store(false, std::memory_order_relaxed);
    range.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);
    return &range;
  }
  return nullptr;
}

inline void forget(Range* range) noexcept {
  if (range != nullptr) range->begin.store(0, std::memory_order_release);
}

}  // namespace penstock::fault_guard
