// How a reader goes through the log: no lock, one acquire load a session, one shared store a chunk.
//
// Shape      a session is what lies between the cursor and the `end` that was loaded at its begin. It is read in
//            runs: items that stand in one chunk.
// Roles      the owner of a reader's line, one thread at a time; or anybody, unregistered, by position.
// Invariants S1  the line's place is never beyond what the reader has finished: the chunk under it is kept.
//            S2  a cursor that has finished its chunk still has its number: the next one is that plus one (X3),
//                and neither's line is written again before the reader has left both (C2).
//            S3  where readers can be dropped, what was copied counts only if still_holds() says so afterwards.
// Progress   wait-free.
//
// Memory orders: E1, F1, F2 in events_log.hpp; R1 in events_readers.hpp.
#pragma once

#include "events/readers.hpp"

namespace queueduct {

struct Cursor {
  static constexpr std::uint64_t no_epoch = 1;  // none of EventsWord's: those are in its high bits

  std::uint64_t position = 0;
  std::uint64_t epoch = 0;
  Chunk chunk;  // without data: not looked up yet
};

enum class ReadResult : std::uint8_t {
  items,
  nothing,
  ended,    // nothing, and nothing more will come
  lost,     // the reader was dropped, or what it wants is not kept
  corrupt,
};

// Consecutive items of one chunk, from the at-th on.
struct Run {
  Chunk chunk;
  std::uint64_t at = 0;
  std::uint64_t items = 0;
};

// Loads `end`, and jumps if the queue was cleared since the last session: then nobody needs what was left out.
[[nodiscard]] inline ReadResult begin_session(const EventsMap& map, ReaderLine& line, Cursor& cursor,
                                         std::uint64_t& end) noexcept {
  const EventsWord word = map.end(std::memory_order_acquire);  // E1: the session's one acquire load
  QUEUEDUCT_FAILPOINT("session.begun");
  end = word.position();
  if (word.epoch() != cursor.epoch) [[unlikely]] {
    if (line.beyond.load(std::memory_order_relaxed) != 0) return ReadResult::lost;  // D5: its cursor has no epoch yet
    // relaxed: stored before the `end` of its epoch. It may be that of a later clear, and lie beyond our end.
    const std::uint64_t start = EventsWord{map.control->start.load(std::memory_order_relaxed)}.position();
    const std::uint64_t target = start < end ? start : end;
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

// Before a reader whose place follows it goes to sleep: it has read everything, and should a writer need its
// memory, then even the chunk that it stopped in can go. False: it was dropped.
[[nodiscard]] inline bool rest(const EventsMap& map, ReaderLine& line, const Cursor& cursor) noexcept {
  return move_to(map, line, cursor.position);
}

// The chunk of the cursor's position, which lies before `end`. Moves on when the last one is finished.
[[nodiscard]] inline ReadResult place_cursor(const EventsMap& map, Cursor& cursor, std::uint64_t& chunk_end,
                                        bool& crossed) noexcept {
  // relaxed: E1, since the session's end lies beyond a chunk's if that is set
  const auto end_of = [&map](const Chunk& chunk) {
    const std::uint64_t most = chunk.first + chunk.items;
    const std::uint64_t end = map.chunk(chunk.number).end_position.load(std::memory_order_relaxed);
    return end < most ? end : most;
  };
  crossed = false;
  if (cursor.chunk.data == nullptr && !find_chunk(map, cursor.position, cursor.chunk)) return ReadResult::corrupt;
  chunk_end = end_of(cursor.chunk);
  if (cursor.position < chunk_end) return ReadResult::items;
  const std::uint64_t next = cursor.chunk.number + 1;  // S2
  if (cursor.position > chunk_end || !load_chunk(map, next, cursor.chunk) || cursor.chunk.first != cursor.position)
    return ReadResult::corrupt;
  crossed = true;
  chunk_end = end_of(cursor.chunk);
  return cursor.position < chunk_end ? ReadResult::items : ReadResult::corrupt;  // X3: none is empty
}

// The next run of a session, at most `limit` items. The cursor stays: advance it by what was taken.
// `follows`: the line's place goes with the cursor (an ephemeral reader), so a chunk crossed is a chunk left.
[[nodiscard]] inline ReadResult next_run(const EventsMap& map, ReaderLine& line, bool follows, Cursor& cursor,
                                    std::uint64_t end, std::uint64_t limit, Run& run) noexcept {
  std::uint64_t chunk_end = 0;
  bool crossed = false;
  const ReadResult found = place_cursor(map, cursor, chunk_end, crossed);
  if (found != ReadResult::items) {
    cursor.chunk = {};
    return still_holds(map, line) ? found : ReadResult::lost;  // S3: a dropped reader may find anything
  }
  if (crossed && follows && !move_to(map, line, cursor.position)) return ReadResult::lost;
  const std::uint64_t last = end < chunk_end ? end : chunk_end;
  run.chunk = cursor.chunk;
  run.at = cursor.position - cursor.chunk.first;
  run.items = last - cursor.position < limit ? last - cursor.position : limit;
  return ReadResult::items;
}

// For who is not registered: the run that begins at `position`, which lies before `end`.
// What is copied from it counts only if is_still_kept(run.chunk.number) afterwards.
[[nodiscard]] inline ReadResult run_at(const EventsMap& map, std::uint64_t position, std::uint64_t end, std::uint64_t limit,
                                  Run& run) noexcept {
  Chunk chunk;
  if (!find_chunk(map, position, chunk)) return ReadResult::lost;
  std::uint64_t last = map.chunk(chunk.number).end_position.load(std::memory_order_relaxed);
  if (last > chunk.first + chunk.items) last = chunk.first + chunk.items;
  if (last > end) last = end;
  if (last <= position) return ReadResult::lost;
  run.chunk = chunk;
  run.at = position - chunk.first;
  run.items = last - position < limit ? last - position : limit;
  return ReadResult::items;
}

}  // namespace queueduct
