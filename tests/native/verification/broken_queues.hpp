// Queues with a fault each, which the check of a history must find. None of them is in the package.
//
// They are driven by the same worker as the real ones (stress_worker.hpp), between threads, and record the same rows.
// Where a fault needs two threads in one place, one of them now and then gives its core away there.
#pragma once

#include <sched.h>

#include <memory>
#include <vector>

#include "verification/worker.hpp"

namespace queueduct::testing {

enum class Fault {
  none,
  no_generation_check,  // a put looks at the positions only: it writes into a slot that somebody is still reading
  false_empty,          // a slot in mid-copy is called an empty queue
  double_delivery,      // two gets can claim one position
  lost_item,            // a get now and then claims two positions and gives back the first
};

// Yields at one call of a few.
class Stumble {
 public:
  explicit Stumble(std::uint64_t seed) noexcept : random_(seed) {}
  void maybe() noexcept {
    if (random_.next() % 16 == 0) sched_yield();
  }
  [[nodiscard]] bool one_of(std::uint64_t n) noexcept { return random_.next() % n == 0; }

 private:
  Random random_;
};

// What the threads of one queue share: a ring of generations, as in ring/ring.hpp, without what makes that safe.
struct BrokenRing {
  explicit BrokenRing(std::uint64_t slots, std::uint64_t bytes)
      : capacity(slots), item_bytes(bytes), generations(std::make_unique<std::atomic<std::uint64_t>[]>(slots)),
        payload(std::make_unique<std::atomic<std::uint64_t>[]>(slots * bytes / 8)) {
    for (std::uint64_t i = 0; i < slots; ++i) generations[i].store(i);
  }

  // Word by word, so that a fault is a wrong item and not a race that the language leaves open.
  void copy_in(std::uint64_t position, const std::byte* from) noexcept {
    for (std::uint64_t i = 0; i < item_bytes / 8; ++i) {
      std::uint64_t word;
      std::memcpy(&word, from + 8 * i, 8);
      payload[position % capacity * (item_bytes / 8) + i].store(word, std::memory_order_relaxed);
    }
  }
  void copy_out(std::uint64_t position, std::byte* to) const noexcept {
    for (std::uint64_t i = 0; i < item_bytes / 8; ++i) {
      const std::uint64_t word = payload[position % capacity * (item_bytes / 8) + i].load(std::memory_order_relaxed);
      std::memcpy(to + 8 * i, &word, 8);
    }
  }
  [[nodiscard]] std::atomic<std::uint64_t>& generation_of(std::uint64_t position) const noexcept {
    return generations[position % capacity];
  }

  const std::uint64_t capacity;
  const std::uint64_t item_bytes;
  std::atomic<std::uint64_t> push{0};
  std::atomic<std::uint64_t> pop{0};
  std::atomic<bool> is_closed{false};
  std::unique_ptr<std::atomic<std::uint64_t>[]> generations;
  std::unique_ptr<std::atomic<std::uint64_t>[]> payload;
};

class BrokenQueue {
 public:
  static constexpr bool has_batches = false;

  BrokenQueue(BrokenRing& ring, Fault fault, std::uint64_t seed) noexcept
      : ring_(ring), fault_(fault), stumble_(seed) {}

  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t, Seen& seen) noexcept {
    std::uint64_t position = ring_.push.load();
    for (;;) {
      const std::uint64_t popped = ring_.pop.load();
      const bool is_free = fault_ == Fault::no_generation_check ? position - popped < ring_.capacity
                                                                : ring_.generation_of(position).load() == position;
      if (is_free) {
        if (ring_.push.compare_exchange_strong(position, position + 1)) break;
        continue;
      }
      const std::uint64_t now = ring_.push.load();
      if (now == position) {
        seen = {position - ring_.capacity, 0, popped + ring_.capacity != position};
        return Answer::refused;
      }
      position = now;
    }
    stumble_.maybe();
    ring_.copy_in(position, items);
    ring_.generation_of(position).store(position + 1);
    seen = {position, 1};
    return Answer::done;
  }

