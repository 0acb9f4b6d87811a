// The ledger: each participant declares a claim before it makes it.
//
// Shape      one word a participant, in a cache line that only its owner writes:
//              | side : 2 | count : 22 | position (low bits) : 40 |      0: claims nothing
//            a merged intent of several dead pops may be wider than a claim, and is rounded up:
//              |    3 : 2 | shift : 6 | count >> shift : 16 | position : 40 |
// Roles      the owner declares and clears; every participant reads.
// Invariants L1  declare() comes before the compare-and-swap that claims; that is a release, so a participant that sees
//                the moved position (acquire) sees this intent or a later one of the same owner.
//            L2  clear(), or the next declare(), comes after the stores that publish or release the slots: release, so
//                a participant that sees the line cleared (acquire) sees the slots' new generations.
//            L3  so: a slot that is claimed, not given on, and named by no live line has a dead owner.
//            Stale intents of the dead are harmless: recovery changes only slots that no live line names.
// Progress   wait-free: one plain store each.
// Source     ours. Positions wrap at 2^40 here. A false match of a live line only delays a recovery; a false
//            match of a dead one is harmless by L3.
#pragma once

#include "core/failpoint.hpp"
#include "segment/counters.hpp"

namespace queueduct {

enum class Side : std::uint64_t { none = 0, push = 1, pop = 2 };

struct Intent {
  Side side = Side::none;
  std::uint64_t position = 0;  // modulo 2^40
  std::uint64_t count = 0;

  static constexpr int position_bits = 40;
  static constexpr std::uint64_t position_mask = (std::uint64_t{1} << position_bits) - 1;
  static constexpr std::uint64_t count_limit = (std::uint64_t{1} << 22) - 1;
  static constexpr std::uint64_t wide = 3;  // in the place of a side: a pop of more than count_limit
  static constexpr int shifted_bits = 16;

  [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
    if (count > count_limit) [[unlikely]] return packed_wide();
    return static_cast<std::uint64_t>(side) << 62 | count << position_bits | (position & position_mask);
  }

  [[nodiscard]] static constexpr Intent unpack(std::uint64_t word) noexcept {
    const std::uint64_t count = word >> position_bits & count_limit;
    if (word >> 62 != wide) [[likely]] return {static_cast<Side>(word >> 62), word & position_mask, count};
    const std::uint64_t shifted = count & ((1u << shifted_bits) - 1);
    const std::uint64_t shift = count >> shifted_bits;
    return {Side::pop, word & position_mask, shift < 24 ? shifted << shift : position_mask};
  }

  [[nodiscard]] constexpr bool covers(Side asked, std::uint64_t asked_position) const noexcept {
    return side == asked && ((asked_position - position) & position_mask) < count;
  }

 private:
  // Rounds the count up: naming more of a dead owner's slots does no harm (L3).
  [[nodiscard]] constexpr std::uint64_t packed_wide() const noexcept {
    const std::uint64_t rounded = count < position_mask / 2 ? count : position_mask / 2;
    std::uint64_t shift = static_cast<std::uint64_t>(std::bit_width(rounded)) - shifted_bits;
    std::uint64_t shifted = (rounded + (std::uint64_t{1} << shift) - 1) >> shift;
    if (shifted >> shifted_bits != 0) shifted = std::uint64_t{1} << (shifted_bits - 1), ++shift;
    return wide << 62 | shift << (position_bits + shifted_bits) | shifted << position_bits | (position & position_mask);
  }
};
static_assert(Intent::unpack(Intent{Side::pop, 77, 5}.packed()).covers(Side::pop, 81));
static_assert(!Intent::unpack(Intent{Side::pop, 77, 5}.packed()).covers(Side::pop, 82));
static_assert(Intent::unpack(Intent{Side::pop, 77, Intent::count_limit}.packed()).count == Intent::count_limit);
static_assert(Intent::unpack(Intent{Side::pop, 77, 5'000'001}.packed()).covers(Side::pop, 77 + 5'000'000));
static_assert(Intent::unpack(Intent{Side::pop, 77, 0xffff'ffff}.packed()).count == std::uint64_t{1} << 32);

// Three policies of claiming a range of positions.

// In shared memory: the owner of a line of the participant table declares each claim there first.
class Participant {
 public:
  Participant() noexcept = default;
  Participant(ParticipantLine* line, std::uint32_t number) noexcept : line_(line), number_(number) {}

  void declare(Side side, std::uint64_t position, std::uint64_t count) noexcept {
    QUEUEDUCT_FAILPOINT("ledger.before_declare");
    // release L2: a recoverer that sees this intent (acquire) sees the generations that the last claim left. Without
    // it a weakly ordered machine may show this store first, and recovery would abandon a live producer's slot.
    line_->intent.store(Intent{side, position, count}.packed(), std::memory_order_release);
    QUEUEDUCT_FAILPOINT("ledger.after_declare");
  }

  void clear() noexcept {
    QUEUEDUCT_FAILPOINT("ledger.before_clear");
    line_->intent.store(0, std::memory_order_release);  // release L2; acquire in the recovery's scan
    QUEUEDUCT_FAILPOINT("ledger.after_clear");
  }

  // Returns false if `word` was no longer `position`; then nothing is declared.
  [[nodiscard]] bool claim(std::atomic<std::uint64_t>& word, Side side, std::uint64_t position,
                           std::uint64_t count) noexcept {
    declare(side, position, count);
    // acq_rel: release publishes the intent (L1); see P3 in ring.hpp for both halves
    if (word.compare_exchange_strong(position, position + count, std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) [[likely]]
      return true;
    clear();
    return false;
  }

  // After the slots are published, or released for good.
  void count_put(std::uint64_t items, std::uint64_t bytes) noexcept {
    queueduct::count_put(line_->counters, items, bytes);
  }
  void count_got(std::uint64_t items, std::uint64_t bytes) noexcept {
    queueduct::count_got(line_->counters, items, bytes);
  }
  // After a sleep.
  void count_wait(bool for_items, bool is_first, std::int64_t began_ns) noexcept {
    queueduct::count_wait(line_->counters, for_items, is_first, began_ns);
  }

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

 private:
  ParticipantLine* line_ = nullptr;
  std::uint32_t number_ = 0;
};

// Within one process: a crash leaves no participant that could recover.
struct NoLedger {
  static void clear() noexcept {}
  static void count_put(std::uint64_t, std::uint64_t) noexcept {}
  [[nodiscard]] static bool claim(std::atomic<std::uint64_t>& word, Side, std::uint64_t position,
                                  std::uint64_t count) noexcept {
    return word.compare_exchange_strong(position, position + count, std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
  }
};

// Within one process, for callers that all hold one lock here (the GIL): no claim can come between the load and the
// store. One may have come before the load: making room for a batch can run the garbage collector, and with it a
// finalizer that gets from this queue.
struct Serialized {
  static void clear() noexcept {}
  static void count_put(std::uint64_t, std::uint64_t) noexcept {}
  [[nodiscard]] static bool claim(std::atomic<std::uint64_t>& word, Side, std::uint64_t position,
                                  std::uint64_t count) noexcept {
    if (word.load(std::memory_order_relaxed) != position) [[unlikely]] return false;
    word.store(position + count, std::memory_order_relaxed);
    return true;
  }
};

}  // namespace queueduct
