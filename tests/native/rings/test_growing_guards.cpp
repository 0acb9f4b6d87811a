// Guards of memory that may be reclaimed: a guarded level keeps its memory, and every operation drops its guard.
#include <thread>

#include "support/growing_steps.hpp"

namespace queueduct::testing {

// Levels of 64, 256, 1024, … slots: those after the first have pages of their own.
constexpr GrowingSizes usual{.first_bytes = 4096, .steps = 6, .slot_bytes = 64, .varying = false};
constexpr std::uint64_t through_two = 64 + 256 + 1024 + 100;  // slots that lie in the first four levels

static std::atomic<std::uint64_t>& guarded_of(const GrowingSegment& segment, GrowingAttachment& attached) {
  return segment.lines()[attached.ledger().number()].guarded;
}
static void reclaim_all(GrowingAttachment& attached) {
  for (int i = 0; i < 20; ++i) (void)attached.flow().reclaim_some();
}

// Why readers take guards.
TEST(a_read_of_a_reclaimed_level_takes_memory_that_no_participant_has_reserved) {
  GrowingSegment segment(usual);
  GrowingAttachment quick(segment);
  put_records(quick, through_two);
  get_records(quick, 64);
  const LevelRange before = level_range_of(segment);
  const GrowingRing left = segment.levels().ring(1, before);
  get_records(quick, through_two - 64);
  reclaim_all(quick);
  REQUIRE(segment.levels().is_clean(1));
  CHECK_EQUAL(bytes_in_unused_levels(segment), 0u);
  CHECK_EQUAL(left.generation_of(left.base).load(), 0u);
  CHECK_EQUAL(bytes_in_unused_levels(segment), page_bytes);
}

TEST(a_level_is_not_reclaimed_while_a_participant_guards_it) {
  GrowingSegment segment(usual);
  GrowingAttachment slow(segment);
  GrowingAttachment quick(segment);
  put_records(quick, through_two);
  get_records(quick, 64 + 10);
  ReadGuard guard(segment.lines()[slow.ledger().number()]);
  guard.announce(level_range_of(segment));
  get_records(quick, through_two - 64 - 10);
  reclaim_all(quick);
  CHECK(!segment.levels().is_clean(1));
  const std::uint64_t resident = segment.resident_bytes();
  guard.drop();
  reclaim_all(quick);
  CHECK(segment.levels().is_clean(1));
  CHECK(segment.resident_bytes() < resident);
}

TEST(a_guard_of_the_current_level_range_holds_nothing_back) {
  GrowingSegment segment(usual);
  GrowingAttachment slow(segment);
  GrowingAttachment quick(segment);
  put_records(quick, through_two);
  get_records(quick, 64 + 256);
  get_records(quick, 1);  // level 1 is left
  ReadGuard guard(segment.lines()[slow.ledger().number()]);
  guard.announce(level_range_of(segment));
  reclaim_all(quick);
  CHECK(segment.levels().is_clean(1));
  guard.drop();
}

TEST(the_guard_of_a_dead_participant_holds_nothing_back) {
  for (const bool has_heir : {false, true}) {
    GrowingSegment segment(usual);
    GrowingAttachment quick(segment);
    put_records(quick, through_two);
    std::uint32_t line = 0;
    {
      GrowingAttachment victim(segment);
      line = victim.ledger().number();
      ReadGuard(segment.lines()[line]).announce(level_range_of(segment));
      victim.die();
    }
    GrowingAttachment heir(segment);
    if (has_heir) {
      REQUIRE(heir.ledger().number() == line);
    }
    get_records(quick, through_two);
    reclaim_all(quick);
    CHECK(segment.levels().is_clean(1));
    CHECK_EQUAL(bytes_in_unused_levels(segment), 0u);
  }
}

TEST(no_operation_leaves_its_guard_behind) {
  GrowingSizes sizes = usual;
  sizes.max_bytes = first_region_end(sizes) + (100 << 10);
  GrowingSegment segment(sizes);
  GrowingAttachment attached(segment);
  const std::atomic<std::uint64_t>& guarded = guarded_of(segment, attached);
  std::uint64_t record[8] = {};
  std::uint64_t bytes = 0;
  const auto put = [&] { return attached.put(record, sizeof record); };
  const auto get = [&] { return attached.get(record, sizeof record, bytes); };
  CHECK_EQUAL(get(), Outcome::empty);
  CHECK_EQUAL(guarded.load(), 0u);
  while (put() == Outcome::done) CHECK_EQUAL(guarded.load(), 0u);
  CHECK_EQUAL(guarded.load(), 0u);
  CHECK(!attached.queue().may_be_puttable(1, segment.control().resets.load()));
  CHECK(attached.queue().may_be_gettable());
  CHECK_EQUAL(guarded.load(), 0u);
  get_records(attached, 100);
  CHECK_EQUAL(guarded.load(), 0u);
  CHECK(attached.queue().count_items() > 0);
  {
    GrowingLease lease(attached.queue());
    REQUIRE(lease.join() == ParticipantTable::Joined::yes);
    Redelivered items[4];
    std::uint64_t count = 0;
    std::uint64_t skipped = 0;
    REQUIRE(lease.try_claim(items, 4, count, skipped) == Outcome::done);
    CHECK_EQUAL(count, 4u);
    CHECK_EQUAL(segment.lines()[lease.line()].guarded.load(), 0u);
    lease.let_go();  // gives them back
    const GrowingQueue::RecoveryScan found = attached.queue().recover();
    REQUIRE(found.redeliverable);
    CHECK(guarded.load() != 0);
    REQUIRE(attached.queue().try_redeliver(attached.ledger(), found));
    CHECK_EQUAL(guarded.load(), 0u);
    finish_redelivered(attached.queue(), attached.ledger(), found, record);
    CHECK_EQUAL(guarded.load(), 0u);
    REQUIRE(attached.queue().recover().redeliverable);
    (void)attached.queue().make_room(attached.ledger());  // a producer leaves it to a consumer
    CHECK_EQUAL(guarded.load(), 0u);
  }
  while (get() == Outcome::done) CHECK_EQUAL(guarded.load(), 0u);
  attached.queue().shut_down(true);
  CHECK_EQUAL(put(), Outcome::closed);
  CHECK_EQUAL(get(), Outcome::closed);
  CHECK_EQUAL(guarded.load(), 0u);
}

// A finalizer may use the queue in the same thread between the two.
TEST(what_was_found_is_not_redelivered_by_a_thread_that_has_looked_elsewhere_since) {
  GrowingSegment segment(usual);
  GrowingAttachment attached(segment);
  put_records(attached, 10);
  GrowingLease lease(attached.queue());
  REQUIRE(lease.join() == ParticipantTable::Joined::yes);
  Redelivered items[1];
  std::uint64_t count = 0;
  std::uint64_t skipped = 0;
  REQUIRE(lease.try_claim(items, 1, count, skipped) == Outcome::done);
  lease.let_go();
  const GrowingQueue::RecoveryScan found = attached.queue().recover();
  REQUIRE(found.redeliverable);
  get_records(attached, 1);
  CHECK(!attached.queue().try_redeliver(attached.ledger(), found));
  const GrowingQueue::RecoveryScan again = attached.queue().recover();
  REQUIRE(again.redeliverable);
  CHECK(attached.queue().try_redeliver(attached.ledger(), again));
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t rounds = 20;
#else
constexpr std::uint64_t rounds = 200;
#endif

// At the limit of a budget, with levels that come and go, and a file that is measured all the while.
TEST(the_budget_is_never_exceeded_and_no_page_is_left_by_a_late_read) {
  GrowingSizes sizes = usual;
  sizes.varying = true;
  sizes.max_bytes = first_region_end(sizes) + (120 << 10);
  GrowingSegment segment(sizes);
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> over_budget{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      GrowingAttachment attached(segment);
      std::uint64_t record[8] = {};
      std::uint64_t bytes = 0;
      for (std::uint64_t round = 0; round < rounds; ++round) {
        for (int put = 0; put < 1200 && attached.put(record, 60) == Outcome::done; ++put) {
        }
        while (attached.get(record, sizeof record, bytes) == Outcome::done) {
        }
        for (int calm = 0; calm < 6000; ++calm) {
          (void)attached.put(record, 60);
          (void)attached.get(record, sizeof record, bytes);
        }
      }
    });
  }
  std::thread watcher([&] {
    while (!is_over.load()) over_budget += segment.resident_bytes() > sizes.max_bytes;
  });
  for (std::thread& thread : threads) thread.join();
  is_over.store(true);
  watcher.join();
  GrowingAttachment last(segment);
  reclaim_all(last);
  CHECK_EQUAL(over_budget.load(), 0u);
  CHECK_EQUAL(bytes_in_unused_levels(segment), 0u);
  CHECK(segment.control().resets.load() > rounds / 4);
}

}  // namespace queueduct::testing
