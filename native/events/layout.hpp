// Every shared struct and offset of an events segment. No algorithm.
//
//   0              header, then the events' own part of it: written once, never changed
//   item_text      what an item is, as text (a numpy dtype)
//   control        positions, the lock, event words: one writer group a line
//   participants   one line for each thread that puts
//   readers        one line for each reader
//   producers      a head line, then one line for each named producer; absent if the queue has none
//   chunks         the directory: one line a chunk, a ring indexed by chunk number
//   blocks         one u32 a block: whether it is in use, and how many of its pages have memory
//   arena          block_count * block_bytes, sparse: only blocks that chunks use have memory
//
// A chunk of records is an array. A chunk of items of varying length has an index of `items` u32 words, each the end of
// its item as an offset from the first item, and then the items back to back.
#pragma once

#include "segment/layout.hpp"

namespace queueduct {

enum class OnFull : std::uint32_t { wait = 1, raise = 2, drop_slowest = 3 };
enum class Sync : std::uint32_t { always = 1, interval = 2, never = 3 };

inline constexpr std::uint32_t readers_limit = 1u << 12;
inline constexpr std::uint64_t blocks_limit = std::uint64_t{1} << 24;
inline constexpr std::uint64_t block_bytes_limit = std::uint64_t{1} << 31;  // the index counts in u32
inline constexpr std::uint64_t first_items_limit = std::uint64_t{1} << 24;

// Follows the SegmentHeader, in which `capacity` is the number of blocks and `slot_bytes` the size of a record, or of a
// typical item if the items vary in length.
struct EventsShape {
  std::uint64_t max_bytes;
  std::uint64_t block_bytes;
  std::uint64_t first_items;
  std::uint64_t chunk_lines;
  std::uint32_t readers;
  std::uint32_t on_full;
  std::uint32_t sync;
  std::uint32_t padding;
  std::uint64_t sync_interval_ns;
  std::uint64_t readers_offset;
  std::uint64_t chunks_offset;
  std::uint64_t blocks_offset;
  std::uint64_t arena_offset;
  std::uint8_t unused[168];
};
static_assert(sizeof(EventsShape) == 256 && std::is_trivially_copyable_v<EventsShape>);

// A position together with what a reader must learn in the same load:
//   | epoch : 11 | shut down : 1 | position : 52 |      the epoch counts clears and wraps
struct EventsWord {
  static constexpr int position_bits = 52;
  static constexpr std::uint64_t position_mask = (std::uint64_t{1} << position_bits) - 1;
  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << position_bits;
  static constexpr std::uint64_t epoch_one = closed_bit << 1;

