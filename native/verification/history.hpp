// History: every operation of one worker, in memory that outlives it.
//
// Shape      64-bit words, one after the other, in the worker's own file. The two lowest bits say what a word is:
//              end    | 0 |  there are no more
//              row    | ticket : 38 | count : 17 | over | lost | redelivered | weak | outcome : 2 | op | row : 2 |
//              mark   | what : 60 | of what : 2 | mark : 2 |
//            A row is an operation on `count` items claimed in one step: their tickets are consecutive, and so are a
//            put's values, which continue those of the put before. A get's values follow its row, as runs of
//            consecutive values: | 0 | further : 7 | first : 56 |. A value too long for that has its own word, after
//            one that has only the highest bit.
//            Marks tell the time: `between` says that all before was over by then, and all behind began a step later;
//            `over` says only the former. Or a mark has the value of the next put, if it does not continue.
//            No row has a time of its own: reading the clock costs as much as an operation, and so do the words.
//            The memory is zeroed, and as long as has_room() was asked for.
// Roles      one worker writes; readers read after its end, whether it ended or was killed (history_reader.hpp).
// Invariants H1  a row is there, pending, before the operation begins: a worker killed in the operation leaves a
//                pending row, one killed before it none. All words behind a pending row are void, unless it was lost.
//            H2  a row changes by one store: to its claim, to its loss, to its result. The words it then refers to are
//                there before, and an end behind them.
//            H3  the time before a row was read before the operation's first access to shared memory, the time behind
//                it after its last one was visible to all. To save time, readings may be further apart than they
//                need be, never closer. A row that is over and has no time behind it is of a worker that was killed
//                before it read the clock.
// Progress   wait-free.
//
// Memory orders: all stores are plain: a process is killed between two instructions, and its earlier stores are in its
//                file. The compiler must keep H1 and H2: rows and marks are stored with release.
#pragma once

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "segment/event.hpp"

