// The overwriting queue without Python: what goes when it is full, whose lock is whose, and what the dead leave.
#include <thread>

#include "support/overwriting_fates.hpp"

namespace queueduct::testing {

TEST(a_full_queue_loses_its_oldest_and_keeps_the_order_of_the_rest) {
  OverwritingSegment segment({.capacity = 5, .words = 2});
  OverwritingAttachment attached(segment);
  std::uint64_t number = 0;
  for (std::uint64_t i = 1; i <= 13; ++i) CHECK_EQUAL(attached.put(i), Claim::done);
  for (std::uint64_t i = 9; i <= 13; ++i) {
    CHECK_EQUAL(attached.get(number), Claim::done);
    CHECK_EQUAL(number, i);
  }
  CHECK_EQUAL(attached.get(number), Claim::empty);
  CHECK_EQUAL(attached.ring().fates().overwritten, 8u);
  check_sum(attached, __LINE__);
}

TEST(a_queue_of_one_message_holds_the_latest) {
  OverwritingSegment segment({.capacity = 1, .words = 1});
  OverwritingAttachment attached(segment);
  std::uint64_t number = 0;
  for (std::uint64_t i = 1; i <= 3; ++i) CHECK_EQUAL(attached.put(i), Claim::done);
  CHECK_EQUAL(attached.get(number), Claim::done);
  CHECK_EQUAL(number, 3u);
  CHECK_EQUAL(attached.get(number), Claim::empty);
  check_sum(attached, __LINE__);
}

TEST(who_may_not_overwrite_is_told_that_it_is_full) {
  OverwritingSegment segment({.capacity = 2, .words = 1});
  OverwritingAttachment attached(segment);
  CHECK_EQUAL(attached.put(1, false), Claim::done);
  CHECK_EQUAL(attached.put(2, false), Claim::done);
  CHECK_EQUAL(attached.put(3, false), Claim::full);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get(number), Claim::done);
  CHECK_EQUAL(attached.put(3, false), Claim::done);
  CHECK_EQUAL(attached.ring().fates().overwritten, 0u);
  check_sum(attached, __LINE__);
}

TEST(a_writer_that_comes_round_takes_the_message_from_its_reader_who_finds_out) {
  OverwritingSegment segment({.capacity = 2, .words = 2});
  OverwritingAttachment reader(segment);
  OverwritingAttachment writer(segment);
  CHECK_EQUAL(writer.put(1), Claim::done);
  const std::uint32_t line = reader.line();
  Claimed claimed;
  REQUIRE(reader.queue().enter(line, 0) == Claim::done);
  CHECK_EQUAL(reader.ring().claim_get(line, claimed), Claim::done);
  reader.queue().leave();
  for (std::uint64_t i = 2; i <= 3; ++i) CHECK_EQUAL(writer.put(i), Claim::done);  // the second one has come round
  std::uint64_t data[2];
  reader.ring().copy_out(claimed, data, sizeof data);
  CHECK(!reader.ring().finish_get(line, claimed));
  CHECK_EQUAL(reader.ring().fates().overwritten, 1u);
  std::uint64_t number = 0;
  CHECK_EQUAL(reader.get(number), Claim::done);
  CHECK_EQUAL(number, 2u);
  check_sum(reader, __LINE__);
}

TEST(who_may_not_overwrite_leaves_a_reader_its_message) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  OverwritingAttachment reader(segment);
  OverwritingAttachment writer(segment);
  CHECK_EQUAL(writer.put(1), Claim::done);
  const std::uint32_t line = reader.line();
  Claimed claimed;
  REQUIRE(reader.queue().enter(line, 0) == Claim::done);
  CHECK_EQUAL(reader.ring().claim_get(line, claimed), Claim::done);
  reader.queue().leave();
  CHECK_EQUAL(writer.put(2, false), Claim::full);
  CHECK(reader.ring().finish_get(line, claimed));
  CHECK_EQUAL(writer.put(2, false), Claim::done);
}

