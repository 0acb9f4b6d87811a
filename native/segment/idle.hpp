// Before a sleep: when to spin, when to yield the core, when to linger.
#pragma once

#include <sched.h>

#include "segment/event.hpp"

namespace queueduct {

// How one side of a queue waits before it sleeps. A sleep and its wake-up cost tens of microseconds, so a short spin
// pays if the other side runs on another core, and only then.
//
// Two sides of the same speed meet at one slot, and its cache line goes back and forth for every item: ten times the
// cost of the item. So a side that has caught up lingers until it is `far` behind again. A producer may do so freely,
// since its item has a full queue before it. A consumer must not delay an item that comes alone: it lingers only after
// it has caught up with a stream, which it recognises by how soon the next item came.
// With more workers than cores it is better to yield at once. sched_yield returns at once if no other thread wants the
// core: so that is tried now and then, and remembered.
class IdleStrategy {
 public:
  static constexpr std::int64_t spin_ns = 25'000;
  static constexpr std::int64_t try_yield_after_ns = 3'000;
  static constexpr std::int64_t quick_yield_ns = 2'000;  // longer: another thread ran meanwhile
  static constexpr int yields = 16;
  static constexpr std::int64_t stream_gap_ns = 400;  // an item that comes sooner was not a reply to ours
  static constexpr std::int64_t longest_linger_ns = 4'000;

  // `near()`: there is enough to go on. `far()`: there is enough to stop lingering. Returns true if it need not sleep.
  template <class Near, class Far>
  [[nodiscard]] bool wait(Near near, Far far, std::int64_t limit_ns) noexcept {
    const std::int64_t start = monotonic_ns();
    if (is_crowded_.load(std::memory_order_relaxed)) return yield_until(near, far, start + limit_ns);
    const std::int64_t end = start + (spin_ns < limit_ns ? spin_ns : limit_ns);
    std::int64_t linger = linger_ns_.load(std::memory_order_relaxed);
    std::int64_t near_at = 0;
    bool has_yielded = false;
    for (std::int64_t now = start; now < end; now = monotonic_ns()) {
      if (near_at == 0 && near()) {
        near_at = now;
        linger = now - start < stream_gap_ns ? grown(linger) : linger / 2;
        linger_ns_.store(linger, std::memory_order_relaxed);
      }
      if (near_at != 0 && (now - near_at >= linger || far())) return true;
      if (!has_yielded && now - start >= try_yield_after_ns) {
        has_yielded = true;
        if (is_core_wanted()) {
          is_crowded_.store(true, std::memory_order_relaxed);
          return yield_until(near, far, start + limit_ns);
        }
      }
      for (int i = near_at == 0 ? 8 : 64; i > 0; --i) cpu_pause();  // seldom while the other side is at work
    }
    return near_at != 0;
  }

 private:
  [[nodiscard]] static std::int64_t grown(std::int64_t linger) noexcept {
    const std::int64_t next = linger < 250 ? 250 : linger * 2;
    return next < longest_linger_ns ? next : longest_linger_ns;
  }

  // Yields the core. Returns true if another thread took it.
  [[nodiscard]] static bool is_core_wanted() noexcept {
    const std::int64_t before = monotonic_ns();
    sched_yield();
    return monotonic_ns() - before > quick_yield_ns;
  }

  template <class Near, class Far>
  [[nodiscard]] bool yield_until(Near near, Far far, std::int64_t end) noexcept {
    int unwanted = 0;
    for (int i = 0; i < yields; ++i) {
      unwanted = is_core_wanted() ? 0 : unwanted + 1;
      if (near() && (i >= yields / 4 || far())) return true;  // far alone is not enough: the front may be stuck
      if (unwanted == yields / 2) is_crowded_.store(false, std::memory_order_relaxed);
      if (monotonic_ns() >= end) break;
    }
    return near();
  }

  // Both are learned, shared by a process's threads, and correct at any value.
  std::atomic<std::int64_t> linger_ns_{0};
  std::atomic<bool> is_crowded_{false};
};

// Spins, announces, reads again, sleeps. Returns after a wake-up, a signal, or limit_ns; the caller tries again.
template <class Near, class Far>
void wait_until(Event event, IdleStrategy& idle, Near near, Far far, std::int64_t limit_ns) noexcept {
  if (idle.wait(near, far, limit_ns)) return;
  const std::uint32_t ticket = event.announce();
  if (near()) return;  // W1
  event.park(ticket, limit_ns < park_limit_ns ? limit_ns : park_limit_ns);
}

}  // namespace queueduct
