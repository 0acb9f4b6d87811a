// Leases on an overwriting queue by single steps: what is held no put can take, and what is left comes again.
#include "support/overwriting_fates.hpp"

namespace queueduct::testing {

static constexpr std::uint64_t limit = 8;

struct Held {
  explicit Held(OverwritingAttachment& attached) : queue(attached.queue()), lease(queue) {
    REQUIRE(lease.join() == ParticipantTable::Joined::yes);
  }
  OverwritingShared& queue;
  OverwritingLease lease;
  LeasedMessage kept[limit];
  std::uint64_t count = 0;

  [[nodiscard]] Claim claim(std::uint64_t most = limit) { return lease.try_claim(kept, most, 0, count); }
  std::uint64_t take_over(std::uint64_t most = limit) { return count = lease.take_over(kept, most); }
  // The number that the message has again and again.
  [[nodiscard]] std::uint64_t number(std::uint64_t i) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(queue.leased_messages().data(kept[i].cell));
    return words[0] == words[1] ? words[0] : OverwritingAttachment::torn;
  }
};

static std::uint64_t count_leased(OverwritingAttachment& attached) {
  std::int64_t positions[limit];
  return attached.queue().leased_messages().list(positions, limit);
}

static void put(OverwritingAttachment& attached, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t i = from; i <= to; ++i) CHECK_EQUAL(attached.put(i), Claim::done);
}

TEST(what_a_lease_has_is_not_overwritten_however_much_is_put) {
  OverwritingSegment segment({.capacity = 5, .words = 2});
  OverwritingAttachment attached(segment);
  put(attached, 1, 7);  // 1 and 2 are overwritten
  Held held(attached);
  CHECK_EQUAL(held.claim(3), Claim::done);
  CHECK_EQUAL(held.count, 3u);
  put(attached, 8, 30);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK_EQUAL(held.number(i), 3 + i);
    CHECK_EQUAL(held.kept[i].position, 2 + i);
  }
  CHECK_EQUAL(count_leased(attached), 3u);
  held.lease.release(held.kept, 3);
  CHECK_EQUAL(count_leased(attached), 0u);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get(number), Claim::done);
  CHECK_EQUAL(number, 26u);
  check_sum(attached, __LINE__);
}

TEST(what_a_lease_leaves_comes_again_at_the_same_positions_the_oldest_first) {
  for (std::uint64_t released = 0; released <= 3; ++released) {
    OverwritingSegment segment({.capacity = 5, .words = 2});
    OverwritingAttachment holder(segment);
    OverwritingAttachment next(segment);
    put(holder, 1, 4);
    {
      Held held(holder);
      REQUIRE(held.claim(3) == Claim::done);
      Held none(next);
      CHECK_EQUAL(none.take_over(), 0u);  // its holder lives
      held.lease.release(held.kept, released);
    }
    Held again(next);
    CHECK_EQUAL(again.take_over(), 3 - released);
    for (std::uint64_t i = 0; i < again.count; ++i) {
      CHECK_EQUAL(again.kept[i].position, released + i);
      CHECK_EQUAL(again.number(i), released + i + 1);
    }
    CHECK_EQUAL(again.lease.is_redelivered(), released != 3);
    again.lease.release(again.kept, again.count);
    CHECK_EQUAL(segment.control().redelivered.load(), 3 - released);
    check_sum(next, __LINE__);
  }
}

TEST(a_get_is_given_what_a_dead_holder_had_when_the_queue_is_empty) {
  OverwritingSegment segment({.capacity = 3, .words = 2});
  OverwritingAttachment holder(segment);
  OverwritingAttachment next(segment);
  put(next, 1, 3);
  Held held(holder);
  REQUIRE(held.claim(2) == Claim::done);
  std::uint64_t number = 0;
  CHECK_EQUAL(next.get(number), Claim::done);
  CHECK_EQUAL(number, 3u);
  CHECK_EQUAL(next.get(number), Claim::empty);
  holder.die();
  for (std::uint64_t i = 1; i <= 2; ++i) {
    CHECK_EQUAL(next.get(number), Claim::done);
    CHECK_EQUAL(number, i);
  }
  CHECK_EQUAL(next.get(number), Claim::empty);
  check_sum(next, __LINE__);
}

