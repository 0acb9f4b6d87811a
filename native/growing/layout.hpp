// Every shared struct and offset of a growing segment. No algorithm.
//
//   0              header, then the growing queue's own part of it: written once, never changed
//   item_text      what an item is, as text (a numpy dtype)
//   control        the level range, event words, the upkeep lock: one writer group a line
//   levels         three lines a level
//   participants   one line for each thread that has a handle
//   producers      a head line, then one line for each named producer; absent where there are none
//   regions        for each level: generations, lengths (where items vary), payload; sparse, each from a page on
//
// Level i has first_bytes * 4^i bytes of payload, rounded down to a power of two of slots, at least two.
// Zeroed memory is an empty level: nothing in a region is written before it is used.
#pragma once

#include <bit>

#include "segment/layout.hpp"

namespace queueduct {

inline constexpr std::uint32_t steps_limit = 16;
inline constexpr std::uint64_t first_bytes_limit = std::uint64_t{1} << 32;

// Follows the SegmentHeader. There, capacity is that of the last level.
struct GrowingShape {
  std::uint64_t first_bytes;
  std::uint64_t max_bytes;  // of memory that the whole segment may take; 0: no limit
  std::uint32_t steps;
  std::uint32_t padding;
  std::uint64_t levels_offset;
  std::uint64_t regions_offset;
  std::uint8_t unused[216];
};
static_assert(sizeof(GrowingShape) == 256 && std::is_trivially_copyable_v<GrowingShape>);

// Which levels are read and written, in one word:
//   | shut down : 1 | discarded : 1 | moves : 46 | written level : 8 | read level : 8 |
struct LevelRange {
  static constexpr std::uint64_t shut_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t discarded_bit = std::uint64_t{1} << 62;
  static constexpr std::uint64_t move_one = std::uint64_t{1} << 16;

  std::uint64_t word = 0;
  [[nodiscard]] constexpr std::uint32_t read_level() const noexcept { return word & 0xff; }
  [[nodiscard]] constexpr std::uint32_t written_level() const noexcept { return word >> 8 & 0xff; }
  [[nodiscard]] constexpr std::uint64_t moves() const noexcept {
    return (word & ~(shut_bit | discarded_bit)) / move_one;
  }
  [[nodiscard]] constexpr bool is_shut() const noexcept { return word & shut_bit; }
  [[nodiscard]] constexpr bool is_discarded() const noexcept { return word & discarded_bit; }
  [[nodiscard]] constexpr LevelRange moved_to(std::uint32_t read, std::uint32_t written) const noexcept {
    return {((word & ~std::uint64_t{0xffff}) + move_one) | written << 8 | read};
  }
};
static_assert(LevelRange{LevelRange::shut_bit}.moved_to(2, 3).written_level() == 3);
static_assert(LevelRange{}.moved_to(2, 3).read_level() == 2);

struct GrowingControl {
  alignas(line_bytes) std::atomic<std::uint64_t> level_range;  // moved by compare-and-swap only
  EventWord items;                                             // consumers sleep here
  EventWord room;                                              // producers sleep here
  alignas(line_bytes) std::atomic<std::uint32_t> participants_used;  // lines ever used: scans stop here
  std::atomic<std::uint32_t> has_long_items;  // 1 once an item took several slots: qsize must then walk
  std::atomic<std::uint64_t> tombstones;      // slots whose producer died before it published
  std::atomic<std::uint64_t> redelivered;     // items whose consumer died before it released them
  std::atomic<std::uint64_t> grown;           // times that a level was opened because the one before was full
  std::atomic<std::uint64_t> shrunk;          // times that the first level was opened again
  alignas(line_bytes) std::atomic<std::uint64_t> upkeep;  // a robust lock: its holder prepares and reclaims memory
  // | level + 1 : 8 | slots : 56 |: memory that the lock's holder prepares, or if all ones withdraws; 0: none
  std::atomic<std::uint64_t> preparing;
  std::atomic<std::uint64_t> resets;     // levels reclaimed: producers that wait for memory compare it
  std::atomic<std::uint64_t> last_high;  // the last position at which the queue was not nearly empty; a hint
};
static_assert(sizeof(GrowingControl) == 5 * line_bytes);

struct LevelControl {
  alignas(line_bytes) std::atomic<std::uint64_t> push_position;  // | closed : 1 | shrinking : 1 | position : 62 |
  alignas(line_bytes) std::atomic<std::uint64_t> pop_position;   // | discarded : 1 | 0 : 1 | position : 62 |
  // | log2 of the capacity of this opening, 0: the level's own : 6 | position of its first slot : 58 |
  alignas(line_bytes) std::atomic<std::uint64_t> opening;
  // | 0 : 57 | being withdrawn : 1 | log2 of the capacity of the next opening, 0: none : 6 |; reserves its memory
  std::atomic<std::uint64_t> planned;
  std::atomic<std::uint64_t> prepared;        // slots from the first on that have memory
  std::atomic<std::uint64_t> reset_position;  // items pushed before it are gone, and their memory is reclaimed
  std::atomic<std::uint64_t> reset_slots;     // of a reset under way: slots from the first on that are reclaimed
};
static_assert(sizeof(LevelControl) == 3 * line_bytes);

struct GrowingOffsets {
  std::uint64_t item_text, control, levels, participants, producers, regions, total;
};

struct RegionOffsets {
  std::uint64_t generations, lengths, payload, end;
};

// With arguments within the limits above no sum or product here overflows.
[[nodiscard]] constexpr std::uint64_t level_capacity(std::uint64_t first_bytes, std::uint32_t level,
                                                     std::uint64_t slot_bytes) noexcept {
  const std::uint64_t slots = (first_bytes << 2 * level) / slot_bytes;
  return slots < 2 ? 2 : std::bit_floor(slots);
}

[[nodiscard]] constexpr RegionOffsets region_offsets(std::uint64_t begin, std::uint64_t capacity,
                                                     std::uint64_t slot_bytes, bool varying) noexcept {
  RegionOffsets at{};
  at.generations = begin;
  std::uint64_t end = round_up(begin + capacity * sizeof(std::uint64_t), page_bytes);
  if (varying) {
    at.lengths = end;
    end = round_up(end + capacity * sizeof(std::uint32_t), page_bytes);
  }
  at.payload = end;
  at.end = round_up(end + capacity * slot_bytes, page_bytes);
  return at;
}

[[nodiscard]] constexpr GrowingOffsets growing_offsets(std::uint64_t first_bytes, std::uint32_t steps,
                                                       std::uint64_t slot_bytes, std::uint32_t participants,
                                                       std::uint32_t producers, std::uint32_t item_text_bytes,
                                                       bool varying) noexcept {
  GrowingOffsets at{};
  at.item_text = sizeof(SegmentHeader) + sizeof(GrowingShape);
  at.control = round_up(at.item_text + item_text_bytes, page_bytes);
  at.levels = at.control + sizeof(GrowingControl);
  at.participants = at.levels + steps * sizeof(LevelControl);
  std::uint64_t end = at.participants + participants * sizeof(ParticipantLine);
  if (producers != 0) {
    at.producers = end;
    end += sizeof(ProducersHead) + producers * sizeof(ProducerLine);
  }
  at.regions = round_up(end, page_bytes);
  at.total = at.regions;
  for (std::uint32_t level = 0; level < steps; ++level)
    at.total = region_offsets(at.total, level_capacity(first_bytes, level, slot_bytes), slot_bytes, varying).end;
  return at;
}

}  // namespace queueduct
