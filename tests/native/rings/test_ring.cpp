// The ring by single steps: whose turn a generation says it is, and what each side answers when it is not.
#include <memory>

#include "support/check.hpp"
#include "support/items_for_tests.hpp"
#include "support/segment.hpp"

namespace queueduct::testing {

TEST(a_new_ring_holds_the_generations_0_to_n_in_its_raw_bytes) {
  Segment segment({.capacity = 16});
  const Attachment attached(segment);
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < 16; ++i) {
    std::memcpy(&word, segment.base() + segment.offsets().generations + 8 * i, 8);
    CHECK_EQUAL(word, i);
  }
}

TEST(a_new_local_ring_holds_the_generations_0_to_n_in_its_raw_bytes) {
  const auto queue = std::make_unique<BoundedLocal<NoLedger>>(BoundedLocal<NoLedger>::memory(16), 16);
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < 16; ++i) {
    std::memcpy(&word, queue->ring().generations + i, 8);
    CHECK_EQUAL(word, i);
  }
}

TEST(a_push_needs_a_slot_free_for_its_position_and_leaves_it_published) {
  Segment segment({});
  Attachment attached(segment);
  const Ring& ring = attached.ring();
  for (std::uint64_t position = 0; position < 8; ++position) {
    CHECK_EQUAL(ring.generation_of(position).load(), position);
    CHECK_EQUAL(put_number(attached, position), Outcome::done);
    CHECK_EQUAL(ring.generation_of(position).load(), std::uint64_t{1} << 62 | position);
  }
  ring.generation_of(8).store(7);  // anything but 8: not its turn
  CHECK(put_number(attached, 8) != Outcome::done);
  CHECK_EQUAL(ring.push_position->load(), 8u);
}

TEST(a_pop_needs_a_published_slot_and_leaves_it_free_for_its_position_plus_the_capacity) {
  Segment segment({});
  Attachment attached(segment);
  const Ring& ring = attached.ring();
  std::uint64_t number = 0;
  CHECK_EQUAL(get_number(attached, number), Outcome::empty);
  for (std::uint64_t position = 0; position < 24; ++position) {
    CHECK_EQUAL(put_number(attached, 1000 + position), Outcome::done);
    CHECK_EQUAL(get_number(attached, number), Outcome::done);
    CHECK_EQUAL(number, 1000 + position);
    CHECK_EQUAL(ring.generation_of(position).load(), position + 8);
  }
}

TEST(a_slow_readers_slot_is_never_overwritten) {
  Segment segment({});
  Attachment reader(segment);
  Attachment writer(segment);
  for (std::uint64_t i = 0; i < 8; ++i) REQUIRE(put_number(writer, i) == Outcome::done);
  Peeked slow;
  REQUIRE(peek(reader.ring(), reader.ledger(), slow) == Outcome::done);
  REQUIRE(claim_pop(reader.ring(), reader.ledger(), slow.span));
  std::uint64_t number = 0;
  for (std::uint64_t i = 1; i < 8; ++i) REQUIRE(get_number(writer, number) == Outcome::done);
  CHECK_EQUAL(put_number(writer, 99), Outcome::full);  // seven slots are free, but the next is being read
  CHECK_EQUAL(read_claimed(reader, slow), 0u);
  release_copied(reader.ring(), reader.ledger(), slow.span);
  CHECK_EQUAL(put_number(writer, 99), Outcome::done);
}

TEST(a_slow_writers_slot_is_never_read) {
  Segment segment({});
  Attachment slow(segment);
  Attachment quick(segment);
  Span span;
  REQUIRE(claim_one(slow, span) == Outcome::done);
  CHECK_EQUAL(put_number(quick, 1), Outcome::done);
  std::uint64_t number = 0;
  CHECK_EQUAL(get_number(quick, number), Outcome::busy);  // the second is there, but not before the first
  write_claimed(slow, span, 0);
  publish(slow.ring(), span);
  slow.ledger().clear();
  CHECK_EQUAL(get_number(quick, number), Outcome::done);
  CHECK_EQUAL(number, 0u);
  CHECK_EQUAL(get_number(quick, number), Outcome::done);
  CHECK_EQUAL(number, 1u);
}

