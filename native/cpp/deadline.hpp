// Until when a call waits.
#pragma once

#include <chrono>
#include <cstdint>

#include "segment/event.hpp"

namespace queueduct {

using Timeout = std::chrono::nanoseconds;
inline constexpr Timeout forever = Timeout::max();
inline constexpr Timeout at_once = Timeout::zero();

namespace facade {

class Deadline {
 public:
  explicit Deadline(Timeout timeout) noexcept
      : never_waits_(timeout <= at_once), end_(timeout >= longest ? never : monotonic_ns() + timeout.count()) {}

  // True for a call that tries once, and does not look at the clock.
  [[nodiscard]] bool never_waits() const noexcept { return never_waits_; }
  // At least 0.
  [[nodiscard]] std::int64_t left_ns() const noexcept {
    if (never_waits_) return 0;
    if (end_ == never) return never;
    const std::int64_t left = end_ - monotonic_ns();
    return left > 0 ? left : 0;
  }

 private:
  static constexpr std::int64_t never = INT64_MAX;
  static constexpr Timeout longest = std::chrono::hours(24 * 365 * 100);  // no sum overflows

  bool never_waits_;
  std::int64_t end_;
};

}  // namespace facade
}  // namespace queueduct
