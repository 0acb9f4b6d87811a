// Time limits of a growing queue: for puts that do not wait, and for a queue that rests.
//
// A put that may not wait returns full only when the queue is at its budget. While another participant prepares or
// reclaims memory, guards a level to be reclaimed, or has claimed an item there, that is not known yet, and another
// attempt is worthwhile: that participant is about to finish. If it is stopped, or has a lease, nothing moves.
// All words here are hints of one process, shared by its threads.
#pragma once

#include "growing/levels.hpp"
#include "segment/event.hpp"

namespace queueduct {

class GrowingMoments {
 public:
  explicit GrowingMoments(const Levels& levels) noexcept : levels_(levels) {}

  // After a put that returned busy, or full with levels to reclaim: returns true if another attempt is worthwhile. It
  // is not if nothing has moved for `limit_ns` over many attempts of all threads.
  [[nodiscard]] bool is_worth_a_try(std::int64_t limit_ns) noexcept {
    const std::uint64_t seen = progress();
    const std::int64_t now = monotonic_ns();
    const std::int64_t last = last_try_ns_.exchange(now, std::memory_order_relaxed);
    if (progress_.exchange(seen, std::memory_order_relaxed) != seen || now - last > streak_gap_ns) {
      since_ns_.store(now, std::memory_order_relaxed);
      tries_.store(0, std::memory_order_relaxed);
      return true;
    }
    const std::uint32_t tries = tries_.fetch_add(1, std::memory_order_relaxed);
    if (now - since_ns_.load(std::memory_order_relaxed) < limit_ns || tries < least_tries) return true;
    tries_.store(0, std::memory_order_relaxed);  // the next thread tries for itself as well
    return false;
  }

  // Returns true if the queue has been empty and unused for idle_ns. No position comes back (G6), so an equal position
  // means that nothing has happened between two calls.
  [[nodiscard]] bool is_idle(std::uint64_t position) noexcept {
    const std::int64_t now = monotonic_ns();
    if (idle_at_.exchange(position, std::memory_order_relaxed) == position)
      return now - idle_since_ns_.load(std::memory_order_relaxed) >= idle_ns;
    idle_since_ns_.store(now, std::memory_order_relaxed);
    return false;
  }

  // Returns true once in rest_interval_ns.
  [[nodiscard]] bool is_rest_due() noexcept {
    const std::int64_t now = monotonic_ns();
    if (now - last_rest_ns_.load(std::memory_order_relaxed) < rest_interval_ns) return false;
    last_rest_ns_.store(now, std::memory_order_relaxed);
    return true;
  }

  static constexpr std::int64_t stopped_ns = 250'000'000;  // for a participant that holds the lock or a guard
  static constexpr std::int64_t claimed_ns = 25'000'000;   // for one that has claimed an item: it may be a lease
  static constexpr std::int64_t rest_ns = 1'000'000;       // for reclaiming drained levels, with the GIL

 private:
  // A mix of the words that change while memory is prepared or reclaimed, or items come and go.
  [[nodiscard]] std::uint64_t progress() const noexcept {
    const LevelRange now = levels_.level_range();
    const LevelControl& level = *levels_[now.written_level()].control;
    std::uint64_t mixed = now.word;
    for (const std::uint64_t word :
         {level.prepared.load(std::memory_order_relaxed), level.push_position.load(std::memory_order_relaxed),
          level.pop_position.load(std::memory_order_relaxed),
          levels_.control().resets.load(std::memory_order_relaxed)})
      mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u + (mixed >> 29);
    return mixed;
  }

  static constexpr std::int64_t streak_gap_ns = 1'000'000'000;
  static constexpr std::uint32_t least_tries = 20;
  static constexpr std::int64_t idle_ns = 250'000'000;
  static constexpr std::int64_t rest_interval_ns = 10'000'000;

  const Levels& levels_;
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<std::int64_t> since_ns_{0};
  std::atomic<std::int64_t> last_try_ns_{0};
  std::atomic<std::uint32_t> tries_{0};
  std::atomic<std::uint64_t> idle_at_{0};
  std::atomic<std::int64_t> idle_since_ns_{0};
  std::atomic<std::int64_t> last_rest_ns_{0};
};

}  // namespace queueduct
