// History: every operation of one worker as a row, in memory that outlives it.
//
// Shape      rows of 64-bit words, one after the other, in a file of the worker's own:
//              | invoke | return | value | ticket | what | further values …
//              what:  | count : 32 | lost : 1 | redelivered : 1 | weak : 1 | outcome : 2 | op : 1 |
//            `count` items share a row if they were claimed in one step: a put's values and everybody's tickets are
//            then consecutive, a get's values follow. `invoke` 0: there are no more rows. `return` 0: pending, 1: over
//            by the time of the next row that has one; if none has, its worker was killed before it read the clock.
//            The memory is zeroed, and as long as has_room() was asked for.
// Roles      one worker writes; others read when it has ended, however it has ended.
// Invariants H1  a row is whole before `invoke` is stored, which comes before the operation: who is killed in the
//                operation leaves a pending row, who is killed before it none.
//            H2  `return` is stored last, after the operation: a row that has it is whole. It is first 1; of those that
//                were over before the clock was read, the last one gets the time.
//            H3  `invoke` was read before the operation's first access to shared memory, `return` after its last one
//                was seen by everybody. Where that costs less, times are further apart than they need be, never closer.
// Progress   wait-free.
//
// Memory orders: all stores are plain, for a process is killed between two instructions, and what it has stored before
//                is in its file. The compiler must keep H1 and H2: `invoke` and `return` are stored with release.
#pragma once

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "wait.hpp"

namespace penstock {

// Everything before it in the program has happened when the clock is read, and nothing after it.
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
// The time stamp counter, which the kernel's own clock is made of where it calls its clock source "tsc".
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

// How a worker's file begins; its rows follow. The magic comes last: without it nothing else is there.
struct HistoryHeader {
  static constexpr std::uint64_t magic = 0x5357'4f52'4b54'5350;  // "PSTKROWS"
  static constexpr std::uint64_t version = 2;
  static constexpr std::uint64_t words = 8;
  static constexpr std::uint64_t no_reader = 0;

  static void write(std::uint64_t* at, std::uint32_t worker, std::uint64_t reader_plus_one) noexcept {
    at[1] = version << 32 | worker;
    at[2] = reader_plus_one;
    std::atomic_ref<std::uint64_t>(at[0]).store(magic, std::memory_order_release);
  }
};

enum class HistoryOp : std::uint8_t { put = 0, get = 1 };
enum class HistoryOutcome : std::uint8_t { ok = 0, full = 1, empty = 2 };

// What an operation learned of itself.
struct Seen {
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  std::uint64_t ticket = unknown;  // of its first item; of full: the oldest item's; of empty: the next one's
  std::uint64_t count = 0;         // items, at consecutive tickets
  bool weak = false;               // it met a slot in mid-copy
  bool redelivered = false;        // somebody who died had the item before
};

class HistoryRow {
 public:
  static constexpr std::uint64_t words = 5;
  static constexpr std::uint64_t over = 1;
  static constexpr unsigned outcome_shift = 1;
  static constexpr unsigned count_shift = 32;
  static constexpr std::uint64_t weak_bit = 1 << 3;
  static constexpr std::uint64_t redelivered_bit = 1 << 4;
  static constexpr std::uint64_t lost_bit = 1 << 5;

  explicit HistoryRow(const std::uint64_t* at) noexcept : at_(at) {}

  [[nodiscard]] std::uint64_t invoke() const noexcept { return at_[0]; }
  [[nodiscard]] std::uint64_t returned() const noexcept { return at_[1]; }
  [[nodiscard]] std::uint64_t ticket() const noexcept { return at_[3]; }
  [[nodiscard]] HistoryOp op() const noexcept { return static_cast<HistoryOp>(at_[4] & 1); }
  [[nodiscard]] HistoryOutcome outcome() const noexcept {
    return static_cast<HistoryOutcome>(at_[4] >> outcome_shift & 3);
  }
  [[nodiscard]] bool has(std::uint64_t bit) const noexcept { return at_[4] & bit; }
  [[nodiscard]] std::uint64_t count() const noexcept { return at_[4] >> count_shift; }
  // Of a put: consecutive from the first one on.
  [[nodiscard]] std::uint64_t value(std::uint64_t i) const noexcept {
    if (op() == HistoryOp::put) return at_[2] + i;
    return i == 0 ? at_[2] : at_[words + i - 1];
  }
  [[nodiscard]] std::uint64_t length() const noexcept { return length_of(op(), count()); }
  [[nodiscard]] static std::uint64_t length_of(HistoryOp op, std::uint64_t count) noexcept {
    return op == HistoryOp::get && count > 1 ? words + count - 1 : words;
  }

