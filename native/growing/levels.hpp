// Growing queue: rings of rising size, of which one is written and one is read.
//
// Shape      level:   0      1        2              3                 …
//                    [free] [closed] [closed]       [open]
//                            ▲ read level            ▲ written level           read ≤ written
//            A producer closes a full ring, opens the next level and moves the written level there. When a closed ring
//            is drained, the read level leaves it, and its memory is reclaimed. An open ring that is empty, and was
//            nearly so for long, is closed for shrinking, and level 0 is opened again.
//            Positions run through all rings: a ring that closes at p is followed by one that opens at p + 1.
//            Zeroed memory is an empty ring: in the first lap of an opening, 0 is the generation of a free slot.
// Roles      any number of producers and consumers, threads or processes. Each may have to make any of the moves.
// Invariants G1  read level <= written level: they are one word, moved by compare-and-swap from the one judged.
//            G2  a ring is closed by compare-and-swap of its push position from the value that was judged full, or
//                empty: nothing is pushed after it, and a participant that sees a closed ring sees where it ends.
//            G3  the closed word alone says what follows: the next level, or level 0 if it says shrinking, opened at
//                its position + 1. So any participant can open it, and any number of times: each step raises a word
//                to a value, and none falls.
//            G4  the read level moves on only from a ring that is closed and whose pop position is its end: nothing
//                is left behind, and order is kept.
//            G5  a level is opened only when it is clean: all its slots were released and zeroed. It stays clean while
//                it is opened, so no participant resets it.
//            G6  no position ever comes back, in any ring: a late compare-and-swap of a position fails.
//            G7  a ring in the level range is not opened again: if the range is still the one under which the ring's
//                base was read, a position read in between belongs to that very opening.
// Progress   lock-free, except for memory: see memory.hpp.
// Source     closing a full ring and going on in another is LCRQ's (Morrison and Afek, "Fast Concurrent Queues for x86
//            Processors", PPoPP 2013). Rising sizes, the level range in one word and shrinking are ours.
//
// Memory orders come in pairs:
//   G3  release in raise() and in the swap of the level range  with acquire of the range by every reader of a level:
//       the ring's base
//   G7  acquire load of a position, then acquire load of the level range in is_current()
#pragma once

#include "ring/items.hpp"
#include "growing/layout.hpp"

namespace queueduct {

inline constexpr std::uint64_t shrinking_bit = std::uint64_t{1} << 62;

// A level's `planned` word.
struct Plan {
  static constexpr std::uint64_t withdrawn_bit = 64;
  std::uint64_t word;
  [[nodiscard]] constexpr std::uint64_t log2() const noexcept { return word & (withdrawn_bit - 1); }
  [[nodiscard]] constexpr bool is_good() const noexcept { return word != 0 && !(word & withdrawn_bit); }
};

// The numbering of a ring that is opened more than once.
struct LevelNumbering {
  static constexpr std::memory_order position_order = std::memory_order_acquire;  // G7
  static constexpr std::uint64_t position_mask = shrinking_bit - 1;

  const std::atomic<std::uint64_t>* level_range = nullptr;
  std::uint64_t range_seen = 0;
  std::uint64_t base = 0;
  std::uint64_t limit = 0;  // positions before it have memory
  std::uint64_t mask = 0;

