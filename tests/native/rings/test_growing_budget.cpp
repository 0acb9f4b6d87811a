// The memory of a growing queue: what is kept for what is to come, what is given back, and what a budget lets in.
#include "support/growing_steps.hpp"

namespace queueduct::testing {

// Levels of 64, 256, 1024, … slots.
constexpr GrowingSizes usual{.first_bytes = 4096, .steps = 7, .slot_bytes = 64};

static std::uint64_t bytes_of(const GrowingSizes& sizes, std::uint64_t slots) {
  return round_up(slots * 8, page_bytes) + round_up(slots * 4, page_bytes) +
         round_up(slots * sizes.slot_bytes, page_bytes);
}

static std::uint64_t fill(GrowingAttachment& attached) {
  std::uint64_t number = 0;
  while (attached.put_number(number) == Outcome::done) ++number;
  return number;
}

static bool put_long(GrowingAttachment& attached, std::uint64_t slots) {
  const std::vector<char> item(slots * 64, 'x');
  for (int i = 0; i < 100; ++i) {
    if (attached.put(item.data(), item.size()) == Outcome::done) return true;
    (void)attached.queue().make_room(attached.ledger());
  }
  return false;
}

TEST(memory_falls_back_after_an_item_that_only_passed_through_levels) {
  GrowingSegment segment(usual);
  GrowingAttachment attached(segment);
  shrink_if_idle(attached, segment);
  const std::uint64_t before = segment.resident_bytes();
  const std::vector<char> item(1 << 20, 'x');
  std::vector<char> copy(1 << 20);
  std::uint64_t bytes = 0;
  REQUIRE(attached.put(item.data(), item.size()) == Outcome::done);
  REQUIRE(attached.get(copy.data(), copy.size(), bytes) == Outcome::done);
  shrink_if_idle(attached, segment);
  // the level after the first is kept for what may come
  CHECK(segment.resident_bytes() <= before + bytes_of(usual, 256));
}

TEST(memory_falls_back_after_a_burst_that_stopped_at_three_quarters) {
  GrowingSegment segment(usual);
  GrowingAttachment attached(segment);
  (void)attached.ledger();
  const std::uint64_t before = segment.resident_bytes();
  const std::uint64_t burst = 64 + 256 + 1024 + 3900;
  put_all(attached, 0, burst);
  REQUIRE(segment.levels().plan(4).word != 0);
  get_all(attached, 0, burst);
  shrink_if_idle(attached, segment);
  CHECK_EQUAL(segment.levels().plan(4).word, 0u);
  CHECK(segment.resident_bytes() <= before + bytes_of(usual, 256));
}

TEST(a_budget_is_had_again_whatever_was_planned_before) {
  GrowingSizes sizes = usual;
  sizes.max_bytes = sizes.offsets().regions + bytes_of(sizes, 64) + bytes_of(sizes, 1024) + bytes_of(sizes, 4096);
  std::uint64_t fresh = 0;
  {
    GrowingSegment segment(sizes);
    GrowingAttachment attached(segment);
    fresh = fill(attached);
  }
  GrowingSegment segment(sizes);
  GrowingAttachment attached(segment);
  std::uint64_t put = 0;
  std::uint64_t got = 0;
  const auto in = [&](std::uint64_t count) { put_all(attached, put, put + count), put += count; };
  const auto out = [&](std::uint64_t count) { get_all(attached, got, got + count), got += count; };
  in(64 + 256 + 512);
  out(64 + 256 + 1);
  for (int i = 0; i < 5; ++i) (void)attached.flow().reclaim_some();
  in(512);
  REQUIRE(segment.levels().plan(3).word != 0);
  out(put - got);
  shrink_if_idle(attached, segment);
  CHECK(fill(attached) + 256 >= fresh);
}

// Of every budget: what is not refused at once fits into an empty queue, whatever was in it before.
TEST(an_item_that_is_not_refused_can_be_put_into_an_empty_queue) {
  for (std::uint64_t budget = 20'000; budget < 3'000'000; budget = budget * 5 / 4) {
    GrowingSizes sizes = usual;
    sizes.max_bytes = first_region_end(sizes) + budget;
    for (const std::uint64_t filled_before : {0u, 100u, 100'000u}) {
      GrowingSegment segment(sizes);
      GrowingAttachment attached(segment);
      const std::uint64_t limit = attached.queue().item_slots_limit();
      std::uint64_t there = 0;
      while (there < filled_before && attached.put_number(there) == Outcome::done) ++there;
      get_all(attached, 0, there);
      for (const std::uint64_t slots : {limit, limit / 2 + 1, limit / 3 + 1}) {
        CHECK(put_long(attached, slots));
        CHECK(segment.resident_bytes() <= sizes.max_bytes);
        std::vector<char> copy(slots * 64);
        std::uint64_t bytes = 0;
        REQUIRE(attached.get(copy.data(), copy.size(), bytes) == Outcome::done);
        CHECK_EQUAL(bytes, slots * 64);
      }
    }
  }
}

TEST(a_withdrawal_whose_maker_died_is_forgotten_or_finished_by_the_next) {
  GrowingSegment segment(usual);
  GrowingAttachment attached(segment);
  put_all(attached, 0, 64 + 256 + 900);
  REQUIRE(segment.levels().plan(3).is_good());
  LevelControl& level = *segment.levels()[3].control;
  segment.control().preparing.store(std::uint64_t{4} << 56 | Upkeep::withdrawing);
  level.planned.store(level.planned.load() | Plan::withdrawn_bit);
  level.prepared.store(0);  // so far it came
  put_all(attached, 64 + 256 + 900, 6000);
  get_all(attached, 0, 6000);
  CHECK_EQUAL(segment.control().preparing.load(), 0u);
}

// A level is freed while a put looks for room and finds none. Nothing else changes for the producer, and no other
// participant wakes it: the wait must know how many levels were freed before the put looked.
TEST(a_put_that_waits_for_memory_notices_what_was_freed_while_it_looked) {
  GrowingSizes sizes = usual;
  sizes.steps = 3;
  GrowingSegment segment(sizes);
  GrowingAttachment producer(segment);
  GrowingAttachment consumer(segment);
  put_all(producer, 0, 64 + 256 + 1024);
  get_all(consumer, 0, 64 + 256);
  Peeked peeked;
  GrowingRing front;
  REQUIRE(consumer.peek(consumer.ledger(), peeked, front) == Outcome::done);  // the last level is read from now on
  const std::uint64_t resets = segment.control().resets.load();
  const Participant me = producer.ledger();
  const std::uint64_t number = 0;
  int attempts = 0;
  const Outcome outcome = producer.queue().put_into_ring(me, 1, [&](const GrowingRing& ring) {
    ++attempts;
    while (consumer.flow().reclaim_some()) {
    }
    return try_put_bytes(ring, me, &number, sizeof number);
  });
  REQUIRE(outcome == Outcome::full && attempts == 1);
  REQUIRE(segment.control().resets.load() > resets);
  const auto wait_ns = [&] {
    const std::int64_t begin = monotonic_ns();
    producer.queue().wait_for_room(Outcome::full, 1, park_limit_ns);
    return monotonic_ns() - begin;
  };
  CHECK(wait_ns() < park_limit_ns);
  CHECK(producer.put_number(0) == Outcome::full);
  CHECK(wait_ns() >= park_limit_ns);  // nothing was freed since that put looked
}

}  // namespace queueduct::testing
