// The growing queue by single steps: when it moves from ring to ring, what it keeps, what it gives back.
#include "support/growing_steps.hpp"

namespace queueduct::testing {

// Levels of 8, 32, 128 and 512 slots.
constexpr GrowingSizes small{};

TEST(each_level_has_four_times_the_bytes_of_the_one_before) {
  for (std::uint32_t i = 0; i < 11; ++i) CHECK_EQUAL(level_capacity(4096, i, 64) * 64, std::uint64_t{4096} << 2 * i);
  CHECK_EQUAL(level_capacity(4096, 0, 100), 32u);   // a power of two of slots
  CHECK_EQUAL(level_capacity(4096, 0, 9000), 2u);   // and two at least
}

TEST(a_ring_in_its_first_lap_takes_zeroed_slots_for_free_ones) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  const Levels levels = segment.levels();
  const GrowingRing ring = levels.ring(0, levels.level_range());
  for (std::uint64_t p = 0; p < 8; ++p) {
    CHECK_EQUAL(ring.free(p), 0u);
    CHECK_EQUAL(ring.generations[p].load(), 0u);
  }
  CHECK_EQUAL(ring.free(8), 8u);
  put_all(attached, 0, 3);
  CHECK_EQUAL(ring.generations[2].load(), generation::published(2));
  get_all(attached, 0, 3);
  CHECK_EQUAL(ring.generations[2].load(), 10u);
}

TEST(the_writer_moves_on_only_when_its_ring_is_full_and_skips_no_size) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  std::uint64_t put = 0;
  for (const std::uint64_t capacity : {8u, 32u, 128u, 512u}) {
    const std::uint32_t level = level_range_of(segment).written_level();
    for (std::uint64_t i = 0; i < capacity; ++i) {
      REQUIRE(attached.put_number(put) == Outcome::done);
      if (put++ == 0) continue;
      CHECK(level_range_of(segment).written_level() <= level + 1);
    }
    CHECK_EQUAL(put == 8 ? 0u : level_range_of(segment).written_level(), put == 8 ? 0u : level + 1);
  }
  CHECK_EQUAL(level_range_of(segment).written_level(), 3u);
  CHECK_EQUAL(attached.put_number(put), Outcome::full);  // at the last one it waits
  CHECK_EQUAL(count_items(segment.levels(), false), 680u);
  get_all(attached, 0, put);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get_number(number), Outcome::empty);
}

TEST(the_reader_leaves_a_ring_only_when_it_is_drained) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  put_all(attached, 0, 20);
  CHECK_EQUAL(level_range_of(segment).written_level(), 1u);
  get_all(attached, 0, 8);
  CHECK_EQUAL(level_range_of(segment).read_level(), 0u);
  get_all(attached, 8, 9);
  CHECK_EQUAL(level_range_of(segment).read_level(), 1u);
  get_all(attached, 9, 20);
}

TEST(an_item_too_long_for_its_ring_goes_to_the_next_that_holds_it) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  put_all(attached, 0, 2);
  std::vector<unsigned char> item(1000, 7);  // 63 slots: the third level
  CHECK_EQUAL(attached.put(item.data(), item.size()), Outcome::done);
  CHECK_EQUAL(level_range_of(segment).written_level(), 2u);
  get_all(attached, 0, 2);
  std::vector<unsigned char> got(2000);
  std::uint64_t bytes = 0;
  REQUIRE(attached.get(got.data(), got.size(), bytes) == Outcome::done);
  got.resize(bytes);
  CHECK(got == item);
}

TEST(a_calm_queue_goes_back_to_its_first_level_and_gives_its_memory_back) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  const std::uint64_t before = segment.resident_bytes();
  put_all(attached, 0, 500);
  CHECK(segment.resident_bytes() > before);
  get_all(attached, 0, 500);
  CHECK_EQUAL(level_range_of(segment).read_level(), 3u);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    put_all(attached, i, i + 1);
    get_all(attached, i, i + 1);
  }
  CHECK_EQUAL(level_range_of(segment).read_level(), 0u);
  CHECK_EQUAL(level_range_of(segment).written_level(), 0u);
  CHECK_EQUAL(segment.control().shrunk.load(), 1u);
  CHECK_EQUAL(segment.resident_bytes(), before);
}

