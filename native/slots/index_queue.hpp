// Index queue: the indices 0 … n-1, each at most once, as cyclic indices in single words.
//
// Shape      a cyclic index is one word: | cycle : 64-b | index : b |, b the bits that n-1 needs.
//            empty   [ (0,0), (0,0), (0,0), (0,0) ]   head=(1,0)  tail=(1,0)
//            full    [ (0,0), (0,1), (0,2), (0,3) ]   head=(0,0)  tail=(1,0)
//            (i)     [  c   |*****c*****|   c-1              ]
//                          head=(c,i)   tail=(c,j)
//            (ii)    [******c*****|   c-1     |******c-1*****]
//                             tail=(c,i)   head=(c-1,j)
// Roles      any number of pushers and poppers. A pusher owns the index that it pushes: it is in no queue.
// Invariants X1  head and tail only go forward, one cell a step; head - 1 <= tail <= head + n.
//            X2  the cell at tail is one cycle behind it, or already of its cycle: pushed, and tail not yet moved.
//                A push is the one compare-and-swap of that cell; any participant may move tail.
//            X3  a cell of head's cycle is in the queue. It is overwritten only one cycle later, which takes n
//                pushes: so not while it is in, since its pusher would have to have an (n+1)-th index.
//            X4  no word returns to an old value within 2^64 pushes, so a compare-and-swap that succeeds saw no ABA.
// Progress   lock-free by side: a failed compare-and-swap means that another push, or another pop, succeeded.
//            Pops never wait for pushes nor the reverse: a stopped participant leaves nothing that others need.
// Source     the cycle in each cell is that of SCQ (Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free
//            FIFO Queue", DISC 2019); a push here is one compare-and-swap of the cell.
//
// Memory orders come in pairs:
//   Q1  push():          release compare-and-swap of a cell   with acquire load in front(): what the index stands for
//   Q2  advance_head():  release                              with acquire load of head in front()
//   Q3  advance_tail():  release                              with acquire load of tail in push() and size()
#pragma once

#include "core/failpoint.hpp"
#include "core/platform.hpp"

namespace queueduct {

// The arithmetic of cyclic indices of cycle length n. All of it is modulo 2^64, and n need not be a power of two.
class CyclicIndices {
 public:
  constexpr explicit CyclicIndices(std::uint64_t n) noexcept
      : n_(n), bits_(static_cast<unsigned>(std::bit_width(n - 1))) {}

  [[nodiscard]] constexpr std::uint64_t n() const noexcept { return n_; }
  [[nodiscard]] constexpr std::uint64_t make(std::uint64_t cycle, std::uint64_t index) const noexcept {
    return cycle << bits_ | index;
  }
  [[nodiscard]] constexpr std::uint64_t cycle_of(std::uint64_t word) const noexcept { return word >> bits_; }
  [[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t word) const noexcept {
    return word & ((std::uint64_t{1} << bits_) - 1);
  }
  [[nodiscard]] constexpr std::uint64_t next(std::uint64_t word) const noexcept {
    return index_of(word) + 1 == n_ ? make(cycle_of(word) + 1, 0) : word + 1;
  }
  // How many cycles `word` is behind `at`; the cycle wraps with its own bits.
  [[nodiscard]] constexpr std::uint64_t cycles_behind(std::uint64_t word, std::uint64_t at) const noexcept {
    return (cycle_of(at) - cycle_of(word)) << bits_ >> bits_;
  }
  // Steps of next() from one to the other; negative: the other way.
  [[nodiscard]] constexpr std::int64_t distance(std::uint64_t from, std::uint64_t to) const noexcept {
    const auto cycles = static_cast<std::int64_t>((cycle_of(to) - cycle_of(from)) << bits_) >> bits_;
    return cycles * static_cast<std::int64_t>(n_) + static_cast<std::int64_t>(index_of(to) - index_of(from));
  }
  // How many steps after (1,0), where an empty queue starts.
  [[nodiscard]] constexpr std::uint64_t ordinal(std::uint64_t word) const noexcept {
    return (cycle_of(word) - 1) * n_ + index_of(word);
  }

 private:
  std::uint64_t n_;
  unsigned bits_;
};

// Both ends of an index queue, as they lie in memory.
struct IndexEnds {
  alignas(line_bytes) std::atomic<std::uint64_t> head;  // poppers write
  alignas(line_bytes) std::atomic<std::uint64_t> tail;  // pushers write
};
static_assert(sizeof(IndexEnds) == 2 * line_bytes);

// An index queue on memory of the caller's.
class IndexQueue {
 public:
  using Cells = std::atomic<std::uint64_t>*;