namespace queueduct {

// Orders the reading of the clock after all instructions before it and before all after it.
inline void wait_for_instructions() noexcept {
#if defined(__x86_64__)
  _mm_lfence();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Nanoseconds of CLOCK_MONOTONIC.
struct MonotonicClock {
  [[nodiscard]] static std::uint64_t now() noexcept {
    wait_for_instructions();
    const auto now = static_cast<std::uint64_t>(monotonic_ns());
    wait_for_instructions();
    return now;
  }
};

#if defined(__x86_64__)
inline constexpr bool has_cycle_counter = true;
// The time stamp counter, from which the kernel makes its own clock if its clock source is "tsc".
struct CycleCounter {
  [[nodiscard]] static std::uint64_t now() noexcept {
    wait_for_instructions();
    const std::uint64_t now = __rdtsc();
    wait_for_instructions();
    return now;
  }
};
#else
inline constexpr bool has_cycle_counter = false;
using CycleCounter = MonotonicClock;
#endif

// The begin of a worker's file; its words follow. The magic is written last: without it the file is void.
struct HistoryHeader {
  static constexpr std::uint64_t magic = 0x5357'4f52'5443'4451;  // "QDCTROWS"
  static constexpr std::uint64_t version = 3;
  static constexpr std::uint64_t words = 8;
  static constexpr std::uint64_t no_reader = 0;
  static constexpr std::uint64_t step_word = 3;

  // `step`: ticks from the end of an operation to the begin of the next, if the clock was read once for both.
  static void write(std::uint64_t* at, std::uint32_t worker, std::uint64_t reader_plus_one,
                    std::uint64_t step) noexcept {
    at[1] = version << 32 | worker;
    at[2] = reader_plus_one;
    at[step_word] = step;
    std::atomic_ref<std::uint64_t>(at[0]).store(magic, std::memory_order_release);
  }
};

enum class HistoryOp : std::uint8_t { put = 0, get = 1 };
enum class HistoryOutcome : std::uint8_t { ok = 0, full = 1, empty = 2 };

// What an operation found.
struct Seen {
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  std::uint64_t ticket = unknown;  // of its first item; of full: the oldest item's; of empty: the next one's
  std::uint64_t count = 0;         // items, at consecutive tickets
  bool weak = false;               // it met a slot in mid-copy
  bool redelivered = false;        // a dead consumer had the item before
};

enum class HistoryWord : std::uint8_t { end = 0, row = 1, mark = 2 };
[[nodiscard]] constexpr HistoryWord kind_of(std::uint64_t word) noexcept { return static_cast<HistoryWord>(word & 3); }

class HistoryRow {
 public:
  static constexpr unsigned op_shift = 2, outcome_shift = 3, count_shift = 9, ticket_shift = 26;
  static constexpr std::uint64_t weak_bit = 1 << 5;
  static constexpr std::uint64_t redelivered_bit = 1 << 6;
  static constexpr std::uint64_t lost_bit = 1 << 7;
  static constexpr std::uint64_t over_bit = 1 << 8;
  static constexpr std::uint64_t most_items = (std::uint64_t{1} << (ticket_shift - count_shift)) - 1;
  static constexpr std::uint64_t no_ticket = Seen::unknown >> ticket_shift;  // no run counts as far

  constexpr explicit HistoryRow(std::uint64_t word) noexcept : word_(word) {}
  constexpr HistoryRow(HistoryOp op, HistoryOutcome outcome, const Seen& seen) noexcept
      : word_(static_cast<std::uint64_t>(HistoryWord::row) | static_cast<std::uint64_t>(op) << op_shift |
              static_cast<std::uint64_t>(outcome) << outcome_shift | (seen.weak ? weak_bit : 0) |
              (seen.redelivered ? redelivered_bit : 0) | seen.count << count_shift |
              seen.ticket << ticket_shift) {}

  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] constexpr HistoryRow with(std::uint64_t bit) const noexcept { return HistoryRow(word_ | bit); }
  [[nodiscard]] constexpr bool has(std::uint64_t bit) const noexcept { return word_ & bit; }
  [[nodiscard]] constexpr HistoryOp op() const noexcept { return static_cast<HistoryOp>(word_ >> op_shift & 1); }
  [[nodiscard]] constexpr HistoryOutcome outcome() const noexcept {
    return static_cast<HistoryOutcome>(word_ >> outcome_shift & 3);
  }
  [[nodiscard]] constexpr std::uint64_t count() const noexcept { return word_ >> count_shift & most_items; }
  [[nodiscard]] constexpr std::uint64_t ticket() const noexcept {
    return word_ >> ticket_shift == no_ticket ? Seen::unknown : word_ >> ticket_shift;
  }
  [[nodiscard]] constexpr bool has_values() const noexcept {
    return op() == HistoryOp::get && !has(lost_bit) && count() > 0;
  }

 private:
  std::uint64_t word_;
};

class HistoryMark {
 public:
  enum class Of : std::uint8_t { between = 0, over = 1, value = 2 };

  constexpr explicit HistoryMark(std::uint64_t word) noexcept : word_(word) {}
  constexpr HistoryMark(Of of, std::uint64_t what) noexcept
      : word_(static_cast<std::uint64_t>(HistoryWord::mark) | static_cast<std::uint64_t>(of) << 2 | what << 4) {}
  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] constexpr Of of() const noexcept { return static_cast<Of>(word_ >> 2 & 3); }
  [[nodiscard]] constexpr std::uint64_t what() const noexcept { return word_ >> 4; }

 private:
  std::uint64_t word_;
};

// Consecutive values of a get.
struct HistoryRun {
  static constexpr unsigned first_bits = 56;
  static constexpr std::uint64_t too_long = std::uint64_t{1} << 63;  // for a run: the value follows as a word
  static constexpr std::uint64_t limit = std::uint64_t{1} << first_bits;
  static constexpr std::uint64_t one_more = limit;
  static constexpr std::uint64_t most = 1 << 7;

  [[nodiscard]] static constexpr std::uint64_t first(std::uint64_t word) noexcept { return word & (limit - 1); }
  [[nodiscard]] static constexpr std::uint64_t length(std::uint64_t word) noexcept {
    return (word >> first_bits & (most - 1)) + 1;
  }
};

class HistoryWriter {
 public:
  // Words may go from `from` to `to`, which extend() moves when there is more memory.
  HistoryWriter(std::uint64_t* from, std::uint64_t* to) noexcept : at_(from), to_(to) {}
  void extend(std::uint64_t* to) noexcept { to_ = to; }