TEST(levels_are_used_again_as_often_as_one_likes) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  std::uint64_t next = 0;
  for (int round = 0; round < 5; ++round) {
    put_all(attached, next, next + 600);
    get_all(attached, next, next + 600);
    next += 600;
    for (std::uint64_t i = 0; i < 5000; ++i, ++next) {
      put_all(attached, next, next + 1);
      get_all(attached, next, next + 1);
    }
    CHECK_EQUAL(level_range_of(segment).written_level(), 0u);
  }
  CHECK_EQUAL(segment.control().shrunk.load(), 5u);
  CHECK_EQUAL(segment.control().grown.load(), 15u);
}

TEST(a_level_is_not_given_back_while_somebody_reads_in_it) {
  GrowingSegment segment(small);
  GrowingAttachment slow(segment);
  GrowingAttachment quick(segment);
  put_all(quick, 0, 20);
  get_all(quick, 0, 7);
  Peeked peeked;
  GrowingRing ring;
  REQUIRE(slow.peek(slow.ledger(), peeked, ring) == Outcome::done);
  REQUIRE(claim_pop(ring, slow.ledger(), peeked.span));
  get_all(quick, 8, 20);
  CHECK(!segment.levels().is_clean(0));
  std::uint64_t number = 0;
  finish_pop(ring, slow.ledger(), peeked, &number);
  CHECK_EQUAL(number, 7u);
  (void)quick.flow().reclaim_some();
  CHECK(segment.levels().is_clean(0));
}

TEST(a_closing_whose_maker_died_is_followed_by_the_next_who_comes) {
  for (const bool by_producer : {true, false}) {
    GrowingSegment segment(small);
    GrowingAttachment attached(segment);
    put_all(attached, 0, 8);
    const Levels levels = segment.levels();
    REQUIRE(levels.is_ready(1));  // prepared at three quarters
    levels.close_full(levels.level_range(), 1);
    CHECK_EQUAL(level_range_of(segment).written_level(), 0u);
    if (by_producer) {
      put_all(attached, 8, 9);
      get_all(attached, 0, 9);
    } else {
      get_all(attached, 0, 8);
      std::uint64_t number = 0;
      CHECK_EQUAL(attached.get_number(number), Outcome::empty);
    }
    CHECK_EQUAL(level_range_of(segment).written_level(), 1u);
  }
}

TEST(a_first_level_that_is_zeroed_in_several_steps_is_clean_after_them) {
  GrowingSizes sizes{.first_bytes = 8 * Upkeep::step_bytes, .steps = 2, .slot_bytes = 64, .varying = false};
  GrowingSegment segment(sizes);
  GrowingAttachment attached(segment);
  const std::uint64_t slots = level_capacity(sizes.first_bytes, 0, sizes.slot_bytes);
  put_all(attached, 0, slots + 1);
  unsigned char item[64];
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < slots; ++i) REQUIRE(attached.get(item, sizeof item, bytes) == Outcome::done);
  CHECK(!segment.levels().is_clean(0));
  REQUIRE(attached.get(item, sizeof item, bytes) == Outcome::done);
  int steps = 1;  // one came with the get
  while (attached.flow().reclaim_some()) REQUIRE(++steps < 20);
  CHECK(steps > 1);
  CHECK(segment.levels().is_clean(0));
}

// Leases.

struct HeldItems {
  explicit HeldItems(GrowingAttachment& attached) : lease(attached.queue()) {
    REQUIRE(lease.join() == ParticipantTable::Joined::yes);
  }
  [[nodiscard]] std::uint64_t claim(std::uint64_t limit) {
    std::uint64_t skipped = 0;
    REQUIRE(lease.try_claim(items, limit, count, skipped) == Outcome::done);
    return count;
  }
  [[nodiscard]] std::uint64_t inherit() { return count = lease.try_inherit(items, most).count; }

  static constexpr std::uint64_t most = 64;
  GrowingLease lease;
  Redelivered items[most];
  std::uint64_t count = 0;
};

