// Reads what history.hpp writes: the operations of a worker that has ended, as columns, with an entry for each item.
//
// Roles      the writer has ended. It may have been killed at any step, and the file may be damaged: an impossible word
//            ends the reading, and nothing behind it is read.
#pragma once

#include <algorithm>

#include "verification/history.hpp"

namespace queueduct {

struct HistoryColumns {
  static constexpr std::uint8_t pending = 3;  // an outcome that no row has
  static constexpr std::uint8_t weak = 1, redelivered = 2, lost = 4;
  static constexpr std::uint64_t over = 1;  // at an unknown time: its worker was killed before it read the clock
  std::uint8_t* op;
  std::uint8_t* outcome;
  std::uint8_t* flags;
  std::uint64_t* value;
  std::uint64_t* ticket;
  std::uint64_t* invoke;
  std::uint64_t* returned;
};

class HistoryReader {
 public:
  HistoryReader(const std::uint64_t* from, const std::uint64_t* end, std::uint64_t step) noexcept
      : at_(from), end_(end), step_(step) {}

  // Reads as many whole rows as fit into `limit` operations. Returns the number of operations; 0 at the end.
  [[nodiscard]] std::uint64_t read(const HistoryColumns& to, std::uint64_t limit) noexcept {
    std::uint64_t read = 0;
    for (std::uint64_t length; (length = length_of(at_)) != 0; at_ += length) {
      if (kind_of(*at_) == HistoryWord::mark) {
        note(HistoryMark(*at_));
        continue;
      }
      const HistoryRow row(*at_);
      const std::uint64_t items = std::max<std::uint64_t>(row.count(), 1);
      if (items > limit - read) return read;
      write(to, read, row);
      read += items;
      if (is_last(row)) {
        at_ = end_;
        break;
      }
    }
    return read;
  }

  [[nodiscard]] const std::uint64_t* at() const noexcept { return at_; }
  // Returns true if the reading ended at an impossible word.
  [[nodiscard]] bool is_stuck() const noexcept { return at_ != end_ && *at_ != 0; }

 private:
  // Returns the length in words; 0 at the end, or at an impossible word.
  [[nodiscard]] std::uint64_t length_of(const std::uint64_t* at) const noexcept {
    if (at == end_ || kind_of(*at) == HistoryWord::end) return 0;
    if (kind_of(*at) == HistoryWord::mark) return 1;
    if (kind_of(*at) != HistoryWord::row) return 0;
    if (!HistoryRow(*at).has_values()) return 1;
    const std::uint64_t* next = at + 1;
    for (std::uint64_t left = HistoryRow(*at).count(); left > 0;) {
      if (next == end_) return 0;
      const bool is_long = *next & HistoryRun::too_long;
      const std::uint64_t length = is_long ? 1 : HistoryRun::length(*next);
      if (length > left || (is_long && end_ - next < 2)) return 0;
      left -= length;
      next += is_long ? 2 : 1;
    }
    return static_cast<std::uint64_t>(next - at);
  }

  void note(const HistoryMark& mark) noexcept {
    if (mark.of() == HistoryMark::Of::between) invoke_ = mark.what() + step_;
    if (mark.of() == HistoryMark::Of::value) next_value_ = mark.what();
  }

  // Returns true if the worker was killed in this operation.
  [[nodiscard]] static bool is_last(const HistoryRow& row) noexcept {
    return !row.has(HistoryRow::over_bit) && !row.has(HistoryRow::lost_bit);
  }

  [[nodiscard]] static std::uint8_t flags_of(const HistoryRow& row) noexcept {
    const int weak = row.has(HistoryRow::weak_bit) ? HistoryColumns::weak : 0;
    const int redelivered = row.has(HistoryRow::redelivered_bit) ? HistoryColumns::redelivered : 0;
    const int lost = row.has(HistoryRow::lost_bit) ? HistoryColumns::lost : 0;
    return static_cast<std::uint8_t>(weak | redelivered | lost);
  }

  void write(const HistoryColumns& to, std::uint64_t from, const HistoryRow& row) noexcept {
    const bool is_pending = !row.has(HistoryRow::over_bit);
    const std::uint64_t items = std::max<std::uint64_t>(row.count(), 1);
    const std::uint64_t when = is_pending ? 0 : return_of(at_);
    const std::uint8_t outcome = is_pending ? HistoryColumns::pending : static_cast<std::uint8_t>(row.outcome());
    const std::uint8_t flags = flags_of(row);
    for (std::uint64_t i = 0; i < items; ++i) {
      to.op[from + i] = static_cast<std::uint8_t>(row.op());
      to.outcome[from + i] = outcome;
      to.flags[from + i] = flags;
      to.ticket[from + i] = row.ticket() == Seen::unknown ? Seen::unknown : row.ticket() + i;
      to.invoke[from + i] = invoke_;
      to.returned[from + i] = when;
    }
    write_values(to.value + from, row, items);
  }

  void write_values(std::uint64_t* to, const HistoryRow& row, std::uint64_t items) noexcept {
    if (row.has_values()) {
      const std::uint64_t* word = at_ + 1;
      for (std::uint64_t i = 0; i < items; ++word) {
        if (*word & HistoryRun::too_long) {
          to[i++] = *++word;
          continue;
        }
        const std::uint64_t length = HistoryRun::length(*word);
        for (std::uint64_t j = 0; j < length; ++j) to[i++] = HistoryRun::first(*word) + j;
      }
    } else if (row.op() == HistoryOp::put && row.count() > 0) {
      for (std::uint64_t i = 0; i < items; ++i) to[i] = next_value_ + i;
      if (row.has(HistoryRow::over_bit)) next_value_ += items;
    } else {
      for (std::uint64_t i = 0; i < items; ++i) to[i] = Seen::unknown;
    }
  }

  // Returns when the row at `at` was over; called in the order of rows.
  [[nodiscard]] std::uint64_t return_of(const std::uint64_t* at) noexcept {
    if (at < timed_) return when_;
    when_ = HistoryColumns::over;
    std::uint64_t length;
    for (timed_ = at; (length = length_of(timed_)) != 0; timed_ += length) {
      if (kind_of(*timed_) == HistoryWord::row) {
        if (is_last(HistoryRow(*timed_))) break;
      } else if (HistoryMark(*timed_).of() != HistoryMark::Of::value) {
        when_ = HistoryMark(*timed_).what();
        return when_;
      }
    }
    timed_ = end_;
    return when_;
  }

  const std::uint64_t* at_;
  const std::uint64_t* end_;
  std::uint64_t step_;
  std::uint64_t invoke_ = 0;
  std::uint64_t next_value_ = 0;
  const std::uint64_t* timed_ = nullptr;  // rows before it were over …
  std::uint64_t when_ = 0;                // … by then
};

}  // namespace queueduct
