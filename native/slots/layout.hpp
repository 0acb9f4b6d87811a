// Every shared struct and offset of a slots segment. No algorithm.
//
//   0              header, then the slots' own part of it: written once, never changed
//   item_text      what an item is, as text (a numpy dtype)
//   control        both index queues' ends, event words, counters: one writer group a line
//   participants   one line for each thread that has a handle
//   producers      a head line, then one line for each named producer; absent where there are none
//   free_cells     u64 a slot: the index queue of those that can be lent
//   used_cells     u64 a slot: the index queue of those that have an item
//   lines          one line a slot: its owner, the length and the position of its item
//   payload        slot_stride bytes a slot: slot_bytes, rounded up to a line
#pragma once

#include "slots/index_queue.hpp"
#include "segment/layout.hpp"

namespace queueduct {

inline constexpr std::uint64_t slots_limit = std::uint64_t{1} << 20;

struct SlotsShape {
  std::uint64_t slot_stride;
  std::uint64_t free_cells_offset;
  std::uint64_t used_cells_offset;
  std::uint64_t lines_offset;
  std::uint8_t unused[96];
};
static_assert(sizeof(SlotsShape) == 128);

struct SlotsControl {
  IndexEnds free;
  IndexEnds used;
  EventWord items;  // takers sleep here
  EventWord room;   // loaners sleep here
  alignas(line_bytes) std::atomic<std::uint32_t> participants_used;  // lines ever used: scans stop here
  std::atomic<std::uint32_t> closed;         // bit 0: no more puts; bit 1: no more gets
  std::atomic<std::uint64_t> capacity;       // slots that may be out of `free` at a time
  std::atomic<std::uint32_t> may_be_stray;   // hints that save a scan of the lines
  std::atomic<std::uint32_t> may_be_orphaned;
  alignas(line_bytes) std::atomic<std::uint64_t> evicted;  // items pushed out by put(overwrite=True) and set_capacity
  std::atomic<std::uint64_t> recovered;    // slots of the dead that had no item
  std::atomic<std::uint64_t> redelivered;  // items of the dead, and those that were put back
  // counted by threads without a line: a slot may be ended by another thread than its owner
  std::atomic<std::uint64_t> items_put, bytes_put, items_got, bytes_got;
};
static_assert(sizeof(SlotsControl) == 8 * line_bytes);

struct SlotLine {
  alignas(line_bytes) std::atomic<std::uint64_t> word;  // its state and owner: slots/slots.hpp
  std::atomic<std::uint64_t> length;                    // bytes of the item in it
  std::atomic<std::uint64_t> position;                  // of that item: how many were published before it
  std::atomic<std::uint64_t> arrival;                   // the generation of the word with which that item arrived
};
static_assert(sizeof(SlotLine) == line_bytes && offsetof(SlotLine, arrival) == 24);

struct SlotsOffsets {
  std::uint64_t item_text, control, participants, producers, free_cells, used_cells, lines, payload, total, stride;
};

// Arguments within the limits: then no sum or product here overflows.
[[nodiscard]] constexpr SlotsOffsets slots_offsets(std::uint64_t slots, std::uint64_t slot_bytes,
                                                   std::uint32_t participants, std::uint32_t producers,
                                                   std::uint32_t item_text_bytes) noexcept {
  SlotsOffsets at{};
  at.item_text = sizeof(SegmentHeader) + sizeof(SlotsShape);
  at.control = round_up(at.item_text + item_text_bytes, page_bytes);
  at.participants = at.control + sizeof(SlotsControl);
  std::uint64_t end = at.participants + participants * sizeof(ParticipantLine);
  if (producers != 0) {
    at.producers = end;
    end += sizeof(ProducersHead) + producers * sizeof(ProducerLine);
  }
  at.free_cells = round_up(end, page_bytes);
  at.used_cells = round_up(at.free_cells + slots * sizeof(std::uint64_t), line_bytes);
  at.lines = round_up(at.used_cells + slots * sizeof(std::uint64_t), line_bytes);
  at.payload = round_up(at.lines + slots * sizeof(SlotLine), page_bytes);
  at.stride = round_up(slot_bytes, line_bytes);
  at.total = round_up(at.payload + slots * at.stride, page_bytes);
  return at;
}

}  // namespace queueduct
