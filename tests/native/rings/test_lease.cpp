// Leases by single steps: what is held stays, what is released goes, and what is given back or left comes again.
#include <thread>

#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

static constexpr std::uint64_t limit = 8;

struct Held {
  explicit Held(Attachment& attached) : lease(attached.queue()) {
    REQUIRE(lease.join() == ParticipantTable::Joined::yes);
  }
  BoundedLease lease;
  Redelivered items[limit];
  std::uint64_t count = 0;

  [[nodiscard]] Outcome claim(std::uint64_t most = limit) {
    std::uint64_t skipped = 0;
    return lease.try_claim(items, most, count, skipped);
  }
  void redeliver(Attachment& attached, std::uint64_t most = limit) {
    const Recovery::RecoveryScan found = attached.queue().recovery().run();
    count = found.redeliverable ? lease.try_redeliver(found, items, most) : 0;
  }
};

static void put_three(Attachment& attached) {
  for (std::uint8_t i = 0; i < 3; ++i) REQUIRE(put_bytes(attached, pattern(i, i == 1 ? 40 : 10)) == Outcome::done);
}

TEST(a_lease_holds_whole_items_and_leaves_the_threads_line_alone) {
  Segment segment({});
  Attachment holder(segment);
  put_three(holder);
  Held held(holder);
  REQUIRE(held.claim(2) == Outcome::done);
  CHECK_EQUAL(held.count, 2u);
  CHECK_EQUAL(held.items[1].span.position, 1u);
  CHECK_EQUAL(held.items[1].span.slots, 3u);
  CHECK(holder.queue().is_unreleased(0) && holder.queue().is_unreleased(1) && !holder.queue().is_unreleased(4));
  CHECK(get_bytes(holder) == pattern(2, 10));  // the same thread goes on
  CHECK(!holder.queue().recovery().run().redeliverable);
  held.lease.release(held.items, 2, true);
  CHECK(!holder.queue().is_unreleased(0) && !holder.queue().is_unreleased(1));
  held.lease.let_go();
  CHECK(put_bytes(holder, pattern(9, 128)) == Outcome::done);
}

TEST(what_a_lease_leaves_is_redelivered_as_a_whole_at_the_same_positions) {
  for (std::uint64_t released = 0; released <= 3; ++released) {
    Segment segment({});
    Attachment holder(segment);
    Attachment next(segment);
    put_three(holder);
    {
      Held held(holder);
      REQUIRE(held.claim() == Outcome::done);
      held.lease.release(held.items, released, released == 3);
    }
    Held again(next);
    again.redeliver(next);
    CHECK_EQUAL(again.count, 3 - released);
    const std::uint64_t positions[] = {0, 1, 4};
    for (std::uint64_t i = 0; i < again.count; ++i) CHECK_EQUAL(again.items[i].span.position, positions[released + i]);
    again.lease.release(again.items, again.count, true);
    again.lease.let_go();
    CHECK(put_bytes(next, pattern(9, 128)) == Outcome::done);
    CHECK_EQUAL(segment.control().redelivered.load(), 3 - released);
  }
}

TEST(an_redeliverer_that_dies_with_a_part_leaves_all_of_it_to_the_next) {
  Segment segment({});
  Attachment first(segment);
  Attachment second(segment);
  Attachment third(segment);
  put_three(first);
  Held held(first);
  REQUIRE(held.claim() == Outcome::done);
  first.die();
  Held redelivered(second);
  redelivered.redeliver(second, 2);
  CHECK_EQUAL(redelivered.count, 2u);
  Held none(third);
  none.redeliver(third);
  CHECK_EQUAL(none.count, 1u);  // the one that nobody has
  none.lease.release(none.items, 1, true);
  second.die();
  Held rest(third);
  rest.redeliver(third);
  CHECK_EQUAL(rest.count, 2u);
  rest.lease.release(rest.items, 2, true);
  CHECK_EQUAL(segment.control().redelivered.load(), 5u);
}

TEST(what_is_named_and_was_redelivered_by_another_is_not_taken_from_it) {
  Segment segment({.varying = false});
  Attachment first(segment);
  Attachment second(segment);
  Attachment third(segment);
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(put_number(first, i) == Outcome::done);
  Held held(first);
  REQUIRE(held.claim() == Outcome::done);
  first.die();
  Held late(third);
  const Recovery::RecoveryScan found = third.queue().recovery().run();
  REQUIRE(found.redeliverable);
  Held early(second);
  early.redeliver(second, 1);
  REQUIRE(early.count == 1);
  late.count = late.lease.try_redeliver(found, late.items, limit);
  CHECK_EQUAL(late.count, 0u);  // the first of them is a living one's now
  late.redeliver(third);
  CHECK_EQUAL(late.count, 2u);
  CHECK_EQUAL(late.items[0].span.position, 1u);
}

