// Small numbers for threads, reused after a thread's end, so that a thread finds its line of a queue by index.
//
// A thread must have the same number in all our extension modules: else a module would use another thread's line.
// Each module would have its own copy of an inline variable. g++ marks visible ones STB_GNU_UNIQUE, and the loader then
// keeps one copy in the process.
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
  pthread_t thread;      // the same before and after a fork
  std::uint32_t users;   // modules that use the number; 0: free
  std::uint32_t serial;  // of the thread; never used for another one
};

inline constexpr std::uint32_t limit = 1024;
[[gnu::visibility("default")]] inline std::mutex mutex;
[[gnu::visibility("default")]] inline Taken taken[limit];
[[gnu::visibility("default")]] inline std::uint32_t serials = 0;  // under the mutex
// Differs between a forked child and its parent: the fork handler of each participant table counts it up in the child,
// before any other code runs there.
[[gnu::visibility("default")]] inline std::atomic<std::uint32_t> forks{0};

// Called at a thread's end, before its number is reused.
// release in ParticipantTable, acquire at a thread's end. Every module sets its own copy of the function; any will do.
using AtEnd = void (*)(std::uint32_t number) noexcept;
[[gnu::visibility("default")]] inline std::atomic<AtEnd> at_end{nullptr};

[[gnu::tls_model("initial-exec")]] inline thread_local std::uint32_t cached_plus_one = 0;

// One module's use of a thread's number.
struct Holder {
  std::uint32_t number = limit;
  Holder() noexcept {
    const std::lock_guard lock(mutex);
    for (std::uint32_t i = limit; i-- > 0;) {
      if (taken[i].users == 0) {
        number = i;  // the lowest free one, if the thread has none yet
      } else if (pthread_equal(taken[i].thread, pthread_self())) {
        number = i;
        break;
      }
    }
    if (number == limit) return;
    Taken& mine = taken[number];
    mine = {pthread_self(), mine.users + 1, mine.users == 0 ? ++serials : mine.serial};
  }
  // Runs at the thread's end. The number stays taken while at_end() runs, which takes locks that precede `mutex`.
  ~Holder() {
    cached_plus_one = limit + 1;  // later destructors of this thread get no number
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

// Returns the calling thread's number, or `limit` if all are taken.
[[nodiscard]] inline std::uint32_t mine() noexcept {
  const std::uint32_t cached = cached_plus_one;
  return cached != 0 ? cached - 1 : take();
}

// Returns a number that no other thread of the process ever has, or 0 if the thread has no number.
[[nodiscard]] inline std::uint32_t my_serial() noexcept {
  const std::uint32_t number = mine();
  return number == limit ? 0 : taken[number].serial;  // only this thread writes it while it lives
}

}  // namespace queueduct::thread_number
