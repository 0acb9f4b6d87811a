// Events queue: a log of chunks. Every reader sees every item; a chunk is freed when all have passed it.
//
// Shape      positions:   start ┄┄► … ──────────────────────────► end            (both only rise)
//            chunks:      [ head ][      ][            ][  open  |      ]
//                           N        N         2N           2N       …
//            readers:            ▲ place          ▲ place
// Roles      one writer at a time, the holder of the queue's lock, is in here; readers are in events_cursor.hpp.
// Invariants I1  `end` is stored once a batch, after the items: what lies before it is whole.
//            I2  the chunks head_chunk … chunks_made - 1 and the words `end` and `start` are the truth; everything
//                else (blocks, used_bytes) follows from them and is made anew after a kill (events_repair.hpp).
//            I3  a chunk is freed only when it ended, and every reader's place is at its end or beyond.
//            I4  `start` carries the epoch of the clear that set it. If it is not the epoch of `end`, a clear was
//                killed in its middle, and is finished by the next holder.
// Progress   writers block each other; readers never.
// Source     the event queue of chunks with dynamic sizes and an epoch fused with the length. Ours: positions
//            instead of counts of readers, which a dead reader would leave short for ever.
//
// Memory orders come in pairs:
//   E1  publish(): release store of `end`        with acquire in begin_session(): items, chunk lines, `start`
//   F1  free_oldest(): head_chunk, then a fence  with the fence in is_still_kept(): a copy from a freed chunk
//   F2  drop_slowest(): dropped_bit, then F1     with the fence in still_holds(): a copy by a dropped reader
#pragma once

#include "core/buffer.hpp"
#include "events/repair.hpp"

namespace queueduct {

enum class Appended : std::uint8_t {
  done,
  full,       // max_bytes are in use, and a reader needs them
  too_long,   // the item would not fit if it were alone
  no_memory,  // the file system has none: error() says how
  no_disk,    // what was freed could not be written down, and is not used again before: error() says why
  closed,
  corrupt,
};

class EventLog {
 public:
  explicit EventLog(const EventsMap& map) noexcept
      : map_(map), blocks_(map.control, map.blocks, map.arena, map.block_count, map.block_bytes), readers_(map_) {}

  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  [[nodiscard]] const EventsMap& map() const noexcept { return map_; }
  [[nodiscard]] Readers& readers() noexcept { return readers_; }
  [[nodiscard]] int error() const noexcept { return error_; }

  // Before a chunk of references is reused: who holds them must let them go.
  using Forget = void (*)(void* context, void** references, std::uint64_t count);
  void on_forget(Forget forget, void* context) noexcept {
    forget_ = forget;
    forget_context_ = context;
  }

  // Told of each publish before it happens: from which position on, and how many.
  struct NobodyIsTold {
    void operator()(std::uint64_t, std::uint64_t) const noexcept {}
  };

  // As many of `count` records as fit now, published by one store.
  template <class Tell = NobodyIsTold>
  [[nodiscard]] Appended append_records(const Backing& backing, const void* data, std::uint64_t count,
                                        std::uint64_t& put, Tell tell = {}) noexcept {
    return append(backing, count, put, tell, [&](const Chunk& chunk, std::uint64_t at, std::uint64_t i, std::uint64_t room) {
      const std::uint64_t n = count - i < room ? count - i : room;
      std::memcpy(chunk.data + at * map_.item_bytes, static_cast<const std::byte*>(data) + i * map_.item_bytes,
                  n * map_.item_bytes);
      return n;
    }, [](std::uint64_t) { return std::uint64_t{0}; });
  }

  // The same for items that vary in length.
  template <class Tell = NobodyIsTold>
  [[nodiscard]] Appended append_bytes(const Backing& backing, const Buffer* items, std::uint64_t count,
                                      std::uint64_t& put, Tell tell = {}) noexcept {
    return append(backing, count, put, tell, [&](const Chunk& chunk, std::uint64_t at, std::uint64_t i, std::uint64_t room) {
      return write_varying(chunk, at, items + i, count - i < room ? count - i : room);
    }, [&](std::uint64_t i) { return items[i].bytes; });
  }