TEST(a_get_that_converts_has_its_threads_line_apart_and_gives_it_back) {
  Segment segment({});
  Attachment holder(segment);
  put_three(holder);
  BoundedLease lease(holder.queue());
  Redelivered items[limit];
  std::uint64_t count = 0;
  std::uint64_t skipped = 0;
  const std::uint32_t line = holder.ledger().number();
  lease.borrow(holder.ledger());
  CHECK(!lease.is_ours());
  REQUIRE(lease.try_claim(items, 2, count, skipped) == Outcome::done);
  lease.set_apart();
  CHECK(lease.is_ours());
  CHECK_EQUAL(holder.queue().recovery().count_left(), 0u);
  CHECK(get_bytes(holder) == pattern(2, 10));  // the same thread, by another line
  CHECK(holder.ledger().number() != line);
  CHECK(!holder.queue().recovery().run().redeliverable);
  lease.finish(items, count);
  CHECK(!lease.is_ours());
  CHECK(!holder.queue().participant_table().is_alive(line));  // it has the other one by now
  CHECK(!holder.queue().is_unreleased(0));

  REQUIRE(put_bytes(holder, pattern(3, 10)) == Outcome::done);
  const std::uint32_t mine = holder.ledger().number();
  lease.borrow(holder.ledger());
  REQUIRE(lease.try_claim(items, 2, count, skipped) == Outcome::done);
  lease.set_apart();
  lease.finish(items, count);
  CHECK_EQUAL(holder.ledger().number(), mine);
}

TEST(what_a_get_could_not_convert_is_counted_and_comes_again) {
  Segment segment({});
  Attachment holder(segment);
  Attachment other(segment);
  put_three(holder);
  {
    BoundedLease lease(holder.queue());
    Redelivered items[limit];
    std::uint64_t count = 0;
    std::uint64_t skipped = 0;
    lease.borrow(holder.ledger());
    REQUIRE(lease.try_claim(items, 2, count, skipped) == Outcome::done);
    lease.set_apart();
  }
  CHECK_EQUAL(other.queue().recovery().count_left(), 2u);  // of two items, one of which is long
  CHECK_EQUAL(holder.queue().recovery().count_left(), 2u);
  (void)holder.ledger();  // the line has a new owner, and a bequest
  CHECK_EQUAL(other.queue().recovery().count_left(), 2u);
  Held again(other);
  again.redeliver(other);
  CHECK_EQUAL(again.count, 2u);
  CHECK_EQUAL(other.queue().recovery().count_left(), 0u);
  again.lease.release(again.items, 2, true);
  CHECK_EQUAL(holder.queue().recovery().count_left(), 0u);
}

TEST(what_is_out_is_counted_once_from_the_claim_to_the_release_whoever_has_it) {
  Segment segment({});
  Attachment first(segment);
  Attachment second(segment);
  Attachment third(segment);
  // leased: a live consumer has them; left: no consumer does
  const auto check_out = [](Attachment& attached, std::uint64_t leased, std::uint64_t left, int line) {
    check_equal(attached.queue().count_leased(), leased, __FILE__, line, "leased");
    check_equal(attached.queue().count_left(), left, __FILE__, line, "left");
  };
  put_three(first);
  check_out(third, 0, 0, __LINE__);
  Held held(first);
  REQUIRE(held.claim(2) == Outcome::done);
  check_out(third, 2, 0, __LINE__);  // one of them has three slots
  first.die();
  check_out(third, 0, 2, __LINE__);
  Held redelivered(second);
  redelivered.redeliver(second);
  REQUIRE(redelivered.count == 2);
  check_out(third, 2, 0, __LINE__);  // named by the dead line and by the living one
  redelivered.lease.release(redelivered.items, 1, false);
  check_out(third, 1, 0, __LINE__);
  redelivered.lease.let_go();
  check_out(third, 0, 1, __LINE__);
  Held last(third);  // on a line of the gone: what that one had is inherited
  check_out(third, 0, 1, __LINE__);
  last.redeliver(third);
  REQUIRE(last.count == 1);
  check_out(first, 1, 0, __LINE__);
  last.lease.release(last.items, 1, true);
  check_out(first, 0, 0, __LINE__);
}

TEST(who_finds_a_queue_over_waits_for_what_others_have_and_not_for_its_own) {
  Segment segment({.varying = false});
  Attachment holder(segment);
  for (std::uint64_t i = 0; i < 2; ++i) REQUIRE(put_number(holder, i) == Outcome::done);
  Held held(holder);
  REQUIRE(held.claim(2) == Outcome::done);
  holder.queue().shut_down(false);
  CHECK(is_ended(holder.ring()));
  CHECK(!holder.queue().may_come_again());  // O3
  bool may_come_again = false;
  std::thread([&] { may_come_again = holder.queue().may_come_again(); }).join();
  CHECK(may_come_again);
  held.lease.release(held.items, 2, true);
  held.lease.let_go();
  std::thread([&] { may_come_again = holder.queue().may_come_again(); }).join();
  CHECK(!may_come_again);
}

TEST(the_end_of_a_lease_wakes_who_waits_for_it) {
  Segment segment({.varying = false});
  Attachment holder(segment);
  Attachment other(segment);
  REQUIRE(put_number(holder, 7) == Outcome::done);
  Held held(holder);
  REQUIRE(held.claim(1) == Outcome::done);
  holder.queue().shut_down(false);
  std::thread waiter([&] {
    while (other.queue().may_come_again()) other.queue().wait_for_items(park_limit_ns);
  });
  held.lease.release(held.items, 1, true);
  held.lease.let_go();
  waiter.join();
  CHECK_EQUAL(other.queue().count_leased(), 0u);
}

}  // namespace queueduct::testing
