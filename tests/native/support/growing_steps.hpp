// What tests of a growing queue have in common: items in and out, and a queue that has become calm.
#pragma once

#include <algorithm>
#include <vector>

#include "support/check.hpp"
#include "support/growing_segment.hpp"

namespace queueduct::testing {

[[nodiscard]] inline LevelRange level_range_of(const GrowingSegment& segment) {
  return LevelRange{segment.control().level_range.load()};
}

inline void put_all(GrowingAttachment& attached, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t i = first; i < last; ++i) REQUIRE(attached.put_number(i) == Outcome::done);
}
inline void get_all(GrowingAttachment& attached, std::uint64_t first, std::uint64_t last) {
  std::uint64_t number = 0;
  for (std::uint64_t i = first; i < last; ++i) {
    REQUIRE(attached.get_number(number) == Outcome::done);
    CHECK_EQUAL(number, i);
  }
}

// Pages that levels have which nobody uses: none, unless somebody looked there too late.
[[nodiscard]] inline std::uint64_t bytes_in_unused_levels(const GrowingSegment& segment) {
  const Levels levels = segment.levels();
  const LevelRange now = level_range_of(segment);
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 1; i < levels.steps(); ++i) {
    const bool is_used = i >= now.read_level() && i <= now.written_level();
    if (is_used || !levels.is_clean(i) || levels.plan(i).word != 0) continue;
    for (std::uint64_t at = levels[i].at.generations; at < levels[i].at.end; at += page_bytes)
      bytes += lseek(segment.fd(), static_cast<off_t>(at), SEEK_DATA) == static_cast<off_t>(at) ? page_bytes : 0;
  }
  return bytes;
}

// One in, one out, until it is back at its first level, and all that can be given back is.
inline void shrink_if_idle(GrowingAttachment& attached, const GrowingSegment& segment) {
  std::uint64_t number = 0;
  const auto pass = [&] {
    REQUIRE(attached.put_number(0) == Outcome::done);
    REQUIRE(attached.get_number(number) == Outcome::done);
  };
  for (int i = 0; i < 20'000 && level_range_of(segment).written_level() != 0; ++i) pass();
  for (int i = 0; i < 1000; ++i) pass();
  CHECK_EQUAL(level_range_of(segment).written_level(), 0u);
}

// Records of one slot, in batches.
inline void put_records(GrowingAttachment& attached, std::uint64_t count) {
  const std::vector<std::byte> data(4096 * attached.queue().levels().slot_bytes());
  Span put;
  for (std::uint64_t done = 0; done < count; done += put.slots)
    REQUIRE(attached.queue().put_records(attached.ledger(), data.data(), std::min<std::uint64_t>(4096, count - done),
                                         put, run_here) == Outcome::done);
}
inline void get_records(GrowingAttachment& attached, std::uint64_t count) {
  std::vector<std::byte> data(4096 * attached.queue().levels().slot_bytes());
  for (std::uint64_t done = 0; done < count;) {
    Item item;
    Target target{data.data(), 0};
    REQUIRE(attached.queue().find(attached.ledger(), item, run_here) == Outcome::done);
    const std::uint64_t limit = std::min<std::uint64_t>(4096, count - done);
    const std::uint64_t targets = attached.queue().widen(attached.ledger(), item, limit, &target);
    if (attached.queue().take(attached.ledger(), item, &target, targets)) done += item.span.slots;
  }
}

}  // namespace queueduct::testing