  // Readers at their next session start here, or where they are if that is later.
  void move_start(const Backing& backing, std::uint64_t position) noexcept {
    const EventsWord end = map_.end(std::memory_order_relaxed);
    const std::uint64_t epoch = EventsWord{end.word + EventsWord::epoch_one}.epoch();
    QUEUEDUCT_FAILPOINT("clear.before");
    // relaxed: carried out by the release of `end` below
    map_.control->start.store(EventsWord{0}.at(position).in_epoch(epoch).word, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("clear.intended");
    map_.control->end.store(end.in_epoch(epoch).word, std::memory_order_release);  // E1, keeps I4
    QUEUEDUCT_FAILPOINT("clear.done");
    reclaim(backing);
  }

  void clear(const Backing& backing) noexcept { move_start(backing, map_.end(std::memory_order_relaxed).position()); }

  void keep_last(const Backing& backing, std::uint64_t items) noexcept {
    const std::uint64_t end = map_.end(std::memory_order_relaxed).position();
    if (end - earliest_position(map_) > items) move_start(backing, end - items);
  }

  void shut_down() noexcept {
    QUEUEDUCT_FAILPOINT("shutdown.before");
    map_.control->end.fetch_or(EventsWord::closed_bit, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("shutdown.closed");
  }

  // Free what no reader needs. How many chunks.
  std::uint64_t reclaim(const Backing& backing) noexcept {
    std::uint32_t slowest;
    return free_before(backing, readers_.least_place(start(), slowest));
  }

  // On a disk: what was freed goes back to the file system. If the disk refuses, the next chunk sees to it.
  void trim(const Backing& backing) noexcept {
    if (!backing.is_on_disk || backing.settle_freed(map_) != 0) return;
    const std::uint64_t last = made() == 0 ? 0 : map_.chunk(made() - 1).bytes.load(std::memory_order_relaxed);
    blocks_.trim(backing, last < map_.block_bytes ? last : map_.block_bytes);
  }

  [[nodiscard]] EventsRepair repair() noexcept { return {map_, blocks_, readers_}; }

  [[nodiscard]] std::uint64_t chunk_bytes(std::uint64_t items, std::uint64_t longest) const noexcept {
    if (!map_.varies) return items * map_.item_bytes;
    const std::uint64_t typical = items * map_.item_bytes;
    return map_.index_bytes(items) + round_up(typical > longest ? typical : longest, 8);
  }

 private:
  [[nodiscard]] std::uint64_t head() const noexcept { return map_.control->head_chunk.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t made() const noexcept {
    return map_.control->chunks_made.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t start() const noexcept {
    return EventsWord{map_.control->start.load(std::memory_order_relaxed)}.position();
  }

  // Else a walk from head to made might take for ever. Whoever walks also counts its steps: one write by somebody who
  // is none of us may come at any time.
  [[nodiscard]] bool is_directory_sound() const noexcept {
    return made() >= head() && made() - head() < map_.chunk_lines;  // C2
  }

  // How often room can be made while the lock is held: each time a chunk goes, or a reader, or a reader moves on.
  [[nodiscard]] std::uint64_t most_makings() const noexcept {
    return map_.chunk_lines + std::uint64_t{64} * map_.reader_lines + 1024;
  }

  // `write(chunk, at, i, room)` puts items i… into the chunk from its at-th place on, and says how many.
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
    publish(end.at(position));
    return Appended::done;
  }

  void publish(EventsWord word) noexcept {
    QUEUEDUCT_FAILPOINT("put.before_publish");
    // release E1: the items, and the lines of chunks made for them; keeps I1
    map_.control->end.store(word.word, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("put.published");
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

  // The chunk that the next item goes to, if it is open; else one without data. False: corrupt.
  [[nodiscard]] bool load_open_chunk(std::uint64_t position, Chunk& chunk) const noexcept {
    if (!is_directory_sound()) return false;
    if (made() == head()) return true;
    const ChunkLine& line = map_.chunk(made() - 1);
    if (line.end_position.load(std::memory_order_relaxed) != open_end) return true;
    return load_chunk(map_, made() - 1, chunk) && chunk.first <= position && position - chunk.first <= chunk.items;
  }

  // N, N, 2N, 2N, 4N, … If one chunk is left, and the one before was of its size, the right size is found.
  [[nodiscard]] std::uint64_t next_items() const noexcept {
    if (made() < 2) return map_.first_items;
    const std::uint64_t last = map_.chunk(made() - 1).items.load(std::memory_order_relaxed);
    const std::uint64_t before = map_.chunk(made() - 2).items.load(std::memory_order_relaxed);
    const bool is_right = last != before || made() - head() <= 1;
    const std::uint64_t next = is_right ? last : 2 * last;
    return is_possible(next) ? next : is_possible(last) ? last : map_.first_items;
  }
  // An item has at least a byte, so a number beyond largest_chunk() is none that was ever written there.
  [[nodiscard]] bool is_possible(std::uint64_t items) const noexcept {
    return items >= map_.first_items && items <= largest_chunk() && chunk_bytes(items, 0) <= largest_chunk();
  }
  // Coarser chunks would hold back too much of max_bytes.
  [[nodiscard]] std::uint64_t largest_chunk() const noexcept {
    const std::uint64_t share = map_.max_bytes / 8;
    return share < map_.block_bytes ? share : map_.block_bytes;
  }

  [[nodiscard]] Appended make_chunk(const Backing& backing, std::uint64_t position, std::uint64_t longest,
                                    Chunk& chunk) noexcept {
    QUEUEDUCT_FAILPOINT("chunk.before");
    if (!can_ever_fit(longest)) return Appended::too_long;
    reclaim(backing);
    std::uint64_t items = 0;
    std::uint64_t bytes = 0;
    std::uint64_t block = Blocks::none;
    std::uint64_t makings = most_makings();
    while (block == Blocks::none) {
      Appended room = find_room(backing, position, longest, items, makings);
      if (room != Appended::done) return room;
      bytes = chunk_bytes(items, longest);
      error_ = backing.settle_freed(map_);
      if (error_ != 0) return Appended::no_disk;
      if (backing.is_on_disk) blocks_.trim(backing, bytes);
      block = blocks_.take(backing, blocks_.blocks_for(bytes), bytes, error_);
      if (error_ != 0) return Appended::no_memory;
      if (block != Blocks::none) break;
      room = make_room(backing, position, makings);  // no row of blocks is free
      if (room != Appended::done) return room;
    }
    const std::uint64_t number = made();
    ChunkLine& line = map_.chunk(number);
    line.first_position.store(position, std::memory_order_relaxed);
    line.end_position.store(open_end, std::memory_order_relaxed);
    line.items.store(items, std::memory_order_relaxed);
    line.bytes.store(bytes, std::memory_order_relaxed);
    line.block.store(static_cast<std::uint32_t>(block), std::memory_order_relaxed);
    line.blocks.store(static_cast<std::uint32_t>(blocks_.blocks_for(bytes)), std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("chunk.described");
    end_open_chunk(position);
    // release: for find_chunk() of who is not registered; keeps C1
    map_.control->chunks_made.store(number + 1, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("chunk.made");
    map_.control->used_bytes.store(used_bytes() + bytes, std::memory_order_relaxed);
    return load_chunk(map_, number, chunk) ? Appended::done : Appended::corrupt;
  }

  [[nodiscard]] std::uint64_t used_bytes() const noexcept {
    return map_.control->used_bytes.load(std::memory_order_relaxed);
  }

  void end_open_chunk(std::uint64_t position) noexcept {
    if (made() == head()) return;
    std::atomic<std::uint64_t>& end = map_.chunk(made() - 1).end_position;
    // relaxed: readers learn of it by the release E1 of what comes after
    if (end.load(std::memory_order_relaxed) == open_end) end.store(position, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("chunk.ended");
  }

  // Else nobody should be dropped for it.
  [[nodiscard]] bool can_ever_fit(std::uint64_t longest) const noexcept {
    if (longest > block_bytes_limit) return false;
    const std::uint64_t bytes = chunk_bytes(map_.first_items, longest);
    return bytes <= map_.max_bytes && bytes <= block_bytes_limit && blocks_.blocks_for(bytes) <= map_.block_count;
  }

  // How many items the next chunk is for, so that it fits; makes room if the queue's policy allows it.
  // done, full or corrupt.
  [[nodiscard]] Appended find_room(const Backing& backing, std::uint64_t position, std::uint64_t longest,
                                   std::uint64_t& items, std::uint64_t& makings) noexcept {
    for (;;) {
      if (!is_directory_sound()) return Appended::corrupt;
      const std::uint64_t used = used_bytes();
      const std::uint64_t left = used < map_.max_bytes ? map_.max_bytes - used : 0;
      items = next_items();
      while (items > map_.first_items && chunk_bytes(items, longest) > left) items /= 2;
      const bool has_line = made() - head() < map_.chunk_lines - 1;  // keeps C2
      if (has_line && chunk_bytes(items, longest) <= left) return Appended::done;
      const Appended room = make_room(backing, position, makings);
      if (room != Appended::done) return room;
    }
  }

  // full: a reader needs it all, and may keep it.
  [[nodiscard]] Appended make_room(const Backing& backing, std::uint64_t position, std::uint64_t& makings) noexcept {
    if (!is_directory_sound() || makings-- == 0) return Appended::corrupt;
    if (made() == head()) return Appended::corrupt;  // nothing is kept, and an item that can fit does not
    std::uint32_t slowest;
    const std::uint64_t least = readers_.least_place(start(), slowest);
    if (least >= position && (slowest != Readers::none || start() >= position)) {
      end_open_chunk(position);  // all that there is has been read: then even the open chunk can go
      return free_before(backing, position) > 0 ? Appended::done : Appended::full;
    }
    if (!map_.may_drop) return Appended::full;
    if (slowest != Readers::none) {
      drop_slowest(slowest);
      (void)reclaim(backing);
      return Appended::done;
    }
    end_if_last(position);
    free_oldest(backing);
    return Appended::done;
  }

  void end_if_last(std::uint64_t position) noexcept {
    if (made() - head() == 1) end_open_chunk(position);
  }

  void drop_slowest(std::uint32_t line) noexcept {
    // F2: the fence of free_oldest() comes before the memory is used again
    if (readers_.drop(line)) map_.control->dropped.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t free_before(const Backing& backing, std::uint64_t position) noexcept {
    std::uint64_t freed = 0;
    if (!is_directory_sound()) return 0;
    for (std::uint64_t left = made() - head(); left > 0 && left < map_.chunk_lines && head() < made(); --left) {
      const std::uint64_t end = map_.chunk(head()).end_position.load(std::memory_order_relaxed);
      if (end == open_end || end > position) break;
      free_oldest(backing);
      ++freed;
    }
    return freed;
  }

  void free_oldest(const Backing& backing) noexcept {
    const std::uint64_t number = head();
    const ChunkLine& line = map_.chunk(number);
    Chunk chunk;
    const bool is_whole = load_chunk(map_, number, chunk);
    if (is_whole && forget_ != nullptr)
      forget_(forget_context_, reinterpret_cast<void**>(chunk.data),
              line.end_position.load(std::memory_order_relaxed) - chunk.first);
    QUEUEDUCT_FAILPOINT("free.before");
    map_.control->head_chunk.store(number + 1, std::memory_order_release);
    // F1: head_chunk before whatever the block holds next, and before the look at `synced`: a control block on the disk
    // that has a later one has this head as well. What is not synced a crash of the machine cuts away, so who did not ask
    // for syncs gets none for that. A kill before the mark is made good by the repair.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (backing.is_durable || !is_whole || chunk.first < map_.control->synced.load(std::memory_order_relaxed))
      map_.control->freed_unsynced.store(1, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("free.head_moved");
    if (!is_whole) return;
    // From what was checked: the line may say something else by now.
    blocks_.give(backing, static_cast<std::uint64_t>(chunk.data - map_.arena) / map_.block_bytes,
                 blocks_.blocks_for(chunk.bytes), chunk.bytes);
    const std::uint64_t used = used_bytes();
    map_.control->used_bytes.store(used > chunk.bytes ? used - chunk.bytes : 0, std::memory_order_relaxed);
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
