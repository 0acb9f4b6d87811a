// Slots by single steps: who has which, what the dead leave, capacity and the end.
#include "support/check.hpp"
#include "support/slots_segment.hpp"

namespace queueduct::testing {

using State = slot_word::State;

static State state_of(SlotsAttachment& attached, std::uint64_t slot) {
  return slot_word::state_of(attached.slots().word_of(slot));
}

static std::uint64_t number_in(const Lease& lease) {
  std::uint64_t number = 0;
  std::memcpy(&number, lease.data, sizeof number);
  return number;
}

// All of them can be lent at once: none was lost, none is there twice.
static void check_complete(SlotsAttachment& attached, std::uint64_t count) {
  std::vector<Lease> leases;
  std::vector<bool> seen(count);
  (void)attached.queue().recover_if_due(attached.me(), true);
  for (Lease lease; attached.hold(lease) == SlotOutcome::done;) {
    CHECK(!seen[lease.slot]);
    seen[lease.slot] = true;
    leases.push_back(lease);
  }
  CHECK_EQUAL(leases.size(), count);
  for (Lease& lease : leases) CHECK(attached.slots().leave(lease));
  CHECK_EQUAL(attached.queue().count_in(State::free), count);
}

TEST(a_slot_goes_from_free_to_held_to_queued_to_taken_to_free) {
  SlotsSegment segment({});
  SlotsAttachment one(segment);
  Lease lease;
  CHECK_EQUAL(state_of(one, 0), State::free);
  REQUIRE(one.hold(lease) == SlotOutcome::done);
  CHECK_EQUAL(lease.slot, 0u);
  CHECK_EQUAL(state_of(one, 0), State::held);
  CHECK_EQUAL(slot_word::owner_of(lease.word), one.me());
  REQUIRE(one.slots().publish(lease, 3) == SlotOutcome::done);
  CHECK_EQUAL(state_of(one, 0), State::queued);
  CHECK_EQUAL(one.queue().size(), 1u);
  REQUIRE(one.take(lease) == SlotOutcome::done);
  CHECK_EQUAL(state_of(one, 0), State::taken);
  CHECK_EQUAL(lease.bytes, 3u);
  CHECK_EQUAL(lease.position, 0u);
  CHECK(!lease.redelivered);
  REQUIRE(one.slots().leave(lease));
  CHECK_EQUAL(state_of(one, 0), State::free);
  CHECK_EQUAL(one.take(lease), SlotOutcome::empty);
}

TEST(items_come_in_order_with_rising_positions_over_many_cycles) {
  for (const std::uint64_t count : {1u, 2u, 3u, 5u, 8u}) {
    SlotsSegment segment({.count = count});
    SlotsAttachment one(segment);
    std::uint64_t next = 0;
    for (std::uint64_t round = 0; round < 20; ++round) {
      for (std::uint64_t i = 0; i < count; ++i) CHECK_EQUAL(one.put(round * count + i), SlotOutcome::done);
      CHECK_EQUAL(one.put(9), SlotOutcome::full);
      for (std::uint64_t i = 0; i < count; ++i) {
        Lease lease;
        REQUIRE(one.take(lease) == SlotOutcome::done);
        CHECK_EQUAL(number_in(lease), next);
        CHECK_EQUAL(lease.position, next);
        ++next;
        CHECK(one.slots().leave(lease));
      }
    }
    check_complete(one, count);
  }
}

TEST(a_dead_holders_slot_comes_back) {
  SlotsSegment segment({});
  SlotsAttachment doomed(segment);
  SlotsAttachment survivor(segment);
  Lease lease;
  for (int i = 0; i < 4; ++i) REQUIRE(doomed.hold(lease) == SlotOutcome::done);
  CHECK_EQUAL(survivor.put(1), SlotOutcome::full);
  CHECK(!survivor.queue().recover_if_due(survivor.me(), true));  // it lives
  doomed.die();
  CHECK(survivor.queue().recover_if_due(survivor.me(), true));
  CHECK_EQUAL(segment.control().recovered.load(), 4u);
  check_complete(survivor, 4);
}

TEST(a_dead_takers_item_is_delivered_again_first_and_flagged) {
  SlotsSegment segment({});
  SlotsAttachment doomed(segment);
  SlotsAttachment survivor(segment);
  for (const std::uint64_t number : {10u, 11u, 12u, 13u}) REQUIRE(survivor.put(number) == SlotOutcome::done);
  Lease first;
  Lease second;
  REQUIRE(doomed.take(first) == SlotOutcome::done);
  REQUIRE(doomed.take(second) == SlotOutcome::done);
  doomed.die();
  CHECK_EQUAL(survivor.queue().size(), 2u);
  CHECK(survivor.queue().recover_if_due(survivor.me(), true));
  CHECK_EQUAL(survivor.queue().size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    Lease lease;
    REQUIRE(survivor.take(lease) == SlotOutcome::done);
    CHECK_EQUAL(number_in(lease), 10 + i);
    CHECK_EQUAL(lease.position, i);
    CHECK_EQUAL(lease.redelivered, i < 2);
    CHECK(survivor.slots().leave(lease));
  }
  CHECK_EQUAL(segment.control().redelivered.load(), 2u);
  check_complete(survivor, 4);
}

TEST(an_item_that_is_put_back_is_delivered_again) {
  SlotsSegment segment({});
  SlotsAttachment one(segment);
  REQUIRE(one.put(5) == SlotOutcome::done);
  Lease lease;
  REQUIRE(one.take(lease) == SlotOutcome::done);
  REQUIRE(one.slots().put_back(lease));
  CHECK_EQUAL(one.queue().size(), 1u);
  REQUIRE(one.take(lease) == SlotOutcome::done);
  CHECK(lease.redelivered);
  CHECK_EQUAL(number_in(lease), 5u);
  REQUIRE(one.slots().leave(lease));
  check_complete(one, 4);
}

// Killed between the compare-and-swap of the word and the move of head.
TEST(a_claimer_that_died_before_it_moved_the_head_is_helped) {
  for (const bool by_recovery : {false, true}) {
    SlotsSegment segment({});
    SlotsAttachment doomed(segment);
    SlotsAttachment survivor(segment);
    const std::uint32_t dead = doomed.me();
    (void)survivor.me();
    std::uint64_t word = survivor.slots().word_of(0);
    REQUIRE(doomed.slots().swap(0, word, State::held, dead));
    if (by_recovery) {
      doomed.die();
      CHECK(survivor.queue().recover_if_due(survivor.me(), true));
      check_complete(survivor, 4);
      continue;
    }
    CHECK_EQUAL(survivor.put(7), SlotOutcome::done);  // from slot 1: the head was helped past slot 0
    CHECK_EQUAL(slot_word::owner_of(survivor.slots().word_of(0)), dead);
    std::uint64_t used = survivor.slots().word_of(1);
    REQUIRE(doomed.slots().swap(1, used, State::taken, dead));
    Lease lease;
    CHECK_EQUAL(survivor.take(lease), SlotOutcome::empty);  // the used head was helped
    doomed.die();
    CHECK(survivor.queue().recover_if_due(survivor.me(), true));
    REQUIRE(survivor.take(lease) == SlotOutcome::done);
    CHECK(lease.redelivered);
    REQUIRE(survivor.slots().leave(lease));
    check_complete(survivor, 4);
  }
}

TEST(a_dead_publishers_item_counts_if_and_only_if_it_is_in) {
  for (const bool is_in : {false, true}) {
    SlotsSegment segment({});
    SlotsAttachment doomed(segment);
    SlotsAttachment survivor(segment);
    Lease lease;
    REQUIRE(doomed.hold(lease) == SlotOutcome::done);
    (void)survivor.me();  // joined before: else it would recover the line that it gets
    REQUIRE(doomed.slots().swap(lease.slot, lease.word, State::arriving, doomed.me()));
    if (is_in) REQUIRE(doomed.slots().used().push(lease.slot));
    doomed.die();
    CHECK(survivor.queue().recover_if_due(survivor.me(), true));
    CHECK_EQUAL(state_of(survivor, lease.slot), is_in ? State::queued : State::free);
    CHECK_EQUAL(survivor.take(lease), is_in ? SlotOutcome::done : SlotOutcome::empty);
    if (is_in) REQUIRE(survivor.slots().leave(lease));
    check_complete(survivor, 4);
  }
}

TEST(a_slot_on_its_way_back_is_there_once) {
  for (const bool is_in : {false, true}) {
    SlotsSegment segment({});
    SlotsAttachment doomed(segment);
    SlotsAttachment survivor(segment);
    Lease lease;
    REQUIRE(doomed.hold(lease) == SlotOutcome::done);
    (void)survivor.me();  // joined before: else it would recover the line that it gets
    REQUIRE(doomed.slots().swap(lease.slot, lease.word, State::leaving, doomed.me()));
    if (is_in) REQUIRE(doomed.slots().free().push(lease.slot));
    doomed.die();
    CHECK(survivor.queue().recover_if_due(survivor.me(), true));
    check_complete(survivor, 4);
  }
}

TEST(a_line_is_used_again_only_when_its_slots_were_recovered) {
  SlotsSegment segment({.count = 4, .slot_bytes = 16, .participants = 1});
  Lease lease;
  {
    SlotsAttachment doomed(segment);
    REQUIRE(doomed.put(1) == SlotOutcome::done);
    REQUIRE(doomed.take(lease) == SlotOutcome::done);
    REQUIRE(doomed.hold(lease) == SlotOutcome::done);
  }
  SlotsAttachment next(segment);
  CHECK_EQUAL(next.me(), 1u);
  CHECK_EQUAL(next.queue().count_in(State::orphaned), 1u);
  CHECK_EQUAL(next.queue().count_in(State::stray), 1u);
  REQUIRE(next.take(lease) == SlotOutcome::done);
  CHECK(lease.redelivered);
  REQUIRE(next.slots().leave(lease));
  check_complete(next, 4);
}

TEST(an_overwriting_put_evicts_the_oldest) {
  SlotsSegment segment({.count = 3});
  SlotsAttachment one(segment);
  Lease evicted;
  for (std::uint64_t number = 0; number < 10; ++number) {
    REQUIRE(one.overwrite(number, evicted) == SlotOutcome::done);
    CHECK_EQUAL(evicted.data != nullptr, number >= 3);
    if (number >= 3) CHECK_EQUAL(evicted.position, number - 3);
  }
  CHECK_EQUAL(segment.control().evicted.load(), 7u);
  for (const std::uint64_t expected : {7u, 8u, 9u}) {
    std::uint64_t number = 0;
    REQUIRE(one.get(number) == SlotOutcome::done);
    CHECK_EQUAL(number, expected);
  }
  check_complete(one, 3);
}

TEST(a_dead_evictors_slot_is_discarded) {
  SlotsSegment segment({.count = 2});
  SlotsAttachment doomed(segment);
  SlotsAttachment survivor(segment);
  REQUIRE(survivor.put(1) == SlotOutcome::done);
  REQUIRE(survivor.put(2) == SlotOutcome::done);
  Lease lease;
  REQUIRE(doomed.slots().try_evict(doomed.me(), lease) == SlotOutcome::done);
  doomed.die();
  CHECK(survivor.queue().recover_if_due(survivor.me(), true));
  std::uint64_t number = 0;
  CHECK_EQUAL(survivor.get(number), SlotOutcome::done);
  CHECK_EQUAL(number, 2u);
  CHECK_EQUAL(survivor.get(number), SlotOutcome::empty);
  check_complete(survivor, 2);
}

TEST(capacity_limits_what_is_out_exactly) {
  SlotsSegment segment({.count = 5});
  SlotsAttachment one(segment);
  for (std::uint64_t capacity = 1; capacity <= 5; ++capacity) {
    one.queue().set_capacity(capacity);
    Lease lease;
    for (std::uint64_t i = 0; i < capacity; ++i) CHECK_EQUAL(one.put(i), SlotOutcome::done);
    CHECK_EQUAL(one.put(9), SlotOutcome::full);
    CHECK_EQUAL(one.slots().try_evict_surplus(one.me(), lease), SlotOutcome::empty);
    std::uint64_t number = 0;
    for (std::uint64_t i = 0; i < capacity; ++i) CHECK_EQUAL(one.get(number), SlotOutcome::done);
  }
  check_complete(one, 5);
}

TEST(a_smaller_capacity_evicts_the_oldest_first) {
  SlotsSegment segment({.count = 5});
  SlotsAttachment one(segment);
  for (std::uint64_t number = 0; number < 5; ++number) REQUIRE(one.put(number) == SlotOutcome::done);
  one.queue().set_capacity(2);
  CHECK_EQUAL(one.put(9), SlotOutcome::full);  // also when whoever set it died before it evicted
  for (std::uint64_t expected = 0; expected < 3; ++expected) {
    Lease lease;
    REQUIRE(one.slots().try_evict_surplus(one.me(), lease) == SlotOutcome::done);
    CHECK_EQUAL(number_in(lease), expected);
    REQUIRE(one.slots().leave(lease));
  }
  Lease lease;
  CHECK_EQUAL(one.slots().try_evict_surplus(one.me(), lease), SlotOutcome::empty);
  CHECK_EQUAL(one.queue().size(), 2u);
  one.queue().set_capacity(5);
  CHECK_EQUAL(one.put(9), SlotOutcome::done);
}

TEST(a_publish_after_shutdown_fails_and_gives_the_slot_back) {
  SlotsSegment segment({});
  SlotsAttachment one(segment);
  Lease lease;
  REQUIRE(one.put(1) == SlotOutcome::done);
  REQUIRE(one.hold(lease) == SlotOutcome::done);
  one.queue().shut_down(false);
  CHECK_EQUAL(one.slots().publish(lease, 8), SlotOutcome::closed);
  CHECK_EQUAL(one.put(2), SlotOutcome::closed);
  CHECK(!one.queue().is_drained());
  std::uint64_t number = 0;
  CHECK_EQUAL(one.get(number), SlotOutcome::done);
  CHECK_EQUAL(one.get(number), SlotOutcome::empty);
  CHECK(one.queue().is_drained());
  CHECK_EQUAL(one.queue().count_in(State::free), 4u);
  one.queue().shut_down(true);
  CHECK_EQUAL(one.get(number), SlotOutcome::closed);
}

TEST(a_publisher_in_the_middle_keeps_the_end_waiting) {
  SlotsSegment segment({});
  SlotsAttachment slow(segment);
  SlotsAttachment other(segment);
  Lease lease;
  REQUIRE(slow.hold(lease) == SlotOutcome::done);
  REQUIRE(slow.slots().swap(lease.slot, lease.word, State::arriving, slow.me()));
  other.queue().shut_down(false);
  CHECK(!other.queue().is_drained());
  slow.die();
  CHECK(other.queue().recover_if_due(other.me(), true));
  CHECK(other.queue().is_drained());
}

TEST(a_length_beyond_the_slot_is_not_believed) {
  SlotsSegment segment({});
  SlotsAttachment one(segment);
  REQUIRE(one.put(1) == SlotOutcome::done);
  reinterpret_cast<SlotLine*>(segment.base() + segment.offsets().lines)->length.store(17);
  Lease lease;
  CHECK_EQUAL(one.take(lease), SlotOutcome::corrupt);
}

}  // namespace queueduct::testing