// Somebody who dies in the middle of a put that has come so far.
static void die_in_a_put(OverwritingSegment& segment, bool unlocks_header) {
  OverwritingAttachment victim(segment);
  const std::uint32_t line = victim.line();
  Claimed claimed;
  REQUIRE(victim.queue().enter(line, 1'000'000'000) == Claim::done);
  CHECK_EQUAL(victim.ring().claim_put(line, true, claimed), Claim::done);
  if (unlocks_header) victim.queue().leave();
  victim.die();
}

TEST(a_torn_message_is_skipped_and_counted_and_never_delivered) {
  for (const bool unlocks : {false, true}) {
    OverwritingSegment segment({.capacity = 3, .words = 2});
    OverwritingAttachment attached(segment);
    CHECK_EQUAL(attached.put(1), Claim::done);
    die_in_a_put(segment, unlocks);
    CHECK_EQUAL(attached.put(2), Claim::done);
    std::uint64_t number = 0;
    CHECK_EQUAL(attached.get(number), Claim::done);
    CHECK_EQUAL(number, 1u);
    CHECK_EQUAL(attached.get(number), Claim::done);
    CHECK_EQUAL(number, 2u);
    CHECK_EQUAL(attached.get(number), Claim::empty);
    CHECK_EQUAL(attached.ring().fates().torn, 1u);
    check_sum(attached, __LINE__);
  }
}

TEST(a_torn_message_that_is_overwritten_counts_as_torn) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  OverwritingAttachment attached(segment);
  die_in_a_put(segment, true);
  CHECK_EQUAL(attached.put(7, false), Claim::done);  // a torn message takes no room
  CHECK_EQUAL(attached.ring().fates().torn, 1u);
  CHECK_EQUAL(attached.ring().fates().overwritten, 0u);
  check_sum(attached, __LINE__);
}

TEST(what_a_dead_reader_had_is_lost_and_counted_once_also_when_its_line_has_a_new_owner) {
  OverwritingSegment segment({.capacity = 3, .words = 2});
  OverwritingAttachment attached(segment);
  for (std::uint64_t i = 1; i <= 3; ++i) CHECK_EQUAL(attached.put(i), Claim::done);
  OverwritingAttachment victim(segment);
  const std::uint32_t line = victim.line();
  Claimed claimed;
  REQUIRE(victim.queue().enter(line, 0) == Claim::done);
  CHECK_EQUAL(victim.ring().claim_get(line, claimed), Claim::done);
  victim.die();  // with the header's lock
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get(number), Claim::done);
  CHECK_EQUAL(number, 2u);
  CHECK_EQUAL(attached.ring().fates().lost_with_consumer, 1u);
  check_sum(attached, __LINE__);
  OverwritingAttachment heir(segment);
  CHECK_EQUAL(heir.line(), line);
  CHECK_EQUAL(attached.ring().fates().lost_with_consumer, 1u);
  CHECK_EQUAL(heir.get(number), Claim::done);
  CHECK_EQUAL(number, 3u);
  CHECK_EQUAL(attached.ring().fates().lost_with_consumer, 1u);
  check_sum(attached, __LINE__);
  CHECK_EQUAL(heir.put(4, false), Claim::done);
}

TEST(a_lock_of_the_dead_is_taken_over_though_its_line_has_a_new_owner) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  die_in_a_put(segment, true);  // line 0, and the message's lock says so
  OverwritingAttachment heir(segment);
  CHECK_EQUAL(heir.line(), 0u);
  std::uint64_t number = 0;
  CHECK_EQUAL(heir.get(number), Claim::empty);
  CHECK_EQUAL(heir.put(5), Claim::done);
  CHECK_EQUAL(heir.get(number), Claim::done);
  CHECK_EQUAL(number, 5u);
  CHECK_EQUAL(heir.ring().fates().torn, 1u);
}

TEST(a_writer_that_lives_is_waited_for) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  OverwritingAttachment writer(segment);
  OverwritingAttachment other(segment);
  const std::uint32_t line = writer.line();
  Claimed claimed;
  REQUIRE(writer.queue().enter(line, 0) == Claim::done);
  CHECK_EQUAL(writer.ring().claim_put(line, true, claimed), Claim::done);
  writer.queue().leave();
  std::uint64_t number = 0;
  CHECK_EQUAL(other.put(2), Claim::busy);
  CHECK_EQUAL(other.get(number), Claim::busy);
  const std::uint64_t data[2] = {1, 1};
  writer.ring().copy_in(claimed, data, sizeof data);
  writer.ring().publish(claimed);
  CHECK_EQUAL(other.get(number), Claim::done);
  CHECK_EQUAL(number, 1u);
}

