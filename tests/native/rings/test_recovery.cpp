// Recovery by single steps: what a dead claimer leaves, who clears it up, and that the living are left alone.
#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

// What a consumer does that cannot go on: its item by redelivery, if a dead consumer had one.
[[nodiscard]] static std::optional<Bytes> redeliver_bytes(Attachment& attached) {
  const Recovery::RecoveryScan found = attached.queue().recovery().run();
  if (!found.redeliverable || !attached.queue().recovery().try_redeliver(attached.ledger(), found)) return std::nullopt;
  Bytes bytes(found.peeked.bytes);
  finish_redelivered(attached.queue(), attached.ledger(), found, bytes.data());
  return bytes;
}

static void take_and_die(Attachment& doomed, std::uint64_t items, std::uint64_t released_slots) {
  Peeked peeked;
  std::vector<std::uint64_t> lengths(items);
  REQUIRE(peek(doomed.ring(), doomed.ledger(), peeked) == Outcome::done);
  REQUIRE(widen_bytes(doomed.ring(), items, lengths.data(), peeked) == items);
  REQUIRE(claim_pop(doomed.ring(), doomed.ledger(), peeked.span));
  release(doomed.ring(), {peeked.span.position, released_slots});
  doomed.die();
}

TEST(what_a_dead_producer_claimed_is_buried_slot_by_slot) {
  Segment segment({});
  segment.reset(6);
  Attachment doomed(segment);
  Attachment survivor(segment);
  Span span;
  REQUIRE(claim_slots(doomed, 3, span) == Outcome::done);
  write_lengths(doomed.ring(), span, 40);
  publish(doomed.ring(), {8, 1});  // the last of three; the head comes last
  REQUIRE(put_number(survivor, 5) == Outcome::done);
  doomed.die();
  const Recovery::RecoveryScan found = survivor.queue().recovery().run();
  CHECK(found.changed && !found.redeliverable && !found.unclaimed);
  CHECK_EQUAL(survivor.ring().generation_of(6).load(), generation::tombstone(6));
  CHECK_EQUAL(survivor.ring().generation_of(7).load(), generation::tombstone(7));
  CHECK_EQUAL(segment.control().tombstones.load(), 2u);
  std::uint64_t number = 0;
  CHECK_EQUAL(get_number(survivor, number), Outcome::done);
  CHECK_EQUAL(number, 5u);
}

TEST(what_a_living_producer_claimed_is_left_alone) {
  Segment segment({});
  Attachment slow(segment);
  Attachment doomed(segment);
  Attachment survivor(segment);
  Span span;
  REQUIRE(claim_one(slow, span) == Outcome::done);
  Participant(segment.lines() + doomed.ledger().number(), doomed.ledger().number()).declare(Side::push, 0, 1);
  doomed.die();  // it had declared the same slot, and lost
  const Recovery::RecoveryScan found = survivor.queue().recovery().run();
  CHECK(!found.changed && !found.redeliverable && !found.unclaimed);
  CHECK_EQUAL(survivor.ring().generation_of(0).load(), generation::free(0));
  slow.die();
  CHECK(survivor.queue().recovery().run().changed);
  CHECK_EQUAL(survivor.ring().generation_of(0).load(), generation::tombstone(0));
}

// Parts of a long stretch that living lines name, at its ends and at those of the pieces it is judged in.
static constexpr Span named_by_the_living[] = {{0, 1}, {1023, 2}, {3000, 1500}, {8191, 1}};
[[nodiscard]] static bool is_named_by_the_living(std::uint64_t p) {
  for (const Span part : named_by_the_living)
    if (p >= part.position && p < part.position + part.slots) return true;
  return false;
}
static void name_them(Attachment& living, Side side) {
  for (const Span part : named_by_the_living) {
    Participant line;
    REQUIRE(living.queue().join_apart(line) == ParticipantTable::Joined::yes);
    line.declare(side, part.position, part.slots);
  }
}

TEST(a_long_claim_of_a_dead_producer_is_buried_without_what_the_living_name) {
  Segment segment({.capacity = 8192});
  Attachment doomed(segment);
  Attachment living(segment);
  Attachment survivor(segment);
  Span span;
  REQUIRE(claim_slots(doomed, 8192, span) == Outcome::done);
  name_them(living, Side::push);
  doomed.die();
  CHECK(survivor.queue().recovery().run().changed);
  for (std::uint64_t p = 0; p < 8192; ++p)
    CHECK_EQUAL(survivor.ring().generation_of(p).load(), is_named_by_the_living(p) ? p : generation::tombstone(p));
}

