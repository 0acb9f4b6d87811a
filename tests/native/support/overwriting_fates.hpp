// What the unit tests of overwriting queues check of every queue.
#pragma once

#include "support/check.hpp"
#include "support/overwriting_segment.hpp"

namespace queueduct::testing {

inline void check_sum(OverwritingAttachment& attached, int line) {
  const OverwritingRing::Fates fates = attached.ring().fates();
  const std::uint64_t all = fates.delivered + fates.overwritten + fates.torn + fates.lost_with_consumer;
  check_equal(all + attached.ring().state().length, fates.puts, __FILE__, line, "what became of all puts");
}

}  // namespace queueduct::testing
