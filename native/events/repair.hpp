// What a killed holder of the lock, or a crash of the machine, has left behind, and how it is repaired.
//
// Shape      chunks:      [ head ][      ][   |  ][      ]   the last two were made for a batch that was not published
//            positions:                       ▲ end          so the last one goes, and the one before is open again
// Roles      the holder of the lock, before anything else.
// Invariants X1  what lies before `end` stays where it is, so readers continue beside a repair.
//            X2  every step can be repeated: the recoverer may be killed as well.
//            X3  no chunk is left without items: a reader that has finished chunk n finds its next item in n + 1.
// Progress   under the lock; visits every kept chunk and every block that was ever used.
#pragma once

#include "events/blocks.hpp"
#include "events/readers.hpp"

namespace queueduct {

class EventsRepair {
 public:
  EventsRepair(const EventsMap& map, Blocks& blocks, Readers& readers) noexcept
      : map_(map), blocks_(blocks), readers_(readers) {}

  // Returns false if the segment contradicts itself.
  [[nodiscard]] bool after_kill(const Backing& backing) noexcept {
    QUEUEDUCT_FAILPOINT("repair.begin");
    finish_clear();
    const std::uint64_t end = map_.end(std::memory_order_relaxed).position();
    const Kept kept = chunks_before(end);
    if (!reaches(kept, end)) return false;
    cut(kept, end);
    if (!claim_blocks()) return false;
    QUEUEDUCT_FAILPOINT("repair.rebuilt");
    map_.control->freed_unsynced.store(1, std::memory_order_relaxed);  // the dead holder may have freed a chunk
    blocks_.drop_rest(backing, backing.settle_freed(map_) == 0);
    QUEUEDUCT_FAILPOINT("repair.done");
    return true;
  }

  // After a crash of the machine only what was synced is trusted: pages reach the disk in any order, so a chunk's line
  // may be older than the number that counts it. No reader is active: none has survived the crash.
  // Returns where the log was cut. Repeated after a kill, it cuts there again (V4).
  [[nodiscard]] std::uint64_t roll_back_to(std::uint64_t position) noexcept {
    const EventsWord end = map_.end(std::memory_order_relaxed);
    position = std::min(position, end.position());
    Chunk oldest;
    const bool has_oldest = map_.head() < map_.made() && load_chunk(map_, map_.head(), oldest);
    if (has_oldest && oldest.first <= end.position()) position = std::max(position, oldest.first);
    const Kept kept = chunks_before(position);
    if (kept.chunks_made > map_.head()) position = std::min(position, kept.reach);
    cut(kept, position);
    const EventsWord start = map_.start();
    if (start.position() > position) map_.control->start.store(start.at(position).word, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < readers_.used(); ++i) {
      ReaderLine& line = readers_.line(i);
      const std::uint64_t place = line.place.load(std::memory_order_relaxed) & ~dropped_bit;
      if (place <= position) continue;
      line.beyond.store(place, std::memory_order_relaxed);  // first: else a kill could hide the cut from the reader
      QUEUEDUCT_FAILPOINT("repair.reader_noted");
      line.place.store(position, std::memory_order_relaxed);
    }
    QUEUEDUCT_FAILPOINT("repair.before_roll_back");
    map_.control->end.store(end.at(position).word, std::memory_order_release);  // E1
    QUEUEDUCT_FAILPOINT("repair.rolled_back");
    return position;
  }

  // Returns true if a kill can have left the log like this, with at most one batch unpublished.
  [[nodiscard]] bool is_whole_from(std::uint64_t position) const noexcept {
    const std::uint64_t end = map_.end(std::memory_order_relaxed).position();
    const Kept kept = chunks_before(end);
    if (!reaches(kept, end)) return false;
    for (std::uint64_t number = map_.head(); map_.varies && number < kept.chunks_made; ++number) {
      Chunk chunk;
      if (!load_chunk(map_, number, chunk)) return false;
      const std::uint64_t last = std::min(end, map_.chunk(number).end_position.load(std::memory_order_relaxed));
      for (std::uint64_t at = std::max(position, chunk.first); at < last; ++at) {
        std::uint32_t from, to;
        if (at - chunk.first >= chunk.items || !item_bounds(map_, chunk, at - chunk.first, from, to)) return false;
      }
    }
    return true;
  }

 private:
  struct Kept {
    std::uint64_t chunks_made = 0;
    std::uint64_t reach = 0;  // where the last of them ends
    bool is_sound = true;     // false: the next chunk contradicts those before it
  };

  [[nodiscard]] bool reaches(const Kept& kept, std::uint64_t end) const noexcept {
    return kept.is_sound && (kept.reach == end || kept.chunks_made == map_.head());
  }

  // Keeps I4.
  void finish_clear() noexcept {
    const EventsWord end = map_.end(std::memory_order_relaxed);
    const EventsWord start = map_.start();
    if (start.epoch() != end.epoch())
      map_.control->end.store(end.in_epoch(start.epoch()).word, std::memory_order_release);  // E1
    QUEUEDUCT_FAILPOINT("repair.cleared");
  }

  // The consecutive chunks, from the oldest on, that hold items before `position`.
  [[nodiscard]] Kept chunks_before(std::uint64_t position) const noexcept {
    Kept kept{map_.head(), position, map_.is_directory_sound()};
    while (kept.is_sound && kept.chunks_made < map_.made()) {
      Chunk chunk;
      kept.is_sound = load_chunk(map_, kept.chunks_made, chunk);
      if (!kept.is_sound || chunk.first >= position) break;  // made for a batch that was not published
      const std::uint64_t end = map_.chunk(chunk.number).end_position.load(std::memory_order_relaxed);
      const std::uint64_t reach = std::min(end, position);
      kept.is_sound = (chunk.number == map_.head() || chunk.first == kept.reach) && reach > chunk.first &&
                      reach - chunk.first <= chunk.items;
      if (!kept.is_sound) break;
      ++kept.chunks_made;
      kept.reach = reach;
      if (end >= position) break;
    }
    return kept;
  }

  // Keeps X1: a reader in the last chunk reads before `position`.
  void cut(const Kept& kept, std::uint64_t position) noexcept {
    if (kept.chunks_made > map_.head()) {
      std::atomic<std::uint64_t>& end = map_.chunk(kept.chunks_made - 1).end_position;
      if (end.load(std::memory_order_relaxed) > position) end.store(open_end, std::memory_order_relaxed);
    }
    QUEUEDUCT_FAILPOINT("repair.before_cut");
    map_.control->chunks_made.store(kept.chunks_made, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("repair.cut");
  }

  // Rebuilds the block words and used_bytes from the chunks (B1).
  [[nodiscard]] bool claim_blocks() noexcept {
    blocks_.forget();
    std::uint64_t used = 0;
    for (std::uint64_t number = map_.head(); number < map_.made(); ++number) {
      const ChunkLine& line = map_.chunk(number);
      const std::uint64_t bytes = line.bytes.load(std::memory_order_relaxed);
      const std::uint64_t first = line.block.load(std::memory_order_relaxed);
      if (!blocks_.claim(first, line.blocks.load(std::memory_order_relaxed), bytes)) return false;
      used += bytes;
    }
    map_.control->used_bytes.store(used, std::memory_order_relaxed);
    return true;
  }

  const EventsMap& map_;
  Blocks& blocks_;
  Readers& readers_;
};

}  // namespace queueduct
