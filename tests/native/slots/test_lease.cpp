// Leases of slots by single steps: what is leased together, what comes again, and what is still unreleased.
#include "support/check.hpp"
#include "slots/lease.hpp"
#include "support/slots_segment.hpp"

namespace queueduct::testing {

static std::vector<std::uint64_t> positions_of(const Lease* leases, std::uint64_t count) {
  std::vector<std::uint64_t> positions;
  for (std::uint64_t i = 0; i < count; ++i) positions.push_back(leases[i].position);
  return positions;
}

static std::vector<std::uint64_t> unreleased(SlotsAttachment& attached) {
  std::vector<std::uint64_t> positions(attached.slots().count());
  positions.resize(list_unreleased(attached.slots(), positions.data()));
  std::sort(positions.begin(), positions.end());
  return positions;
}

static void put_some(SlotsAttachment& attached, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) REQUIRE(attached.put(i) == SlotOutcome::done);
}

using Positions = std::vector<std::uint64_t>;

TEST(a_lease_holds_what_is_there_up_to_its_limit) {
  SlotsSegment segment({.count = 5});
  SlotsAttachment one(segment);
  Lease leases[8];
  std::uint64_t count = 9;
  CHECK_EQUAL(try_lease(one.slots(), one.me(), leases, 8, count), SlotOutcome::empty);
  CHECK_EQUAL(count, 0u);
  put_some(one, 5);
  CHECK_EQUAL(try_lease(one.slots(), one.me(), leases, 3, count), SlotOutcome::done);
  CHECK(positions_of(leases, count) == (Positions{0, 1, 2}));
  CHECK(unreleased(one) == (Positions{0, 1, 2}));
  CHECK(end_lease(one.slots(), leases, count, 3));
  CHECK(unreleased(one).empty());
  CHECK_EQUAL(try_lease(one.slots(), one.me(), leases, 8, count), SlotOutcome::done);
  CHECK(positions_of(leases, count) == (Positions{3, 4}));
  CHECK(end_lease(one.slots(), leases, count, 2));
  CHECK_EQUAL(one.queue().count_in(slot_word::State::free), 5u);
}

TEST(what_a_dead_holder_had_comes_again_oldest_first_and_apart) {
  SlotsSegment segment({.count = 8});
  SlotsAttachment next(segment);
  put_some(next, 5);  // so that slots and positions do not agree
  std::uint64_t number = 0;
  for (int i = 0; i < 5; ++i) REQUIRE(next.get(number) == SlotOutcome::done);
  put_some(next, 8);
  Lease leases[8];
  std::uint64_t count = 0;
  {
    SlotsAttachment doomed(segment);
    CHECK_EQUAL(try_lease(doomed.slots(), doomed.me(), leases, 6, count), SlotOutcome::done);
    CHECK(end_lease(doomed.slots(), leases, 2, 2));  // and killed before it gave back the rest
  }
  CHECK(unreleased(next) == (Positions{7, 8, 9, 10}));
  (void)next.queue().recover_if_due(next.me(), true);
  CHECK(unreleased(next) == (Positions{7, 8, 9, 10}));
  CHECK_EQUAL(try_lease(next.slots(), next.me(), leases, 3, count), SlotOutcome::done);
  CHECK(positions_of(leases, count) == (Positions{7, 8, 9}));
  for (std::uint64_t i = 0; i < count; ++i) CHECK(leases[i].redelivered);
  CHECK(end_lease(next.slots(), leases, count, 1));
  CHECK_EQUAL(try_lease(next.slots(), next.me(), leases, 8, count), SlotOutcome::done);
  CHECK(positions_of(leases, count) == (Positions{8, 9, 10}));
  CHECK(end_lease(next.slots(), leases, count, count));
  CHECK_EQUAL(try_lease(next.slots(), next.me(), leases, 8, count), SlotOutcome::done);
  CHECK(positions_of(leases, count) == (Positions{11, 12}));
  CHECK(!leases[0].redelivered);
  CHECK_EQUAL(segment.control().redelivered.load(), 6u);
}

TEST(each_holder_counts_once_as_a_delivery_whether_it_died_or_gave_back) {
  SlotsSegment segment({.count = 2});
  SlotsAttachment next(segment);
  for (std::uint64_t round = 0; round < 3; ++round) {  // a slot's earlier items do not count
    put_some(next, 1);
    Lease lease;
    for (std::uint64_t delivery = 1; delivery < 6; ++delivery) {
      if (delivery % 2 == 0) {
        REQUIRE(next.take(lease) == SlotOutcome::done);
        CHECK_EQUAL(lease.deliveries, delivery);
        CHECK(next.slots().put_back(lease));
        continue;
      }
      SlotsAttachment doomed(segment);
      REQUIRE(doomed.take(lease) == SlotOutcome::done);
      CHECK_EQUAL(lease.deliveries, delivery);
      doomed.die();
      (void)next.queue().recover_if_due(next.me(), true);
    }
    REQUIRE(next.take(lease) == SlotOutcome::done);
    CHECK_EQUAL(lease.deliveries, 6u);
    CHECK(next.slots().leave(lease));
  }
}

TEST(a_publish_that_is_cut_short_counts_no_delivery) {
  // taken while its producer has not removed its name yet, or queued by a recoverer: the first delivery is the first
  for (const std::uint64_t base : {std::uint64_t{7}, (std::uint64_t{1} << 46) - 3}) {  // generations wrap
    const auto word = [base](std::uint64_t steps) { return (base + steps) << slot_word::generation_shift; };
    const std::uint64_t arrival = slot_word::generation_of(word(0));
    CHECK_EQUAL(slot_word::count_deliveries(word(1), arrival), 1u);  // ARRIVING, TAKEN
    CHECK_EQUAL(slot_word::count_deliveries(word(2), arrival), 1u);  // ARRIVING, QUEUED, TAKEN
    CHECK_EQUAL(slot_word::count_deliveries(word(3), arrival), 2u);
    CHECK_EQUAL(slot_word::count_deliveries(word(4), arrival), 2u);
    CHECK_EQUAL(slot_word::count_deliveries(word(5), arrival), 3u);
  }
}

TEST(after_the_end_of_gets_nothing_is_leased) {
  SlotsSegment segment({});
  SlotsAttachment one(segment);
  put_some(one, 2);
  one.queue().shut_down(true);
  Lease lease;
  std::uint64_t count = 0;
  CHECK_EQUAL(try_lease(one.slots(), one.me(), &lease, 1, count), SlotOutcome::closed);
}

}  // namespace queueduct::testing