TEST(a_lease_is_of_one_level_and_positions_run_through_all) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  put_all(attached, 0, 20);
  HeldItems first(attached);
  CHECK_EQUAL(first.claim(64), 8u);
  HeldItems second(attached);
  CHECK_EQUAL(second.claim(64), 12u);
  CHECK_EQUAL(first.items[7].span.position, 7u);
  CHECK_EQUAL(second.items[0].span.position, 9u);  // one is left out where a ring was closed
  CHECK(attached.queue().is_unreleased(7) && attached.queue().is_unreleased(9));
  CHECK(!attached.queue().is_unreleased(8) && !attached.queue().is_unreleased(21));
  first.lease.release(first.items, 8, true);
  CHECK(segment.levels().is_clean(0));  // the release was the last that it waited for
  CHECK(!attached.queue().is_unreleased(7) && attached.queue().is_unreleased(20));
  second.lease.release(second.items, 12, true);
  for (std::uint64_t p = 0; p < 30; ++p) CHECK(!attached.queue().is_unreleased(p));
}

TEST(what_is_held_in_a_level_that_was_left_comes_again_from_there) {
  for (std::uint64_t released = 0; released <= 4; ++released) {
    GrowingSegment segment(small);
    GrowingAttachment survivor(segment);
    put_all(survivor, 0, 20);
    get_all(survivor, 0, 4);
    {
      GrowingAttachment victim(segment);
      HeldItems held(victim);
      REQUIRE(held.claim(4) == 4);
      held.lease.release(held.items, released, false);
      victim.die();
    }
    get_all(survivor, 8, 20);
    CHECK_EQUAL(segment.levels().is_clean(0), released == 4);
    HeldItems again(survivor);
    CHECK_EQUAL(again.inherit(), 4 - released);
    for (std::uint64_t i = 0; i < again.count; ++i) {
      std::uint64_t number = 0;
      again.lease.copy_out(again.items[i], &number, sizeof number);
      CHECK_EQUAL(number, 4 + released + i);
      CHECK_EQUAL(again.items[i].span.position, 4 + released + i);
    }
    again.lease.release(again.items, again.count, true);
    again.lease.let_go();
    (void)survivor.flow().reclaim_some();
    CHECK(segment.levels().is_clean(0));
  }
}

TEST(what_is_held_in_one_level_keeps_no_other_from_being_given_back) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  put_all(attached, 0, 8 + 32 + 128 + 10);
  HeldItems held(attached);
  REQUIRE(held.claim(1) == 1);
  get_all(attached, 1, 8 + 32 + 128 + 10);
  while (attached.flow().reclaim_some()) {
  }
  CHECK(!segment.levels().is_clean(0));
  CHECK(segment.levels().is_clean(1) && segment.levels().is_clean(2));
  held.lease.release(held.items, 1, true);
  CHECK(segment.levels().is_clean(0));
}

// Words that contradict each other.

TEST(a_level_range_that_cannot_be_is_refused_and_nothing_is_given_back) {
  for (const std::uint64_t levels : {0x0001u, 0x0400u, 0xffffu, 0x00ffu}) {
    GrowingSegment segment(small);
    GrowingAttachment attached(segment);
    put_all(attached, 0, 20);
    const std::uint64_t resident = segment.resident_bytes();
    segment.control().level_range.store(levels);
    std::uint64_t number = 0;
    CHECK_EQUAL(attached.put_number(1), Outcome::corrupt);
    CHECK_EQUAL(attached.get_number(number), Outcome::corrupt);
    CHECK(!attached.flow().reclaim_some());
    attached.queue().shut_down(true);  // comes back
    CHECK_EQUAL(segment.resident_bytes(), resident);
  }
}

TEST(a_ring_that_was_left_open_is_noticed) {
  for (const bool is_shut : {true, false}) {
    GrowingSegment segment(small);
    GrowingAttachment attached(segment);
    put_all(attached, 0, 20);
    get_all(attached, 0, 8);
    segment.levels()[0].control->push_position.store(8);  // as if it had never been closed
    if (is_shut) segment.control().level_range.fetch_or(LevelRange::shut_bit);
    std::uint64_t number = 0;
    CHECK_EQUAL(attached.get_number(number), Outcome::corrupt);
  }
}

