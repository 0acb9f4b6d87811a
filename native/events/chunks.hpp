// The directory of chunks, and what a chunk looks like inside.
//
// Shape      chunk numbers only rise; the line of chunk n is lines[n & mask]. Kept are head_chunk … chunks_made - 1.
//            chunk n holds the positions first_position … end_position, and chunk n + 1 goes on there.
// Roles      the holder of the lock makes, ends and frees chunks; readers look.
// Invariants C1  a line is complete before chunks_made, and so before any `end` that lies beyond it, says so.
//            C2  at most chunk_lines - 1 chunks are kept. So while a reader needs position p of chunk n + 1, neither
//                that line nor the line of chunk n, which it may just have finished, is written again.
//            C3  a chunk's memory is reused only after head_chunk has passed it (F1 in events_log.hpp).
// Progress   wait-free looks; a search is a bisection, and begins anew only if a chunk was freed meanwhile.
//
// Who looks without being registered, or after it was dropped, may see anything: every number is checked before
// it is used, and what was found counts only if the chunk is still kept afterwards.
#pragma once

#include <cstring>

#include "events/layout.hpp"
#include "core/failpoint.hpp"

namespace queueduct {

// Private copy of where things are and how large: what a peer could overwrite is never trusted again.
struct EventsMap {
  EventsControl* control = nullptr;
  ReaderLine* readers = nullptr;
  ChunkLine* chunks = nullptr;
  std::atomic<std::uint32_t>* blocks = nullptr;
  std::byte* arena = nullptr;
  std::uint64_t block_count = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t chunk_lines = 0;  // a power of two
  std::uint64_t max_bytes = 0;
  std::uint64_t first_items = 0;
  std::uint64_t item_bytes = 0;  // of a record, or of a typical item
  std::uint32_t reader_lines = 0;
  bool varies = false;
  bool may_drop = false;

  [[nodiscard]] ChunkLine& chunk(std::uint64_t number) const noexcept { return chunks[number & (chunk_lines - 1)]; }
  [[nodiscard]] EventsWord end(std::memory_order order) const noexcept { return {control->end.load(order)}; }
  [[nodiscard]] std::uint64_t index_bytes(std::uint64_t items) const noexcept {
    return varies ? round_up(items * sizeof(std::uint32_t), 8) : 0;
  }
};

// A chunk as one looker sees it: checked, and its own.
struct Chunk {
  std::uint64_t number = 0;
  std::uint64_t first = 0;
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;
  std::byte* data = nullptr;  // nullptr: none
};

// False: the line says what cannot be.
[[nodiscard]] inline bool load_chunk(const EventsMap& map, std::uint64_t number, Chunk& chunk) noexcept {
  const ChunkLine& line = map.chunk(number);
  // relaxed: C1, and the caller's acquire of `end` or chunks_made
  const std::uint64_t first = line.first_position.load(std::memory_order_relaxed);
  const std::uint64_t items = line.items.load(std::memory_order_relaxed);
  const std::uint64_t bytes = line.bytes.load(std::memory_order_relaxed);
  const std::uint64_t block = line.block.load(std::memory_order_relaxed);
  const std::uint64_t blocks = line.blocks.load(std::memory_order_relaxed);
  if (first > EventsWord::position_mask || items == 0 || items > EventsWord::position_mask) return false;
  if (block >= map.block_count || blocks == 0 || blocks > map.block_count - block) return false;
  if (bytes > blocks * map.block_bytes || bytes > block_bytes_limit) return false;
  const std::uint64_t each = map.varies ? sizeof(std::uint32_t) : map.item_bytes;
  if (items > bytes / each || map.index_bytes(items) > bytes) return false;
  chunk = {number, first, items, bytes, map.arena + block * map.block_bytes};
  return true;
}

// Items of a chunk that varies: where the i-th begins and ends, counted from the first's begin.
// False: the index says what cannot be.
[[nodiscard]] inline bool item_bounds(const EventsMap& map, const Chunk& chunk, std::uint64_t i, std::uint32_t& begin,
                                      std::uint32_t& end) noexcept {
  const auto* index = reinterpret_cast<const std::uint32_t*>(chunk.data);
  begin = i == 0 ? 0 : index[i - 1];
  end = index[i];
  return begin <= end && end <= chunk.bytes - map.index_bytes(chunk.items);
}

[[nodiscard]] inline const std::byte* items_of(const EventsMap& map, const Chunk& chunk) noexcept {
  return chunk.data + map.index_bytes(chunk.items);
}

// The chunk that holds `position`, which the caller knows to lie before an `end` that it has acquired.
// False: it is not kept (any more), or the directory says what cannot be.
[[nodiscard]] inline bool find_chunk(const EventsMap& map, std::uint64_t position, Chunk& chunk) noexcept {
  for (;;) {
    const std::uint64_t head = map.control->head_chunk.load(std::memory_order_acquire);
    std::uint64_t low = head;
    std::uint64_t high = map.control->chunks_made.load(std::memory_order_acquire);
    QUEUEDUCT_FAILPOINT("find.begun");
    bool is_found = false;
    if (low < high && high - low < map.chunk_lines) {
      while (high - low > 1) {  // first(low) <= position < first(high)
        const std::uint64_t middle = low + (high - low) / 2;
        if (map.chunk(middle).first_position.load(std::memory_order_relaxed) <= position)
          low = middle;
        else
          high = middle;
      }
      is_found = load_chunk(map, low, chunk) && chunk.first <= position &&
                 position < map.chunk(low).end_position.load(std::memory_order_relaxed) &&
                 position - chunk.first < chunk.items;
    }
    // Lines of chunks that were freed meanwhile may be others' by now: they lead astray.
    std::atomic_thread_fence(std::memory_order_acquire);  // F1
    const std::uint64_t head_now = map.control->head_chunk.load(std::memory_order_relaxed);
    if (is_found && head_now <= low) return true;
    if (head_now == head) return false;
  }
}

// The oldest position that is kept. Only a hint unless the lock is held.
[[nodiscard]] inline std::uint64_t earliest_position(const EventsMap& map) noexcept {
  const std::uint64_t end = map.end(std::memory_order_acquire).position();
  const std::uint64_t start = EventsWord{map.control->start.load(std::memory_order_relaxed)}.position();
  const std::uint64_t head = map.control->head_chunk.load(std::memory_order_acquire);
  std::uint64_t earliest = end;
  if (head < map.control->chunks_made.load(std::memory_order_acquire))
    earliest = map.chunk(head).first_position.load(std::memory_order_relaxed);
  if (earliest < start) earliest = start;
  return earliest < end ? earliest : end;
}

// After a copy by somebody who is not registered: were the bytes the chunk's own?
// Pairs with the fence F1 of free_oldest(): who has seen a byte of the block's next use sees head_chunk moved.
[[nodiscard]] inline bool is_still_kept(const EventsMap& map, std::uint64_t number) noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);  // F1
  return map.control->head_chunk.load(std::memory_order_relaxed) <= number;
}

}  // namespace queueduct
