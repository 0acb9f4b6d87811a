// Waiting: spin a little, then sleep on a futex that other processes can wake.
//
// Shape      one 32-bit word a side: | wake-up count : 31 | somebody may sleep : 1 |
// Roles      any number of sleepers and wakers, in any process.
// Invariants W1  a sleeper sets bit 0, then looks at the queue again, then sleeps on the exact word it set.
//            W2  a waker publishes, then looks at bit 0 (a seq_cst fence lies between the two, on both sides).
//            W3  who clears bit 0 also counts up, so a sleeper that saw the old word does not fall asleep.
//            W4  a woken sleeper sets bit 0 again: others may still sleep. It wakes the next one if it
//                leaves something behind. So one wake-up costs one system call, and the chain goes on.
//            W5  where all wait for the same, a waker wakes one, and who was woken wakes all others before it goes on:
//                the waker's cost does not grow with the sleepers. Who was woken has left the futex's queue, so one
//                that is killed or stopped there delays the others once, by what is left of their sleep.
// Progress   a kill between publish and wake loses the wake-up: every sleep ends after park_limit.
// Source     the eventcount of Vyukov, on raw FUTEX_WAIT without FUTEX_PRIVATE: std::atomic::wait of
//            libstdc++ uses private futexes, which never wake another process.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/failpoint.hpp"
#include "segment/layout.hpp"

namespace queueduct {

inline constexpr std::int64_t park_limit_ns = 100'000'000;

[[nodiscard]] inline std::int64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class Event {
 public:
  explicit Event(std::atomic<std::uint32_t>* word) noexcept : word_(word) {}

  // After a publish. One fence, and usually one load of a line that nobody writes.
  void notify() noexcept {
    fence_after_publish();
    wake(1);
  }

  // The same where every sleeper waits for the same thing: all are woken, and none marks the word again.
  void notify_all() noexcept {
    fence_after_publish();
    wake(everybody);
  }

  // The same for a caller who holds a lock under which sleepers announce themselves: that lock orders the two.
  void notify_serialized() noexcept { wake(1); }

  // Before a sleep: from here on a publish will wake us. ReadGuard at the queue again after this.
  [[nodiscard]] std::uint32_t announce() noexcept {
    const std::uint32_t ticket = word_->fetch_or(sleeping, std::memory_order_relaxed) | sleeping;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W1, pairs with the fence in notify()
    return ticket;
  }

  // Sleep until woken, or until limit_ns has passed, or a signal came. Spurious returns are fine.
  void park(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    park_for_all(ticket, limit_ns);
    word_->fetch_or(sleeping, std::memory_order_relaxed);  // W4
  }

  // The same where notify_all() wakes: nobody is left asleep. Returns whether it was woken.
  bool park_for_all(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    QUEUEDUCT_FAILPOINT("wait.before_park");
    const timespec limit{.tv_sec = limit_ns / 1'000'000'000, .tv_nsec = limit_ns % 1'000'000'000};
    const bool was_woken = syscall(SYS_futex, word_, FUTEX_WAIT, ticket, &limit, nullptr, 0) == 0;
    QUEUEDUCT_FAILPOINT("wait.after_park");
    return was_woken;
  }

  // The same where notify() wakes one, and every sleeper waits for the same thing. Those whom we wake find nobody
  // left to wake: that costs each a system call, which is little beside the sleep.
  void park_and_relay(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    if (park_for_all(ticket, limit_ns)) futex_wake(everybody);  // W5
  }

  void wake_one() noexcept { wake(1); }

  void wake_all() noexcept {
    word_->fetch_add(2, std::memory_order_relaxed);  // W3
    futex_wake(everybody);
  }

 private:
  static constexpr std::uint32_t sleeping = 1;
  static constexpr int everybody = 0x7fffffff;

  // W2, pairs with the fence in announce(). Without it the look at bit 0 may come before the publish is seen, while the
  // sleeper's look comes before it, too: both go on, and one of them to sleep.
  static void fence_after_publish() noexcept {
#ifdef QUEUEDUCT_WITHOUT_NOTIFY_FENCE  // a build of tests/native/test_wakeups.cpp, which must notice
    std::atomic_signal_fence(std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }

  void wake(int sleepers) noexcept {
    std::uint32_t seen = word_->load(std::memory_order_relaxed);
    while (seen & sleeping) {
      // W3: relaxed, since the word publishes nothing; the woken one reads the queue itself
      if (!word_->compare_exchange_weak(seen, (seen + 2) & ~sleeping, std::memory_order_relaxed)) continue;
      QUEUEDUCT_FAILPOINT("wait.before_wake");
      futex_wake(sleepers);
      return;
    }
  }

  void futex_wake(int sleepers) noexcept {
    syscall(SYS_futex, word_, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t>* word_;
};

}  // namespace queueduct