  void set_capacity(std::uint64_t capacity) noexcept { mask = capacity - 1; }  // a power of two
  [[nodiscard]] std::uint64_t index_of(std::uint64_t position) const noexcept { return (position - base) & mask; }
  [[nodiscard]] static constexpr std::uint64_t position_of(std::uint64_t word) noexcept { return word & position_mask; }
  [[nodiscard]] std::uint64_t first_position() const noexcept { return base; }
  [[nodiscard]] bool is_in_zeroed_lap(std::uint64_t position, std::uint64_t capacity) const noexcept {
    return position - base < capacity;
  }
  [[nodiscard]] bool is_current() const noexcept {
    return level_range->load(std::memory_order_acquire) == range_seen;  // G7
  }
  [[nodiscard]] std::uint64_t backed(std::uint64_t position, std::uint64_t wanted) const noexcept {
    if (position + wanted <= limit) [[likely]] return wanted;
    return position < limit ? limit - position : 0;
  }
};
using GrowingRing = BasicRing<LevelNumbering>;

struct Opening {
  static constexpr int base_bits = 58;
  static constexpr std::uint64_t base_mask = (std::uint64_t{1} << base_bits) - 1;
  std::uint64_t word;
  [[nodiscard]] static constexpr Opening at(std::uint64_t base, std::uint64_t log2) noexcept {
    return {log2 << base_bits | (base & base_mask)};
  }
  [[nodiscard]] constexpr std::uint64_t base() const noexcept { return word & base_mask; }
  [[nodiscard]] constexpr std::uint64_t log2() const noexcept { return word >> base_bits; }
};

// This process's own copy of a level's geometry.
struct Level {
  LevelControl* control = nullptr;
  std::atomic<std::uint64_t>* generations = nullptr;
  std::atomic<std::uint32_t>* lengths = nullptr;
  std::byte* payload = nullptr;
  std::uint64_t capacity = 0;  // its largest
  RegionOffsets at{};
};

class Levels {
 public:
  // `is_private`: memory of this process, which the kernel gives when it is touched.
  Levels(std::byte* base, const GrowingOffsets& at, std::uint64_t first_bytes, std::uint32_t steps,
         std::uint64_t slot_bytes, bool varying, bool is_private) noexcept
      : control_(reinterpret_cast<GrowingControl*>(base + at.control)),
        steps_(steps < steps_limit ? steps : steps_limit),
        slot_bytes_(slot_bytes),
        is_private_(is_private) {
    std::uint64_t begin = at.regions;
    for (std::uint32_t i = 0; i < steps_; ++i) {
      Level& level = levels_[i];
      level.control = reinterpret_cast<LevelControl*>(base + at.levels) + i;
      level.capacity = level_capacity(first_bytes, i, slot_bytes);
      level.at = region_offsets(begin, level.capacity, slot_bytes, varying);
      level.generations = reinterpret_cast<std::atomic<std::uint64_t>*>(base + level.at.generations);
      if (varying) level.lengths = reinterpret_cast<std::atomic<std::uint32_t>*>(base + level.at.lengths);
      level.payload = base + level.at.payload;
      begin = level.at.end;
    }
  }

  [[nodiscard]] GrowingControl& control() const noexcept { return *control_; }
  [[nodiscard]] std::uint32_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint32_t last() const noexcept { return steps_ - 1; }
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] bool is_private() const noexcept { return is_private_; }
  [[nodiscard]] const Level& operator[](std::uint32_t i) const noexcept { return levels_[i]; }

  // To be compared with a range that was checked.
  [[nodiscard]] LevelRange unchecked_level_range() const noexcept {
    return {control_->level_range.load(std::memory_order_acquire)};  // acquire G3
  }
  // With levels 0 if the shared word names levels that do not exist.
  [[nodiscard]] LevelRange level_range() const noexcept {
    const LevelRange now = unchecked_level_range();
    return is_sound(now) ? now : LevelRange{now.word & ~std::uint64_t{0xffff}};
  }
  [[nodiscard]] bool is_sound(LevelRange range) const noexcept {
    return range.read_level() <= range.written_level() && range.written_level() < steps_;
  }

  // Returns the ring of a level as it is opened now; the caller has read the level range before.
  [[nodiscard]] GrowingRing ring(std::uint32_t i, LevelRange seen) const noexcept {
    const Level& level = levels_[i];
    const Opening opening{level.control->opening.load(std::memory_order_acquire)};
    GrowingRing ring;
    ring.level_range = &control_->level_range;
    ring.range_seen = seen.word;
    ring.base = opening.base();
    ring.push_position = &level.control->push_position;
    ring.pop_position = &level.control->pop_position;
    ring.generations = level.generations;
    ring.lengths = level.lengths;
    ring.payload = level.payload;
    ring.set_capacity(capacity_of(level, opening.log2()));
    ring.slot_bytes = slot_bytes_;
    const std::uint64_t prepared = level.control->prepared.load(std::memory_order_acquire);
    ring.limit = is_private_ || prepared >= ring.capacity ? ~std::uint64_t{0} : ring.base + prepared;
    return ring;
  }

  [[nodiscard]] static std::uint64_t capacity_of(const Level& level, std::uint64_t log2) noexcept {
    return log2 == 0 || log2 >= 63 || (std::uint64_t{1} << log2) > level.capacity ? level.capacity
                                                                                  : std::uint64_t{1} << log2;
  }