  // Returns true if there is room for an operation on so many items, those that it may lose, and the marks around it.
  [[nodiscard]] bool has_room(std::uint64_t items) const noexcept {
    return static_cast<std::uint64_t>(to_ - at_) >= around + lost_at_once + 2 * items;
  }
  [[nodiscard]] const std::uint64_t* at() const noexcept { return at_; }
  static constexpr std::uint64_t lost_at_once = 64;
  static constexpr std::uint64_t around = 8;

  // Between two operations: all before is over, and the next one begins a step later (H3).
  void mark(std::uint64_t now) noexcept {
    append(HistoryMark(HistoryMark::Of::between, now).word());
    has_untimed_ = false;
  }

  void begin(HistoryOp op, std::uint64_t value, std::uint64_t count) noexcept {
    if (op == HistoryOp::put && value != next_value_) {
      append(HistoryMark(HistoryMark::Of::value, value).word());
      next_value_ = value;
    }
    begun_ = HistoryRow(op, HistoryOutcome::ok, {Seen::unknown, op == HistoryOp::put ? count : 0}).word();
    store(at_, begun_);  // keeps H1
  }

  [[nodiscard]] bool has_untimed() const noexcept { return has_untimed_; }
  // In an operation that has claimed nothing and will wait, so that the operations before do not seem as long.
  void mark_before_wait(std::uint64_t now) noexcept {
    move_on(HistoryMark(HistoryMark::Of::over, now).word());
    has_untimed_ = false;
  }

  // In the middle of a get: its claim, and its result if the worker lives. Its values are written first.
  [[gnu::always_inline]] void claim(const Seen& seen) noexcept {
    store(at_, HistoryRow(HistoryOp::get, HistoryOutcome::ok, seen).word());
  }
  [[gnu::always_inline]] void claim_value(std::uint64_t i, std::uint64_t value) noexcept {
    if (i == 0) {
      last_ = at_;
      next_in_run_ = Seen::unknown;
    }
    if (value == next_in_run_) {
      *last_ += HistoryRun::one_more;
    } else if (value < HistoryRun::limit) {
      *++last_ = value;
    } else {
      *++last_ = HistoryRun::too_long;
      *++last_ = value;
      next_in_run_ = Seen::unknown;
      return;
    }
    const bool goes_on = HistoryRun::length(*last_) < HistoryRun::most && value + 1 < HistoryRun::limit;
    next_in_run_ = goes_on ? value + 1 : Seen::unknown;
  }

  // The operation is over; the next mark says when.
  void end(HistoryOp op, HistoryOutcome outcome, const Seen& seen) noexcept {
    const HistoryRow row = HistoryRow(op, outcome, seen).with(HistoryRow::over_bit);
    std::uint64_t* next = (row.has_values() ? last_ : at_) + 1;
    *next = 0;
    store(at_, row.word());  // keeps H2
    at_ = next;
    if (op == HistoryOp::put) next_value_ += seen.count;
    has_untimed_ = true;
  }

  // A get has lost the item that it had claimed: that row stays pending, and another one continues it.
  void lose(const Seen& seen) noexcept {
    move_on(HistoryRow(HistoryOp::get, HistoryOutcome::ok, {seen.ticket, 1}).with(HistoryRow::lost_bit).word());
  }

  // The operation has done nothing: removes its row.
  void cancel() noexcept { store(at_, 0); }

 private:
  // Moves the row of the operation under way behind `word`. Until `word` is stored, the new row is void.
  void move_on(std::uint64_t word) noexcept {
    at_[1] = begun_;
    store(at_, word);
    ++at_;
  }
  void append(std::uint64_t word) noexcept {
    at_[1] = 0;
    store(at_, word);
    ++at_;
  }
  static void store(std::uint64_t* at, std::uint64_t word) noexcept {
    std::atomic_ref<std::uint64_t>(*at).store(word, std::memory_order_release);
  }

  std::uint64_t* at_;
  std::uint64_t* to_;
  std::uint64_t* last_ = nullptr;  // the last word of the get's values
  std::uint64_t begun_ = 0;        // the row of the operation under way, as it began
  std::uint64_t next_value_ = Seen::unknown;
  std::uint64_t next_in_run_ = Seen::unknown;
  bool has_untimed_ = false;
};

}  // namespace queueduct