TEST(a_slow_copy_keeps_nobody_from_the_other_messages) {
  OverwritingSegment segment({.capacity = 4, .words = 2});
  OverwritingAttachment slow_reader(segment);
  OverwritingAttachment slow_writer(segment);
  OverwritingAttachment other(segment);
  for (std::uint64_t i = 1; i <= 3; ++i) CHECK_EQUAL(other.put(i), Claim::done);
  const std::uint32_t reader = slow_reader.line();
  const std::uint32_t writer = slow_writer.line();
  Claimed read;
  Claimed written;
  REQUIRE(slow_reader.queue().enter(reader, 0) == Claim::done);
  CHECK_EQUAL(slow_reader.ring().claim_get(reader, read), Claim::done);  // 1
  slow_reader.queue().leave();
  REQUIRE(slow_writer.queue().enter(writer, 0) == Claim::done);
  CHECK_EQUAL(slow_writer.ring().claim_put(writer, true, written), Claim::done);  // 4
  slow_writer.queue().leave();
  std::uint64_t number = 0;
  for (std::uint64_t i = 2; i <= 3; ++i) {
    CHECK_EQUAL(other.get(number), Claim::done);
    CHECK_EQUAL(number, i);
  }
  for (std::uint64_t i = 5; i <= 7; ++i) CHECK_EQUAL(other.put(i), Claim::done);  // the first over the reader's message
  CHECK_EQUAL(other.get(number), Claim::busy);  // 4 comes before 5
  const std::uint64_t data[2] = {4, 4};
  slow_writer.ring().copy_in(written, data, sizeof data);
  slow_writer.ring().publish(written);
  CHECK(!slow_reader.ring().finish_get(reader, read));
  for (std::uint64_t i = 4; i <= 7; ++i) {
    CHECK_EQUAL(other.get(number), Claim::done);
    CHECK_EQUAL(number, i);
  }
  check_sum(other, __LINE__);
}

TEST(a_batch_says_how_many_are_in_when_the_next_one_is_refused) {
  OverwritingSegment segment({.capacity = 3, .words = 1});
  OverwritingAttachment attached(segment);
  const std::uint64_t records[5] = {1, 2, 3, 4, 5};
  const auto* bytes = reinterpret_cast<const char*>(records);
  std::uint64_t count = 0;
  CHECK_EQUAL(attached.queue().try_put_records(attached.line(), bytes, 8, 5, false, 0, count), Claim::full);
  CHECK_EQUAL(count, 3u);
  std::uint64_t got[5] = {};
  CHECK_EQUAL(attached.queue().try_get_records(attached.line(), reinterpret_cast<char*>(got), 8, 5, 0, count),
              Claim::empty);
  CHECK_EQUAL(count, 3u);
  CHECK_EQUAL(got[2], 3u);
  CHECK_EQUAL(attached.queue().try_put_records(attached.line(), bytes, 8, 5, true, 0, count), Claim::done);
  CHECK_EQUAL(count, 5u);
  CHECK_EQUAL(attached.ring().fates().overwritten, 2u);
  check_sum(attached, __LINE__);
}

TEST(a_strangers_locks_are_respected_and_never_changed) {
  OverwritingSegment segment({.capacity = 2, .words = 1});
  OverwritingAttachment attached(segment);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.put(1), Claim::done);
  segment.write(16, std::uint64_t{1});
  CHECK_EQUAL(attached.put(2, true, 5'000'000), Claim::locked);
  CHECK_EQUAL(attached.get(number, 5'000'000), Claim::locked);
  CHECK_EQUAL(segment.read<std::uint64_t>(16), 1u);
  segment.write(16, std::uint64_t{0});
  segment.write(segment.message_at(0), std::uint64_t{1});
  CHECK_EQUAL(attached.get(number), Claim::busy);
  CHECK_EQUAL(attached.put(2), Claim::done);
  CHECK_EQUAL(attached.put(3), Claim::busy);
  CHECK_EQUAL(segment.read<std::uint64_t>(segment.message_at(0)), 1u);
  segment.write(segment.message_at(0), std::uint64_t{0});
  CHECK_EQUAL(attached.get(number), Claim::done);
  CHECK_EQUAL(number, 1u);
}

