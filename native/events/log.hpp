// Events queue: a log of chunks. Every reader sees every item; a chunk is freed when all readers have passed it.
//
// Shape      positions:   start ..> … --------------------------> end            (both only rise)
//            chunks:      [ head ][      ][            ][  open  |      ]
//                           N        N         2N           2N       …
//            readers:            ▲ place          ▲ place
// Roles      one writer at a time, the holder of the queue's lock; the readers' side is events/cursor.hpp.
// Invariants I1  `end` is stored once a batch, after the items: every item before it is complete.
//            I2  the chunks head_chunk … chunks_made - 1 and the words `end` and `start` are the truth; all else
//                (blocks, used_bytes) follows from them and is rebuilt after a kill (events/repair.hpp).
//            I3  a chunk is freed only when it has ended, and every reader's place is at its end or beyond.
//            I4  `start` carries the epoch of the clear that set it. If that is not the epoch of `end`, a clear was
//                killed half-way, and the next holder finishes it.
// Progress   writers block each other; readers never block.
// Source     an event queue of growing chunks with an epoch fused into the length word. Ours: a position a reader
//            instead of a count of readers a chunk, which a dead reader would leave too high for ever.
//
// Memory orders come in pairs:
//   E1  append(): release store of `end`         with acquire in begin_session(): items, chunk lines, `start`
//   F1  free_oldest(): head_chunk, then a fence  with the fence in is_still_kept(): a copy from a freed chunk
//   F2  make_room(): dropped_bit, then F1        with the fence in still_holds(): a copy by a dropped reader
#pragma once

#include "events/repair.hpp"

namespace queueduct {

enum class Appended : std::uint8_t {
  done,
  full,       // max_bytes are in use, and a reader needs them
  too_long,   // the item would not fit even alone
  no_memory,  // the file system has none: see error()
  no_disk,    // the disk does not know yet that a chunk was freed, so it cannot be reused: see error()
  closed,
  corrupt,
};

class EventLog {
 public:
  explicit EventLog(const EventsMap& map) noexcept : map_(map), blocks_(map_), readers_(map_) {}

  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  [[nodiscard]] const EventsMap& map() const noexcept { return map_; }
  [[nodiscard]] Readers& readers() noexcept { return readers_; }
  [[nodiscard]] int error() const noexcept { return error_; }

  // Called before a chunk of references is reused: their owner must release them.
  using Forget = void (*)(void* context, void** references, std::uint64_t count);
  void on_forget(Forget forget, void* context) noexcept {
    forget_ = forget;
    forget_context_ = context;
  }

  // Appends as many of `count` records as fit now, and publishes them by one store. Calls tell(position, items) first.
  template <class Tell>
  [[nodiscard]] Appended append_records(const Backing& backing, const void* data, std::uint64_t count,
                                        std::uint64_t& put, Tell tell) noexcept {
    const auto write = [&](const Chunk& chunk, std::uint64_t at, std::uint64_t i, std::uint64_t room) {
      const std::uint64_t n = std::min(count - i, room);
      std::memcpy(chunk.data + at * map_.item_bytes, static_cast<const std::byte*>(data) + i * map_.item_bytes,
                  n * map_.item_bytes);
      return n;
    };
    return append(backing, count, put, tell, write, [](std::uint64_t) { return std::uint64_t{0}; });
  }

  // The same for items of varying length.
  template <class Tell>
  [[nodiscard]] Appended append_bytes(const Backing& backing, const Buffer* items, std::uint64_t count,
                                      std::uint64_t& put, Tell tell) noexcept {
    const auto write = [&](const Chunk& chunk, std::uint64_t at, std::uint64_t i, std::uint64_t room) {
      return write_varying(chunk, at, items + i, std::min(count - i, room));
    };
    return append(backing, count, put, tell, write, [&](std::uint64_t i) { return items[i].bytes; });
  }

