// A worker of a stress run: puts or gets as fast as it can, and records its operations.
//
// Shape      a driver for each kind (ring_driver.hpp, …) makes the calls to the queue:
//              Answer try_put(const std::byte* items, std::uint64_t count, Seen&)
//              Answer try_get(std::byte* to, std::uint64_t limit, Seen&, Notes&)
//              void wait_for_room(std::int64_t limit_ns), wait_for_items(std::int64_t limit_ns)
//              static constexpr bool has_batches     several items by one claim, at consecutive tickets
//              void after_put()                      optional: between two puts
//            A get calls notes.copied(items, seen) after it has copied and before it releases its claim. If its items
//            are not known yet at the claim, it calls notes.took(ticket), then notes.lost(ticket) if it lost the item,
//            or notes.read(items, count).
//            An item is `item_bytes` long: its value, then words computed from it, which show if it is torn.
// Roles      one worker; the parent starts, stops and watches it through the board.
// Progress   as the queue's. A wait ends every park_limit_ns, and the worker then checks whether it must stop.
#pragma once

#include <unistd.h>

#include <cstring>
#include <utility>

#include "verification/history.hpp"

namespace queueduct {

// The result of an attempt. busy: the worker must wait, even if it only tries.
enum class Answer : std::uint8_t { done, refused, busy, closed, corrupt, no_memory };

// The end of a turn.
enum class Turn : std::uint8_t {
  again,      // the turn's operations are done: there may be more
  no_room,    // the history needs memory for more rows
  finished,   // all items are put, or the queue has ended
  stopped,    // the board says so
  corrupt,
  no_memory,
};

enum class Signal : std::uint32_t { wait = 0, run = 1, stop_producers = 2, stop = 3 };

// The parent's signal to all workers, then a line a worker.
struct StressBoard {
  alignas(line_bytes) std::atomic<std::uint32_t> signal;
};
struct StressLine {
  alignas(line_bytes) std::atomic<std::uint64_t> items;  // put or got
  std::atomic<std::uint64_t> operations;                 // refused ones included
  std::atomic<std::uint64_t> torn;
  std::atomic<std::uint64_t> cpu_ns;    // processor time of its turns
  std::atomic<std::uint64_t> ended_ns;  // of the monotonic clock, after its last turn; 0 if it had none
  std::atomic<std::uint32_t> is_ready;
};
static_assert(sizeof(StressBoard) == line_bytes && sizeof(StressLine) == line_bytes);

struct StressPlan {
  std::uint64_t first_value = 0;  // a producer's: its values count from there
  std::uint64_t items = 0;        // a producer's: how many to put
  std::uint64_t batch = 1;        // at most
  std::uint64_t item_bytes = 8;
  std::uint64_t seed = 1;
  std::uint32_t waits = 1;  // of waits + tries operations, this many wait …
  std::uint32_t tries = 0;  // … and this many only try
  std::uint32_t turn = 4096;
  std::uint64_t group = 1;  // operations that share two readings of the clock, at most
  int parent = 0;           // a worker ends with this process; 0: workers are its threads
};

// Marsaglia's xorshift.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed | 1) {}
  [[nodiscard]] std::uint64_t next() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

namespace stress_item {

[[nodiscard]] constexpr std::uint64_t word(std::uint64_t value, std::uint64_t i) noexcept {
  return i == 0 ? value : (value + i) * 0x9e37'79b9'7f4a'7c15;
}
inline void write(std::byte* to, std::uint64_t bytes, std::uint64_t value) noexcept {
  for (std::uint64_t i = 0; i < bytes / 8; ++i) {
    const std::uint64_t each = word(value, i);
    std::memcpy(to + 8 * i, &each, 8);
  }
}
// Returns the value, or its complement if the item is torn: values have no highest bit.
[[nodiscard]] inline std::uint64_t read(const std::byte* from, std::uint64_t bytes) noexcept {
  std::uint64_t value;
  std::memcpy(&value, from, 8);
  std::uint64_t difference = 0;
  for (std::uint64_t i = 1; i < bytes / 8; ++i) {
    std::uint64_t each;
    std::memcpy(&each, from + 8 * i, 8);
    difference |= each ^ word(value, i);
  }
  return difference == 0 ? value : ~value;
}
[[nodiscard]] constexpr bool is_torn(std::uint64_t value) noexcept { return value >> 63; }

}  // namespace stress_item

// Writes a history. The clock is read between two operations: after all of the one and before all of the next (H3),
// whose invoke is a nanosecond later, which the fence in now() alone takes. Reading it costs as much as an operation,
// so up to `group` operations may share two readings: they began after the first and were over before the second. The
// size of each group is random, so that any two neighbours are told apart sooner or later.
template <class Clock>
class Recording {
 public:
  Recording(HistoryWriter& rows, const StressPlan& plan) noexcept
      : rows_(rows), group_(plan.group), random_(plan.seed) {}