TEST(each_holder_counts_once_as_a_delivery_up_to_what_its_word_holds) {
  OverwritingSegment segment({.capacity = 3, .words = 2});
  OverwritingAttachment attached(segment);
  put(attached, 1, 2);
  {
    Held held(attached);
    REQUIRE(held.claim(2) == Claim::done);
    CHECK_EQUAL(held.kept[0].deliveries(), 1u);
    held.lease.release(held.kept, 1);
  }
  for (std::uint64_t delivery = 2; delivery < 4'200; ++delivery) {
    Held held(attached);
    REQUIRE(held.take_over() == 1);
    CHECK_EQUAL(held.number(0), 2u);
    CHECK_EQUAL(held.kept[0].deliveries(), delivery < 4'096 ? delivery : 4'096u);
    CHECK_EQUAL(attached.queue().leased_messages().count_leased(), 1u);
  }
  Held last(attached);
  REQUIRE(last.take_over() == 1);
  last.lease.release(last.kept, 1);
  put(attached, 3, 3);
  Held other(attached);  // in the same cell
  REQUIRE(other.claim(1) == Claim::done);
  CHECK_EQUAL(other.kept[0].deliveries(), 1u);
}

TEST(of_many_that_were_left_a_small_lease_takes_the_oldest) {
  OverwritingSegment segment({.capacity = 8, .words = 2});
  OverwritingAttachment attached(segment);
  put(attached, 1, 6);
  {
    Held first(attached);
    Held second(attached);
    REQUIRE(first.claim(3) == Claim::done);
    REQUIRE(second.claim(3) == Claim::done);
  }
  Held two(attached);
  CHECK_EQUAL(two.take_over(2), 2u);
  CHECK_EQUAL(two.number(0), 1u);
  CHECK_EQUAL(two.number(1), 2u);
  Held rest(attached);
  CHECK_EQUAL(rest.take_over(), 4u);
  CHECK_EQUAL(rest.number(0), 3u);
}