TEST(long_items_of_a_dead_consumer_are_redelivered_without_what_the_living_name) {
  Segment segment({.capacity = 8192});
  Attachment doomed(segment);
  Attachment living(segment);
  Attachment survivor(segment);
  for (std::uint64_t i = 0; i < 8192; ++i) REQUIRE(put_number(survivor, i) == Outcome::done);
  REQUIRE(claim_pop(doomed.ring(), doomed.ledger(), {0, 8192}));
  name_them(living, Side::pop);
  doomed.die();
  std::uint64_t redelivered = 0;
  while (redeliver_bytes(survivor).has_value()) ++redelivered;
  CHECK_EQUAL(redelivered, 8192u - 1 - 2 - 1500 - 1);
  for (const Span part : named_by_the_living)
    CHECK_EQUAL(survivor.ring().generation_of(part.position).load(), generation::published(part.position));
}

TEST(what_a_dead_consumer_took_is_delivered_by_another) {
  Segment segment({});
  Attachment doomed(segment);
  Attachment survivor(segment);
  const Bytes in = pattern(1, 40);
  REQUIRE(put_bytes(survivor, in) == Outcome::done);
  take_and_die(doomed, 1, 0);
  CHECK(!get_bytes(survivor).has_value());
  CHECK(redeliver_bytes(survivor) == in);
  CHECK_EQUAL(segment.control().redelivered.load(), 1u);
  CHECK(!redeliver_bytes(survivor).has_value());
  CHECK(put_bytes(survivor, pattern(2, 128)) == Outcome::done);  // all eight slots are free again
}

TEST(of_a_batch_only_what_was_not_released_is_delivered_again) {
  for (std::uint64_t released = 0; released <= 5; ++released) {
    Segment segment({});
    segment.reset(5);
    Attachment doomed(segment);
    Attachment survivor(segment);
    const Bytes one = pattern(1, 10);
    const Bytes three = pattern(2, 40);
    const Bytes last = pattern(3, 3);
    for (const Bytes& item : {one, three, last}) REQUIRE(put_bytes(survivor, item) == Outcome::done);
    take_and_die(doomed, 3, released);
    if (released < 1) CHECK(redeliver_bytes(survivor) == one);
    if (released < 2) CHECK(redeliver_bytes(survivor) == three);
    if (released < 5) CHECK(redeliver_bytes(survivor) == last);
    CHECK(!redeliver_bytes(survivor).has_value());
    CHECK_EQUAL(put_bytes(survivor, pattern(2, 128)), Outcome::done);
    CHECK_EQUAL(segment.control().redelivered.load(), (released < 1) + (released < 2) + (released < 5) + 0u);
  }
}

// A dead consumer may have taken thousands: who redelivers them must not wait a while before each.
TEST(a_recovery_that_found_something_is_due_again_at_once) {
  Segment segment({});
  Attachment doomed(segment);
  Attachment survivor(segment);
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(put_number(survivor, i) == Outcome::done);
  take_and_die(doomed, 4, 0);
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK(survivor.queue().recovery_is_due(Outcome::empty));
    CHECK(redeliver_bytes(survivor).has_value());
  }
  CHECK(survivor.queue().recovery_is_due(Outcome::empty));
  CHECK(!redeliver_bytes(survivor).has_value());
  CHECK(!survivor.queue().recovery_is_due(Outcome::empty));  // now there is time
}

TEST(a_dead_redeliverers_item_is_redelivered_again) {
  Segment segment({});
  Attachment first(segment);
  Attachment second(segment);
  Attachment third(segment);
  const Bytes in = pattern(1, 40);
  REQUIRE(put_bytes(third, in) == Outcome::done);
  take_and_die(first, 1, 0);
  const Recovery::RecoveryScan found = second.queue().recovery().run();
  REQUIRE(found.redeliverable && second.queue().recovery().try_redeliver(second.ledger(), found));
  CHECK(!third.queue().recovery().run().redeliverable);  // the redeliverer lives
  second.die();
  CHECK(redeliver_bytes(third) == in);
}

