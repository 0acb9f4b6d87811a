// The index queue by single steps: the arithmetic, the cells that SCQ starts with, and what a stopped pusher leaves.
#include "support/check.hpp"
#include "slots/index_queue.hpp"

#include <array>
#include <limits>

namespace queueduct::testing {

using Seen = IndexQueue::Seen;

template <std::uint64_t N>
struct Owned {
  IndexEnds ends{};
  std::array<std::atomic<std::uint64_t>, N> cells{};
  IndexQueue queue{&ends, cells.data(), N};
};

TEST(a_cyclic_index_goes_through_all_indices_and_then_to_the_next_cycle) {
  for (const std::uint64_t n : {1u, 2u, 3u, 4u, 5u, 7u, 64u, 1000u}) {
    const CyclicIndices cyclic(n);
    std::uint64_t word = cyclic.make(1, 0);
    for (std::uint64_t step = 0; step < 3 * n; ++step) {
      CHECK_EQUAL(cyclic.cycle_of(word), 1 + step / n);
      CHECK_EQUAL(cyclic.index_of(word), step % n);
      CHECK_EQUAL(cyclic.ordinal(word), step);
      CHECK_EQUAL(cyclic.distance(cyclic.make(1, 0), word), static_cast<std::int64_t>(step));
      CHECK_EQUAL(cyclic.distance(word, cyclic.make(1, 0)), -static_cast<std::int64_t>(step));
      word = cyclic.next(word);
    }
  }
}

TEST(a_new_queue_has_the_cells_that_scq_starts_with) {
  Owned<4> empty;
  empty.queue.construct_empty();
  const CyclicIndices& cyclic = empty.queue.cyclic();
  CHECK_EQUAL(empty.queue.head(), cyclic.make(1, 0));
  CHECK_EQUAL(empty.queue.tail(), cyclic.make(1, 0));
  for (std::uint64_t i = 0; i < 4; ++i) CHECK_EQUAL(empty.queue.cell(i), cyclic.make(0, 0));
  Owned<4> full;
  full.queue.construct_full();
  CHECK_EQUAL(full.queue.head(), cyclic.make(0, 0));
  CHECK_EQUAL(full.queue.tail(), cyclic.make(1, 0));
  for (std::uint64_t i = 0; i < 4; ++i) CHECK_EQUAL(full.queue.cell(i), cyclic.make(0, i));
}

TEST(a_push_gives_the_cell_the_tails_cycle) {
  Owned<4> owned;
  owned.queue.construct_empty();
  REQUIRE(owned.queue.push(3));
  REQUIRE(owned.queue.push(1));
  const CyclicIndices& cyclic = owned.queue.cyclic();
  CHECK_EQUAL(owned.queue.cell(0), cyclic.make(1, 3));
  CHECK_EQUAL(owned.queue.cell(1), cyclic.make(1, 1));
  CHECK_EQUAL(owned.queue.cell(2), cyclic.make(0, 0));
  CHECK_EQUAL(owned.queue.tail(), cyclic.make(1, 2));
  std::uint64_t index = 9;
  CHECK_EQUAL(owned.queue.pop(index), Seen::index);
  CHECK_EQUAL(index, 3u);
  CHECK_EQUAL(owned.queue.head(), cyclic.make(1, 1));
  CHECK_EQUAL(owned.queue.cell(0), cyclic.make(1, 3));  // a pop changes no cell
}

template <std::uint64_t N>
void go_round(std::uint64_t cycle) {
  Owned<N> owned;
  owned.queue.construct_full(cycle);
  std::uint64_t expected = 0;
  for (std::uint64_t round = 0; round < 6 * N; ++round) {
    std::uint64_t index = N;
    REQUIRE(owned.queue.pop_if_full(index) == Seen::index);
    CHECK_EQUAL(index, expected);
    CHECK_EQUAL(owned.queue.size(), N - 1);
    CHECK(!owned.queue.contains(index));
    std::uint64_t other = N;
    CHECK_EQUAL(owned.queue.pop_if_full(other), Seen::nothing);
    REQUIRE(owned.queue.push(index));
    CHECK(owned.queue.contains(index));
    CHECK_EQUAL(owned.queue.size(), N);
    expected = (expected + 1) % N;
  }
}

TEST(the_words_wrap_and_nothing_is_lost) {
  constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  go_round<1>(all - 2);
  go_round<2>((all >> 1) - 2);
  go_round<3>((all >> 2) - 2);
  go_round<4>((all >> 2) - 2);
  go_round<5>((all >> 3) - 2);
  go_round<8>((all >> 3) - 2);
}

TEST(at_least_k_is_exact) {
  Owned<5> owned;
  owned.queue.construct_empty();
  for (std::uint64_t size = 0; size <= 5; ++size) {
    std::uint64_t index = 0;
    CHECK_EQUAL(owned.queue.size(), size);
    CHECK_EQUAL(owned.queue.pop_if_size_at_least(size + 1, index), Seen::nothing);
    if (size < 5) REQUIRE(owned.queue.push(size));
  }
  std::uint64_t index = 9;
  CHECK_EQUAL(owned.queue.pop_if_size_at_least(5, index), Seen::index);
  CHECK_EQUAL(index, 0u);
  CHECK_EQUAL(owned.queue.pop_if_size_at_least(5, index), Seen::nothing);
}

// A pusher that stopped between its compare-and-swap and the move of tail.
TEST(a_pusher_that_stopped_before_it_moved_the_tail_stops_nobody) {
  Owned<4> owned;
  owned.queue.construct_empty();
  const CyclicIndices& cyclic = owned.queue.cyclic();
  owned.cells[0].store(cyclic.make(1, 2));
  CHECK_EQUAL(owned.queue.tail(), cyclic.make(1, 0));
  CHECK_EQUAL(owned.queue.front().index, 2u);
  REQUIRE(owned.queue.push(3));
  CHECK_EQUAL(owned.queue.tail(), cyclic.make(1, 2));
  owned.cells[2].store(cyclic.make(1, 1));
  CHECK_EQUAL(owned.queue.size(), 3u);
  std::uint64_t index = 9;
  for (const std::uint64_t expected : {2u, 3u, 1u}) {
    CHECK_EQUAL(owned.queue.pop(index), Seen::index);
    CHECK_EQUAL(index, expected);
  }
  CHECK_EQUAL(owned.queue.pop(index), Seen::nothing);
}

TEST(head_may_pass_a_tail_that_nobody_has_moved_yet) {
  Owned<4> owned;
  owned.queue.construct_empty();
  const CyclicIndices& cyclic = owned.queue.cyclic();
  owned.cells[0].store(cyclic.make(1, 2));
  std::uint64_t index = 9;
  CHECK_EQUAL(owned.queue.pop(index), Seen::index);
  CHECK_EQUAL(owned.queue.head(), cyclic.make(1, 1));
  CHECK_EQUAL(owned.queue.tail(), cyclic.make(1, 0));
  CHECK_EQUAL(owned.queue.pop(index), Seen::nothing);
  CHECK_EQUAL(owned.queue.size(), 0u);
  REQUIRE(owned.queue.push(0));
  CHECK_EQUAL(owned.queue.pop(index), Seen::index);
  CHECK_EQUAL(index, 0u);
}

TEST(words_that_nobody_of_us_wrote_end_in_corrupt_and_not_in_a_loop) {
  Owned<3> owned;
  std::uint64_t index = 0;
  const CyclicIndices& cyclic = owned.queue.cyclic();
  owned.queue.construct_empty();
  owned.ends.head.store(3);  // two bits hold a 3, three slots do not
  owned.ends.tail.store(3);
  CHECK_EQUAL(owned.queue.pop(index), Seen::corrupt);
  CHECK(!owned.queue.push(0));
  owned.queue.construct_empty();
  owned.cells[0].store(cyclic.make(1, 3));
  CHECK_EQUAL(owned.queue.pop(index), Seen::corrupt);
  owned.queue.construct_empty();
  owned.cells[0].store(cyclic.make(7, 0));
  CHECK_EQUAL(owned.queue.pop(index), Seen::corrupt);
  CHECK(!owned.queue.push(0));
}

}  // namespace queueduct::testing