  std::uint64_t word;
  [[nodiscard]] constexpr std::uint64_t position() const noexcept { return word & position_mask; }
  [[nodiscard]] constexpr bool is_closed() const noexcept { return word & closed_bit; }
  [[nodiscard]] constexpr std::uint64_t epoch() const noexcept { return word & ~(closed_bit | position_mask); }
  [[nodiscard]] constexpr EventsWord at(std::uint64_t position) const noexcept {
    return {(word & ~position_mask) | position};
  }
  [[nodiscard]] constexpr EventsWord in_epoch(std::uint64_t epoch) const noexcept {
    return {(word & (closed_bit | position_mask)) | epoch};
  }
};
static_assert(EventsWord{~std::uint64_t{0}}.at(7).position() == 7);

inline constexpr std::uint64_t cuts_kept = 256;

struct EventsControl {
  // Written by the holder of the lock; a reader loads `end` once a session.
  alignas(line_bytes) std::atomic<std::uint64_t> end;  // EventsWord: where the next item goes
  std::atomic<std::uint64_t> start;        // EventsWord: readers before it jump here; the last clear's epoch
  std::atomic<std::uint64_t> head_chunk;   // number of the oldest kept chunk
  std::atomic<std::uint64_t> chunks_made;  // number of the next chunk
  std::atomic<std::uint64_t> used_bytes;   // of the kept chunks
  std::atomic<std::uint64_t> spare_bytes;  // memory of free blocks
  std::atomic<std::uint64_t> blocks_used;  // blocks ever used: scans end here
  alignas(line_bytes) std::atomic<std::uint64_t> lock;  // see segment/robust_lock.hpp
  EventWord items;                                      // readers sleep here
  EventWord room;                                       // writers sleep here
  alignas(line_bytes) std::atomic<std::uint32_t> participants_used;
  std::atomic<std::uint32_t> readers_used;
  std::atomic<std::uint64_t> repairs;         // locks taken over from dead participants
  std::atomic<std::uint64_t> dropped;         // readers dropped because they were slowest
  std::atomic<std::uint64_t> synced;          // all before it is on the disk; trusted after a crash
  std::atomic<std::uint64_t> freed_unsynced;  // 1: a chunk was freed since the last sync
  // The boot in which the log was last used (0: unknown): see events/boot.hpp.
  std::atomic<std::uint64_t> boot_id[2];
  std::atomic<std::uint64_t> booted_ns;      // when it began, by the real-time clock
  std::atomic<std::uint64_t> uptime_ns;      // how long it had lasted then
  std::atomic<std::uint64_t> confirmed;      // `synced`, as far as that word itself is on the disk
  std::atomic<std::uint64_t> sync_failures;  // since the last successful sync
  // How often the log was cut after a crash of the machine, and where: see events/boot.hpp.
  std::atomic<std::uint64_t> cuts;
  std::atomic<std::uint64_t> lowest_cut;  // plus 1, of the cuts no longer in the table below; 0: none
  alignas(line_bytes) std::atomic<std::uint64_t> cut_positions[cuts_kept];  // cut n is at n % cuts_kept
};
static_assert(sizeof(EventsControl) == 5 * line_bytes + cuts_kept * 8);
static_assert(sizeof(EventsControl) <= page_bytes);  // so that the disk has all of it or none

inline constexpr std::uint64_t open_end = ~std::uint64_t{0};

struct ChunkLine {
  std::atomic<std::uint64_t> first_position;
  std::atomic<std::uint64_t> end_position;  // open_end while the chunk still takes items
  std::atomic<std::uint64_t> items;         // how many it has room for
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint32_t> block;
  std::atomic<std::uint32_t> blocks;
  std::atomic<std::uint64_t> unused[3];
};
static_assert(sizeof(ChunkLine) == 64);

enum class ReaderKind : std::uint32_t { none = 0, ephemeral = 1, durable = 2 };
inline constexpr std::uint64_t dropped_bit = std::uint64_t{1} << 63;
inline constexpr std::uint32_t reader_name_bytes = 96;

struct ReaderLine {
  alignas(line_bytes) std::atomic<std::uint64_t> place;  // the reader needs all from here on; may have dropped_bit
  std::atomic<std::uint32_t> kind;                       // ReaderKind
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> name_length;
  char name[reader_name_bytes];       // of a durable reader
  std::atomic<std::uint32_t> epoch;   // `cuts` when a process last held the line
  std::atomic<std::uint64_t> beyond;  // where the reader was when a cut moved it back, until it is told; 0: no cut did
  alignas(line_bytes) Counters counters;  // of its gets and waits; a line of its own, since every get writes it
};
static_assert(sizeof(ReaderLine) == 2 * line_bytes && offsetof(ReaderLine, beyond) == 120);

// A block's word: | in use : 1 | pages that have memory : 31 |
inline constexpr std::uint32_t block_in_use = 1u << 31;

// The lock bytes of readers follow those of participants.
[[nodiscard]] constexpr std::uint32_t reader_lock_number(std::uint32_t line) noexcept {
  return participants_limit + line;
}
static_assert(reader_lock_number(readers_limit) <= lock_numbers);

// Every handle of a log on a disk holds this lock: shared, or exclusively while it decides whether the machine was
// restarted.
inline constexpr std::uint32_t settling_lock_number = lock_numbers;

struct EventsOffsets {
  std::uint64_t item_text, control, participants, readers, producers, chunks, blocks, arena, total;
};

// If the arguments are within the limits above, nothing here overflows.
[[nodiscard]] constexpr EventsOffsets events_offsets(std::uint64_t block_count, std::uint64_t block_bytes,
                                                     std::uint64_t chunk_lines, std::uint32_t participants,
                                                     std::uint32_t readers, std::uint32_t producers,
                                                     std::uint32_t item_text_bytes) noexcept {
  EventsOffsets at{};
  at.item_text = sizeof(SegmentHeader) + sizeof(EventsShape);
  at.control = round_up(at.item_text + item_text_bytes, page_bytes);
  at.participants = at.control + sizeof(EventsControl);
  at.readers = at.participants + participants * sizeof(ParticipantLine);
  std::uint64_t end = at.readers + readers * sizeof(ReaderLine);
  if (producers != 0) {
    at.producers = end;
    end += sizeof(ProducersHead) + producers * sizeof(ProducerLine);
  }
  at.chunks = round_up(end, page_bytes);
  at.blocks = at.chunks + chunk_lines * sizeof(ChunkLine);
  at.arena = round_up(at.blocks + block_count * sizeof(std::uint32_t), page_bytes);
  at.total = at.arena + block_count * block_bytes;
  return at;
}

}  // namespace queueduct