TEST(two_who_found_the_same_item_deliver_it_once) {
  Segment segment({});
  Attachment doomed(segment);
  Attachment one(segment);
  Attachment two(segment);
  REQUIRE(put_number(one, 9) == Outcome::done);
  take_and_die(doomed, 1, 0);
  const Recovery::RecoveryScan found = one.queue().recovery().run();
  const Recovery::RecoveryScan same = two.queue().recovery().run();
  REQUIRE(found.redeliverable && same.redeliverable);
  CHECK(one.queue().recovery().try_redeliver(one.ledger(), found));
  CHECK(!two.queue().recovery().try_redeliver(two.ledger(), same));
  release_copied(one.ring(), one.ledger(), found.peeked.span);
  CHECK(!two.queue().recovery().try_redeliver(two.ledger(), same));
}

TEST(a_dead_consumer_that_was_skipping_a_tombstone_leaves_a_free_slot) {
  Segment segment({});
  Attachment doomed(segment);
  Attachment survivor(segment);
  Span span;
  REQUIRE(claim_one(doomed, span) == Outcome::done);
  doomed.ring().generation_of(0).store(generation::tombstone(0));
  REQUIRE(claim_pop(doomed.ring(), doomed.ledger(), span));
  doomed.die();
  CHECK(survivor.queue().recovery().run().changed);
  CHECK_EQUAL(survivor.ring().generation_of(0).load(), generation::free(8));
}

TEST(a_producer_alone_makes_room_where_a_dead_producer_is_in_the_way) {
  Segment segment({});
  Attachment doomed(segment);
  Attachment survivor(segment);
  Span span;
  REQUIRE(claim_slots(doomed, 8, span) == Outcome::done);
  doomed.die();
  CHECK_EQUAL(put_number(survivor, 1), Outcome::full);
  CHECK(survivor.queue().make_room(survivor.ledger()));
  CHECK_EQUAL(put_bytes(survivor, pattern(1, 128)), Outcome::done);
}

TEST(a_front_that_nobody_says_he_claimed_is_corrupt) {
  Segment segment({});
  Attachment silent(segment);
  Attachment survivor(segment);
  Span span;
  (void)silent.ledger();
  REQUIRE(claim_push(silent.ring(), NoLedger{}, 1, [](std::uint64_t ready) { return ready; }, span) == Outcome::done);
  CHECK(survivor.queue().recovery().run().unclaimed);
}

TEST(nonsense_in_a_dead_line_harms_nobody) {
  Segment segment({});
  Attachment doomed(segment);
  Attachment survivor(segment);
  REQUIRE(put_number(survivor, 3) == Outcome::done);
  const std::uint32_t line = doomed.ledger().number();
  doomed.die();
  for (const Side side : {Side::push, Side::pop, static_cast<Side>(3)}) {
    for (const std::uint64_t position : {std::uint64_t{0}, std::uint64_t{4}, Intent::position_mask}) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{9}, Intent::count_limit}) {
        segment.lines()[line].intent.store(Intent{side, position, count}.packed());
        const Recovery::RecoveryScan found = survivor.queue().recovery().run();
        CHECK(!found.changed && !found.redeliverable && !found.unclaimed);
        Attachment newcomer(segment);
        CHECK_EQUAL(newcomer.ledger().number(), line);
      }
    }
  }
  std::uint64_t number = 0;
  CHECK_EQUAL(get_number(survivor, number), Outcome::done);
}

TEST(a_recovery_works_beyond_40_bits_of_positions) {
  for (const std::uint64_t start :
       {(std::uint64_t{1} << 40) - 1, (std::uint64_t{7} << 40) - 2, std::uint64_t{1} << 47}) {
    Segment segment({});
    segment.reset(start);
    Attachment doomed(segment);
    Attachment second(segment);
    Attachment survivor(segment);
    Span span;
    REQUIRE(put_number(survivor, 8) == Outcome::done);
    REQUIRE(claim_slots(doomed, 2, span) == Outcome::done);
    doomed.die();
    take_and_die(second, 1, 0);
    CHECK(redeliver_bytes(survivor).has_value());
    Peeked peeked;
    (void)survivor.queue().recovery().run();
    CHECK_EQUAL(peek(survivor.ring(), survivor.ledger(), peeked), Outcome::empty);
    CHECK_EQUAL(peeked.skipped, 2u);
    CHECK_EQUAL(put_bytes(survivor, pattern(1, 128)), Outcome::done);
  }
}

}  // namespace queueduct::testing
