// The shared layout of an overwriting segment. No algorithm.
//
//   0                the published part: magic, sizes, the header, the messages. Its bytes are a format of their own,
//                    which a program in any language can use; nothing of ours stands in it but owners' names in locks
//   own              first page after the last message: the segment header that every kind has
//   item_text        what an item is, as text
//   control          counters, journal and event words
//   participants     one line for each thread that has a handle
//   readings         one word for each of them: is it in a get, and what became of its gets
//   shelf            where leased messages are kept, out of the ring: a word and a position for each place, then the
//                    data, whose pages get memory when somebody leases for the first time
//
// The offsets follow from the sizes: an opener computes them again and compares each.
// A change to anything behind the messages needs a new layout_version; the published part can never change.
#pragma once

#include "segment/layout.hpp"

namespace queueduct {

inline constexpr char published_magic[8] = {'W', 'o', 'r', 'k', ' ', 'i', 's', ' '};
inline constexpr std::uint64_t messages_limit = 0xffff'ffff;
inline constexpr std::uint64_t message_words_limit = 0xffff'ffff;

struct PublishedHeader {
  char magic[8];
  std::uint32_t queue_max_len;  // messages
  std::uint32_t msg_size;       // of a message's data, in 64-bit words
  std::atomic<std::uint64_t> header_lock;
  std::atomic<std::uint64_t> places;  // START_IDX in the low half, QUEUE_LEN in the high half: one store changes both
};
static_assert(sizeof(PublishedHeader) == 32 && offsetof(PublishedHeader, header_lock) == 16 &&
              offsetof(PublishedHeader, places) == 24);

// Where the queue begins, and how long it is.
struct RingState {
  std::uint32_t start;
  std::uint32_t length;

  [[nodiscard]] constexpr std::uint64_t packed() const noexcept { return std::uint64_t{length} << 32 | start; }
  [[nodiscard]] static constexpr RingState unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
};
static_assert(RingState{3, 5}.packed() == 0x5'0000'0003);

// A message: its lock, then its data, as msg_size words.
[[nodiscard]] constexpr std::uint64_t message_stride(std::uint64_t words) noexcept { return 8 + 8 * words; }

// What has become of all messages, foreign ones aside. `taken` are those that a get or a lease has locked.
struct OverwritingCounts {
  std::uint64_t puts, taken, dropped, torn;
};

struct OverwritingCounters {
  std::atomic<std::uint64_t> puts, taken, dropped, torn;
};

// What only leases change. `lost` are messages that went with a holder, `next_position` lies behind every position that
// was ever leased.
struct LeaseCounts {
  std::uint64_t lost, next_position;
};

struct LeaseCounters {
  std::atomic<std::uint64_t> lost, next_position;
};

// One change of the queue, written down before it is made: who finds `is_committed` makes it, again if need be.
struct OverwritingJournal {
  std::atomic<std::uint64_t> is_committed;
  std::atomic<std::uint64_t> places;        // as they will be
  std::atomic<std::uint64_t> index;         // the message; the capacity: none
  std::atomic<std::uint64_t> message_lock;  // as it will be
  std::atomic<std::uint64_t> noted_at;      // a getter's line + 1; for a lease all lines + a place + 1; 0: nowhere
  std::atomic<std::uint64_t> note;          // that line's reading, or that place's word, as it will be
  OverwritingCounters counters;             // as they will be
  LeaseCounters leases;                     // the same, where a place is noted
};

struct OverwritingControl {
  EventWord items;   // getters sleep here
  EventWord room;    // putters that overwrite nothing
  EventWord copied;  // putters that have come round to a message which is just being written
  alignas(line_bytes) std::atomic<std::uint32_t> participants_used;  // lines ever used: scans stop here
  std::atomic<std::uint32_t> closed;                                 // bit 0: to puts, bit 1: to gets
  alignas(line_bytes) OverwritingJournal journal;                    // under the header's lock
  alignas(line_bytes) OverwritingCounters counters;                  // under the header's lock
  LeaseCounters leases;                                              // the same
  EventWord shelved;                                                 // leases that found no place on the shelf
  alignas(line_bytes) std::atomic<std::uint64_t> shelf_used;         // places ever used: scans stop here
  std::atomic<std::uint64_t> redelivered;                            // messages that came from the shelf again
};
static_assert(sizeof(OverwritingJournal) == 96 && sizeof(OverwritingControl) == 8 * line_bytes);
static_assert(offsetof(OverwritingControl, closed) == 3 * line_bytes + 4 &&
              offsetof(OverwritingControl, journal) == 4 * line_bytes &&
              offsetof(OverwritingControl, shelved) == 6 * line_bytes &&
              offsetof(OverwritingControl, shelf_used) == 7 * line_bytes);

inline constexpr std::uint32_t closed_to_puts = 1;
inline constexpr std::uint32_t closed_to_gets = 2;

// | lost with a reader that died : 20 | overwritten while they were read : 43 | is in a get : 1 |
struct ReadingLine {
  alignas(line_bytes) std::atomic<std::uint64_t> word;
};
static_assert(sizeof(ReadingLine) == line_bytes);

// RingState on the shelf: how many messages can be on lease at a time.
inline constexpr std::uint64_t shelf_least = 4;
inline constexpr std::uint64_t shelf_most = 65'536;
inline constexpr std::uint64_t shelf_data_bytes = 4 << 20;  // unless that is less than shelf_least messages

[[nodiscard]] constexpr std::uint64_t shelf_places(std::uint64_t messages, std::uint64_t words) noexcept {
  const std::uint64_t most = messages < shelf_most ? messages : shelf_most;
  const std::uint64_t fitting = shelf_data_bytes / (8 * words);
  const std::uint64_t places = most < fitting ? most : fitting;
  return places < shelf_least ? shelf_least : places;
}

struct OverwritingOffsets {
  std::uint64_t own, item_text, control, participants, readings, shelf_words, shelf_positions, shelf_data, total;
};

// Arguments within the limits: then no sum or product here overflows.
[[nodiscard]] constexpr OverwritingOffsets overwriting_offsets(std::uint64_t messages, std::uint64_t words,
                                                               std::uint32_t participants,
                                                               std::uint32_t item_text_bytes) noexcept {
  OverwritingOffsets at{};
  at.own = round_up(sizeof(PublishedHeader) + messages * message_stride(words), page_bytes);
  at.item_text = at.own + sizeof(SegmentHeader);
  at.control = round_up(at.item_text + item_text_bytes, page_bytes);
  at.participants = at.control + sizeof(OverwritingControl);
  at.readings = at.participants + participants * sizeof(ParticipantLine);
  at.shelf_words = at.readings + participants * sizeof(ReadingLine);
  at.shelf_positions = at.shelf_words + 8 * shelf_places(messages, words);
  at.shelf_data = round_up(at.shelf_positions + 8 * shelf_places(messages, words), page_bytes);
  at.total = round_up(at.shelf_data + shelf_places(messages, words) * 8 * words, page_bytes);
  return at;
}

}  // namespace queueduct
