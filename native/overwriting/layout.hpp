// The shared layout of an overwriting segment. No algorithm.
//
//   0                the published part: magic, sizes, the header, the messages. A program in any language can use
//                    this format (docs/memory-layout.md); we add nothing to it but the owners' names in locks
//   own              first page after the last message: the segment header that every kind has
//   item_text        what an item is, as text
//   control          counters, journal and event words
//   participants     one line for each thread that has a handle
//   readings         one word for each of them: is it in a get, and what became of its gets
//   leased           cells for messages on lease, outside the ring: a word and a position for each cell, then the
//                    data, whose pages get memory with the first lease
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
  std::atomic<std::uint64_t> ring_state;  // START_IDX in the low half, QUEUE_LEN in the high half: changed by one store
};
static_assert(sizeof(PublishedHeader) == 32 && offsetof(PublishedHeader, header_lock) == 16 &&
              offsetof(PublishedHeader, ring_state) == 24);

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

// What became of all messages, except those of foreign programs. `taken` counts messages locked by a get or a lease.
template <class Word>
struct OverwritingCountsOf {
  Word puts, taken, dropped, torn;
};
using OverwritingCounts = OverwritingCountsOf<std::uint64_t>;
using OverwritingCounters = OverwritingCountsOf<std::atomic<std::uint64_t>>;

// What only leases change. `lost` counts messages that died with a holder, `next_position` is above every position
// leased so far.
template <class Word>
struct LeaseCountsOf {
  Word lost, next_position;
};
using LeaseCounts = LeaseCountsOf<std::uint64_t>;
using LeaseCounters = LeaseCountsOf<std::atomic<std::uint64_t>>;

// One change of the queue. Each field has the value after the change.
template <class Word>
struct OverwritingChangeOf {
  Word ring_state;
  Word index;  // the message; the capacity: none
  Word message_lock;
  Word noted_at;  // a getter's line + 1; for a lease all lines + a cell + 1; 0: nowhere
  Word note;      // that line's reading, or that cell's word
  OverwritingCountsOf<Word> counters;
  LeaseCountsOf<Word> leases = {};  // only where a cell is noted
};
using OverwritingChange = OverwritingChangeOf<std::uint64_t>;

struct OverwritingJournal {
  std::atomic<std::uint64_t> is_committed;  // 1: the next owner of the header's lock makes the change, again if need be
  OverwritingChangeOf<std::atomic<std::uint64_t>> change;
};

struct OverwritingControl {
  EventWord items;   // consumers sleep here
  EventWord room;    // producers that do not overwrite
  EventWord copied;  // producers that came round to a message which another producer is still writing
  alignas(line_bytes) std::atomic<std::uint32_t> participants_used;  // lines ever used: scans stop here
  std::atomic<std::uint32_t> closed;                                 // bit 0: to puts, bit 1: to gets
  alignas(line_bytes) OverwritingJournal journal;                    // under the header's lock
  alignas(line_bytes) OverwritingCounters counters;                  // under the header's lock
  LeaseCounters leases;                                              // the same
  EventWord cell_freed;                                              // leases that found no free cell
  alignas(line_bytes) std::atomic<std::uint64_t> cells_used;  // cells ever used: scans stop here
  std::atomic<std::uint64_t> redelivered;                            // leased messages that were delivered again
};
static_assert(sizeof(OverwritingJournal) == 96 && sizeof(OverwritingControl) == 8 * line_bytes);
static_assert(offsetof(OverwritingControl, closed) == 3 * line_bytes + 4 &&
              offsetof(OverwritingControl, journal) == 4 * line_bytes &&
              offsetof(OverwritingControl, cell_freed) == 6 * line_bytes &&
              offsetof(OverwritingControl, cells_used) == 7 * line_bytes);

inline constexpr std::uint32_t closed_to_puts = 1;
inline constexpr std::uint32_t closed_to_gets = 2;

// | lost with a reader that died : 20 | overwritten while they were read : 43 | is in a get : 1 |
struct ReadingLine {
  alignas(line_bytes) std::atomic<std::uint64_t> word;
};
static_assert(sizeof(ReadingLine) == line_bytes);

// Cells: how many messages can be on lease at a time.
inline constexpr std::uint64_t leased_cells_least = 4;
inline constexpr std::uint64_t leased_cells_most = 65'536;
inline constexpr std::uint64_t leased_data_bytes = 4 << 20;  // unless fewer than leased_cells_least messages fit

[[nodiscard]] constexpr std::uint64_t leased_cells(std::uint64_t messages, std::uint64_t words) noexcept {
  const std::uint64_t most = messages < leased_cells_most ? messages : leased_cells_most;
  const std::uint64_t fitting = leased_data_bytes / (8 * words);
  const std::uint64_t cells = most < fitting ? most : fitting;
  return cells < leased_cells_least ? leased_cells_least : cells;
}

struct OverwritingOffsets {
  std::uint64_t own, item_text, control, participants, readings, leased_words, leased_positions, leased_data, total;
};

// No sum or product overflows if the arguments are within the limits.
[[nodiscard]] constexpr OverwritingOffsets overwriting_offsets(std::uint64_t messages, std::uint64_t words,
                                                               std::uint32_t participants,
                                                               std::uint32_t item_text_bytes) noexcept {
  OverwritingOffsets at{};
  at.own = round_up(sizeof(PublishedHeader) + messages * message_stride(words), page_bytes);
  at.item_text = at.own + sizeof(SegmentHeader);
  at.control = round_up(at.item_text + item_text_bytes, page_bytes);
  at.participants = at.control + sizeof(OverwritingControl);
  at.readings = at.participants + participants * sizeof(ParticipantLine);
  at.leased_words = at.readings + participants * sizeof(ReadingLine);
  at.leased_positions = at.leased_words + 8 * leased_cells(messages, words);
  at.leased_data = round_up(at.leased_positions + 8 * leased_cells(messages, words), page_bytes);
  at.total = round_up(at.leased_data + leased_cells(messages, words) * 8 * words, page_bytes);
  return at;
}

}  // namespace queueduct
