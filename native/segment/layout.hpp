// The shared structs that all kinds have, and the layout of a bounded segment. No algorithm.
//
// A bounded segment:
//
//   0                header, written once, then never changed
//   item_text        what an item is, as text (a numpy dtype)
//   control          positions and event words, one writer group a line
//   participants     one line for each thread that has a handle
//   producers        a head line, then one line for each named producer; absent where there are none
//   generations      u64 a slot
//   lengths          u32 a slot, only where items vary in length (bytes, object)
//   payload          slot_bytes a slot, contiguous: a batch is one or two memcpys
//
// The offsets follow from the sizes: an opener computes them again and compares each.
// A change to anything here needs a new layout_version.
#pragma once

#include <cstdint>

#include "core/platform.hpp"

namespace queueduct {

inline constexpr char magic[8] = {'Q', 'U', 'E', 'U', 'D', 'U', 'C', 'T'};
inline constexpr std::uint32_t layout_version = 7;
inline constexpr std::uint32_t byte_order_mark = 0x01020304;

enum class Kind : std::uint32_t { bounded = 1, growing = 2, overwriting = 3, slots = 4, events = 5 };
enum class ItemKind : std::uint32_t { bytes = 1, record = 2, object = 3 };

inline constexpr std::uint64_t capacity_limit = std::uint64_t{1} << 32;
inline constexpr std::uint64_t slot_bytes_limit = std::uint64_t{1} << 32;
inline constexpr std::uint64_t segment_bytes_limit = std::uint64_t{1} << 46;  // what an address space holds
inline constexpr std::uint32_t participants_limit = 1u << 14;
inline constexpr std::uint32_t producers_limit = 1u << 12;
inline constexpr std::uint32_t item_text_limit = 1u << 20;

struct SegmentHeader {
  char magic[8];
  std::uint32_t layout_version;
  std::uint32_t byte_order;
  std::uint32_t kind;
  std::uint32_t item_kind;
  std::uint64_t total_bytes;
  std::uint64_t capacity;  // slots
  std::uint64_t slot_bytes;
  std::uint32_t participants;
  std::uint32_t item_text_bytes;
  std::uint64_t item_text_offset;
  std::uint64_t control_offset;
  std::uint64_t participants_offset;
  std::uint64_t generations_offset;
  std::uint64_t lengths_offset;  // 0: fixed items, no lengths
  std::uint64_t payload_offset;
  std::uint8_t segment_id[16];  // random: differs from a later queue's of the same name
  std::uint8_t boot_id[16];     // of the creator
  std::uint64_t created_ns;     // CLOCK_REALTIME
  std::uint32_t creator_pid;
  std::uint32_t checksum;          // crc32 of header and item text, with this field as 0
  std::uint64_t producers_offset;  // 0: no producers
  std::uint32_t producers;
  std::uint8_t reserved[92];
};
static_assert(sizeof(SegmentHeader) == 256 && std::is_trivially_copyable_v<SegmentHeader>);

// Highest bit of a position word: closed. Set once by shutdown(), it makes every later claim fail.
inline constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;

// One word on which sleepers of one side wait: segment/event.hpp.
struct EventWord {
  alignas(line_bytes) std::atomic<std::uint32_t> word;
};

struct BoundedControl {
  alignas(line_bytes) std::atomic<std::uint64_t> push_position;      // producers write
  alignas(line_bytes) std::atomic<std::uint64_t> pop_position;       // consumers write
  EventWord items;                                                   // consumers sleep here
  EventWord room;                                                    // producers sleep here
  alignas(line_bytes) std::atomic<std::uint32_t> participants_used;  // lines ever used: scans stop here
  std::atomic<std::uint32_t> has_long_items;  // 1 once an item took several slots: qsize must then walk
  std::atomic<std::uint64_t> tombstones;      // slots whose producer died before it published
  std::atomic<std::uint64_t> redelivered;     // items whose consumer died before it released them
};
static_assert(sizeof(BoundedControl) == 5 * line_bytes);
static_assert(offsetof(BoundedControl, pop_position) == line_bytes);

// What the owner of a line has counted, and its earlier owners: see segment/counters.hpp.
struct Counters {
  std::atomic<std::uint64_t> items_put;
  std::atomic<std::uint64_t> bytes_put;  // of an overwriting queue 0: all its messages have one size
  std::atomic<std::uint64_t> items_got;
  std::atomic<std::uint64_t> bytes_got;  // as bytes_put
  std::atomic<std::uint64_t> waits_for_room;
  std::atomic<std::uint64_t> waits_for_items;
  std::atomic<std::uint64_t> waited_ns;
  std::atomic<std::uint64_t> last_use_ns;  // CLOCK_REALTIME: when the owner joined, or last woke from a wait
};
static_assert(sizeof(Counters) == 64);

// A participant is a thread with a handle. Pid, thread and boot_id are for people; the kernel knows whether it lives,
// by an OFD lock on byte `lock_byte(line)` of the segment file.
struct ParticipantLine {
  alignas(line_bytes) std::atomic<std::uint64_t> intent;  // see ring/ledger.hpp; 0: claims nothing
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> thread;
  std::atomic<std::uint64_t> start_ticks;  // of the process, /proc/<pid>/stat field 22: a reused pid has another
  std::atomic<std::uint64_t> boot_id[2];
  std::atomic<std::uint64_t> inherited;  // what dead owners of this line had taken, as an intent, perhaps a wide one
  std::atomic<std::uint32_t> tenure;     // owners so far
  // of a growing queue: the levels it reads, see growing/read_guard.hpp; 0: none. Of an overwriting one: calls, see
  // overwriting/lock.hpp
  std::atomic<std::uint64_t> guarded;
  Counters counters;
};
static_assert(sizeof(ParticipantLine) == line_bytes && offsetof(ParticipantLine, counters) == 64);

// Locks that a segment's processes can hold: one a participant, then one a reader (events/layout.hpp).
inline constexpr std::uint32_t lock_numbers = participants_limit + (1u << 12);

// What one named producer has put: see segment/producers.hpp.
inline constexpr std::size_t producer_name_bytes = 64;
struct ProducerLine {
  alignas(line_bytes) std::atomic<std::uint64_t> owner;  // see segment/owner.hpp
  std::atomic<std::uint64_t> progress;                   // used, phase, which of the two sequences, total and done
  std::atomic<std::uint64_t> sequence[2];                // the current one, and the one before or after it
  std::atomic<std::uint64_t> position;                   // of the current claim, or of the last one
  std::atomic<std::uint64_t> extent;                     // of that claim: | slots : 32 | items : 32 |
  std::atomic<std::uint64_t> kept;  // what recovery left of it: ring/put_once.hpp, slots/put_once.hpp
  std::uint64_t spare;              // 0
  std::atomic<std::uint64_t> name[producer_name_bytes / 8];  // UTF-8, filled up with zeros
};
static_assert(sizeof(ProducerLine) == line_bytes && offsetof(ProducerLine, name) == 64);

struct ProducersHead {
  alignas(line_bytes) std::atomic<std::uint64_t> registrar;  // an owner word: makes a new producer
};
static_assert(sizeof(ProducersHead) == line_bytes);

// Lock bytes lie far beyond the data, where no other lock of the file could be meant.
[[nodiscard]] constexpr std::int64_t lock_byte(std::uint32_t line) noexcept { return (std::int64_t{1} << 48) + line; }

struct BoundedOffsets {
  std::uint64_t item_text, control, participants, producers, generations, lengths, payload, total;
};

// No sum or product overflows if the arguments are within the limits above.
[[nodiscard]] constexpr BoundedOffsets bounded_offsets(std::uint64_t capacity, std::uint64_t slot_bytes,
                                                       std::uint32_t participants, std::uint32_t producers,
                                                       std::uint32_t item_text_bytes, bool varying) noexcept {
  BoundedOffsets at{};
  at.item_text = sizeof(SegmentHeader);
  at.control = round_up(at.item_text + item_text_bytes, page_bytes);
  at.participants = at.control + sizeof(BoundedControl);
  std::uint64_t end = at.participants + participants * sizeof(ParticipantLine);
  if (producers != 0) {
    at.producers = end;
    end += sizeof(ProducersHead) + producers * sizeof(ProducerLine);
  }
  at.generations = round_up(end, page_bytes);
  end = at.generations + capacity * sizeof(std::uint64_t);
  if (varying) {
    at.lengths = round_up(end, line_bytes);
    end = at.lengths + capacity * sizeof(std::uint32_t);
  }
  at.payload = round_up(end, page_bytes);
  at.total = round_up(at.payload + capacity * slot_bytes, page_bytes);
  return at;
}

}  // namespace queueduct