// Somebody who dies before its copy of a leased message is whole.
static std::uint64_t die_in_a_claim(OverwritingSegment& segment, bool unlocks_header) {
  OverwritingAttachment victim(segment);
  Held held(victim);
  LeasedMessage kept{};
  Claimed claimed;
  REQUIRE(victim.queue().enter(held.lease.line(), 1'000'000'000) == Claim::done);
  CHECK_EQUAL(victim.ring().claim_to_lease(held.lease.line(), kept, claimed), Claim::done);
  if (unlocks_header) victim.queue().leave();
  victim.die();
  return kept.position;
}

TEST(what_was_on_its_way_to_the_shelf_is_lost_counted_once_and_gives_its_place_back) {
  for (const bool unlocks : {false, true}) {
    OverwritingSegment segment({.capacity = 3, .words = 2});
    OverwritingAttachment attached(segment);
    put(attached, 1, 3);
    CHECK_EQUAL(die_in_a_claim(segment, unlocks), 0u);
    std::uint64_t number = 0;
    CHECK_EQUAL(attached.get(number), Claim::done);
    CHECK_EQUAL(number, 2u);
    CHECK_EQUAL(attached.ring().fates().lost_with_consumer, 1u);
    check_sum(attached, __LINE__);
    CHECK_EQUAL(count_leased(attached), 1u);
    Held held(attached);
    CHECK_EQUAL(held.take_over(), 0u);
    CHECK_EQUAL(count_leased(attached), 0u);
    CHECK_EQUAL(attached.ring().fates().lost_with_consumer, 1u);
    CHECK_EQUAL(segment.control().leases.lost.load(), 1u);
    check_sum(attached, __LINE__);
    CHECK_EQUAL(held.claim(), Claim::empty);
    CHECK_EQUAL(held.count, 1u);
    CHECK_EQUAL(held.kept[0].position, 2u);
  }
}

TEST(a_message_that_is_overwritten_on_its_way_to_the_shelf_is_counted_as_that) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  OverwritingAttachment attached(segment);
  put(attached, 1, 1);
  Held held(attached);
  LeasedMessage kept{};
  Claimed claimed;
  const std::uint32_t line = held.lease.line();
  REQUIRE(attached.queue().enter(line, 0) == Claim::done);
  CHECK_EQUAL(attached.ring().claim_to_lease(line, kept, claimed), Claim::done);
  attached.queue().leave();
  put(attached, 2, 2);  // it has come round
  CHECK(!attached.ring().finish_lease_copy(line, claimed, kept));
  CHECK_EQUAL(attached.ring().fates().overwritten, 1u);  // at once, though its cell is not free yet
  CHECK_EQUAL(attached.ring().fates().lost_with_consumer, 0u);
  CHECK_EQUAL(count_leased(attached), 0u);
  check_sum(attached, __LINE__);
  REQUIRE(attached.queue().enter(line, 0) == Claim::done);
  attached.ring().free_half_cell(kept);
  attached.queue().leave();
  CHECK_EQUAL(attached.ring().fates().overwritten, 1u);
  CHECK_EQUAL(count_leased(attached), 0u);
  check_sum(attached, __LINE__);
  CHECK_EQUAL(held.claim(), Claim::empty);
  CHECK_EQUAL(held.number(0), 2u);
  CHECK_EQUAL(held.kept[0].position, 1u);
}

TEST(an_overtaken_place_whose_holder_could_not_have_the_header_is_ended_by_the_next) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  OverwritingAttachment attached(segment);
  put(attached, 1, 1);
  {
    Held held(attached);
    LeasedMessage kept{};
    Claimed claimed;
    REQUIRE(attached.queue().enter(held.lease.line(), 0) == Claim::done);
    CHECK_EQUAL(attached.ring().claim_to_lease(held.lease.line(), kept, claimed), Claim::done);
    attached.queue().leave();
    put(attached, 2, 2);
    CHECK(!attached.ring().finish_lease_copy(held.lease.line(), claimed, kept));
  }
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(attached.ring().fates().overwritten, 1u);
    CHECK_EQUAL(attached.ring().fates().lost_with_consumer, 0u);
    check_sum(attached, __LINE__);
    Held next(attached);
    CHECK_EQUAL(next.take_over(), 0u);
    CHECK_EQUAL(segment.control().counters.dropped.load(), 1u);
    CHECK_EQUAL(attached.queue().leased_messages().word(0), 0u);
  }
}

TEST(a_shelf_without_a_free_place_keeps_leases_out_and_nobody_else) {
  OverwritingSegment segment({.capacity = 2, .words = 2});
  OverwritingAttachment attached(segment);
  REQUIRE(attached.queue().leased_messages().cells() == leased_cells_least);
  Held held(attached);
  Held other(attached);
  LeasedMessage all[leased_cells_least];
  for (std::uint64_t i = 0; i < leased_cells_least; ++i) {
    put(attached, i, i);
    std::uint64_t count = 0;
    REQUIRE(held.lease.try_claim(all + i, 1, 0, count) == Claim::done);
  }
  put(attached, 8, 9);
  CHECK_EQUAL(other.claim(), Claim::full);
  put(attached, 10, 10);
  std::uint64_t number = 0;
  CHECK_EQUAL(attached.get(number), Claim::done);
  CHECK_EQUAL(number, 9u);
  held.lease.release(all, 1);
  CHECK_EQUAL(other.claim(), Claim::empty);
  CHECK_EQUAL(other.count, 1u);
  CHECK_EQUAL(other.number(0), 10u);
  check_sum(attached, __LINE__);
}

TEST(positions_rise_and_are_never_given_twice_though_strangers_put_and_get) {
  OverwritingSegment segment({.capacity = 4, .words = 2});
  OverwritingAttachment attached(segment);
  put(attached, 1, 3);
  std::uint64_t before = 0;
  for (const RingState strangers : {RingState{0, 4}, RingState{3, 4}, RingState{2, 1}, RingState{1, 3}}) {
    Held held(attached);
    CHECK_EQUAL(held.claim(1), Claim::done);
    if (before != 0) CHECK(held.kept[0].position >= before);
    before = held.kept[0].position + 1;
    held.lease.release(held.kept, 1);
    segment.write(24, strangers.packed());  // what our counters know nothing of
  }
}

}  // namespace queueduct::testing
