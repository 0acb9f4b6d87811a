// Upkeep of a growing queue: which levels have memory, and what is given back.
//
// Shape      a level's memory:   none ── plan ──► reserved ── prepare, in extents ──► whole
//                                 ▲ ▲                │ (used, closed, drained)            │
//                                 │ └── withdraw ◄───┘ never used                         │
//                                 └────────── reset: given back in steps, zeroed ◄────────┘
//            Level 0 keeps its memory, and is zeroed by hand.
// Roles      whoever puts near the end of what is prepared, or has drained a level; one at a time, under a lock whose
//            dead owner's work is finished by the next (owner_lock.hpp).
// Invariants M1  what is reserved never exceeds max_bytes: it is summed and added to under the lock, before memory is
//                asked for, and a level's share goes only after its memory is given back.
//            M2  a slot is claimed only when it has memory: `prepared` rises after the kernel has given it.
//            M3  a level is reset only when it is out of the stage and every slot of its last lap was released: then
//                nobody reads or writes an item there, and nobody will (claims of a closed, drained ring fail). The stage is
//                looked at again after the level: one that is dirty and out of it is not opened before it is reset (G5).
//            M4  each step can be done again: asking for memory that is there, giving back what is gone, storing the
//                same words. What was begun is written down first (preparing, reset_slots).
//            M5  recoveries hold the lock too: a slot that was judged in one opening is not changed in the next.
//            M6  memory is given back only when nobody looks at it any more (V2 in growing_looks.hpp).
//            M7  a level is withdrawn only when it is neither in the stage nor the next: nobody looks at its plan who
//                has not seen the stage come to the level before it. It is marked first, and then the stage is seen
//                unchanged by a swap: who comes there later sees the mark, and asks under the lock.
// Progress   blocking among those who give and take memory; an owner that is stopped stops growth, not the queue.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "growing.hpp"
#include "growing_looks.hpp"
#include "owner_lock.hpp"

namespace penstock {

class Upkeep {
 public:
  static constexpr std::uint64_t extent_bytes = 256 << 10;
  static constexpr std::uint64_t step_bytes = 4 << 20;
  static constexpr std::uint64_t withdrawing = ~std::uint64_t{0} >> 8;  // instead of slots, in `preparing`
  static constexpr std::uint64_t generation_lead = 64;  // generations beyond the prepared slots that looks may touch

  Upkeep(const Levels& levels, Looks looks, std::byte* base, std::uint64_t fixed_bytes, std::uint64_t max_bytes) noexcept
      : levels_(levels), looks_(looks), base_(base), fixed_bytes_(fixed_bytes), max_bytes_(max_bytes) {}

  // All below: under the lock. `fd` is the segment's file, or nothing within a process.

  enum class Given : std::uint8_t { yes, over_budget, refused, not_clean };

  // Reserve the memory of a level that will be opened, of at least `least` slots, and get the first of it.
  [[nodiscard]] Given plan(int fd, std::uint32_t i, std::uint64_t least, int& error) noexcept {
    if (!levels_.is_clean(i)) return Given::not_clean;
    if (levels_.is_ready(i)) return Given::yes;
    LevelControl& level = *levels_[i].control;
    if (levels_.plan(i).word == 0) {
      std::uint64_t capacity = levels_[i].capacity;
      const std::uint64_t reserved = reserved_bytes();
      while (max_bytes_ != 0 && capacity >= least && reserved + bytes_of(capacity) > max_bytes_) capacity /= 2;  // M1
      if (capacity < least || capacity < 2) return Given::over_budget;
      PENSTOCK_FAILPOINT("memory.before_plan");
      level.planned.store(static_cast<std::uint64_t>(std::countr_zero(capacity)), std::memory_order_release);
      PENSTOCK_FAILPOINT("memory.planned");
    }
    const Given given = prepare(fd, i, planned_capacity(i), 1, error);
    if (given != Given::yes) level.planned.store(0, std::memory_order_release);
    return given;
  }

  // One extent more for a level that is open, or what `least` slots need.
  [[nodiscard]] Given prepare_open(int fd, std::uint32_t i, std::uint64_t least, int& error) noexcept {
    const Opening opening{levels_[i].control->opening.load(std::memory_order_acquire)};
    return prepare(fd, i, Levels::capacity_of(levels_[i], opening.log2()), least, error);
  }

