// Upkeep of a growing queue: which levels have memory, and what is given back.
//
// Shape      a level's memory:   none ── plan ──► reserved ── prepare, in extents ──► whole
//                                 ▲ ▲                │ (used, closed, drained)            │
//                                 │ └── withdraw ◄───┘ never used                         │
//                                 └────────── reset: given back in steps, zeroed ◄────────┘
//                                                     └── what the system does not take back stays reserved
//            Level 0 keeps its memory, and is zeroed by hand.
// Roles      whoever puts near the end of what is prepared, or has drained a level; one at a time, under a lock whose
//            dead owner's work is finished by the next (robust_lock.hpp).
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
//            M8  generations of a clean level are zero. A step of a reset makes its own so: by the hole, which zeroes what
//                it does not free, or by hand where that is refused. What was used has memory (M2), so by hand none comes.
//            M9  a hole that was refused leaves the level reserved, and not prepared: its memory is counted as it was
//                (M1), and whoever opens the level asks for it anew, since a part of it may be gone. It is clean and
//                idle, so it is withdrawn again later: refusal_ns after the last refusal.
// Progress   blocking among those who give and take memory; an owner that is stopped stops growth, not the queue.
#pragma once

#include <errno.h>
#include <fcntl.h>

#include "segment/file_size.hpp"
#include "growing/levels.hpp"
#include "growing/read_guard.hpp"
#include "segment/hand_back.hpp"
#include "segment/robust_lock.hpp"

namespace queueduct {

class Upkeep {
 public:
  static constexpr std::uint64_t extent_bytes = 256 << 10;
  static constexpr std::uint64_t step_bytes = 4 << 20;
  static constexpr std::uint64_t withdrawing = ~std::uint64_t{0} >> 8;  // instead of slots, in `preparing`
  static constexpr std::uint64_t generation_lead = 64;  // generations beyond the prepared slots that looks may touch

  Upkeep(const Levels& levels, ReadGuards guards, std::byte* base, std::uint64_t fixed_bytes, std::uint64_t max_bytes) noexcept
      : levels_(levels), guards_(guards), base_(base), fixed_bytes_(fixed_bytes), max_bytes_(max_bytes) {}

  // All below: under the lock. `fd` is the segment's file, or nothing within a process.

