// What the dead leave in a growing queue whose rings come and go: nothing is lost, abandoned twice, or kept for ever.
#include <set>

#include "support/growing_steps.hpp"

namespace queueduct::testing {

// Levels of 8, 32, 128 and 512 slots.
constexpr GrowingSizes small{};
constexpr GrowingSizes small_records{.varying = false};
// Level 0 takes several steps to be given back.
constexpr GrowingSizes large_records{.first_bytes = 8 << 20, .steps = 2, .varying = false, .producers = 2};

static void claim_and_die(GrowingAttachment& attached) {
  const Participant mine = attached.ledger();
  Peeked peeked;
  GrowingRing ring;
  REQUIRE(attached.peek(mine, peeked, ring) == Outcome::done);
  REQUIRE(claim_pop(ring, mine, peeked.span));
  attached.die();
}

// Published, and the line still names it.
template <class Ledger>
static void publish_and_die(GrowingAttachment& attached, Ledger ledger) {
  const LevelRange now = attached.queue().levels().level_range();
  const GrowingRing ring = attached.queue().levels().ring(now.written_level(), now);
  Span span;
  const std::byte item[64] = {};
  REQUIRE(claim_push(ring, ledger, 1, [](std::uint64_t ready) { return ready; }, span) == Outcome::done);
  copy_in(ring, span.position, item, ring.slot_bytes);
  publish(ring, span);
  attached.die();
}

static std::set<std::uint64_t> take_what_is_left(GrowingAttachment& attached) {
  std::set<std::uint64_t> numbers;
  for (int idle = 0; idle < 50;) {
    std::uint64_t number = 0;
    if (attached.get_number(number) == Outcome::done) {
      numbers.insert(number);
      continue;
    }
    ++idle;
    const GrowingQueue::RecoveryScan found = attached.queue().recover();
    const Participant mine = attached.ledger();
    if (!found.redeliverable || !attached.queue().try_redeliver(mine, found)) continue;
    finish_redelivered(attached.queue(), mine, found, &number);
    numbers.insert(number);
  }
  return numbers;
}

TEST(a_redelivered_item_that_is_taken_wakes_the_next_consumer) {
  GrowingSegment segment(small);
  GrowingAttachment survivor(segment);
  put_all(survivor, 0, 1);
  {
    GrowingAttachment victim(segment);
    claim_and_die(victim);
  }
  Item item;
  REQUIRE(survivor.queue().find(survivor.ledger(), item, run_here) == Outcome::done && item.is_redelivered);
  GrowingAttachment producer(segment);
  REQUIRE(producer.put_number(1) == Outcome::done);
  const std::uint32_t asleep = survivor.queue().items().announce();
  std::uint64_t number = 7;
  const Target target{&number, item.bytes};
  REQUIRE(survivor.queue().take(survivor.ledger(), item, &target, 1));
  CHECK_EQUAL(number, 0u);
  CHECK(survivor.queue().items().announce() != asleep);
}

TEST(a_redelivered_item_that_is_not_taken_is_found_again_and_guards_nothing) {
  GrowingSegment segment(small);
  GrowingAttachment survivor(segment);
  put_all(survivor, 0, 1);
  {
    GrowingAttachment victim(segment);
    claim_and_die(victim);
  }
  survivor.queue().recover_at_once();
  {
    Item item;
    REQUIRE(survivor.queue().find(survivor.ledger(), item, run_here) == Outcome::done && item.is_redelivered);
    CHECK(segment.lines()[survivor.ledger().number()].guarded.load() != 0);
  }
  CHECK_EQUAL(segment.lines()[survivor.ledger().number()].guarded.load(), 0u);
  Item again;
  REQUIRE(survivor.queue().find(survivor.ledger(), again, run_here) == Outcome::done && again.is_redelivered);
  std::uint64_t number = 7;
  const Target target{&number, again.bytes};
  CHECK(survivor.queue().take(survivor.ledger(), again, &target, 1));
  CHECK_EQUAL(number, 0u);
}

TEST(what_two_owners_of_one_line_held_in_two_levels_comes_again) {
  GrowingSegment segment(small);
  GrowingAttachment survivor(segment);
  put_all(survivor, 0, 300);
  std::set<std::uint64_t> delivered;
  {
    GrowingAttachment first(segment);
    claim_and_die(first);
  }
  {
    GrowingAttachment second(segment);  // has the first one's line
    for (int i = 0; i < 100; ++i) {
      std::uint64_t number = 0;
      REQUIRE(second.get_number(number) == Outcome::done);
      delivered.insert(number);
    }
    claim_and_die(second);
  }
  GrowingAttachment third(segment);
  (void)third.ledger();
  delivered.merge(take_what_is_left(survivor));
  CHECK_EQUAL(delivered.size(), 300u);
  for (int i = 0; i < 10; ++i) (void)survivor.flow().reclaim_some();
  for (std::uint32_t i = 0; i < 2; ++i) CHECK(segment.levels().is_clean(i));
}

TEST(an_item_that_was_popped_is_not_buried_in_a_level_that_is_half_given_back) {
  GrowingSegment segment(large_records);
  GrowingAttachment survivor(segment);
  GrowingAttachment idle(segment);
  (void)survivor.ledger();
  (void)idle.ledger();
  {
    GrowingAttachment victim(segment);
    publish_and_die(victim, victim.ledger());
  }
  const std::uint64_t slots = segment.levels()[0].capacity;
  put_records(survivor, slots - 1 + 10);
  get_records(survivor, slots + 1);  // leaves level 0, and gives back the first of it
  CHECK(!segment.levels().is_clean(0));
  CHECK(!idle.queue().recover().changed);
  CHECK_EQUAL(segment.control().tombstones.load(), 0u);
  get_records(survivor, 9);
  for (int i = 0; i < 10; ++i) (void)survivor.flow().reclaim_some();
  CHECK(segment.levels().is_clean(0));
  for (int i = 0; i < 10'000 && level_range_of(segment).written_level() != 0; ++i) {
    put_records(survivor, 1);
    get_records(survivor, 1);
  }
  REQUIRE(level_range_of(segment).written_level() == 0);
  put_records(survivor, 100);
  get_records(survivor, 100);
}

TEST(an_item_that_was_popped_is_not_buried_in_a_level_whose_tidier_died) {
  GrowingSegment segment(small_records);
  GrowingAttachment survivor(segment);
  (void)survivor.ledger();
  {
    GrowingAttachment victim(segment);
    publish_and_die(victim, victim.ledger());
  }
  put_records(survivor, 17);
  get_records(survivor, 8);
  Peeked peeked;
  GrowingRing ring;
  REQUIRE(survivor.peek(survivor.ledger(), peeked, ring) == Outcome::done);  // leaves level 0
  for (int slot = 0; slot < 8; ++slot) segment.levels()[0].generations[slot].store(0);  // and so far the tidier came
  CHECK(!survivor.queue().recover().changed);
  for (int i = 0; i < 10; ++i) (void)survivor.flow().reclaim_some();
  CHECK(segment.levels().is_clean(0));
}

TEST(a_producer_that_comes_again_is_settled_though_its_level_is_half_given_back) {
  GrowingSegment segment(large_records);
  GrowingAttachment survivor(segment);
  const Participant mine = survivor.ledger();
  ProducerName name;
  REQUIRE(ProducerName::of("p", 1, name));
  ProducerLine* line = nullptr;
  {
    GrowingAttachment victim(segment);
    const Participant its = victim.ledger();
    REQUIRE(victim.queue().producers().take(name, victim.queue().owner_word(its), 1, 1, line) == Producers::Taken::yes);
    REQUIRE(begin(*line, 1, 1) == Begun::yes);
    publish_and_die(victim, OnceLedger(its, line, false));
  }
  const std::uint64_t slots = segment.levels()[0].capacity;
  put_records(survivor, slots - 1 + 10);
  get_records(survivor, slots + 1);
  REQUIRE(!segment.levels().is_clean(0));
  REQUIRE(survivor.queue().producers().take(name, survivor.queue().owner_word(mine), 1, 1, line) ==
          Producers::Taken::yes);
  CHECK_EQUAL(survivor.queue().settle_producer(*line), Outcome::done);
}

TEST(who_comes_late_to_a_shut_queue_opens_no_level_in_which_something_is_held) {
  GrowingSegment segment(small);
  GrowingAttachment survivor(segment);
  put_all(survivor, 0, 20);
  get_all(survivor, 0, 15);
  {
    GrowingAttachment victim(segment);
    claim_and_die(victim);  // holds 15, in level 1
  }
  get_all(survivor, 16, 20);
  put_all(survivor, 20, 80);
  get_all(survivor, 20, 80);
  shrink_if_idle(survivor, segment);
  REQUIRE(!segment.levels().is_clean(1));
  const LevelRange seen = survivor.queue().levels().unchecked_level_range();
  GrowingAttachment other(segment);
  other.queue().shut_down(false);
  (void)survivor.queue().levels().read_on(seen);  // as a get does that has read the level range before
  CHECK(!segment.levels().is_clean(1));
  CHECK(survivor.queue().recover().redeliverable);
}

}  // namespace queueduct::testing