  // After a dead owner: was memory asked for that is not accounted for?
  void redo(int fd) noexcept {
    const std::uint64_t word = levels_.control().preparing.load(std::memory_order_acquire);
    if (word == 0) [[likely]] return;
    const std::uint64_t i = (word >> 56) - 1;
    const std::uint64_t slots = word & withdrawing;
    if (i < levels_.steps() && slots == withdrawing) {
      std::atomic<std::uint64_t>& planned = levels_[static_cast<std::uint32_t>(i)].control->planned;
      planned.store(Plan{planned.load(std::memory_order_relaxed)}.log2(), std::memory_order_release);
    } else if (i < levels_.steps() && slots <= levels_[static_cast<std::uint32_t>(i)].capacity) {
      const auto level = static_cast<std::uint32_t>(i);
      const std::uint64_t before = levels_[level].control->prepared.load(std::memory_order_relaxed);
      // what is not accounted for is given back: the next who needs it asks for it
      if (slots > before) untake(fd, level, before, slots);
    }
    levels_.control().preparing.store(0, std::memory_order_release);
  }

  enum class Step : std::uint8_t { nothing, some, held };

  // A step of giving back what is drained. held: in all that is left somebody is still reading or looking, or died there.
  [[nodiscard]] Step reset_some(int fd) noexcept {
    const Stage now = levels_.unchecked_stage();
    PENSTOCK_FAILPOINT("memory.read_stage");
    Step step = Step::nothing;
    for (std::uint32_t i = 0; i < levels_.steps(); ++i) {
      if (is_idle(i, now) && withdraw(fd, i, now)) return Step::some;
      if (!is_dirty(i, now)) continue;
      if (reset(fd, i, now)) return Step::some;
      step = Step::held;
    }
    return step;
  }

  [[nodiscard]] bool has_dirt() const noexcept {
    const Stage now = levels_.unchecked_stage();
    for (std::uint32_t i = 0; i < levels_.steps(); ++i)
      if (is_dirty(i, now) || is_idle(i, now)) return true;
    return false;
  }

  // Everything that is promised to a level, and what every segment has.
  [[nodiscard]] std::uint64_t reserved_bytes() const noexcept {
    std::uint64_t sum = fixed_bytes_ + bytes_of(levels_[0].capacity);
    for (std::uint32_t i = 1; i < levels_.steps(); ++i)
      if (levels_.plan(i).word != 0) sum += bytes_of(planned_capacity(i));
    return sum;
  }

  // Of so many slots from the first on, in whole pages.
  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t slots) const noexcept {
    if (slots == 0) return 0;
    const bool varying = levels_[0].lengths != nullptr;
    return round_up(slots * sizeof(std::uint64_t), page_bytes) +
           (varying ? round_up(slots * sizeof(std::uint32_t), page_bytes) : 0) +
           round_up(slots * levels_.slot_bytes(), page_bytes);
  }

  // The most slots that an item can have: in an empty queue a ring of as many can be opened. No level is skipped on the
  // way there, so the one before is open when it is planned; the first may be so with fewer slots than it could have.
  [[nodiscard]] std::uint64_t largest_capacity() const noexcept {
    std::uint64_t capacity = levels_[levels_.last()].capacity;
    if (max_bytes_ == 0) return capacity;
    const std::uint64_t others = fixed_bytes_ + bytes_of(levels_[0].capacity);
    for (; capacity > levels_[0].capacity; capacity /= 2) {
      std::uint32_t i = 1;
      while (levels_[i].capacity < capacity) ++i;
      const std::uint64_t before = i > 1 ? levels_[i - 1].capacity : capacity / 2;
      if (others + bytes_of(before) + bytes_of(capacity) <= max_bytes_) break;
    }
    return capacity > levels_[0].capacity ? capacity : levels_[0].capacity;
  }

 private:
  // Out of the stage, if there is one that can be believed, and not reset.
  [[nodiscard]] bool is_dirty(std::uint32_t i, Stage now) const noexcept {
    return levels_.is_sound(now) && (i < now.read_level() || i > now.written_level()) && !levels_.is_clean(i);
  }

  // Planned, and not used; see M7.
  [[nodiscard]] bool is_idle(std::uint32_t i, Stage now) const noexcept {
    if (levels_.is_private() || i == 0 || levels_.plan(i).word == 0 || !levels_.is_sound(now)) return false;
    return (i < now.read_level() || i > now.written_level() + 1) && levels_.is_clean(i);
  }

  // False: the stage has moved, so somebody may have come to need it. keeps M4, M7
  [[nodiscard]] bool withdraw(int fd, std::uint32_t i, Stage now) noexcept {
    LevelControl& level = *levels_[i].control;
    const Plan plan = levels_.plan(i);
    PENSTOCK_FAILPOINT("memory.before_withdraw");
    levels_.control().preparing.store((std::uint64_t{i} + 1) << 56 | withdrawing, std::memory_order_release);
    PENSTOCK_FAILPOINT("memory.withdrawal_noted");
    level.planned.store(plan.log2() | Plan::withdrawn_bit, std::memory_order_release);
    PENSTOCK_FAILPOINT("memory.withdrawal_marked");
    const bool is_unneeded = levels_.is_still_for_all(now);
    if (is_unneeded) {
      level.prepared.store(0, std::memory_order_relaxed);  // before its memory goes: keeps M2 if we die here
      PENSTOCK_FAILPOINT("memory.unprepared");
      give_back(fd, i, 0, levels_[i].capacity);
      PENSTOCK_FAILPOINT("memory.withdrawn");
    }
    level.planned.store(is_unneeded ? 0 : plan.log2(), std::memory_order_release);
    PENSTOCK_FAILPOINT("memory.withdrawal_over");
    levels_.control().preparing.store(0, std::memory_order_release);
    if (is_unneeded) levels_.control().resets.fetch_add(1, std::memory_order_relaxed);
    return is_unneeded;
  }