  // Of a level outside the level range: returns true if it has no items and its memory is zero, because it was reset or
  // nothing was pushed. If a participant opens it meanwhile, the words are read again until they belong together.
  [[nodiscard]] bool is_clean(std::uint32_t i) const noexcept {
    const LevelControl& control = *levels_[i].control;
    for (;;) {
      const std::uint64_t opening = control.opening.load(std::memory_order_acquire);
      const std::uint64_t word = control.push_position.load(std::memory_order_acquire);
      // acquire: the participant that reset it has zeroed it
      const std::uint64_t reset = control.reset_position.load(std::memory_order_acquire);
      const std::uint64_t pushed = LevelNumbering::position_of(word);
      if (reset == pushed || pushed == Opening{opening}.base()) return true;
      if (control.opening.load(std::memory_order_acquire) == opening &&
          control.push_position.load(std::memory_order_relaxed) == word)
        return false;
    }
  }

  // Returns true if the level may be opened: its memory is reserved, and its first slots have theirs.
  [[nodiscard]] bool is_ready(std::uint32_t i) const noexcept {
    if (!is_clean(i)) return false;
    return is_private_ || i == 0 ||
           (plan(i).is_good() && levels_[i].control->prepared.load(std::memory_order_acquire) != 0);
  }

  [[nodiscard]] Plan plan(std::uint32_t i) const noexcept {
    return {levels_[i].control->planned.load(std::memory_order_acquire)};
  }

  enum class Moved : std::uint8_t { yes, no, corrupt };

  // The written ring has been closed: opens the level that follows and moves the level range there. keeps G1, G3
  [[nodiscard]] Moved follow_closing(LevelRange seen) const noexcept {
    const std::uint32_t written = seen.written_level();
    const std::uint64_t word = levels_[written].control->push_position.load(std::memory_order_acquire);
    QUEUEDUCT_FAILPOINT("grow.read_closing");
    if (!(word & closed_bit) || seen.is_shut()) return Moved::no;
    // A shutdown marks the level range before it closes a ring: if the range is as it was seen, the participant that
    // closed the ring had found the next level ready. keeps G5
    if (!is_still(seen)) return Moved::yes;
    const bool shrinks = word & shrinking_bit;
    if (!shrinks && written == last()) return Moved::corrupt;
    const std::uint32_t next = shrinks ? 0 : written + 1;
    open(next, LevelNumbering::position_of(word) + 1);
    const LevelRange after = seen.moved_to(shrinks ? 0 : seen.read_level(), next);
    if (!move(seen, after)) return Moved::yes;  // by another participant
    (shrinks ? control_->shrunk : control_->grown).fetch_add(1, std::memory_order_release);  // after the move (T2)
    control_->last_high.store(LevelNumbering::position_of(word), std::memory_order_relaxed);  // a hint
    return Moved::yes;
  }

  // The read ring is drained and closed: moves the read level on. keeps G4
  [[nodiscard]] Moved read_on(LevelRange seen) const noexcept {
    const std::uint32_t read = seen.read_level();
    if (read == seen.written_level()) return follow_closing(seen);
    const LevelControl& level = *levels_[read].control;
    const std::uint64_t word = level.push_position.load(std::memory_order_acquire);
    const std::uint64_t popped = level.pop_position.load(std::memory_order_acquire);
    QUEUEDUCT_FAILPOINT("grow.judged_drained");
    if (!is_still(seen)) return Moved::yes;
    if (!(word & closed_bit)) return Moved::corrupt;  // only the written ring is open
    if (popped != LevelNumbering::position_of(word)) return Moved::no;
    return move(seen, seen.moved_to(read + 1, seen.written_level())), Moved::yes;
  }