  // Moves `start` so that at most the last `items` are kept. A reader before it jumps there at its next session.
  void keep_last(const Backing& backing, std::uint64_t items) noexcept {
    const EventsWord end = map_.end(std::memory_order_relaxed);
    if (end.position() - earliest_position(map_) <= items) return;
    const std::uint64_t epoch = EventsWord{end.word + EventsWord::epoch_one}.epoch();
    QUEUEDUCT_FAILPOINT("clear.before");
    // relaxed: published by the release of `end` below
    map_.control->start.store(EventsWord{end.position() - items}.in_epoch(epoch).word, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("clear.intended");
    map_.control->end.store(end.in_epoch(epoch).word, std::memory_order_release);  // E1, keeps I4
    QUEUEDUCT_FAILPOINT("clear.done");
    reclaim(backing);
  }

  void shut_down() noexcept {
    QUEUEDUCT_FAILPOINT("shutdown.before");
    map_.control->end.fetch_or(EventsWord::closed_bit, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("shutdown.closed");
  }

  // Frees the chunks that no reader needs. Returns how many.
  std::uint64_t reclaim(const Backing& backing) noexcept {
    std::uint32_t slowest;
    return free_before(backing, readers_.least_place(map_.start().position(), slowest));
  }

  // On a disk: gives the memory of freed chunks back to the file system. If the disk fails, the next chunk tries again.
  void trim(const Backing& backing) noexcept {
    if (!backing.is_on_disk || backing.settle_freed(map_) != 0) return;
    const std::uint64_t made = map_.made();
    const std::uint64_t last = made == 0 ? 0 : map_.chunk(made - 1).bytes.load(std::memory_order_relaxed);
    blocks_.trim(backing, std::min(last, map_.block_bytes));
  }

  [[nodiscard]] EventsRepair repair() noexcept { return {map_, blocks_, readers_}; }

  [[nodiscard]] std::uint64_t chunk_bytes(std::uint64_t items, std::uint64_t longest) const noexcept {
    const std::uint64_t typical = items * map_.item_bytes;
    return map_.varies ? map_.index_bytes(items) + round_up(std::max(typical, longest), 8) : typical;
  }

 private:
  // `write(chunk, at, i, room)` writes items i… into the chunk from its at-th item on, and returns how many.
  template <class Tell, class Write, class LengthOf>
  [[nodiscard]] Appended append(const Backing& backing, std::uint64_t count, std::uint64_t& put, Tell tell, Write write,
                                LengthOf length_of) noexcept {
    put = 0;
    const EventsWord end = map_.end(std::memory_order_relaxed);
    if (end.is_closed()) return Appended::closed;
    Appended outcome = Appended::done;
    Chunk chunk;
    std::uint64_t position = end.position();
    if (!load_open_chunk(position, chunk)) return Appended::corrupt;
    while (put < count) {
      const std::uint64_t at = position - chunk.first;
      std::uint64_t written = 0;
      if (chunk.data != nullptr && at < chunk.items) written = write(chunk, at, put, chunk.items - at);
      QUEUEDUCT_FAILPOINT("put.written");
      if (written == 0) {
        outcome = make_chunk(backing, position, length_of(put), chunk);
        if (outcome != Appended::done) break;
        continue;
      }
      position += written;
      put += written;
    }
    if (put == 0) return outcome;
    tell(end.position(), put);
    QUEUEDUCT_FAILPOINT("put.before_publish");
    // release E1: the items, and the lines of chunks made for them; keeps I1
    map_.control->end.store(end.at(position).word, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("put.published");
    return Appended::done;
  }

  [[nodiscard]] std::uint64_t write_varying(const Chunk& chunk, std::uint64_t at, const Buffer* items,
                                            std::uint64_t room) noexcept {
    auto* index = reinterpret_cast<std::uint32_t*>(chunk.data);
    std::byte* const data = chunk.data + map_.index_bytes(chunk.items);
    const std::uint64_t limit = chunk.bytes - map_.index_bytes(chunk.items);
    std::uint64_t used = at == 0 ? 0 : index[at - 1];
    for (std::uint64_t i = 0; i < room; ++i) {
      if (used > limit || items[i].bytes > limit - used) return i;
      std::memcpy(data + used, items[i].data, items[i].bytes);
      used += items[i].bytes;
      index[at + i] = static_cast<std::uint32_t>(used);
    }
    return room;
  }

  // Loads the open chunk, or leaves `chunk` without data if there is none. Returns false if the log is corrupt.
  [[nodiscard]] bool load_open_chunk(std::uint64_t position, Chunk& chunk) const noexcept {
    if (!map_.is_directory_sound()) return false;
    const std::uint64_t made = map_.made();
    if (made == map_.head()) return true;
    if (map_.chunk(made - 1).end_position.load(std::memory_order_relaxed) != open_end) return true;
    return load_chunk(map_, made - 1, chunk) && chunk.first <= position && position - chunk.first <= chunk.items;
  }

  // N, N, 2N, 2N, 4N, … The size stays while one chunk is kept: it is large enough then.
  [[nodiscard]] std::uint64_t next_items() const noexcept {
    const std::uint64_t made = map_.made();
    if (made < 2) return map_.first_items;
    const std::uint64_t last = map_.chunk(made - 1).items.load(std::memory_order_relaxed);
    const std::uint64_t before = map_.chunk(made - 2).items.load(std::memory_order_relaxed);
    const bool is_right = last != before || made - map_.head() <= 1;
    const std::uint64_t next = is_right ? last : 2 * last;
    return is_possible(next) ? next : is_possible(last) ? last : map_.first_items;
  }
  [[nodiscard]] bool is_possible(std::uint64_t items) const noexcept {
    const std::uint64_t largest = std::min(map_.max_bytes / 8, map_.block_bytes);  // larger ones hold back too much
    // an item has at least one byte, so a number of items beyond that was never written by a writer
    return items >= map_.first_items && items <= largest && chunk_bytes(items, 0) <= largest;
  }

  [[nodiscard]] Appended make_chunk(const Backing& backing, std::uint64_t position, std::uint64_t longest,
                                    Chunk& chunk) noexcept {
    QUEUEDUCT_FAILPOINT("chunk.before");
    if (!can_ever_fit(longest)) return Appended::too_long;
    reclaim(backing);
    std::uint64_t items = 0;
    std::uint64_t block = Blocks::none;
    const Appended found = find_space(backing, position, longest, items, block);
    if (found != Appended::done) return found;
    const std::uint64_t bytes = chunk_bytes(items, longest);
    const std::uint64_t number = map_.made();
    ChunkLine& line = map_.chunk(number);
    line.first_position.store(position, std::memory_order_relaxed);
    line.end_position.store(open_end, std::memory_order_relaxed);
    line.items.store(items, std::memory_order_relaxed);
    line.bytes.store(bytes, std::memory_order_relaxed);
    line.block.store(static_cast<std::uint32_t>(block), std::memory_order_relaxed);
    line.blocks.store(static_cast<std::uint32_t>(blocks_.blocks_for(bytes)), std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("chunk.described");
    end_open_chunk(position);
    // release: for find_chunk() by an unregistered reader; keeps C1
    map_.control->chunks_made.store(number + 1, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("chunk.made");
    map_.control->used_bytes.store(used_bytes() + bytes, std::memory_order_relaxed);
    return load_chunk(map_, number, chunk) ? Appended::done : Appended::corrupt;
  }

  [[nodiscard]] std::uint64_t used_bytes() const noexcept {
    return map_.control->used_bytes.load(std::memory_order_relaxed);
  }

  void end_open_chunk(std::uint64_t position) noexcept {
    if (map_.made() == map_.head()) return;
    std::atomic<std::uint64_t>& end = map_.chunk(map_.made() - 1).end_position;
    // relaxed: readers see it by the release E1 of a later batch
    if (end.load(std::memory_order_relaxed) == open_end) end.store(position, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("chunk.ended");
  }

  // If this returns false, no reader should be dropped for the item.
  [[nodiscard]] bool can_ever_fit(std::uint64_t longest) const noexcept {
    if (longest > block_bytes_limit) return false;
    const std::uint64_t bytes = chunk_bytes(map_.first_items, longest);
    return bytes <= map_.max_bytes && bytes <= block_bytes_limit && blocks_.blocks_for(bytes) <= map_.block_count;
  }

  // How many items the next chunk is for, and its first block. Makes room as far as the queue's policy allows.
  [[nodiscard]] Appended find_space(const Backing& backing, std::uint64_t position, std::uint64_t longest,
                                    std::uint64_t& items, std::uint64_t& block) noexcept {
    // each attempt frees a chunk, drops a reader or follows one that has moved: more attempts mean foreign writes
    std::uint64_t attempts = map_.chunk_lines + std::uint64_t{64} * map_.reader_lines + 1024;
    while (map_.is_directory_sound() && attempts-- > 0) {
      const std::uint64_t left = map_.max_bytes - std::min(used_bytes(), map_.max_bytes);
      items = next_items();
      while (items > map_.first_items && chunk_bytes(items, longest) > left) items /= 2;
      const std::uint64_t bytes = chunk_bytes(items, longest);
      const bool has_line = map_.made() - map_.head() < map_.chunk_lines - 1;  // keeps C2
      if (has_line && bytes <= left) {
        error_ = backing.settle_freed(map_);
        if (error_ != 0) return Appended::no_disk;
        if (backing.is_on_disk) blocks_.trim(backing, bytes);
        block = blocks_.take(backing, blocks_.blocks_for(bytes), bytes, error_);
        if (error_ != 0) return Appended::no_memory;
        if (block != Blocks::none) return Appended::done;
      }
      const Appended room = make_room(backing, position);
      if (room != Appended::done) return room;
    }
    return Appended::corrupt;
  }

  // Returns full if a reader needs all that is kept, and the queue's policy does not drop it.
  [[nodiscard]] Appended make_room(const Backing& backing, std::uint64_t position) noexcept {
    if (map_.made() == map_.head()) return Appended::corrupt;  // an item that can fit does not fit an empty log
    std::uint32_t slowest;
    if (readers_.least_place(map_.start().position(), slowest) >= position) {
      end_open_chunk(position);  // all readers are at the end: then even the open chunk can go
      return free_before(backing, position) > 0 ? Appended::done : Appended::full;
    }
    if (!map_.may_drop) return Appended::full;
    if (slowest != Readers::none) {
      // F2: the fence of free_oldest() comes before the memory is reused
      if (readers_.drop(slowest)) map_.control->dropped.fetch_add(1, std::memory_order_relaxed);
      (void)reclaim(backing);
      return Appended::done;
    }
    if (map_.made() - map_.head() == 1) end_open_chunk(position);
    free_oldest(backing);
    return Appended::done;
  }

  std::uint64_t free_before(const Backing& backing, std::uint64_t position) noexcept {
    std::uint64_t freed = 0;
    if (!map_.is_directory_sound()) return 0;
    for (std::uint64_t left = map_.made() - map_.head();
         left > 0 && left < map_.chunk_lines && map_.head() < map_.made(); --left) {
      const std::uint64_t end = map_.chunk(map_.head()).end_position.load(std::memory_order_relaxed);
      if (end == open_end || end > position) break;
      free_oldest(backing);
      ++freed;
    }
    return freed;
  }

  void free_oldest(const Backing& backing) noexcept {
    const std::uint64_t number = map_.head();
    Chunk chunk;
    const bool is_whole = load_chunk(map_, number, chunk);
    if (is_whole && forget_ != nullptr)
      forget_(forget_context_, reinterpret_cast<void**>(chunk.data),
              map_.chunk(number).end_position.load(std::memory_order_relaxed) - chunk.first);
    QUEUEDUCT_FAILPOINT("free.before");
    map_.control->head_chunk.store(number + 1, std::memory_order_release);
    // F1, seq_cst: head_chunk is stored before the block's next bytes, and before `synced` is loaded. So a control page
    // on the disk with a later `synced` has this head as well. A crash of the machine cuts off what was not synced, so
    // a chunk that never was needs no sync before its reuse. Repair sets the mark that a kill here would lose.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (backing.is_durable || !is_whole || chunk.first < map_.control->synced.load(std::memory_order_relaxed))
      map_.control->freed_unsynced.store(1, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("free.head_moved");
    if (!is_whole) return;
    // from the checked copy: a foreign write may have changed the line by now
    blocks_.give(backing, static_cast<std::uint64_t>(chunk.data - map_.arena) / map_.block_bytes,
                 blocks_.blocks_for(chunk.bytes), chunk.bytes);
    const std::uint64_t used = used_bytes();
    map_.control->used_bytes.store(used - std::min(used, chunk.bytes), std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("free.done");
  }

  EventsMap map_;
  Blocks blocks_;
  Readers readers_;
  int error_ = 0;
  Forget forget_ = nullptr;
  void* forget_context_ = nullptr;
};

}  // namespace queueduct