 private:
  const std::uint64_t* at_;
};

// Operations as columns, one for each item of a row.
struct HistoryColumns {
  static constexpr std::uint8_t pending = 3;  // an outcome that no row has
  static constexpr std::uint8_t weak = 1, redelivered = 2, lost = 4;
  std::uint8_t* op;
  std::uint8_t* outcome;
  std::uint8_t* flags;
  std::uint64_t* value;
  std::uint64_t* ticket;
  std::uint64_t* invoke;
  std::uint64_t* returned;

  void write(std::uint64_t to, const HistoryRow& row, std::uint64_t i, std::uint64_t when) const noexcept {
    const bool is_pending = row.returned() == 0;  // not if it is over
    const bool has_item = row.count() > 0;
    op[to] = static_cast<std::uint8_t>(row.op());
    outcome[to] = is_pending ? pending : static_cast<std::uint8_t>(row.outcome());
    flags[to] = static_cast<std::uint8_t>((row.has(HistoryRow::weak_bit) ? weak : 0) |
                                          (row.has(HistoryRow::redelivered_bit) ? redelivered : 0) |
                                          (row.has(HistoryRow::lost_bit) ? lost : 0));
    const bool is_refused = !is_pending && row.outcome() != HistoryOutcome::ok;
    // A put that was killed just before its refusal was over had its value all the same.
    const bool has_value = has_item || (is_pending && row.op() == HistoryOp::put);
    value[to] = is_refused || !has_value ? Seen::unknown : row.value(i);
    const bool has_ticket = row.ticket() != Seen::unknown && (!is_pending || row.outcome() == HistoryOutcome::ok);
    ticket[to] = has_ticket ? row.ticket() + i : Seen::unknown;  // that of a refusal is no item's
    invoke[to] = row.invoke();
    returned[to] = when;
  }
};

// When the rows between `at` and `end` that are over were so; asked in their order.
class Returns {
 public:
  explicit Returns(const std::uint64_t* end) noexcept : end_(end) {}

  [[nodiscard]] std::uint64_t of(const std::uint64_t* at) noexcept {
    if (HistoryRow(at).returned() != HistoryRow::over) return HistoryRow(at).returned();
    if (at >= timed_) find(at);
    return when_;
  }

 private:
  void find(const std::uint64_t* at) noexcept {
    for (; static_cast<std::uint64_t>(end_ - at) >= HistoryRow::words && *at != 0; at += HistoryRow(at).length()) {
      timed_ = at;
      when_ = HistoryRow(at).returned();
      if (when_ > HistoryRow::over) return;
      if (HistoryRow(at).length() > static_cast<std::uint64_t>(end_ - at)) break;
    }
    timed_ = end_;
    when_ = HistoryRow::over;
  }

  const std::uint64_t* end_;
  const std::uint64_t* timed_ = nullptr;
  std::uint64_t when_ = HistoryRow::over;
};

// As many whole rows from `at` on as `limit` operations have room for; moves `at`. The number of operations; 0 at the
// end, and at a row that cannot be, where `at` is then before `end`.
[[nodiscard]] inline std::uint64_t read_history(const std::uint64_t*& at, const std::uint64_t* end,
                                                const HistoryColumns& to, std::uint64_t limit) noexcept {
  std::uint64_t read = 0;
  Returns returns(end);
  while (static_cast<std::uint64_t>(end - at) >= HistoryRow::words && *at != 0) {
    const HistoryRow row(at);
    const std::uint64_t items = row.count() > 0 ? row.count() : 1;
    if (items > limit - read || row.length() > static_cast<std::uint64_t>(end - at)) return read;
    const std::uint64_t when = returns.of(at);
    for (std::uint64_t i = 0; i < items; ++i) to.write(read + i, row, i, when);
    read += items;
    at += row.length();
  }
  if (read == 0) at = end;
  return read;
}

class HistoryWriter {
 public:
  // From where to where rows may go. `to` may be moved on when more memory is there.
  HistoryWriter(std::uint64_t* from, std::uint64_t* to) noexcept : at_(from), to_(to) {}
  void extend(std::uint64_t* to) noexcept { to_ = to; }

