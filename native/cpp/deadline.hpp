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

// It begins when a call first has to wait, so a call that need not wait does not look at the clock.
class Deadline {
 public:
  explicit Deadline(Timeout timeout) noexcept : timeout_(timeout) {}

  // True for a call that tries once.
  [[nodiscard]] bool never_waits() const noexcept { return timeout_ <= at_once; }
  // At least 0.
  [[nodiscard]] std::int64_t left_ns() const noexcept {
    if (never_waits()) return 0;
    if (timeout_ >= longest) return longest.count();
    const std::int64_t now = monotonic_ns();
    if (end_ == unset) end_ = now + timeout_.count();
    return end_ > now ? end_ - now : 0;
  }

 private:
  static constexpr std::int64_t unset = INT64_MIN;
  static constexpr Timeout longest = std::chrono::hours(24 * 365 * 100);  // with the clock it does not overflow

  Timeout timeout_;
  mutable std::int64_t end_ = unset;
};

}  // namespace facade
}  // namespace queueduct