TEST(whatever_stands_in_the_words_of_the_levels_every_call_comes_back) {
  const std::uint64_t values[] = {0, 1, 8, 9, 1000, closed_bit, closed_bit | 8, closed_bit | shrinking_bit | 9,
                                  shrinking_bit, ~std::uint64_t{0}, ~std::uint64_t{0} >> 1, closed_bit - 1};
  constexpr std::size_t words = sizeof(LevelControl) / sizeof(std::uint64_t);
  for (std::uint32_t level = 0; level < 2; ++level) {
    for (std::size_t word = 0; word < words; ++word) {
      for (const std::uint64_t value : values) {
        GrowingSegment segment(small);
        GrowingAttachment attached(segment);
        put_all(attached, 0, 20);
        auto* const control = reinterpret_cast<std::atomic<std::uint64_t>*>(segment.levels()[level].control);
        control[word].store(value);
        std::uint64_t number = 0;
        for (int i = 0; i < 60; ++i) (void)attached.put_number(i);
        for (int i = 0; i < 60; ++i) (void)attached.get_number(number);
        (void)attached.queue().recover();
        (void)attached.flow().reclaim_some();
        attached.queue().shut_down(false);
        for (int i = 0; i < 60; ++i) (void)attached.get_number(number);
      }
    }
  }
}

TEST(the_budget_is_kept_and_a_smaller_ring_is_opened_within_it) {
  GrowingSizes sizes{.first_bytes = 4096, .steps = 8, .slot_bytes = 64};
  sizes.max_bytes = first_region_end(sizes) + (200 << 10);
  GrowingSegment segment(sizes);
  GrowingAttachment attached(segment);
  std::uint64_t put = 0;
  while (attached.put_number(put) == Outcome::done) {
    ++put;
    CHECK(segment.resident_bytes() <= sizes.max_bytes);
    REQUIRE(put < 10000);
  }
  CHECK(put * 64 > (80 << 10));
  std::uint64_t next = 0;
  for (int round = 0; round < 3; ++round) {  // at the limit it is a bounded queue
    get_all(attached, next, next + put / 2);
    next += put / 2;
    std::uint64_t more = 0;
    while (attached.put_number(next - put / 2 + put + more) == Outcome::done) {
      ++more;
      CHECK(segment.resident_bytes() <= sizes.max_bytes);
      REQUIRE(more < 10000);
    }
    CHECK(more > 0);
    put = put - put / 2 + more;
  }
}

TEST(a_dead_consumer_in_a_ring_that_was_left_is_recovered) {
  GrowingSegment segment(small);
  GrowingAttachment survivor(segment);
  {
    GrowingAttachment victim(segment);
    put_all(victim, 0, 20);
    get_all(victim, 0, 7);
    Peeked peeked;
    GrowingRing ring;
    REQUIRE(victim.peek(victim.ledger(), peeked, ring) == Outcome::done);
    REQUIRE(claim_pop(ring, victim.ledger(), peeked.span));
    victim.die();
  }
  get_all(survivor, 8, 20);
  const Participant mine = survivor.ledger();
  const GrowingQueue::RecoveryScan found = survivor.queue().recover();
  REQUIRE(found.redeliverable);
  REQUIRE(survivor.queue().try_redeliver(mine, found));
  std::uint64_t number = 0;
  finish_redelivered(survivor.queue(), mine, found, &number);
  CHECK_EQUAL(number, 7u);
  (void)survivor.flow().reclaim_some();
  CHECK(segment.levels().is_clean(0));
}

TEST(after_shutdown_nothing_goes_in_and_what_is_there_comes_out) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  put_all(attached, 0, 100);
  attached.queue().shut_down(false);
  CHECK_EQUAL(attached.put_number(1), Outcome::closed);
  get_all(attached, 0, 100);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get_number(number), Outcome::closed);
}

TEST(an_immediate_shutdown_ends_gets) {
  GrowingSegment segment(small);
  GrowingAttachment attached(segment);
  put_all(attached, 0, 100);
  attached.queue().shut_down(true);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get_number(number), Outcome::closed);
}

}  // namespace queueduct::testing
