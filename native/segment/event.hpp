// Waiting: spin a little, then sleep on a futex that other processes can wake.
//
// Shape      one 32-bit word a side: | wake-up count : 31 | a sleeper may be there : 1 |
// Roles      any number of sleepers and wakers, in any process.
// Invariants W1  a sleeper sets bit 0, then reads the queue again, then sleeps on the exact word it set.
//            W2  a waker publishes, then reads bit 0 (a seq_cst fence lies between the two, on both sides).
//            W3  clearing bit 0 also counts up, so a sleeper that saw the old word does not fall asleep.
//            W4  a woken sleeper sets bit 0 again: others may still sleep. It wakes the next one if it leaves
//                something behind. So one wake-up costs one system call, and the chain goes on.
//            W5  if all sleepers wait for the same event, notify() wakes one and that one wakes the rest, so the cost
//                to the notifier does not grow with the sleepers. If the woken one is killed before, the others wake
//                when their sleep ends.
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

// Less than a second; a signal ends it.
inline void pause_for(std::int64_t ns) noexcept {
  const timespec moment{.tv_sec = 0, .tv_nsec = ns};
  nanosleep(&moment, nullptr);
}
// Between two attempts at something for which another participant needs a moment.
inline void pause_between_attempts() noexcept { pause_for(200'000); }

// Futex words that are shared between processes.
namespace futex {

// Returns 0 if woken, otherwise errno: EINTR, EAGAIN or ETIMEDOUT.
inline int sleep(const void* word, std::uint32_t expected, std::int64_t limit_ns) noexcept {
  const timespec limit{.tv_sec = limit_ns / 1'000'000'000, .tv_nsec = limit_ns % 1'000'000'000};
  return syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, nullptr, 0) == 0 ? 0 : errno;
}

inline void wake(void* word, int sleepers) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
}

}  // namespace futex

class Event {
 public:
  explicit Event(std::atomic<std::uint32_t>* word) noexcept : word_(word) {}

  // After a publish. One fence, and usually one load of a line that no process writes.
  void notify() noexcept {
    fence_after_publish();
    wake(1);
  }

  // The same where every sleeper waits for the same event: all are woken, and none sets bit 0 again.
  void notify_all() noexcept {
    fence_after_publish();
    wake(all);
  }

  // Before a sleep: from here on a publish will wake us. Read the queue again after this.
  [[nodiscard]] std::uint32_t announce() noexcept {
    const std::uint32_t ticket = word_->fetch_or(sleeping, std::memory_order_relaxed) | sleeping;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W1, pairs with the fence in notify()
    return ticket;
  }

  // Sleeps until woken, or until limit_ns has passed, or a signal came. It may return early.
  void park(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    park_for_all(ticket, limit_ns);
    word_->fetch_or(sleeping, std::memory_order_relaxed);  // W4
  }

  // The same where notify_all() wakes: no other sleeper is left. Returns true if it was woken.
  bool park_for_all(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    QUEUEDUCT_FAILPOINT("wait.before_park");
    const bool was_woken = futex::sleep(word_, ticket, limit_ns) == 0;
    QUEUEDUCT_FAILPOINT("wait.after_park");
    return was_woken;
  }

  // The same where notify() wakes one, and every sleeper waits for the same event. The sleepers that we wake try to
  // wake others as well: that costs each a system call, which is little beside the sleep.
  void park_and_relay(std::uint32_t ticket, std::int64_t limit_ns) noexcept {
    if (park_for_all(ticket, limit_ns)) futex::wake(word_, all);  // W5
  }

  // Without the fence: a hint, or for a caller that holds the lock under which sleepers announce themselves.
  void wake_one() noexcept { wake(1); }

  void wake_all() noexcept {
    word_->fetch_add(2, std::memory_order_relaxed);  // W3
    futex::wake(word_, all);
  }

 private:
  static constexpr std::uint32_t sleeping = 1;
  static constexpr int all = 0x7fffffff;

  // W2, pairs with the fence in announce(). Without it the read of bit 0 may come before the publish is visible, and
  // the sleeper's second read before it, too: then the sleeper sleeps and is not woken.
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
      // W3: relaxed, since the word publishes nothing; the woken sleeper reads the queue itself
      if (!word_->compare_exchange_weak(seen, (seen + 2) & ~sleeping, std::memory_order_relaxed)) continue;
      QUEUEDUCT_FAILPOINT("wait.before_wake");
      futex::wake(word_, sleepers);
      return;
    }
  }

  std::atomic<std::uint32_t>* word_;
};

}  // namespace queueduct