TEST(a_full_ring_says_full_and_an_empty_one_empty_at_every_position_of_the_lap) {
  for (const std::uint64_t capacity : {1u, 2u, 3u, 5u, 7u, 8u}) {
    for (const std::uint64_t lap : {std::uint64_t{0}, std::uint64_t{1} << 40, (std::uint64_t{1} << 62) - 64}) {
      for (std::uint64_t start = lap; start < lap + 2 * capacity + 1; ++start) {
        Segment segment({.capacity = capacity});
        segment.reset(start);
        Attachment attached(segment);
        std::uint64_t number = 0;
        CHECK_EQUAL(get_number(attached, number), Outcome::empty);
        for (std::uint64_t i = 0; i < capacity; ++i) CHECK_EQUAL(put_number(attached, i), Outcome::done);
        CHECK_EQUAL(put_number(attached, 8), Outcome::full);
        for (std::uint64_t i = 0; i < capacity; ++i) {
          CHECK_EQUAL(get_number(attached, number), Outcome::done);
          CHECK_EQUAL(number, i);
        }
        CHECK_EQUAL(get_number(attached, number), Outcome::empty);
      }
    }
  }
}

TEST(the_smallest_ring_has_one_slot_and_is_full_or_empty) {
  Segment segment({.capacity = 1});
  Attachment attached(segment);
  Attachment other(segment);
  std::uint64_t number = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    CHECK_EQUAL(get_number(other, number), Outcome::empty);
    CHECK_EQUAL(put_number(attached, i), Outcome::done);
    CHECK_EQUAL(put_number(other, 99), Outcome::full);
    CHECK_EQUAL(count_items(attached.ring(), true), 1u);
    CHECK_EQUAL(get_number(other, number), Outcome::done);
    CHECK_EQUAL(number, i);
  }
}

TEST(the_only_slot_is_not_overwritten_while_it_is_read_nor_read_while_it_is_written) {
  Segment segment({.capacity = 1});
  Attachment slow(segment);
  Attachment quick(segment);
  std::uint64_t number = 0;
  Span span;
  REQUIRE(claim_one(slow, span) == Outcome::done);
  CHECK_EQUAL(get_number(quick, number), Outcome::busy);
  CHECK_EQUAL(put_number(quick, 7), Outcome::full);
  write_claimed(slow, span, 3);
  publish(slow.ring(), span);
  slow.ledger().clear();
  Peeked peeked;
  REQUIRE(peek(slow.ring(), slow.ledger(), peeked) == Outcome::done);
  REQUIRE(claim_pop(slow.ring(), slow.ledger(), peeked.span));
  CHECK_EQUAL(get_number(quick, number), Outcome::empty);
  CHECK_EQUAL(put_number(quick, 7), Outcome::full);
  CHECK_EQUAL(read_claimed(slow, peeked), 3u);
  release_copied(slow.ring(), slow.ledger(), peeked.span);
  CHECK_EQUAL(put_number(quick, 7), Outcome::done);
}

TEST(a_ring_of_two_slots_keeps_order) {
  Segment segment({.capacity = 2});
  Attachment attached(segment);
  std::uint64_t number = 0;
  for (std::uint64_t i = 0; i < 20; i += 2) {
    CHECK_EQUAL(put_number(attached, i), Outcome::done);
    CHECK_EQUAL(put_number(attached, i + 1), Outcome::done);
    CHECK_EQUAL(put_number(attached, 99), Outcome::full);
    CHECK_EQUAL(get_number(attached, number), Outcome::done);
    CHECK_EQUAL(number, i);
    CHECK_EQUAL(get_number(attached, number), Outcome::done);
    CHECK_EQUAL(number, i + 1);
  }
}

TEST(a_ring_that_was_shut_down_takes_nothing_and_gives_what_it_has) {
  Segment segment({});
  Attachment attached(segment);
  BoundedQueueHandle& queue = attached.queue();
  std::uint64_t number = 0;
  REQUIRE(put_number(attached, 7) == Outcome::done);
  queue.shut_down(false);
  CHECK_EQUAL(put_number(attached, 8), Outcome::closed);
  CHECK(!is_discarded(queue.ring()));
  CHECK(!is_ended(queue.ring()));
  CHECK_EQUAL(count_items(queue.ring(), true), 1u);
  CHECK_EQUAL(get_number(attached, number), Outcome::done);
  CHECK_EQUAL(number, 7u);
  CHECK_EQUAL(get_number(attached, number), Outcome::closed);
  CHECK(is_ended(queue.ring()));
  CHECK_EQUAL(queue.control().push_position.load(), closed_bit | 1);
}

