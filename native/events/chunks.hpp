// The directory of chunks, and the format of a chunk.
//
// Shape      chunk numbers only rise; the line of chunk n is lines[n & mask]. Kept are head_chunk … chunks_made - 1.
//            chunk n holds the positions first_position … end_position, and chunk n + 1 continues there.
// Roles      the holder of the lock makes, ends and frees chunks; readers only load.
// Invariants C1  a line is complete before chunks_made covers it, and so before `end` passes its first position.
//            C2  at most chunk_lines - 1 chunks are kept. So while a reader needs a position of chunk n + 1, neither
//                that line nor the line of chunk n, which the reader may just have finished, is rewritten.
//            C3  a chunk's memory is reused only after head_chunk has passed it (F1 in events/log.hpp).
// Progress   loads are wait-free; a search bisects, and restarts only if a chunk was freed meanwhile.
//
// A reader that is not registered, or was dropped, may load anything: every number is checked before it is used, and a
// result counts only if the chunk is still kept afterwards.
#pragma once

#include <algorithm>
#include <cstring>

#include "events/layout.hpp"
#include "core/failpoint.hpp"

namespace queueduct {

// A private copy of addresses and sizes: after the checks at opening, no peer can change them.
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
  // relaxed: for the holder of the lock; for a reader, `start` is stored before the `end` of its epoch (E1)
  [[nodiscard]] EventsWord start() const noexcept { return {control->start.load(std::memory_order_relaxed)}; }
  [[nodiscard]] std::uint64_t head() const noexcept { return control->head_chunk.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t made() const noexcept { return control->chunks_made.load(std::memory_order_relaxed); }
  // Else a loop from head to made might not end. Such a loop also counts its steps: a foreign write may come any time.
  [[nodiscard]] bool is_directory_sound() const noexcept {
    return made() >= head() && made() - head() < chunk_lines;  // C2
  }
  [[nodiscard]] std::uint64_t index_bytes(std::uint64_t items) const noexcept {
    return varies ? round_up(items * sizeof(std::uint32_t), 8) : 0;
  }
};

// A checked private copy of a chunk's line.
struct Chunk {
  std::uint64_t number = 0;
  std::uint64_t first = 0;
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;
  std::byte* data = nullptr;  // nullptr: no chunk
};

// Returns false if the line is impossible.
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

// Returns where the chunk's positions end or, while it takes items, where they will end at the latest.
// relaxed: E1, since an `end` beyond the chunk's last position was stored after its end_position
[[nodiscard]] inline std::uint64_t end_of(const EventsMap& map, const Chunk& chunk) noexcept {
  return std::min(map.chunk(chunk.number).end_position.load(std::memory_order_relaxed), chunk.first + chunk.items);
}

// Where the i-th item of varying length begins and ends, as offsets from items_of().
// Returns false if the index is impossible.
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

// Finds the chunk of `position`, which lies before an `end` that the caller has acquired.
// Returns false if the position is not kept, or the directory is impossible.
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
      is_found = load_chunk(map, low, chunk) && chunk.first <= position && position < end_of(map, chunk);
    }
    // The lines of chunks freed meanwhile may describe later chunks by now and mislead the search.
    std::atomic_thread_fence(std::memory_order_acquire);  // F1
    const std::uint64_t head_now = map.head();
    if (is_found && head_now <= low) return true;
    if (head_now == head) return false;
  }
}

// Returns the oldest kept position. Only a hint unless the lock is held.
[[nodiscard]] inline std::uint64_t earliest_position(const EventsMap& map) noexcept {
  const std::uint64_t end = map.end(std::memory_order_acquire).position();
  const std::uint64_t start = map.start().position();
  const std::uint64_t head = map.control->head_chunk.load(std::memory_order_acquire);
  std::uint64_t earliest = end;
  if (head < map.control->chunks_made.load(std::memory_order_acquire))
    earliest = map.chunk(head).first_position.load(std::memory_order_relaxed);
  return std::min(std::max(earliest, start), end);
}

// For a reader that is not registered, after a copy: returns true if the bytes were the chunk's own.
// Pairs with the fence F1 of free_oldest(): a reader that saw a byte of the block's next use sees head_chunk moved.
[[nodiscard]] inline bool is_still_kept(const EventsMap& map, std::uint64_t number) noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);  // F1
  return map.head() <= number;
}

}  // namespace queueduct
