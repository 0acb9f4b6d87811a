// A segment file that is truncated while we have it mapped must not kill us.
//
// SIGBUS is raised by a page that cannot be read: one beyond the end of the file, a hole of a file system that is
// full, one that the disk cannot read. Our handler knows three cases:
//
//   an attempt    this thread copies from memory that may be handed back meanwhile (a log's readers take no lock). The
//                 copy fails, and says so. The page stays as it is: others use it as before.
//   a range       the handler maps zero pages over all of it and marks it broken, and the interrupted operation ends on
//                 zeros. Its caller checks the mark before it believes a result.
//   neither       the signal goes to the handler that was installed before ours.
//
// A mark does not say why. The code that finds it reads the file's size, outside the handler.
//
// Shape      a list of tables that only grows. A line of a table is free, or one range's.
// Roles      any thread watches, forgets and faults; a handler runs in the thread that faulted.
// Invariants G1  a line is switched on by its begin, stored last (release), loaded first by a handler (acquire).
//            G2  a table is linked once and stays for good, so a handler may walk the list at any time.
//            G3  there is one handler in a process: this header is compiled into one module. Two would each save the
//                other as the previous one, and a third would drop out of the circle.
// Progress   watch: lock-free. The handler is async-signal-safe: loads, stores, mmap, siglongjmp.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace queueduct::fault_guard {

struct Range {
  std::atomic<std::uintptr_t> begin{0};  // 0: unused
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> broken{false};
};

struct Table {
  static constexpr std::size_t lines = 256;
  Range ranges[lines];
  std::atomic<std::size_t> used{0};  // a hint: full tables are skipped
  std::atomic<Table*> next{nullptr};
};

// A copy that may fail: while it is current, a fault in its source jumps back to its start.
struct Attempt {
  sigjmp_buf back;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

inline Table first;
inline struct sigaction previous;
inline std::atomic<std::uintptr_t> page_mask{0};

// initial-exec: the first use of a thread's copy must not allocate, since it may be in a handler.
inline thread_local Attempt* current __attribute__((tls_model("initial-exec"))) = nullptr;

// For code that is compiled into another module.
[[nodiscard]] inline Attempt** current_attempt() noexcept { return &current; }

inline void pass_on(int number, siginfo_t* info, void* context) noexcept {
  static std::atomic<bool> is_passing{false};
  if (is_passing.exchange(true)) {  // the previous handler passed it back to us: a circle
    signal(SIGBUS, SIG_DFL);
  } else if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else {
    signal(SIGBUS, SIG_DFL);  // the instruction runs again, and the process dies as without us
  }
  is_passing.store(false);
}

[[nodiscard]] inline Range* find(std::uintptr_t at) noexcept {
  for (Table* table = &first; table != nullptr; table = table->next.load(std::memory_order_acquire))  // G2
    for (Range& range : table->ranges) {
      const std::uintptr_t begin = range.begin.load(std::memory_order_acquire);  // G1
      if (begin != 0 && at >= begin && at - begin < range.bytes.load(std::memory_order_relaxed)) return &range;
    }
  return nullptr;
}

// Maps zeros over all of a range or, if there is not enough address space for that, over the page of the fault.
[[nodiscard]] inline bool cover(const Range& range, std::uintptr_t at) noexcept {
  const auto put_zeros = [](std::uintptr_t begin, std::size_t bytes) {
    return mmap(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  };
  const std::uintptr_t mask = page_mask.load(std::memory_order_relaxed);
  return put_zeros(range.begin.load(std::memory_order_relaxed), range.bytes.load(std::memory_order_relaxed)) ||
         put_zeros(at & ~mask, mask + 1);
}

// Async-signal-safe.
inline void on_fault(int number, siginfo_t* info, void* context) noexcept {
  const int error = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::uintptr_t mask = page_mask.load(std::memory_order_relaxed);
  if (Attempt* attempt = current; attempt != nullptr && (at | mask) >= attempt->begin &&
                                  (at & ~mask) < attempt->begin + attempt->bytes) {  // a kernel may give the page only
    current = nullptr;
    errno = error;
    siglongjmp(attempt->back, 1);  // SA_NODEFER: the signal is not blocked meanwhile
  }
  if (Range* range = find(at); range != nullptr) {
    range->broken.store(true, std::memory_order_release);
    if (cover(*range, at)) {
      errno = error;
      return;
    }
  }
  pass_on(number, info, context);
}

// Called for each range: Python's faulthandler may have taken the signal since.
inline void install() noexcept {
  page_mask.store(static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)) - 1, std::memory_order_relaxed);
  struct sigaction now {};
  if (sigaction(SIGBUS, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  previous = now;
  sigaction(SIGBUS, &ours, nullptr);
}

[[nodiscard]] inline Table* next_table(Table& table) noexcept {
  Table* next = table.next.load(std::memory_order_acquire);
  if (next != nullptr) return next;
  void* memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* fresh = new (memory) Table;
  if (table.next.compare_exchange_strong(next, fresh, std::memory_order_acq_rel)) return fresh;  // G2
  munmap(memory, sizeof(Table));
  return next;
}

// Returns nullptr if there is no memory for another table.
[[nodiscard]] inline Range* watch(void* begin, std::size_t bytes) noexcept {
  install();
  for (Table* table = &first; table != nullptr; table = next_table(*table)) {
    if (table->used.load(std::memory_order_relaxed) >= Table::lines) continue;
    for (Range& range : table->ranges) {
      std::uintptr_t unused = 0;
      if (range.begin.load(std::memory_order_relaxed) != 0) continue;
      // claim with a begin that no fault can match, then fill in, then switch on
      if (!range.begin.compare_exchange_strong(unused, UINTPTR_MAX, std::memory_order_acq_rel)) continue;
      table->used.fetch_add(1, std::memory_order_relaxed);
      range.bytes.store(bytes, std::memory_order_relaxed);
      range.broken.store(false, std::memory_order_relaxed);
      range.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);  // G1
      return &range;
    }
  }
  return nullptr;
}

inline void forget(Range* range) noexcept {
  if (range == nullptr) return;
  for (Table* table = &first; table != nullptr; table = table->next.load(std::memory_order_acquire)) {
    if (range < table->ranges || range >= table->ranges + Table::lines) continue;
    range->begin.store(0, std::memory_order_release);
    table->used.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

// Returns false if a page of the source could not be read; the copy is then worthless.
// noinline: after a jump only the registers that this frame has saved are valid.
[[nodiscard]] __attribute__((noinline)) inline bool copy(Attempt** here, void* to, const void* from,
                                                         std::size_t bytes) noexcept {
  Attempt attempt;
  attempt.begin = reinterpret_cast<std::uintptr_t>(from);
  attempt.bytes = bytes;
  if (sigsetjmp(attempt.back, 0) != 0) return false;  // the handler has ended the attempt
  *here = &attempt;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy stays between the two stores
  std::memcpy(to, from, bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  *here = nullptr;
  return true;
}

}  // namespace queueduct::fault_guard