  [[nodiscard]] std::uint64_t planned_capacity(std::uint32_t i) const noexcept {
    return Levels::capacity_of(levels_[i], levels_.plan(i).log2());
  }

  [[nodiscard]] Given prepare(int fd, std::uint32_t i, std::uint64_t capacity, std::uint64_t least, int& error) noexcept {
    LevelControl& level = *levels_[i].control;
    const std::uint64_t before = level.prepared.load(std::memory_order_relaxed);
    if (levels_.is_private() || before >= capacity) return Given::yes;
    const std::uint64_t each = levels_.slot_bytes() + sizeof(std::uint64_t) + sizeof(std::uint32_t);
    const std::uint64_t extent = extent_bytes / each + 1;
    std::uint64_t after = before + (least > extent ? least : extent);
    if (after > capacity) after = capacity;
    PENSTOCK_FAILPOINT("memory.before_note");
    levels_.control().preparing.store((std::uint64_t{i} + 1) << 56 | after, std::memory_order_release);  // M4
    PENSTOCK_FAILPOINT("memory.noted");
    error = take(fd, i, before, after, capacity);
    PENSTOCK_FAILPOINT("memory.taken");
    if (error == 0)
      level.prepared.store(after, std::memory_order_release);  // M2
    else
      untake(fd, i, before, after);
    PENSTOCK_FAILPOINT("memory.prepared");
    levels_.control().preparing.store(0, std::memory_order_release);
    PENSTOCK_FAILPOINT("memory.forgotten");
    return error == 0 ? Given::yes : Given::refused;
  }

  struct Bytes {
    std::uint64_t begin, end;
  };
  // Where an array of a level has the slots from `first` to `last`.
  [[nodiscard]] static Bytes span_of(std::uint64_t offset, std::uint64_t each, std::uint64_t first,
                                     std::uint64_t last) noexcept {
    return {offset + first * each, offset + last * each};
  }