  // Closes the written ring if it has no room for so many slots. The next level is ready, and the caller guards this
  // one. keeps G2
  void close_full(LevelRange seen, std::uint64_t slots) const noexcept {
    const GrowingRing ring = this->ring(seen.written_level(), seen);
    std::uint64_t position = ring.push_position->load(std::memory_order_acquire);
    QUEUEDUCT_FAILPOINT("grow.read_full");
    if (position & closed_bit) return;
    if (!ring.is_current()) return;
    if (slots <= ring.claim_limit() && count_free(ring, position, ring.backed(position, slots)) == slots) return;
    QUEUEDUCT_FAILPOINT("grow.before_close");
    ring.push_position->compare_exchange_strong(position, position | closed_bit, std::memory_order_acq_rel,
                                                std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("grow.closed");
  }

  // Closes the one ring in use for level 0 if it is empty. keeps G2: while nothing is pushed at p, nothing is popped
  // beyond it, so a swap from p proves that it is empty for good.
  [[nodiscard]] bool close_empty(LevelRange seen) const noexcept {
    const std::uint32_t level = seen.written_level();
    if (level == 0 || seen.read_level() != level || seen.is_shut() || !is_ready(0)) return false;
    LevelControl& control = *levels_[level].control;
    std::uint64_t position = control.pop_position.load(std::memory_order_acquire);
    QUEUEDUCT_FAILPOINT("shrink.read_position");
    if (position & closed_bit || !is_still(seen)) return false;
    QUEUEDUCT_FAILPOINT("shrink.before_close");
    const bool closed =
        control.push_position.compare_exchange_strong(position, position | closed_bit | shrinking_bit,
                                                      std::memory_order_acq_rel, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("shrink.closed");
    return closed;
  }

  // Ends pushes, and with `discard` pops. Returns true if this call ended pops.
  bool shut(bool discard) const noexcept {
    const std::uint64_t bits = LevelRange::shut_bit | (discard ? LevelRange::discarded_bit : 0);
    QUEUEDUCT_FAILPOINT("shutdown.before");
    const std::uint64_t before = control_->level_range.fetch_or(bits, std::memory_order_acq_rel);
    QUEUEDUCT_FAILPOINT("shutdown.marked");
    finish_shutting();
    return discard && !(before & LevelRange::discarded_bit);
  }

  // Closes the rings as the marks in the level range say. No level is opened after the marks, and none is left after
  // the discarding one.
  void finish_shutting() const noexcept {
    for (;;) {
      const LevelRange now = unchecked_level_range();
      if (!is_sound(now)) return;
      levels_[now.written_level()].control->push_position.fetch_or(closed_bit, std::memory_order_acq_rel);
      QUEUEDUCT_FAILPOINT("shutdown.push_closed");
      if (now.is_discarded())
        levels_[now.read_level()].control->pop_position.fetch_or(closed_bit, std::memory_order_acq_rel);
      QUEUEDUCT_FAILPOINT("shutdown.closed");
      if (is_still(now)) return;
    }
  }

  [[nodiscard]] bool is_still(LevelRange seen) const noexcept {
    return control_->level_range.load(std::memory_order_acquire) == seen.word;
  }

  // The same by a swap: a participant that moves the range afterwards sees what we have stored before.
  [[nodiscard]] bool is_still_for_all(LevelRange seen) const noexcept { return swap(seen, seen); }

 private:
  bool move(LevelRange from, LevelRange to) const noexcept {
    QUEUEDUCT_FAILPOINT("level_range.before_move");
    const bool moved = swap(from, to);
    QUEUEDUCT_FAILPOINT("level_range.moved");
    return moved;
  }
  [[nodiscard]] bool swap(LevelRange from, LevelRange to) const noexcept {
    return control_->level_range.compare_exchange_strong(from.word, to.word, std::memory_order_acq_rel,  // release G3
                                                         std::memory_order_relaxed);
  }

  // Raises each word to this opening, never down: several participants may do it, late or twice. keeps G3
  void open(std::uint32_t i, std::uint64_t base) const noexcept {
    LevelControl& level = *levels_[i].control;
    // A level that was opened and closed with no items: without this it would seem used between the raises.
    const std::uint64_t pushed = LevelNumbering::position_of(level.push_position.load(std::memory_order_acquire));
    if (pushed == Opening{level.opening.load(std::memory_order_acquire)}.base())
      raise(level.reset_position, pushed, pushed, LevelNumbering::position_mask);
    const std::uint64_t log2 = is_private_ || i == 0 ? 0 : plan(i).log2();
    raise(level.opening, base, Opening::at(base, log2).word, Opening::base_mask);
    raise(level.pop_position, base, base, LevelNumbering::position_mask);
    raise(level.push_position, base, base, LevelNumbering::position_mask);
  }

  static void raise(std::atomic<std::uint64_t>& word, std::uint64_t base, std::uint64_t to,
                    std::uint64_t mask) noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    QUEUEDUCT_FAILPOINT("open.before_raise");
    while ((seen & mask) < base &&
           !word.compare_exchange_weak(seen, to, std::memory_order_acq_rel, std::memory_order_acquire)) {
    }
    QUEUEDUCT_FAILPOINT("open.raised");
  }

  GrowingControl* control_;
  std::uint32_t steps_;
  std::uint64_t slot_bytes_;
  bool is_private_;
  Level levels_[steps_limit];
};

}  // namespace queueduct
