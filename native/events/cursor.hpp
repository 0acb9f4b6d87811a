// How a reader goes through the log: no lock, one acquire load a session, one shared store a chunk.
//
// Shape      a session covers the positions from the cursor to the `end` that was loaded at its begin. It is read in
//            runs: consecutive items of one chunk.
// Roles      the owner of a reader's line, one thread at a time; or any thread, unregistered, by position.
// Invariants S1  the line's place is never beyond what the reader has finished: the cursor's chunk is kept.
//            S2  a cursor that has finished its chunk still has its number: the next chunk is that plus one (X3),
//                and neither line is rewritten before the reader has left both (C2).
//            S3  if readers can be dropped, a copy counts only if still_holds() returns true afterwards.
// Progress   wait-free.
//
// Memory orders: E1, F1, F2 in events/log.hpp; R1 in events/readers.hpp.
#pragma once

#include "events/readers.hpp"

namespace queueduct {

struct Cursor {
  static constexpr std::uint64_t no_epoch = 1;  // differs from all of EventsWord's, which are in its high bits

  std::uint64_t position = 0;
  std::uint64_t epoch = 0;
  Chunk chunk;  // without data: not found yet
};

enum class ReadResult : std::uint8_t {
  items,
  nothing,
  ended,  // nothing, and nothing more will come
  lost,   // the reader was dropped, or the position is not kept
  corrupt,
};

// Consecutive items of one chunk, from the at-th on.
struct Run {
  Chunk chunk;
  std::uint64_t at = 0;
  std::uint64_t items = 0;
};

// Loads `end`, and jumps to `start` if the queue was cleared since the last session.
[[nodiscard]] inline ReadResult begin_session(const EventsMap& map, ReaderLine& line, Cursor& cursor,
                                              std::uint64_t& end) noexcept {
  const EventsWord word = map.end(std::memory_order_acquire);  // E1: the session's one acquire load
  QUEUEDUCT_FAILPOINT("session.begun");
  end = word.position();
  if (word.epoch() != cursor.epoch) [[unlikely]] {
    if (line.beyond.load(std::memory_order_relaxed) != 0) return ReadResult::lost;  // D5: the cursor has no epoch yet
    // a later clear may have stored a `start` beyond our end
    const std::uint64_t target = std::min(map.start().position(), end);
    cursor.epoch = word.epoch();
    if (cursor.position < target) {
      cursor.position = target;
      cursor.chunk = {};
      if (!move_to(map, line, target)) return ReadResult::lost;
    }
  }
  if (map.may_drop && (line.place.load(std::memory_order_relaxed) & dropped_bit)) [[unlikely]] return ReadResult::lost;
  if (cursor.position < end) [[likely]] return ReadResult::items;
  if (cursor.position > end) return ReadResult::corrupt;
  return word.is_closed() ? ReadResult::ended : ReadResult::nothing;
}

// Finds the chunk of the cursor's position, which lies before the session's end. Crosses into the next chunk if the
// cursor has finished its own.
[[nodiscard]] inline ReadResult place_cursor(const EventsMap& map, Cursor& cursor, std::uint64_t& chunk_end,
                                             bool& has_crossed) noexcept {
  has_crossed = false;
  if (cursor.chunk.data == nullptr && !find_chunk(map, cursor.position, cursor.chunk)) return ReadResult::corrupt;
  chunk_end = end_of(map, cursor.chunk);
  if (cursor.position < chunk_end) return ReadResult::items;
  const std::uint64_t next = cursor.chunk.number + 1;  // S2
  if (cursor.position > chunk_end || !load_chunk(map, next, cursor.chunk) || cursor.chunk.first != cursor.position)
    return ReadResult::corrupt;
  has_crossed = true;
  chunk_end = end_of(map, cursor.chunk);
  return cursor.position < chunk_end ? ReadResult::items : ReadResult::corrupt;  // X3: none is empty
}

// The next run of a session, at most `limit` items. The caller advances the cursor by the items that it takes.
// `follows`: the line's place follows the cursor (an ephemeral reader), so a crossed chunk can be freed.
[[nodiscard]] inline ReadResult next_run(const EventsMap& map, ReaderLine& line, bool follows, Cursor& cursor,
                                         std::uint64_t end, std::uint64_t limit, Run& run) noexcept {
  std::uint64_t chunk_end = 0;
  bool has_crossed = false;
  const ReadResult found = place_cursor(map, cursor, chunk_end, has_crossed);
  if (found != ReadResult::items) {
    cursor.chunk = {};
    return still_holds(map, line) ? found : ReadResult::lost;  // S3: a dropped reader may find anything
  }
  if (has_crossed && follows && !move_to(map, line, cursor.position)) return ReadResult::lost;
  const std::uint64_t last = std::min(end, chunk_end);
  run = {cursor.chunk, cursor.position - cursor.chunk.first, std::min(last - cursor.position, limit)};
  return ReadResult::items;
}

// For a thread that is not registered: the run that begins at `position`, which lies before `end`.
// A copy of it counts only if is_still_kept(run.chunk.number) returns true afterwards.
[[nodiscard]] inline ReadResult run_at(const EventsMap& map, std::uint64_t position, std::uint64_t end,
                                       std::uint64_t limit, Run& run) noexcept {
  Chunk chunk;
  if (!find_chunk(map, position, chunk)) return ReadResult::lost;
  const std::uint64_t last = std::min(end_of(map, chunk), end);
  if (last <= position) return ReadResult::lost;
  run = {chunk, position - chunk.first, std::min(last - position, limit)};
  return ReadResult::items;
}

}  // namespace queueduct