  IndexQueue(IndexEnds* ends, Cells cells, std::uint64_t n) noexcept : ends_(ends), cells_(cells), cyclic_(n) {}

  // From a cycle of one's choice: a test starts it shortly before the words wrap.
  void construct_empty(std::uint64_t cycle = 0) noexcept { construct(cycle, false); }
  void construct_full(std::uint64_t cycle = 0) noexcept { construct(cycle, true); }

  enum class Seen : std::uint8_t { index, nothing, corrupt };
  struct Front {
    Seen seen;
    std::uint64_t at = 0;     // where head was
    std::uint64_t index = 0;  // what is there
  };

  // What a pop would take.
  [[nodiscard]] Front front() const noexcept {
    for (;;) {
      const std::uint64_t head = ends_->head.load(std::memory_order_acquire);  // acquire Q2
      QUEUEDUCT_FAILPOINT("index.read_head");
      if (cyclic_.index_of(head) >= cyclic_.n()) return {Seen::corrupt};
      const std::uint64_t cell = cell_at(head).load(std::memory_order_acquire);  // acquire Q1
      QUEUEDUCT_FAILPOINT("index.read_front");
      const std::uint64_t behind = cyclic_.cycles_behind(cell, head);
      if (behind == 0) {
        const std::uint64_t index = cyclic_.index_of(cell);
        return {index < cyclic_.n() ? Seen::index : Seen::corrupt, head, index};
      }
      if (ends_->head.load(std::memory_order_relaxed) != head) continue;  // overtaken: the cell is of a later cycle
      return {behind == 1 ? Seen::nothing : Seen::corrupt, head, 0};
    }
  }

  // relaxed: only equality with what front() saw matters, and the caller's loads before it are acquire
  [[nodiscard]] bool is_front(std::uint64_t at) const noexcept {
    return ends_->head.load(std::memory_order_relaxed) == at;
  }

  // Moves head on from `at`, unless another participant has. keeps X1
  bool advance_head(std::uint64_t at) noexcept {
    QUEUEDUCT_FAILPOINT("index.before_head");
    const bool moved = ends_->head.compare_exchange_strong(at, cyclic_.next(at), std::memory_order_acq_rel,
                                                           std::memory_order_acquire);  // release Q2
    QUEUEDUCT_FAILPOINT("index.moved_head");
    return moved;
  }

  // Pushes an index that the caller has. before(at) is called ahead of each try with the place it would get.
  // Returns false if the words contradict each other.
  template <class Before>
  [[nodiscard]] bool push(std::uint64_t index, Before before) noexcept {
    for (;;) {
      const std::uint64_t tail = ends_->tail.load(std::memory_order_acquire);  // acquire Q3
      QUEUEDUCT_FAILPOINT("index.read_tail");
      if (cyclic_.index_of(tail) >= cyclic_.n()) return false;
      std::uint64_t cell = cell_at(tail).load(std::memory_order_acquire);
      const std::uint64_t behind = cyclic_.cycles_behind(cell, tail);
      if (behind == 1) {
        before(tail);
        QUEUEDUCT_FAILPOINT("index.before_push");
        // release Q1; keeps X2
        if (cell_at(tail).compare_exchange_strong(cell, cyclic_.make(cyclic_.cycle_of(tail), index),
                                                  std::memory_order_acq_rel, std::memory_order_relaxed)) {
          QUEUEDUCT_FAILPOINT("index.pushed");
          advance_tail(tail);
          return true;
        }
      } else if (behind == 0) {
        advance_tail(tail);
      } else if (ends_->tail.load(std::memory_order_relaxed) == tail) {
        return false;
      }
    }
  }
  [[nodiscard]] bool push(std::uint64_t index) noexcept {
    return push(index, [](std::uint64_t) {});
  }

  [[nodiscard]] Seen pop(std::uint64_t& index) noexcept { return pop_if_size_at_least(0, index); }
  [[nodiscard]] Seen pop_if_full(std::uint64_t& index) noexcept { return pop_if_size_at_least(cyclic_.n(), index); }