  enum class Given : std::uint8_t { yes, over_budget, refused, not_clean, guarded };

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
      QUEUEDUCT_FAILPOINT("memory.before_plan");
      level.planned.store(static_cast<std::uint64_t>(std::countr_zero(capacity)), std::memory_order_release);
      QUEUEDUCT_FAILPOINT("memory.planned");
    }
    bool is_kept = false;
    const Given given = prepare(fd, i, planned_capacity(i), 1, error, is_kept);
    // M9; and of a level that somebody has opened since it was found unready, the plan is what is counted
    if (given != Given::yes && !is_kept && level.prepared.load(std::memory_order_relaxed) == 0)
      level.planned.store(0, std::memory_order_release);
    return given;
  }

  // One extent more for a level that is open, or what `least` slots need.
  [[nodiscard]] Given prepare_open(int fd, std::uint32_t i, std::uint64_t least, int& error) noexcept {
    const Opening opening{levels_[i].control->opening.load(std::memory_order_acquire)};
    bool is_kept = false;  // as the rest of it
    return prepare(fd, i, Levels::capacity_of(levels_[i], opening.log2()), least, error, is_kept);
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
      if (slots > before) (void)untake(fd, level, before, slots);  // refused: it is reserved all the same
    }
    levels_.control().preparing.store(0, std::memory_order_release);
  }

  enum class Step : std::uint8_t { nothing, some, held, guarded };

  // A step of giving back what is drained. held: in all that is left somebody is still reading, or died there;
  // guarded: or is just looking.
  [[nodiscard]] Step reset_some(int fd) noexcept {
    const LevelRange now = levels_.unchecked_level_range();
    QUEUEDUCT_FAILPOINT("memory.read_level_range");
    Step step = Step::nothing;
    for (std::uint32_t i = 0; i < levels_.steps(); ++i) {
      if (is_idle(i, now) && withdraw(fd, i, now)) return Step::some;
      if (!is_drained(i, now)) continue;
      const Step done = reset(fd, i, now);
      if (done == Step::some) return done;
      if (step != Step::held) step = done;
    }
    return step;
  }

  [[nodiscard]] bool has_drained_levels() const noexcept {
    const LevelRange now = levels_.unchecked_level_range();
    for (std::uint32_t i = 0; i < levels_.steps(); ++i)
      if (is_drained(i, now) || is_idle(i, now)) return true;
    return false;
  }

  // Everything that is promised to a level, and what every segment has.
  [[nodiscard]] std::uint64_t reserved_bytes() const noexcept {
    std::uint64_t sum = fixed_bytes_ + bytes_of(levels_[0].capacity);
    for (std::uint32_t i = 1; i < levels_.steps(); ++i)
      if (levels_.plan(i).word != 0) sum += bytes_of(planned_capacity(i));
    return sum;
  }

  // Why the system did not take back what it is reserved for and nobody uses; 0: it did.
  [[nodiscard]] int refusal() const noexcept {
    const LevelRange now = levels_.unchecked_level_range();
    for (std::uint32_t i = 0; i < levels_.steps(); ++i)
      if (is_unused(i, now)) return refusal_.load(std::memory_order_relaxed);
    return 0;
  }

  // Of so many slots from the first on, in whole pages of the layout.
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
  [[nodiscard]] bool is_drained(std::uint32_t i, LevelRange now) const noexcept {
    return levels_.is_sound(now) && (i < now.read_level() || i > now.written_level()) && !levels_.is_clean(i);
  }

  // Worth withdrawing: keeps M9
  [[nodiscard]] bool is_idle(std::uint32_t i, LevelRange now) const noexcept {
    return is_unused(i, now) && (refusal_.load(std::memory_order_relaxed) == 0 ||
                                 monotonic_ns() - refused_ns_.load(std::memory_order_relaxed) > refusal_ns);
  }

  // Planned, and not used; see M7.
  [[nodiscard]] bool is_unused(std::uint32_t i, LevelRange now) const noexcept {
    if (levels_.is_private() || i == 0 || levels_.plan(i).word == 0 || !levels_.is_sound(now)) return false;
    return (i < now.read_level() || i > now.written_level() + 1) && levels_.is_clean(i);
  }

  // False: the stage has moved, so somebody may have come to need it; or is looked at; or the system does not take it.
  // keeps M4, M6, M7, M9
  [[nodiscard]] bool withdraw(int fd, std::uint32_t i, LevelRange now) noexcept {
    LevelControl& level = *levels_[i].control;
    const Plan plan = levels_.plan(i);
    QUEUEDUCT_FAILPOINT("memory.before_withdraw");
    levels_.control().preparing.store((std::uint64_t{i} + 1) << 56 | withdrawing, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.withdrawal_noted");
    level.planned.store(plan.log2() | Plan::withdrawn_bit, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.withdrawal_marked");
    bool is_gone = false;
    // M6: it may have been opened, and left with nothing in it, so that somebody who came late still looks at its first slot
    if (levels_.is_still_for_all(now) && guards_.allow_reclaim(now)) {
      level.prepared.store(0, std::memory_order_relaxed);  // before its memory goes: keeps M2 if we die here
      QUEUEDUCT_FAILPOINT("memory.unprepared");
      is_gone = give_back(fd, i, 0, levels_[i].capacity);
      QUEUEDUCT_FAILPOINT("memory.withdrawn");
    }
    level.planned.store(is_gone ? 0 : plan.log2(), std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.withdrawal_over");
    levels_.control().preparing.store(0, std::memory_order_release);
    if (is_gone) levels_.control().resets.fetch_add(1, std::memory_order_relaxed);
    return is_gone;
  }

  [[nodiscard]] std::uint64_t planned_capacity(std::uint32_t i) const noexcept {
    return Levels::capacity_of(levels_[i], levels_.plan(i).log2());
  }

  // is_kept: what was got before the refusal is still there.
  [[nodiscard]] Given prepare(int fd, std::uint32_t i, std::uint64_t capacity, std::uint64_t least, int& error,
                              bool& is_kept) noexcept {
    LevelControl& level = *levels_[i].control;
    const std::uint64_t before = level.prepared.load(std::memory_order_relaxed);
    if (levels_.is_private() || before >= capacity) return Given::yes;
    const std::uint64_t each = levels_.slot_bytes() + sizeof(std::uint64_t) + sizeof(std::uint32_t);
    const std::uint64_t extent = extent_bytes / each + 1;
    std::uint64_t after = before + (least > extent ? least : extent);
    if (after > capacity) after = capacity;
    QUEUEDUCT_FAILPOINT("memory.before_note");
    levels_.control().preparing.store((std::uint64_t{i} + 1) << 56 | after, std::memory_order_release);  // M4
    QUEUEDUCT_FAILPOINT("memory.noted");
    error = take(fd, i, before, after, capacity);
    QUEUEDUCT_FAILPOINT("memory.taken");
    if (error == 0)
      level.prepared.store(after, std::memory_order_release);  // M2
    else
      is_kept = !untake(fd, i, before, after);
    QUEUEDUCT_FAILPOINT("memory.prepared");
    levels_.control().preparing.store(0, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.forgotten");
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

  [[nodiscard]] static int take(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
    if (begin >= end) return 0;
    if (const int error = check_length(fd, end); error != 0) return error;
    while (fallocate(fd, 0, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) != 0)
      if (errno != EINTR) return errno;
    return 0;
  }

  // Pages that the slots before `first` have already are left out: tmpfs that refuses a part of what it is asked for takes
  // back all of it that nobody has touched yet, also what it gave earlier. They end with a page of the kernel's. keeps M2
  [[nodiscard]] int take(int fd, std::uint32_t i, std::uint64_t first, std::uint64_t last, std::uint64_t capacity) noexcept {
    const RegionOffsets& at = levels_[i].at;
    const auto taken = [&](std::uint64_t offset, std::uint64_t each, std::uint64_t lead) {
      const auto led = [=](std::uint64_t slots) { return slots + lead < capacity ? slots + lead : capacity; };
      const Bytes bytes = span_of(offset, each, first == 0 ? 0 : led(first), led(last));
      const std::uint64_t begin = first == 0 ? bytes.begin : round_up(bytes.begin, kernel_page_bytes());
      return take(fd, begin, round_up(bytes.end, page_bytes));
    };
    int error = taken(at.generations, sizeof(std::uint64_t), generation_lead);
    if (error == 0 && levels_[i].lengths != nullptr) error = taken(at.lengths, sizeof(std::uint32_t), 0);
    if (error == 0) error = taken(at.payload, levels_.slot_bytes(), 0);
    return error;
  }

  // Pages of the layout that lie wholly within; of private memory what units of it do. True: the system took them.
  bool punch(int fd, Bytes bytes) noexcept {
    const std::uint64_t begin = round_up(bytes.begin, page_bytes);
    const std::uint64_t end = bytes.end / page_bytes * page_bytes;
    if (begin >= end) return true;
    if (levels_.is_private()) {
      (void)hand_back_private(base_ + begin, base_ + end);
      return true;
    }
    return is_taken(punch_hole(fd, begin, end));
  }

  // The generations of these slots are zero afterwards. keeps M8
  void zero_generations(int fd, std::uint32_t i, std::uint64_t first, std::uint64_t last) noexcept {
    const Bytes bytes = span_of(levels_[i].at.generations, sizeof(std::uint64_t), first, last);
    if (levels_.is_private())
      hand_back_zeroed(base_ + bytes.begin, base_ + bytes.end);
    else if (!is_taken(punch_hole(fd, bytes.begin, bytes.end)))
      zero_words(fd, base_, bytes.begin, bytes.end);
  }

  [[nodiscard]] bool is_taken(int error) noexcept {
    if (error == 0) [[likely]] return true;
    refusal_.store(error, std::memory_order_relaxed);
    refused_ns_.store(monotonic_ns(), std::memory_order_relaxed);
    return false;
  }

  // True: the system took all of it.
  bool give_back(int fd, std::uint32_t i, std::uint64_t first, std::uint64_t last) noexcept {
    const RegionOffsets& at = levels_[i].at;
    const std::uint64_t slots = levels_[i].capacity;
    // up to the end of the last page, where nothing else is
    const auto punched = [&](std::uint64_t offset, std::uint64_t each, std::uint64_t end) {
      Bytes bytes = span_of(offset, each, first, last);
      if (last == slots) bytes.end = end;
      return punch(fd, bytes);
    };
    bool is_gone = punched(at.payload, levels_.slot_bytes(), at.end);
    if (levels_[i].lengths != nullptr) is_gone &= punched(at.lengths, sizeof(std::uint32_t), at.payload);
    is_gone &= punched(at.generations, sizeof(std::uint64_t), levels_[i].lengths != nullptr ? at.lengths : at.payload);
    return is_gone;
  }

  // What take() may have got beyond the prepared slots: the pages from there to the end of its last ones.
  // True: the system took them.
  [[nodiscard]] bool untake(int fd, std::uint32_t i, std::uint64_t before, std::uint64_t after) noexcept {
    const RegionOffsets& at = levels_[i].at;
    const auto punched = [&](std::uint64_t offset, std::uint64_t each, std::uint64_t lead, std::uint64_t array_end) {
      const std::uint64_t first = before == 0 ? 0 : before + lead;
      Bytes bytes = span_of(offset, each, first, after + lead);
      bytes.end = round_up(bytes.end, page_bytes);
      if (bytes.end > array_end) bytes.end = array_end;
      return punch(fd, bytes);
    };
    bool is_gone = punched(at.payload, levels_.slot_bytes(), 0, at.end);
    if (levels_[i].lengths != nullptr) is_gone &= punched(at.lengths, sizeof(std::uint32_t), 0, at.payload);
    is_gone &= punched(at.generations, sizeof(std::uint64_t), generation_lead,
                       levels_[i].lengths != nullptr ? at.lengths : at.payload);
    return is_gone;
  }

  // some: something was given back, or is zero at least. keeps M3, M4, M6, M8
  [[nodiscard]] Step reset(int fd, std::uint32_t i, LevelRange now) noexcept {
    LevelControl& level = *levels_[i].control;
    const GrowingRing ring = levels_.ring(i, now);
    const std::uint64_t end = LevelNumbering::position_of(level.push_position.load(std::memory_order_acquire));
    // G7: it was dirty, and out of the stage all the while. Else it may have been opened since `now`, and what looks like
    // its last lap be its first: slots that are claimed, and zero.
    if (!levels_.is_still(now)) return Step::nothing;
    const std::uint64_t slots = end - ring.base < ring.capacity ? end - ring.base : ring.capacity;
    const std::uint64_t begun = level.reset_slots.load(std::memory_order_relaxed);
    const std::uint64_t first = begun < slots ? begun : 0;
    const std::uint64_t step = step_bytes / levels_.slot_bytes() + 1;
    const std::uint64_t last = slots - first < step ? slots : first + step;
    if (!are_released(ring, i, end, first, last)) return Step::held;
    if (i != 0 && !guards_.allow_reclaim(now)) return Step::guarded;
    QUEUEDUCT_FAILPOINT("memory.before_reset");
    if (i != 0) {
      give_back(fd, i, first, last);
      zero_generations(fd, i, first, last);
    } else {
      // A late look at one of these sees 0 or what was there: its position has moved, so it looks again.
      for (std::uint64_t slot = first; slot < last; ++slot) ring.generations[slot].store(0, std::memory_order_relaxed);
    }
    QUEUEDUCT_FAILPOINT("memory.given_back");
    level.reset_slots.store(last, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.reset");
    if (last < slots) return Step::some;
    const bool is_gone = i == 0 || give_back(fd, i, 0, levels_[i].capacity);  // pages that steps had in common
    if (i != 0) level.prepared.store(0, std::memory_order_relaxed);
    level.reset_slots.store(0, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("memory.before_unplan");
    if (is_gone) level.planned.store(0, std::memory_order_release);  // else M9
    QUEUEDUCT_FAILPOINT("memory.unplanned");
    level.reset_position.store(end, std::memory_order_release);  // with acquire in is_clean()
    QUEUEDUCT_FAILPOINT("memory.clean");
    levels_.control().resets.fetch_add(1, std::memory_order_relaxed);
    return Step::some;
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
  ReadGuards guards_;
  std::byte* base_;
  std::uint64_t fixed_bytes_;
  std::uint64_t max_bytes_;
  static constexpr std::int64_t refusal_ns = 100'000'000;
  std::atomic<int> refusal_{0};  // why the system last kept what was given back; both are for who asks again
  std::atomic<std::int64_t> refused_ns_{0};
  std::uint64_t held_[steps_limit] = {};  // a hint for each level: a slot that was not released
};

}  // namespace queueduct