  template <class Notes>
  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t, Seen& seen, Notes& notes) noexcept {
    for (;;) {
      std::uint64_t position = ring_.pop.load();
      const bool is_closed = ring_.is_closed.load();
      if (ring_.generation_of(position).load() != position + 1) {
        const std::uint64_t pushed = ring_.push.load();
        if (ring_.pop.load() != position) continue;
        if (pushed == position && is_closed) return Answer::closed;
        seen = {position, 0, fault_ != Fault::false_empty && pushed != position};
        return Answer::refused;
      }
      const std::uint64_t step = fault_ == Fault::lost_item && stumble_.one_of(1000) && has_next(position) ? 2 : 1;
      if (fault_ == Fault::double_delivery) stumble_.maybe();
      std::uint64_t expected = position;
      const bool is_ours = ring_.pop.compare_exchange_strong(expected, position + step);
      if (!is_ours && fault_ != Fault::double_delivery) continue;
      stumble_.maybe();
      for (std::uint64_t i = 0; i < step; ++i) {
        ring_.copy_out(position + i, to);
        release(position + i);
      }
      seen = {position + step - 1, 1};
      notes.copied(to, seen);
      return Answer::done;
    }
  }

  void wait_for_room(std::int64_t) noexcept { sched_yield(); }
  void wait_for_items(std::int64_t) noexcept { sched_yield(); }

 private:
  // By compare-and-swap: a fault is to give wrong items, not to bring the run to a halt.
  void release(std::uint64_t position) noexcept {
    std::uint64_t published = position + 1;
    if (fault_ != Fault::no_generation_check)  // then nobody looks whether a slot is free
      ring_.generation_of(position).compare_exchange_strong(published, position + ring_.capacity);
  }

  [[nodiscard]] bool has_next(std::uint64_t position) const noexcept {
    return ring_.generation_of(position + 1).load() == position + 2;
  }

  BrokenRing& ring_;
  Fault fault_;
  Stumble stumble_;
};

// Sub-queues of 4, 16, 64, … items, which a writer leaves when its one is full and a reader when its one is empty and
// the writer has gone on. Nobody looks whether another writer is still about to put into the one that is left.
struct NaiveGrowing {
  explicit NaiveGrowing(std::uint64_t bytes) {
    for (std::uint64_t size = 4; size <= std::uint64_t{1} << 20; size *= 4)
      levels.push_back(std::make_unique<BrokenRing>(size, bytes));
  }
  std::vector<std::unique_ptr<BrokenRing>> levels;
  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> read{0};
  std::atomic<bool> is_closed{false};
};

class NaiveGrowingQueue {
 public:
  static constexpr bool has_batches = false;

  NaiveGrowingQueue(NaiveGrowing& queue, std::uint64_t seed) noexcept : queue_(queue), stumble_(seed), seed_(seed) {}

  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t, Seen& seen) noexcept {
    for (;;) {
      std::uint64_t level = queue_.written.load();
      stumble_.maybe();  // here it is still of the old level, and the reader may leave that
      Seen there;
      BrokenQueue ring(*queue_.levels[level], Fault::none, ++seed_);
      if (ring.try_put(items, 1, there) == Answer::done) {
        seen = {Seen::unknown, 1};
        return Answer::done;
      }
      if (level + 1 == queue_.levels.size()) return Answer::refused;
      queue_.written.compare_exchange_strong(level, level + 1);
    }
  }

  template <class Notes>
  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t, Seen& seen, Notes& notes) noexcept {
    for (;;) {
      std::uint64_t level = queue_.read.load();
      const bool is_closed = queue_.is_closed.load();
      Told<Notes> told{notes};
      BrokenQueue ring(*queue_.levels[level], Fault::none, ++seed_);
      if (ring.try_get(to, 1, seen, told) == Answer::done) {
        seen.ticket = Seen::unknown;
        return Answer::done;
      }
      seen = {};
      if (level < queue_.written.load()) {
        queue_.read.compare_exchange_strong(level, level + 1);
        continue;
      }
      return is_closed ? Answer::closed : Answer::refused;
    }
  }

  void wait_for_room(std::int64_t) noexcept { sched_yield(); }
  void wait_for_items(std::int64_t) noexcept { sched_yield(); }

 private:
  // A position within a level is no position of the queue.
  template <class Notes>
  struct Told {
    Notes& notes;
    void copied(const std::byte* items, Seen seen) noexcept {
      seen.ticket = Seen::unknown;
      notes.copied(items, seen);
    }
  };

  NaiveGrowing& queue_;
  Stumble stumble_;
  std::uint64_t seed_;
};

}  // namespace queueduct::testing