TEST(places_that_cannot_be_are_reported_and_lead_nowhere) {
  OverwritingSegment segment({.capacity = 2, .words = 1});
  OverwritingAttachment attached(segment);
  std::uint64_t number = 0;
  for (const RingState state : {RingState{2, 0}, RingState{2, 1}, RingState{0, 3}, RingState{~0u, ~0u}}) {
    segment.write(24, state.packed());
    CHECK_EQUAL(attached.put(1), Claim::corrupt);
    CHECK_EQUAL(attached.get(number), state.length == 0 ? Claim::empty : Claim::corrupt);
    CHECK_EQUAL(segment.read<std::uint64_t>(16), 0u);
  }
}

TEST(a_journal_that_cannot_be_is_reported_and_leads_nowhere) {
  OverwritingSegment segment({.capacity = 2, .words = 1});
  OverwritingAttachment attached(segment);
  (void)attached.line();
  OverwritingJournal& journal = segment.control().journal;
  journal.is_committed.store(1);
  journal.change.index.store(2);
  CHECK_EQUAL(attached.put(1), Claim::corrupt);
  journal.change.index.store(0);
  journal.change.noted_at.store(segment.shape().participants + leased_cells(2, 1) + 1);
  CHECK_EQUAL(attached.put(1), Claim::corrupt);
  journal.change.noted_at.store(0);
  journal.change.ring_state.store(RingState{0, 3}.packed());
  CHECK_EQUAL(attached.put(1), Claim::corrupt);
  CHECK_EQUAL(segment.read<std::uint64_t>(16), 0u);
}

TEST(a_header_locked_in_our_own_name_is_reported_instead_of_waited_for) {
  OverwritingSegment segment({.capacity = 2, .words = 1});
  OverwritingAttachment attached(segment);
  REQUIRE(attached.queue().enter(attached.line(), 0) == Claim::done);
  CHECK_EQUAL(attached.put(1, true, 1'000'000'000), Claim::corrupt);
}

TEST(shut_down_ends_puts_at_once_and_gets_when_it_is_empty) {
  OverwritingSegment segment({.capacity = 2, .words = 1});
  OverwritingAttachment attached(segment);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.put(1), Claim::done);
  CHECK_EQUAL(attached.put(2), Claim::done);
  attached.queue().shut_down(false);
  CHECK_EQUAL(attached.put(3), Claim::closed);
  CHECK_EQUAL(attached.get(number), Claim::done);
  attached.queue().shut_down(true);
  CHECK_EQUAL(attached.get(number), Claim::closed);
}

TEST(a_message_shorter_than_its_place_is_filled_up_with_zeros) {
  OverwritingSegment segment({.capacity = 1, .words = 3});
  OverwritingAttachment attached(segment);
  CHECK_EQUAL(attached.put(~std::uint64_t{0} - 1), Claim::done);
  CHECK_EQUAL(attached.queue().try_put(attached.line(), "123456789", 9, true, 0), Claim::done);
  CHECK_EQUAL(std::memcmp(segment.base() + 40, "123456789\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24), 0);
  char nine[9];
  CHECK_EQUAL(attached.queue().try_get(attached.line(), nine, 9, 0), Claim::done);
  CHECK_EQUAL(std::memcmp(nine, "123456789", 9), 0);
}

TEST(a_put_wakes_a_getter_that_sleeps) {
  OverwritingSegment segment({.capacity = 2, .words = 1});
  OverwritingAttachment getter(segment);
  OverwritingAttachment putter(segment);
  std::uint64_t got = 0;
  std::thread sleeper([&] {
    while (getter.get(got) != Claim::done) getter.queue().wait_for_items(park_limit_ns);
  });
  CHECK_EQUAL(putter.put(8), Claim::done);
  sleeper.join();
  CHECK_EQUAL(got, 8u);
}

}  // namespace queueduct::testing
