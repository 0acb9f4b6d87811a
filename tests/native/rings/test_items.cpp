// Items of several slots, and what the dead leave between them: tombstones and orphan continuation slots.
#include <memory>

#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

TEST(an_item_of_several_slots_comes_out_whole_wherever_it_lies) {
  for (std::uint64_t start = 0; start < 16; ++start) {
    for (std::size_t length : {0u, 1u, 15u, 16u, 17u, 32u, 33u, 64u, 127u, 128u}) {
      Segment segment({});
      segment.reset(start);
      Attachment attached(segment);
      const Bytes in = pattern(static_cast<std::uint32_t>(start), length);
      CHECK_EQUAL(put_bytes(attached, in), Outcome::done);
      CHECK_EQUAL(attached.ring().push_position->load(), start + (length <= 16 ? 1 : (length + 15) / 16));
      CHECK(get_bytes(attached) == in);
      CHECK_EQUAL(attached.ring().pop_position->load(), attached.ring().push_position->load());
    }
  }
}

TEST(the_slots_after_the_head_say_how_far_it_is) {
  Segment segment({});
  segment.reset(6);
  Attachment attached(segment);
  REQUIRE(put_bytes(attached, pattern(1, 60)) == Outcome::done);
  CHECK_EQUAL(attached.ring().length_of(6).load(), 60u);
  for (std::uint32_t i = 1; i < 4; ++i) {
    const Length length{attached.ring().length_of(6 + i).load()};
    CHECK(length.is_continuation());
    CHECK_EQUAL(length.distance(), i);
  }
}

TEST(a_long_item_needs_all_its_slots_at_once) {
  Segment segment({});
  Attachment attached(segment);
  for (std::uint64_t i = 0; i < 6; ++i) REQUIRE(put_number(attached, i) == Outcome::done);
  CHECK_EQUAL(put_bytes(attached, pattern(1, 33)), Outcome::full);
  CHECK_EQUAL(put_bytes(attached, pattern(1, 32)), Outcome::done);
}

TEST(a_long_item_is_invisible_until_its_head_is_published) {
  Segment segment({});
  Attachment attached(segment);
  const Ring& ring = attached.ring();
  Span span;
  REQUIRE(claim_slots(attached, 3, span) == Outcome::done);
  const Bytes item = pattern(1, 40);
  copy_in(ring, span.position, item.data(), item.size());
  write_lengths(ring, span, item.size());
  Peeked peeked;
  for (const std::uint64_t i : {2u, 1u}) {  // head last
    ring.generation_of(i).store(generation::published(i), std::memory_order_release);
    CHECK_EQUAL(peek(ring, attached.ledger(), peeked), Outcome::busy);
  }
  ring.generation_of(0).store(generation::published(0), std::memory_order_release);
  CHECK_EQUAL(peek(ring, attached.ledger(), peeked), Outcome::done);
  CHECK_EQUAL(peeked.span.slots, 3u);
  CHECK_EQUAL(peeked.bytes, 40u);
}

TEST(a_tombstone_is_skipped_and_its_slot_is_free_again) {
  for (std::uint64_t start = 0; start < 8; ++start) {
    Segment segment({});
    segment.reset(start);
    Attachment attached(segment);
    const Ring& ring = attached.ring();
    Span dead;
    REQUIRE(claim_one(attached, dead) == Outcome::done);
    attached.ledger().clear();
    REQUIRE(put_number(attached, 42) == Outcome::done);
    ring.generation_of(dead.position).store(generation::tombstone(dead.position));
    CHECK(may_be_poppable(ring));
    Peeked peeked;
    CHECK_EQUAL(peek(ring, attached.ledger(), peeked), Outcome::done);
    CHECK_EQUAL(peeked.skipped, 1u);
    CHECK_EQUAL(peeked.span.position, start + 1);
    CHECK_EQUAL(ring.generation_of(start).load(), start + 8);
    CHECK_EQUAL(segment.lines()[0].intent.load(), 0u);
  }
}

TEST(only_tombstones_left_is_empty) {
  Segment segment({});
  Attachment attached(segment);
  Span dead;
  REQUIRE(claim_slots(attached, 8, dead) == Outcome::done);
  for (std::uint64_t p = 0; p < 8; ++p) attached.ring().generation_of(p).store(generation::tombstone(p));
  CHECK_EQUAL(put_number(attached, 1), Outcome::full);
  Peeked peeked;
  CHECK_EQUAL(peek(attached.ring(), attached.ledger(), peeked), Outcome::empty);
  CHECK_EQUAL(peeked.skipped, 8u);
  CHECK_EQUAL(put_number(attached, 1), Outcome::done);
}