  [[nodiscard]] bool has_room(std::uint64_t items) const noexcept { return rows_.has_room(items); }
  // Also at a turn's begin and end.
  void read_clock() noexcept {
    rows_.mark(Clock::now());
    left_ = group_ == 1 ? 1 : 1 + random_.next() % group_;
  }
  void before_wait() noexcept {
    if (rows_.has_untimed()) rows_.mark_before_wait(Clock::now());
  }
  void begin(HistoryOp op, std::uint64_t value, std::uint64_t count) noexcept { rows_.begin(op, value, count); }
  void claim(const Seen& seen) noexcept { rows_.claim(seen); }
  void claim_value(std::uint64_t i, std::uint64_t value) noexcept { rows_.claim_value(i, value); }
  void lose(std::uint64_t ticket) noexcept { rows_.lose({ticket, 1}); }
  void end(HistoryOp op, HistoryOutcome outcome, const Seen& seen) noexcept {
    rows_.end(op, outcome, seen);
    if (--left_ == 0) read_clock();
  }
  void cancel() noexcept { rows_.cancel(); }

 private:
  HistoryWriter& rows_;
  std::uint64_t group_;
  Random random_;
  std::uint64_t left_ = 1;
};

// For a run without a history, to measure its cost.
struct NoRecording {
  [[nodiscard]] static bool has_room(std::uint64_t) noexcept { return true; }
  static void read_clock() noexcept {}
  static void before_wait() noexcept {}
  static void begin(HistoryOp, std::uint64_t, std::uint64_t) noexcept {}
  static void claim(const Seen&) noexcept {}
  static void claim_value(std::uint64_t, std::uint64_t) noexcept {}
  static void lose(std::uint64_t) noexcept {}
  static void end(HistoryOp, HistoryOutcome, const Seen&) noexcept {}
  static void cancel() noexcept {}
};

template <class Queue, class Record>
class StressWorker {
 public:
  // `items`: memory for a batch.
  StressWorker(Queue& queue, Record record, const StressPlan& plan, std::byte* items, StressBoard& board,
               StressLine& line) noexcept
      : queue_(queue), record_(record), plan_(plan), items_(items), board_(board), line_(line), random_(plan.seed) {}

  [[nodiscard]] Turn put_some() noexcept {
    return take_turn(Signal::stop_producers, [this] { return put_once(); });
  }
  [[nodiscard]] Turn get_some() noexcept {
    return take_turn(Signal::stop, [this] { return get_once(); });
  }