TEST(an_immediate_shutdown_ends_gets_at_once) {
  Segment segment({});
  Attachment attached(segment);
  BoundedQueueHandle& queue = attached.queue();
  std::uint64_t number = 0;
  REQUIRE(put_number(attached, 7) == Outcome::done);
  Peeked peeked;
  REQUIRE(peek(queue.ring(), attached.ledger(), peeked) == Outcome::done);
  queue.shut_down(true);
  CHECK(!claim_pop(queue.ring(), attached.ledger(), peeked.span));  // seen before, claimed too late
  CHECK_EQUAL(get_number(attached, number), Outcome::closed);
  CHECK_EQUAL(put_number(attached, 8), Outcome::closed);
  CHECK(is_discarded(queue.ring()));
  CHECK_EQUAL(slots_in_use(queue.ring()), 0u);
  CHECK_EQUAL(count_items(queue.ring(), true), 0u);
}

TEST(a_push_claimed_before_the_shutdown_is_still_delivered_after_it) {
  Segment segment({});
  Attachment attached(segment);
  BoundedQueueHandle& queue = attached.queue();
  Span span;
  REQUIRE(claim_one(attached, span) == Outcome::done);
  queue.shut_down(false);
  std::uint64_t number = 0;
  CHECK_EQUAL(get_number(attached, number), Outcome::busy);  // not closed: one is still to come
  write_claimed(attached, span, 5);
  publish(queue.ring(), span);
  CHECK_EQUAL(get_number(attached, number), Outcome::done);
  CHECK_EQUAL(number, 5u);
}

TEST(words_that_contradict_each_other_are_corrupt_and_nothing_hangs) {
  const auto outcome_of = [](auto damage, bool pushing) {
    Segment segment({});
    Attachment attached(segment);
    for (std::uint64_t i = 0; i < 3; ++i) (void)put_number(attached, i);
    damage(attached.ring());
    std::uint64_t number = 0;
    return pushing ? put_number(attached, 9) : get_number(attached, number);
  };
  const auto set = [](std::uint64_t position, std::uint64_t word) {
    return [=](const Ring& ring) { ring.generation_of(position).store(word); };
  };
  CHECK_EQUAL(outcome_of(set(3, 12345), true), Outcome::corrupt);
  CHECK_EQUAL(outcome_of(set(3, 4), true), Outcome::corrupt);
  CHECK_EQUAL(outcome_of(set(3, generation::published(3)), true), Outcome::corrupt);
  CHECK_EQUAL(outcome_of(set(0, 12345), false), Outcome::corrupt);
  CHECK_EQUAL(outcome_of(set(0, generation::redelivered(0, 3)), false), Outcome::corrupt);
  CHECK_EQUAL(outcome_of(set(0, ~std::uint64_t{0}), false), Outcome::corrupt);
  CHECK_EQUAL(outcome_of([](const Ring& r) { r.push_position->store(100); }, false), Outcome::done);
  CHECK_EQUAL(outcome_of([](const Ring& r) { r.pop_position->store(100); }, false), Outcome::corrupt);
  CHECK_EQUAL(outcome_of([](const Ring& r) { r.pop_position->store(5); }, false), Outcome::corrupt);
  const auto too_long = [](const Ring& r) { r.length_of(0).store(16 * 8 + 1); };
  CHECK_EQUAL(outcome_of(too_long, false), Outcome::corrupt);
}

TEST(hints_for_waiters_agree_with_the_ring) {
  Segment segment({});
  Attachment attached(segment);
  const Ring& ring = attached.ring();
  std::uint64_t number = 0;
  CHECK(!may_be_poppable(ring));
  CHECK(may_be_pushable(ring, 8));
  for (std::uint64_t i = 0; i < 6; ++i) (void)put_number(attached, i);
  CHECK(may_be_poppable(ring));
  CHECK(may_be_pushable(ring, 2));
  CHECK(!may_be_pushable(ring, 3));
  (void)get_number(attached, number);
  CHECK(may_be_pushable(ring, 3));
  attached.queue().shut_down(true);
  CHECK(may_be_poppable(ring));  // to be told that it is closed
  CHECK(may_be_pushable(ring, 8));
}

}  // namespace queueduct::testing