TEST(orphan_continuation_slots_are_skipped) {
  Segment segment({});
  segment.reset(5);
  Attachment attached(segment);
  const Ring& ring = attached.ring();
  Span dead;  // its producer published the last two of four slots, then died
  REQUIRE(claim_slots(attached, 4, dead) == Outcome::done);
  write_lengths(ring, dead, 60);
  for (const std::uint64_t p : {8u, 7u}) ring.generation_of(p).store(generation::published(p));
  for (const std::uint64_t p : {6u, 5u}) ring.generation_of(p).store(generation::tombstone(p));
  REQUIRE(put_number(attached, 42) == Outcome::done);
  CHECK_EQUAL(count_items(ring, true), 1u);
  Peeked peeked;
  CHECK_EQUAL(peek(ring, attached.ledger(), peeked), Outcome::done);
  CHECK_EQUAL(peeked.skipped, 4u);
  CHECK_EQUAL(read_claimed(attached, peeked), 42u);
}

TEST(a_batch_ends_before_a_tombstone_and_before_an_orphan) {
  Segment segment({});
  Attachment attached(segment);
  const Ring& ring = attached.ring();
  for (std::uint64_t i = 0; i < 6; ++i) REQUIRE(put_number(attached, i) == Outcome::done);
  ring.generation_of(2).store(generation::tombstone(2));
  ring.length_of(4).store(Length::continuation_bit | 2);
  std::uint64_t lengths[8] = {};
  Peeked peeked;
  REQUIRE(peek(ring, attached.ledger(), peeked) == Outcome::done);
  CHECK_EQUAL(widen_bytes(ring, 8, lengths, peeked), 2u);
  REQUIRE(claim_pop(ring, attached.ledger(), peeked.span));
  release_copied(ring, attached.ledger(), peeked.span);
  REQUIRE(peek(ring, attached.ledger(), peeked) == Outcome::done);
  CHECK_EQUAL(peeked.span.position, 3u);
  CHECK_EQUAL(widen_bytes(ring, 8, lengths, peeked), 1u);
}

TEST(count_items_counts_heads_that_are_published) {
  Segment segment({});
  segment.reset(3);
  Attachment attached(segment);
  CHECK_EQUAL(count_items(attached.ring(), false), 0u);
  REQUIRE(put_bytes(attached, pattern(1, 40)) == Outcome::done);
  REQUIRE(put_number(attached, 2) == Outcome::done);
  CHECK_EQUAL(count_items(attached.ring(), false), 4u);  // slots: the caller knew of no long items
  CHECK_EQUAL(count_items(attached.ring(), true), 2u);
  Span claimed;
  REQUIRE(claim_one(attached, claimed) == Outcome::done);
  CHECK_EQUAL(count_items(attached.ring(), true), 2u);
}

TEST(count_items_does_not_count_tombstones_among_records) {
  Segment segment({.capacity = 8, .slot_bytes = 8, .participants = 4, .varying = false});
  Attachment attached(segment);
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(put_number(attached, i) == Outcome::done);
  attached.ring().generation_of(1).store(generation::tombstone(1));
  CHECK_EQUAL(count_items(attached.ring(), true), 2u);
}

TEST(a_reference_leaves_nothing_in_its_slot) {
  const auto queue = std::make_unique<BoundedLocal<NoLedger>>(BoundedLocal<NoLedger>::memory(4), 4);
  int target = 0;
  void* reference = nullptr;
  for (int i = 0; i < 10; ++i) {
    CHECK_EQUAL(queue->put(&target), Outcome::done);
    CHECK_EQUAL(queue->get(reference), Outcome::done);
    CHECK_EQUAL(reference, static_cast<void*>(&target));
    for (int slot = 0; slot < 4; ++slot)
      CHECK_EQUAL(reinterpret_cast<void**>(queue->ring().payload)[slot], static_cast<void*>(nullptr));
  }
  for (int i = 0; i < 3; ++i) CHECK_EQUAL(queue->put(&target), Outcome::done);
  CHECK(queue->shut_down(true));
  int drained = 0;
  while (queue->try_drain(reference)) ++drained;
  CHECK_EQUAL(drained, 3);
}

}  // namespace queueduct::testing