  // The notes of a get.
  void took(std::uint64_t ticket) noexcept { record_.claim({ticket, 0}); }
  void copied(const std::byte* items, const Seen& seen) noexcept {
    read(items, seen.count);
    record_.claim(seen);
  }
  void read(const std::byte* items, std::uint64_t count) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t value = stress_item::read(items + i * plan_.item_bytes, plan_.item_bytes);
      if (stress_item::is_torn(value)) [[unlikely]] add(line_.torn, 1);
      record_.claim_value(i, value);
    }
  }
  void lost(std::uint64_t ticket) noexcept {
    record_.lose(ticket);
    ++lost_;
  }

 private:
  [[nodiscard]] Turn take_turn(Signal limit, auto once) noexcept {
    record_.read_clock();
    Turn turn = Turn::again;
    for (std::uint32_t i = 0; i < plan_.turn && turn == Turn::again; ++i) {
      if (must_stop(limit))
        turn = Turn::stopped;
      else
        turn = record_.has_room(plan_.batch) ? once() : Turn::no_room;
    }
    record_.read_clock();
    return turn == Turn::again && is_orphan() ? Turn::stopped : turn;
  }

  [[nodiscard]] Turn put_once() noexcept {
    if (put_ == plan_.items) return Turn::finished;
    const std::uint64_t count = batch_of(plan_.items - put_);
    const std::uint64_t value = plan_.first_value + put_;
    for (std::uint64_t i = 0; i < count; ++i)
      stress_item::write(items_ + i * plan_.item_bytes, plan_.item_bytes, value + i);
    const bool waits = next_waits();
    record_.begin(HistoryOp::put, value, count);
    Seen seen;
    const Answer answer =
        insist(waits, Signal::stop_producers, [&] { seen = {}; return queue_.try_put(items_, count, seen); },
               [this] { queue_.wait_for_room(park_limit_ns); });
    if (answer == Answer::done) put_ += seen.count;
    const Turn turn = finish(HistoryOp::put, HistoryOutcome::full, answer, seen);
    if constexpr (requires { queue_.after_put(); }) queue_.after_put();
    return turn;
  }

  [[nodiscard]] Turn get_once() noexcept {
    const std::uint64_t limit = batch_of(plan_.batch);
    const bool waits = next_waits();
    lost_ = 0;
    record_.begin(HistoryOp::get, Seen::unknown, 0);
    Seen seen;
    const Answer answer =
        insist(waits, Signal::stop, [&] { seen = {}; return queue_.try_get(items_, limit, seen, *this); },
               [this] { queue_.wait_for_items(park_limit_ns); });
    return finish(HistoryOp::get, HistoryOutcome::empty, answer, seen);
  }

  // Tries until it is done, or is refused and need not wait. Returns closed also if the worker must stop.
  [[nodiscard]] Answer insist(bool waits, Signal limit, auto attempt, auto wait) noexcept {
    for (;;) {
      const Answer answer = attempt();
      if (answer != Answer::busy && (answer != Answer::refused || !waits)) return answer;
      if (lost_ > HistoryWriter::lost_at_once / 2) return Answer::refused;  // there is room for so many rows
      if (must_stop(limit) || is_orphan()) return Answer::closed;
      record_.before_wait();
      wait();
    }
  }

  [[nodiscard]] Turn finish(HistoryOp op, HistoryOutcome refusal, Answer answer, const Seen& seen) noexcept {
    if (answer != Answer::done && answer != Answer::refused) {
      record_.cancel();
      if (answer == Answer::corrupt) return Turn::corrupt;
      return answer == Answer::no_memory ? Turn::no_memory : Turn::finished;
    }
    record_.end(op, answer == Answer::done ? HistoryOutcome::ok : refusal, seen);
    must_wait_ = answer == Answer::refused;
    add(line_.items, answer == Answer::done ? seen.count : 0);
    add(line_.operations, answer == Answer::done ? seen.count : 1);
    return Turn::again;
  }

  // Only this worker writes the line. release: a parent that has seen the count may start a worker that continues it
  static void add(std::atomic<std::uint64_t>& to, std::uint64_t more) noexcept {
    to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_release);
  }
  [[nodiscard]] bool must_stop(Signal limit) const noexcept {
    return board_.signal.load(std::memory_order_relaxed) >= static_cast<std::uint32_t>(limit);
  }
  [[nodiscard]] bool is_orphan() const noexcept { return plan_.parent != 0 && getppid() != plan_.parent; }

  [[nodiscard]] std::uint64_t batch_of(std::uint64_t left) noexcept {
    if constexpr (!Queue::has_batches) return 1;
    const std::uint64_t count = plan_.batch == 1 ? 1 : 1 + random_.next() % plan_.batch;
    return count < left ? count : left;
  }
  // A refused worker waits next, else it would ask a full queue a million times.
  [[nodiscard]] bool next_waits() noexcept {
    if (must_wait_ || plan_.tries == 0) return true;
    return random_.next() % (plan_.waits + plan_.tries) < plan_.waits;
  }

  Queue& queue_;
  Record record_;
  const StressPlan plan_;
  std::byte* items_;
  StressBoard& board_;
  StressLine& line_;
  Random random_;
  std::uint64_t put_ = 0;
  std::uint64_t lost_ = 0;  // by the get under way
  bool must_wait_ = false;
};

}  // namespace queueduct