  // The oldest, if there are `least` at that moment: tail only rises, so what was true of head is so when it moves.
  [[nodiscard]] Seen pop_if_size_at_least(std::uint64_t least, std::uint64_t& index) noexcept {
    for (;;) {
      const Front found = front();
      if (found.seen != Seen::index) return found.seen;
      if (least > 1 && !has_at_least(least, found.at)) {
        if (is_front(found.at)) return Seen::nothing;
        continue;
      }
      if (advance_head(found.at)) {
        index = found.index;
        return Seen::index;
      }
    }
  }

  // Tail after all that was pushed: a pusher that is stopped, or dead, may not have moved it. keeps X2
  [[nodiscard]] std::uint64_t settled_tail() noexcept {
    for (;;) {
      const std::uint64_t tail = ends_->tail.load(std::memory_order_acquire);  // acquire Q3
      if (cyclic_.index_of(tail) >= cyclic_.n()) return tail;
      const std::uint64_t cell = cell_at(tail).load(std::memory_order_acquire);
      if (cyclic_.cycles_behind(cell, tail) != 0) return tail;
      advance_tail(tail);
    }
  }

  // The same, but a lagging tail stays as it is: for a watcher, whose memory is read-only.
  [[nodiscard]] std::uint64_t seen_tail() const noexcept {
    std::uint64_t tail = ends_->tail.load(std::memory_order_acquire);  // acquire Q3
    for (std::uint64_t i = 0; i < cyclic_.n() && cyclic_.index_of(tail) < cyclic_.n(); ++i) {
      const std::uint64_t cell = cell_at(tail).load(std::memory_order_acquire);
      if (cyclic_.cycles_behind(cell, tail) != 0) break;
      tail = cyclic_.next(tail);
    }
    return tail;
  }

  // Are there so many from `at` on?
  [[nodiscard]] bool has_at_least(std::uint64_t count, std::uint64_t at) noexcept {
    return cyclic_.distance(at, settled_tail()) >= static_cast<std::int64_t>(count);
  }

  // A snapshot: exact while no push or pop is in progress.
  [[nodiscard]] std::uint64_t size() noexcept {
    const std::uint64_t tail = settled_tail();
    const std::int64_t size = cyclic_.distance(ends_->head.load(std::memory_order_acquire), tail);
    if (size <= 0) return 0;
    return static_cast<std::uint64_t>(size) < cyclic_.n() ? static_cast<std::uint64_t>(size) : cyclic_.n();
  }

  // Is the index in the queue? Exact for an index that is not pushed or popped meanwhile.
  [[nodiscard]] bool contains(std::uint64_t index) const noexcept {
    for (std::uint64_t at = 0; at < cyclic_.n(); ++at) {
      const std::uint64_t cell = cells_[at].load(std::memory_order_acquire);
      if (cyclic_.index_of(cell) != index) continue;
      QUEUEDUCT_FAILPOINT("index.found");
      // head after the cell: a cell that head has passed was popped, and only looks as if it were there
      const std::uint64_t head = ends_->head.load(std::memory_order_acquire);
      if (cyclic_.distance(head, cyclic_.make(cyclic_.cycle_of(cell), at)) >= 0) return true;
    }
    return false;
  }

  [[nodiscard]] const CyclicIndices& cyclic() const noexcept { return cyclic_; }
  [[nodiscard]] std::uint64_t head() const noexcept { return ends_->head.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t tail() const noexcept { return ends_->tail.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t cell(std::uint64_t i) const noexcept { return cells_[i].load(std::memory_order_acquire); }

 private:
  void construct(std::uint64_t cycle, bool full) noexcept {
    for (std::uint64_t i = 0; i < cyclic_.n(); ++i)
      cells_[i].store(cyclic_.make(cycle, full ? i : 0), std::memory_order_relaxed);
    ends_->head.store(cyclic_.make(full ? cycle : cycle + 1, 0), std::memory_order_relaxed);
    ends_->tail.store(cyclic_.make(cycle + 1, 0), std::memory_order_release);
  }

  [[nodiscard]] std::atomic<std::uint64_t>& cell_at(std::uint64_t word) const noexcept {
    return cells_[cyclic_.index_of(word)];
  }

  void advance_tail(std::uint64_t at) noexcept {
    QUEUEDUCT_FAILPOINT("index.before_tail");
    ends_->tail.compare_exchange_strong(at, cyclic_.next(at), std::memory_order_acq_rel,
                                        std::memory_order_relaxed);  // release Q3; keeps X1
    QUEUEDUCT_FAILPOINT("index.moved_tail");
  }

  IndexEnds* ends_;
  Cells cells_;
  CyclicIndices cyclic_;
};

}  // namespace queueduct
