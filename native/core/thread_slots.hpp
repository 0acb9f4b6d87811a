// Small numbers for threads, given back at a thread's end, so that a queue's lines can be found by index.
//
// One thread has one number, whichever of our extension modules asks: else one of them would take another thread's line
// for its own. Each module has its own copy of what an inline variable is in a header, unless the loader is told that
// there is one in the process: that is what g++ does with those that are visible (STB_GNU_UNIQUE).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace queueduct::thread_number {

#if !defined(__GNUC__) || defined(__clang__)
#error "thread numbers must be one table in the process (STB_GNU_UNIQUE): build with g++"
#endif

struct Taken {
  pthread_t thread;     // the same before and after a fork
  std::uint32_t users;  // modules that have asked; 0: free
  std::uint32_t serial;  // of the thread that has it: no other thread ever has the same
};

inline constexpr std::uint32_t limit = 1024;
[[gnu::visibility("default")]] inline std::mutex mutex;
[[gnu::visibility("default")]] inline Taken taken[limit];
[[gnu::visibility("default")]] inline std::uint32_t serials = 0;  // under the mutex
// Other in a forked child than in its parent: counted up by each participant table that a fork copies, before anybody else runs.
[[gnu::visibility("default")]] inline std::atomic<std::uint32_t> forks{0};

// What is to be done with a number before another thread can have it: its thread has ended.
// release in ParticipantTable, acquire at a thread's end: every module that sets it has one of its own, and any of them will do.
using AtEnd = void (*)(std::uint32_t number) noexcept;
[[gnu::visibility("default")]] inline std::atomic<AtEnd> at_end{nullptr};

[[gnu::tls_model("initial-exec")]] inline thread_local std::uint32_t cached_plus_one = 0;

// What a module holds of the number of a thread.
struct Holder {
  std::uint32_t number = limit;
  Holder() noexcept {
    const std::lock_guard lock(mutex);
    for (std::uint32_t i = limit; i-- > 0;) {
      if (taken[i].users == 0) {
        number = i;  // the lowest one that is free, if the thread has none
      } else if (pthread_equal(taken[i].thread, pthread_self())) {
        number = i;
        break;
      }
    }
    if (number == limit) return;
    Taken& mine = taken[number];
    mine = {pthread_self(), mine.users + 1, mine.users == 0 ? ++serials : mine.serial};
  }
  // The end of the thread. The number is still ours while at_end() runs, which takes locks that come before `mutex`.
  ~Holder() {
    cached_plus_one = limit + 1;  // whoever is called after this has no number any more
    if (number == limit) return;
    const AtEnd end = at_end.load(std::memory_order_acquire);
    if (is_last() && end != nullptr) end(number);
    const std::lock_guard lock(mutex);
    --taken[number].users;
  }
  [[nodiscard]] bool is_last() const noexcept {
    const std::lock_guard lock(mutex);
    return taken[number].users == 1;
  }
};

[[gnu::noinline]] inline std::uint32_t take() noexcept {
  static thread_local Holder holder;
  cached_plus_one = holder.number + 1;
  return holder.number;
}

// `limit` when the process has more threads than that.
[[nodiscard]] inline std::uint32_t mine() noexcept {
  const std::uint32_t cached = cached_plus_one;
  return cached != 0 ? cached - 1 : take();
}

// Tells this thread from all others that the process ever had; 0 when it has no number.
[[nodiscard]] inline std::uint32_t my_serial() noexcept {
  const std::uint32_t number = mine();
  return number == limit ? 0 : taken[number].serial;  // written by this thread, and by no other while it lives
}

}  // namespace queueduct::thread_number
