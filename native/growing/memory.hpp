// Upkeep of a growing queue: which levels have memory, and which memory is reclaimed.
//
// Shape      a level's memory:   none -- plan --> reserved -- prepare, in extents --> whole
//                                 ▲ ▲                │ (used, closed, drained)            │
//                                 │ └-- withdraw <---┘ never used                         │
//                                 └---------- reset: reclaimed in steps, zeroed <---------┘
//                                                     └-- memory that the system does not take back stays reserved
//            Level 0 keeps its memory, and is zeroed by hand.
// Roles      a producer near the end of the prepared slots, or a participant that has drained a level; one at a time,
//            under a lock whose next owner finishes a dead owner's work (robust_lock.hpp).
// Invariants M1  reserved memory never exceeds max_bytes: it is summed and added to under the lock, before the system
//                is asked for memory, and a level's share goes only after its memory is reclaimed.
//            M2  a slot is claimed only when it has memory: `prepared` rises after the kernel has given it.
//            M3  a level is reset only when it is outside the level range and every slot of its last lap was released:
//                then no participant reads or writes an item there, or will (claims of a closed, drained ring fail).
//                The range is read again after the level: a drained level outside it is not opened before it is reset
//                (G5).
//            M4  each step can be repeated: asking for memory that is there, returning memory that is gone, storing the
//                same words. A step is written down before it begins (preparing, reset_slots).
//            M5  recoveries hold the lock too: a slot that was judged in one opening is not changed in the next.
//            M6  memory is reclaimed only when no participant guards it any more (V2 in read_guard.hpp).
//            M7  a level is withdrawn only when it is neither in the level range nor the next: a participant reads its
//                plan only after it has seen the range reach the level before it. It is marked first, and then a swap
//                sees the range unchanged: a participant that moves there later sees the mark, and asks under the lock.
//            M8  generations of a clean level are zero. Each step of a reset zeroes its own: by the hole, which zeroes
//                the bytes that it does not free, or by hand if the hole is refused. Used slots have memory (M2), so
//                zeroing by hand takes none.
//            M9  a refused hole leaves the level reserved, and not prepared: its memory counts as before (M1), and a
//                participant that opens the level asks for it anew, since a part may be gone. The level is clean and
//                idle, so it is withdrawn again later: refusal_ns after the last refusal.
// Progress   blocking among participants that prepare or reclaim; a stopped owner stops growth, not the queue.
// Source     ours.
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
  static constexpr std::uint64_t generation_lead = 64;  // generations beyond the prepared slots that readers may touch

  Upkeep(const Levels& levels, ReadGuards guards, std::byte* base, std::uint64_t fixed_bytes,
         std::uint64_t max_bytes) noexcept
      : levels_(levels), guards_(guards), base_(base), fixed_bytes_(fixed_bytes), max_bytes_(max_bytes) {}

  // The caller holds the lock. `fd` is the segment's file, or none within a process.

  enum class Given : std::uint8_t { yes, over_budget, refused, not_clean, guarded };

  // Reserves the memory of a level that will be opened, of at least `least` slots, and prepares its first slots.
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
    // M9; if a participant has opened the level since it was found unready, its plan is what counts
    if (given != Given::yes && !is_kept && level.prepared.load(std::memory_order_relaxed) == 0)
      level.planned.store(0, std::memory_order_release);
    return given;
  }

  // Prepares one more extent of an open level, or as much as `least` slots need.
  [[nodiscard]] Given prepare_open(int fd, std::uint32_t i, std::uint64_t least, int& error) noexcept {
    const Opening opening{levels_[i].control->opening.load(std::memory_order_acquire)};
    bool is_kept = false;  // unused: the level stays reserved
    return prepare(fd, i, Levels::capacity_of(levels_[i], opening.log2()), least, error, is_kept);
  }

  // Finishes what a dead owner of the lock had begun.
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
      // memory beyond `prepared` goes back: the next participant that needs it asks for it
      if (slots > before) (void)untake(fd, level, before, slots);  // if refused, it is reserved all the same
    }
    levels_.control().preparing.store(0, std::memory_order_release);
  }

  enum class Step : std::uint8_t { nothing, some, held, guarded };

  // Makes a step of reclaiming drained levels. held: live or dead participants hold slots of all that are left;
  // guarded: or a participant guards them.
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

  // Returns the memory reserved for levels, and the fixed part of the segment.
  [[nodiscard]] std::uint64_t reserved_bytes() const noexcept {
    std::uint64_t sum = fixed_bytes_ + bytes_of(levels_[0].capacity);
    for (std::uint32_t i = 1; i < levels_.steps(); ++i)
      if (levels_.plan(i).word != 0) sum += bytes_of(planned_capacity(i));
    return sum;
  }

  // Returns why the system did not take back the memory of an unused level; 0: it did.
  [[nodiscard]] int refusal() const noexcept {
    const LevelRange now = levels_.unchecked_level_range();
    for (std::uint32_t i = 0; i < levels_.steps(); ++i)
      if (is_unused(i, now)) return refusal_.load(std::memory_order_relaxed);
    return 0;
  }

  // Returns the bytes of so many slots from the first on, in whole pages of the layout.
  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t slots) const noexcept {
    if (slots == 0) return 0;
    const bool varying = levels_[0].lengths != nullptr;
    return round_up(slots * sizeof(std::uint64_t), page_bytes) +
           (varying ? round_up(slots * sizeof(std::uint32_t), page_bytes) : 0) +
           round_up(slots * levels_.slot_bytes(), page_bytes);
  }

  // Returns the most slots that an item can have: an empty queue can open a ring of as many. No level is skipped, so
  // the level before is open when it is planned; level 1 may be open with fewer slots than it could have.
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
  // Returns true if the level is outside the level range, if that is sound, and not reset.
  [[nodiscard]] bool is_drained(std::uint32_t i, LevelRange now) const noexcept {
    return levels_.is_sound(now) && (i < now.read_level() || i > now.written_level()) && !levels_.is_clean(i);
  }

  // Returns true if a withdrawal is worthwhile. keeps M9
  [[nodiscard]] bool is_idle(std::uint32_t i, LevelRange now) const noexcept {
    return is_unused(i, now) && (refusal_.load(std::memory_order_relaxed) == 0 ||
                                 monotonic_ns() - refused_ns_.load(std::memory_order_relaxed) > refusal_ns);
  }

  // Returns true if the level is planned and not used; see M7.
  [[nodiscard]] bool is_unused(std::uint32_t i, LevelRange now) const noexcept {
    if (levels_.is_private() || i == 0 || levels_.plan(i).word == 0 || !levels_.is_sound(now)) return false;
    return (i < now.read_level() || i > now.written_level() + 1) && levels_.is_clean(i);
  }

  // Returns false if the level range has moved, so a participant may need the level; or if it is guarded, or the system
  // refuses. keeps M4, M6, M7, M9
  [[nodiscard]] bool withdraw(int fd, std::uint32_t i, LevelRange now) noexcept {
    LevelControl& level = *levels_[i].control;
    const Plan plan = levels_.plan(i);
    QUEUEDUCT_FAILPOINT("memory.before_withdraw");
    levels_.control().preparing.store((std::uint64_t{i} + 1) << 56 | withdrawing, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.withdrawal_noted");
    level.planned.store(plan.log2() | Plan::withdrawn_bit, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.withdrawal_marked");
    bool is_gone = false;
    // M6: it may have been opened and left empty, so a late reader may still guard its first slot
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

  // is_kept: the memory that came before a refusal is still there.
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
  // Returns where an array of a level has the slots from `first` to `last`.
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

  // Leaves out the pages of slots before `first`: if tmpfs refuses a part of a request, it takes back all of it that is
  // untouched, also pages it gave earlier. Those end with a page of the kernel's. keeps M2
  [[nodiscard]] int take(int fd, std::uint32_t i, std::uint64_t first, std::uint64_t last,
                         std::uint64_t capacity) noexcept {
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

  // Gives whole pages of the layout, or units of private memory, to the system. Returns true if the system took them.
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

  // Zeroes the generations of these slots. keeps M8
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

  // Returns true if the system took all of it.
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

  // Gives back the pages that take() may have got beyond the prepared slots. Returns true if the system took them.
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

  // some: slots were reclaimed, or at least zeroed. keeps M3, M4, M6, M8
  [[nodiscard]] Step reset(int fd, std::uint32_t i, LevelRange now) noexcept {
    LevelControl& level = *levels_[i].control;
    const GrowingRing ring = levels_.ring(i, now);
    const std::uint64_t end = LevelNumbering::position_of(level.push_position.load(std::memory_order_acquire));
    // G7: the level was drained and outside the range all the while. Else it may have been opened since `now`, and its
    // seeming last lap be its first: slots that are claimed, and zero.
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
      // A late reader of one of these sees 0 or the old value: its position has moved, so it reads again.
      for (std::uint64_t slot = first; slot < last; ++slot) ring.generations[slot].store(0, std::memory_order_relaxed);
    }
    QUEUEDUCT_FAILPOINT("memory.given_back");
    level.reset_slots.store(last, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("memory.reset");
    if (last < slots) return Step::some;
    const bool is_gone = i == 0 || give_back(fd, i, 0, levels_[i].capacity);  // pages that two steps shared
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

  // Reads the slot that was last found held first: a lease may hold it for long, with many calls meanwhile.
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

  // Returns true if the last position of a slot, in a ring that ended at `end`, was released. 0: a dead owner's reset.
  [[nodiscard]] static bool is_released(const GrowingRing& ring, std::uint64_t end, std::uint64_t slot) noexcept {
    const std::uint64_t behind = (end - 1 - ring.base - slot) & ring.mask;
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
  std::atomic<int> refusal_{0};  // why the system last refused a hole
  std::atomic<std::int64_t> refused_ns_{0};
  std::uint64_t held_[steps_limit] = {};  // a hint for each level: a slot that was not released
};

}  // namespace queueduct
