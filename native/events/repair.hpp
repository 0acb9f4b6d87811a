// What a holder of the lock that was killed, or a machine that crashed, has left behind, and how it is put right.
//
// Shape      chunks:      [ head ][      ][   |  ][      ]   the last two were made by a batch that was not published
//            positions:                       ▲ end          so the last goes, and the one before is open again
// Roles      the holder of the lock, before anything else.
// Invariants X1  what lies before `end` stays where it is, so readers go on beside a repair.
//            X2  every step can be done twice: who repairs may be killed, too.
//            X3  no chunk is left without items: a reader that has finished chunk n finds its next item in n + 1.
// Progress   under the lock; a look at every kept chunk and at every block that was ever used.
#pragma once

#include <algorithm>

#include "events/blocks.hpp"
#include "events/readers.hpp"

namespace queueduct {

class EventsRepair {
 public:
  EventsRepair(const EventsMap& map, Blocks& blocks, Readers& readers) noexcept
      : map_(map), blocks_(blocks), readers_(readers) {}

  // False: the segment contradicts itself.
  [[nodiscard]] bool after_kill(const Backing& backing) noexcept {
    QUEUEDUCT_FAILPOINT("repair.begin");
    finish_clear();
    const std::uint64_t end = map_.end(std::memory_order_relaxed).position();
    const Kept kept = look_until(end);
    if (!kept.is_sound || !(kept.reach == end || kept.chunks_made == head())) return false;
    cut(kept, end);
    if (!claim_blocks()) return false;
    QUEUEDUCT_FAILPOINT("repair.rebuilt");
    map_.control->freed_unsynced.store(1, std::memory_order_relaxed);  // the dead may have freed some
    blocks_.drop_rest(backing, backing.settle_freed(map_) == 0);
    QUEUEDUCT_FAILPOINT("repair.done");
    return true;
  }

  // After a crash of the machine only what was synced is believed: pages reach the disk in any order, so a chunk's
  // line may be older than the number that counts it. Nobody reads meanwhile: all who could have are gone.
  // Where it was cut; done again after a kill, it is cut there again (V4).
  [[nodiscard]] std::uint64_t roll_back_to(std::uint64_t position) noexcept {
    const EventsWord end = map_.end(std::memory_order_relaxed);
    if (position > end.position()) position = end.position();
    Chunk oldest;
    const bool has_oldest = head() < made() && load_chunk(map_, head(), oldest);
    if (has_oldest && position < oldest.first && oldest.first <= end.position()) position = oldest.first;
    const Kept kept = look_until(position);
    if (kept.chunks_made > head() && kept.reach < position) position = kept.reach;
    cut(kept, position);
    const EventsWord start{map_.control->start.load(std::memory_order_relaxed)};
    if (start.position() > position) map_.control->start.store(start.at(position).word, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < readers_.used(); ++i) {
      const std::uint64_t place = readers_.line(i).place.load(std::memory_order_relaxed) & ~dropped_bit;
      if (place <= position) continue;
      readers_.line(i).beyond.store(place, std::memory_order_relaxed);  // first: a kill must not keep it from being told
      QUEUEDUCT_FAILPOINT("repair.reader_noted");
      readers_.line(i).place.store(position, std::memory_order_relaxed);
    }
    QUEUEDUCT_FAILPOINT("repair.before_roll_back");
    map_.control->end.store(end.at(position).word, std::memory_order_release);  // E1
    QUEUEDUCT_FAILPOINT("repair.rolled_back");
    return position;
  }

  // Could it be that a batch under way is all that is missing? Else it is not as processes leave a log that are killed.
  [[nodiscard]] bool is_whole_from(std::uint64_t position) const noexcept {
    const std::uint64_t end = map_.end(std::memory_order_relaxed).position();
    const Kept kept = look_until(end);
    if (!kept.is_sound || !(kept.reach == end || kept.chunks_made == head())) return false;
    for (std::uint64_t number = head(); map_.varies && number < kept.chunks_made; ++number) {
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
    std::uint64_t reach = 0;  // the end of the last of them
    bool is_sound = true;     // false: a chunk after them contradicts what is before it
  };

  [[nodiscard]] std::uint64_t head() const noexcept { return map_.control->head_chunk.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t made() const noexcept {
    return map_.control->chunks_made.load(std::memory_order_relaxed);
  }

  // Keeps I4.
  void finish_clear() noexcept {
    const EventsWord end = map_.end(std::memory_order_relaxed);
    const EventsWord start{map_.control->start.load(std::memory_order_relaxed)};
    if (start.epoch() != end.epoch())
      map_.control->end.store(end.in_epoch(start.epoch()).word, std::memory_order_release);  // E1
    QUEUEDUCT_FAILPOINT("repair.cleared");
  }

  // The chunks, in a row from the oldest on, that hold something before `position`.
  [[nodiscard]] Kept look_until(std::uint64_t position) const noexcept {
    Kept kept{head(), position, made() >= head() && made() - head() < map_.chunk_lines};
    while (kept.is_sound && kept.chunks_made < made()) {
      Chunk chunk;
      kept.is_sound = load_chunk(map_, kept.chunks_made, chunk);
      if (!kept.is_sound || chunk.first >= position) break;  // it was made for what was not published
      const std::uint64_t end = map_.chunk(chunk.number).end_position.load(std::memory_order_relaxed);
      const std::uint64_t reach = end < position ? end : position;
      kept.is_sound = (chunk.number == head() || chunk.first == kept.reach) && reach > chunk.first &&
                      reach - chunk.first <= chunk.items;
      if (!kept.is_sound) break;
      ++kept.chunks_made;
      kept.reach = reach;
      if (end >= position) break;
    }
    return kept;
  }

  // Keeps X1: who reads in the last chunk reads before `position`.
  void cut(const Kept& kept, std::uint64_t position) noexcept {
    if (kept.chunks_made > head()) {
      std::atomic<std::uint64_t>& end = map_.chunk(kept.chunks_made - 1).end_position;
      if (end.load(std::memory_order_relaxed) > position) end.store(open_end, std::memory_order_relaxed);
    }
    QUEUEDUCT_FAILPOINT("repair.before_cut");
    map_.control->chunks_made.store(kept.chunks_made, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("repair.cut");
  }

  // Makes blocks and used_bytes anew from the chunks (B1).
  [[nodiscard]] bool claim_blocks() noexcept {
    blocks_.forget();
    std::uint64_t used = 0;
    for (std::uint64_t number = head(); number < made(); ++number) {
      const ChunkLine& line = map_.chunk(number);
      const std::uint64_t bytes = line.bytes.load(std::memory_order_relaxed);
      if (!blocks_.claim(line.block.load(std::memory_order_relaxed), line.blocks.load(std::memory_order_relaxed), bytes))
        return false;
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