  // For a row of so many items, and those that it may lose on the way.
  [[nodiscard]] bool has_room(std::uint64_t items) const noexcept {
    return static_cast<std::uint64_t>(to_ - at_) >= (lost_at_once + 1) * HistoryRow::words + items;
  }
  [[nodiscard]] const std::uint64_t* at() const noexcept { return at_; }
  static constexpr std::uint64_t lost_at_once = 64;

  void begin(HistoryOp op, std::uint64_t value, std::uint64_t count, std::uint64_t invoke) noexcept {
    at_[1] = 0;
    at_[2] = value;
    at_[3] = Seen::unknown;
    at_[4] = static_cast<std::uint64_t>(op) | (op == HistoryOp::put ? count : 0) << HistoryRow::count_shift;
    store(0, invoke);  // keeps H1
  }

  // In the middle of a get: what it has claimed, and will have if it lives.
  void claim(const Seen& seen) noexcept {
    at_[3] = seen.ticket;
    at_[4] = what(HistoryOp::get, HistoryOutcome::ok, seen);
  }
  void claim_value(std::uint64_t i, std::uint64_t value) noexcept { at_[i == 0 ? 2 : HistoryRow::words + i - 1] = value; }

  // The operation is over. When is for time() to say.
  void end(HistoryOp op, HistoryOutcome outcome, const Seen& seen) noexcept {
    store(4, what(op, outcome, seen));
    store(3, seen.ticket);       // after what it is a ticket of
    store(1, HistoryRow::over);  // keeps H2
    untimed_ = at_;
    at_ += HistoryRow::length_of(op, seen.count);
  }

  [[nodiscard]] bool has_untimed() const noexcept { return untimed_ != nullptr; }
  // All that were over before the clock was read, by the last of them: keeps H3.
  void time(std::uint64_t returned) noexcept {
    if (untimed_ != nullptr) untimed_[1] = returned;
    untimed_ = nullptr;
  }

  // A get that had claimed an item and lost it: that row stays pending, and another one goes on.
  void lose(const Seen& seen) noexcept {
    const std::uint64_t invoke = at_[0];
    at_[2] = Seen::unknown;
    at_[3] = seen.ticket;
    at_[4] = what(HistoryOp::get, HistoryOutcome::ok, {seen.ticket, 1}) | HistoryRow::lost_bit;
    at_ += HistoryRow::words;
    begin(HistoryOp::get, Seen::unknown, 0, invoke);
  }

  // The operation has done nothing: as if it had never begun.
  void cancel() noexcept { store(0, 0); }

 private:
  [[nodiscard]] static std::uint64_t what(HistoryOp op, HistoryOutcome outcome, const Seen& seen) noexcept {
    return static_cast<std::uint64_t>(op) | static_cast<std::uint64_t>(outcome) << HistoryRow::outcome_shift |
           (seen.weak ? HistoryRow::weak_bit : 0) | (seen.redelivered ? HistoryRow::redelivered_bit : 0) |
           seen.count << HistoryRow::count_shift;
  }

  void store(std::uint64_t word, std::uint64_t value) noexcept {
    std::atomic_ref<std::uint64_t>(at_[word]).store(value, std::memory_order_release);
  }

  std::uint64_t* at_;
  std::uint64_t* untimed_ = nullptr;  // the last row that is over, if it has no time
  std::uint64_t* to_;
};

}  // namespace penstock
