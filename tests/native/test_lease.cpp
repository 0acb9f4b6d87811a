// Leases by single steps: what is held stays, what is released goes, and what is given back or left comes again.
#include "check.hpp"
#include "items_for_tests.hpp"

namespace penstock::testing {

static constexpr std::uint64_t limit = 8;

struct Held {
  explicit Held(Attachment& attached) : lease(attached.queue()) { REQUIRE(lease.join() == Roster::Joined::yes); }
  BoundedLease lease;
  Adopted items[limit];
  std::uint64_t count = 0;

  [[nodiscard]] Outcome claim(std::uint64_t most = limit) {
    std::uint64_t skipped = 0;
    return lease.try_claim(items, most, count, skipped);
  }
  void adopt(Attachment& attached, std::uint64_t most = limit) {
    const Recovery::Found found = attached.queue().recovery().run();
    count = found.adoptable ? lease.try_adopt(found, items, most) : 0;
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
  CHECK(is_unreleased(holder.ring(), 0) && is_unreleased(holder.ring(), 1) && !is_unreleased(holder.ring(), 4));
  CHECK(get_bytes(holder) == pattern(2, 10));  // the same thread goes on
  CHECK(!holder.queue().recovery().run().adoptable);
  held.lease.release(held.items, 2, true);
  CHECK(!is_unreleased(holder.ring(), 0) && !is_unreleased(holder.ring(), 1));
  held.lease.let_go();
  CHECK(put_bytes(holder, pattern(9, 128)) == Outcome::done);
}

TEST(what_a_lease_leaves_is_adopted_as_a_whole_at_the_same_positions) {
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
    again.adopt(next);
    CHECK_EQUAL(again.count, 3 - released);
    const std::uint64_t positions[] = {0, 1, 4};
    for (std::uint64_t i = 0; i < again.count; ++i) CHECK_EQUAL(again.items[i].span.position, positions[released + i]);
    again.lease.release(again.items, again.count, true);
    again.lease.let_go();
    CHECK(put_bytes(next, pattern(9, 128)) == Outcome::done);
    CHECK_EQUAL(segment.control().adopted.load(), 3 - released);
  }
}

TEST(an_adopter_that_dies_with_a_part_leaves_all_of_it_to_the_next) {
  Segment segment({});
  Attachment first(segment);
  Attachment second(segment);
  Attachment third(segment);
  put_three(first);
  Held held(first);
  REQUIRE(held.claim() == Outcome::done);
  first.die();
  Held adopted(second);
  adopted.adopt(second, 2);
  CHECK_EQUAL(adopted.count, 2u);
  Held none(third);
  none.adopt(third);
  CHECK_EQUAL(none.count, 1u);  // the one that nobody has
  none.lease.release(none.items, 1, true);
  second.die();
  Held rest(third);
  rest.adopt(third);
  CHECK_EQUAL(rest.count, 2u);
  rest.lease.release(rest.items, 2, true);
  CHECK_EQUAL(segment.control().adopted.load(), 5u);
}

TEST(what_is_named_and_was_adopted_by_another_is_not_taken_from_it) {
  Segment segment({.varying = false});
  Attachment first(segment);
  Attachment second(segment);
  Attachment third(segment);
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(put_number(first, i) == Outcome::done);
  Held held(first);
  REQUIRE(held.claim() == Outcome::done);
  first.die();
  Held late(third);
  const Recovery::Found found = third.queue().recovery().run();
  REQUIRE(found.adoptable);
  Held early(second);
  early.adopt(second, 1);
  REQUIRE(early.count == 1);
  late.count = late.lease.try_adopt(found, late.items, limit);
  CHECK_EQUAL(late.count, 0u);  // the first of them is a living one's now
  late.adopt(third);
  CHECK_EQUAL(late.count, 2u);
  CHECK_EQUAL(late.items[0].span.position, 1u);
}

}  // namespace penstock::testing

int main(int argc, char** argv) { return penstock::testing::run_tests(argc, argv); }