  [[nodiscard]] static int take(int fd, Bytes bytes) noexcept {
    if (bytes.begin >= bytes.end) return 0;
    const std::uint64_t begin = bytes.begin / page_bytes * page_bytes;
    const std::uint64_t end = round_up(bytes.end, page_bytes);
    while (fallocate(fd, 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0)
      if (errno != EINTR) return errno;
    return 0;
  }

  [[nodiscard]] int take(int fd, std::uint32_t i, std::uint64_t first, std::uint64_t last, std::uint64_t capacity) noexcept {
    const RegionOffsets& at = levels_[i].at;
    const std::uint64_t led = last + generation_lead < capacity ? last + generation_lead : capacity;
    int error = take(fd, span_of(at.generations, sizeof(std::uint64_t), first, led));
    if (error == 0 && levels_[i].lengths != nullptr)
      error = take(fd, span_of(at.lengths, sizeof(std::uint32_t), first, last));
    if (error == 0) error = take(fd, span_of(at.payload, levels_.slot_bytes(), first, last));
    return error;
  }

  // Pages that lie wholly within.
  void punch(int fd, Bytes bytes) noexcept {
    const std::uint64_t begin = round_up(bytes.begin, page_bytes);
    const std::uint64_t end = bytes.end / page_bytes * page_bytes;
    if (begin >= end) return;
    if (levels_.is_private()) {
      madvise(base_ + begin, end - begin, MADV_DONTNEED);
      return;
    }
    while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                     static_cast<off_t>(end - begin)) != 0)
      if (errno != EINTR) return;
  }

  void give_back(int fd, std::uint32_t i, std::uint64_t first, std::uint64_t last) noexcept {
    const RegionOffsets& at = levels_[i].at;
    const std::uint64_t slots = levels_[i].capacity;
    // up to the end of the last page, where nothing else is
    const auto punched = [&](std::uint64_t offset, std::uint64_t each, std::uint64_t end) {
      Bytes bytes = span_of(offset, each, first, last);
      if (last == slots) bytes.end = end;
      punch(fd, bytes);
    };
    punched(at.payload, levels_.slot_bytes(), at.end);
    if (levels_[i].lengths != nullptr) punched(at.lengths, sizeof(std::uint32_t), at.payload);
    punched(at.generations, sizeof(std::uint64_t), levels_[i].lengths != nullptr ? at.lengths : at.payload);
  }

  // What take() may have got beyond the prepared slots: the pages from there to the end of its last ones.
  void untake(int fd, std::uint32_t i, std::uint64_t before, std::uint64_t after) noexcept {
    const RegionOffsets& at = levels_[i].at;
    const auto punched = [&](std::uint64_t offset, std::uint64_t each, std::uint64_t lead, std::uint64_t array_end) {
      const std::uint64_t first = before == 0 ? 0 : before + lead;
      Bytes bytes = span_of(offset, each, first, after + lead);
      bytes.end = round_up(bytes.end, page_bytes);
      if (bytes.end > array_end) bytes.end = array_end;
      punch(fd, bytes);
    };
    punched(at.payload, levels_.slot_bytes(), 0, at.end);
    if (levels_[i].lengths != nullptr) punched(at.lengths, sizeof(std::uint32_t), 0, at.payload);
    punched(at.generations, sizeof(std::uint64_t), generation_lead,
            levels_[i].lengths != nullptr ? at.lengths : at.payload);
  }

  // True: something was given back. keeps M3, M4, M6
  [[nodiscard]] bool reset(int fd, std::uint32_t i, Stage now) noexcept {
    LevelControl& level = *levels_[i].control;
    const GrowingRing ring = levels_.ring(i, now);
    const std::uint64_t end = FromOpening::position_of(level.push_position.load(std::memory_order_acquire));
    // G7: it was dirty, and out of the stage all the while. Else it may have been opened since `now`, and what looks like
    // its last lap be its first: slots that are claimed, and zero.
    if (!levels_.is_still(now)) return false;
    const std::uint64_t slots = end - ring.base < ring.capacity ? end - ring.base : ring.capacity;
    const std::uint64_t begun = level.reset_slots.load(std::memory_order_relaxed);
    const std::uint64_t first = begun < slots ? begun : 0;
    const std::uint64_t step = step_bytes / levels_.slot_bytes() + 1;
    const std::uint64_t last = slots - first < step ? slots : first + step;
    if (!are_released(ring, i, end, first, last)) return false;
    if (i != 0 && !looks_.are_over(now)) return false;
    PENSTOCK_FAILPOINT("memory.before_reset");
    if (i != 0) {
      give_back(fd, i, first, last);
    } else {
      // A late look at one of these sees 0 or what was there: its position has moved, so it looks again.
      for (std::uint64_t slot = first; slot < last; ++slot) ring.generations[slot].store(0, std::memory_order_relaxed);
    }
    PENSTOCK_FAILPOINT("memory.given_back");
    level.reset_slots.store(last, std::memory_order_release);
    PENSTOCK_FAILPOINT("memory.reset");
    if (last < slots) return true;
    if (i != 0) give_back(fd, i, 0, levels_[i].capacity);  // pages that steps had in common
    if (i != 0) level.prepared.store(0, std::memory_order_relaxed);
    level.reset_slots.store(0, std::memory_order_relaxed);
    PENSTOCK_FAILPOINT("memory.before_unplan");
    level.planned.store(0, std::memory_order_release);
    PENSTOCK_FAILPOINT("memory.unplanned");
    level.reset_position.store(end, std::memory_order_release);  // with acquire in is_clean()
    PENSTOCK_FAILPOINT("memory.clean");
    levels_.control().resets.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  // The slot that was found held is looked at first: a lease may hold it for long, and many may ask meanwhile.
  [[nodiscard]] bool are_released(const GrowingRing& ring, std::uint32_t i, std::uint64_t end, std::uint64_t first,
                                  std::uint64_t last) noexcept {
    if (held_[i] >= first && held_[i] < last && !is_released(ring, end, held_[i])) return false;
    for (std::uint64_t slot = first; slot < last; ++slot) {
      if (is_released(ring, end, slot)) continue;
      held_[i] = slot;
      return false;
    }
    return true;
  }

  // The last position of a slot in a ring that ended there; 0 if a step of somebody who died has zeroed it.
  [[nodiscard]] static bool is_released(const GrowingRing& ring, std::uint64_t end, std::uint64_t slot) noexcept {
    const std::uint64_t behind = index_of(end - 1 - ring.base - slot, ring.mask);
    // acquire P2: its reader is done
    const std::uint64_t seen = ring.generations[slot].load(std::memory_order_acquire);
    return seen == 0 || seen == generation::free(end - 1 - behind + ring.capacity);
  }

  const Levels& levels_;
  Looks looks_;
  std::byte* base_;
  std::uint64_t fixed_bytes_;
  std::uint64_t max_bytes_;
  std::uint64_t held_[steps_limit] = {};  // a hint for each level: a slot that was not released
};

}  // namespace penstock
