// The lock that survives its owner: taken over from the dead, never from the living.
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/events_for_tests.hpp"

namespace queueduct::testing {

struct Word {
  std::atomic<std::uint64_t> word{0};
  RobustLock lock{&word};
  std::atomic<int> asked{0};

  Locked take(std::uint32_t line, bool owner_lives, std::int64_t limit_ns = 0) {
    return lock.lock(line, [&](std::uint32_t) { return asked.fetch_add(1), owner_lives; }, limit_ns);
  }
};

TEST(a_free_lock_is_taken_and_given_back) {
  Word word;
  CHECK_EQUAL(word.lock.try_lock(3), Locked::yes);
  CHECK(word.lock.is_held_by(3));
  CHECK_EQUAL(word.lock.try_lock(4), Locked::no);
  word.lock.unlock();
  CHECK(!word.lock.is_held_by(3));
  CHECK_EQUAL(word.take(4, true), Locked::yes);
  CHECK_EQUAL(word.asked.load(), 0);
}

TEST(nobody_waits_beyond_the_limit_for_the_living) {
  Word word;
  CHECK_EQUAL(word.lock.try_lock(0), Locked::yes);
  const std::int64_t before = monotonic_ns();
  CHECK_EQUAL(word.take(1, true, 30'000'000), Locked::no);
  CHECK(monotonic_ns() - before >= 30'000'000);
  CHECK(word.lock.is_held_by(0));
}

TEST(a_dead_owners_lock_is_taken_over_and_said_to_be) {
  Word word;
  CHECK_EQUAL(word.lock.try_lock(0), Locked::yes);
  CHECK_EQUAL(word.take(1, false), Locked::from_the_dead);
  word.lock.unlock();
  CHECK_EQUAL(word.take(2, false), Locked::yes);  // only once
}

TEST(an_orphaned_lock_is_taken_over_by_whoever_comes) {
  Word word;
  CHECK_EQUAL(word.lock.try_lock(5), Locked::yes);
  word.lock.orphan(4);  // not his
  CHECK(word.lock.is_held_by(5));
  word.lock.orphan(5);
  CHECK(!word.lock.is_held_by(5));
  CHECK_EQUAL(word.lock.try_lock(5), Locked::from_the_dead);
}

TEST(the_sequence_rises_each_time_so_that_an_old_word_takes_nothing) {
  Word word;
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    CHECK_EQUAL(word.lock.try_lock(7), Locked::yes);
    CHECK(word.word.load() > last);
    last = word.word.load();
    word.lock.unlock();
  }
}

TEST(a_sleeper_is_woken_by_the_unlock) {
  Word word;
  CHECK_EQUAL(word.lock.try_lock(0), Locked::yes);
  Locked locked = Locked::no;
  std::thread waiter([&] { locked = word.take(1, true, 5 * second); });
  while ((word.word.load() & 0x10000) == 0) std::this_thread::yield();
  word.lock.unlock();
  waiter.join();
  CHECK_EQUAL(locked, Locked::yes);
  word.lock.unlock();
}

TEST(what_is_written_under_the_lock_is_seen_by_the_next_owner) {
  Word word;
  std::uint64_t counter = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t line = 0; line < 4; ++line)
    threads.emplace_back([&, line] {
      for (int i = 0; i < 5000; ++i) {
        while (word.take(line, true, second) != Locked::yes) {
        }
        ++counter;
        word.lock.unlock();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(counter, 20'000u);
}

TEST(the_next_owner_of_a_dead_ones_line_does_not_hold_its_lock) {
  EventsSegment segment({.participants = 2});
  EventsAttachment watcher(segment);
  CHECK_EQUAL(watcher.line(), 0u);
  {
    EventsAttachment doomed(segment);
    REQUIRE(doomed.queue().enter(doomed.line(), 0) == Entered::yes);
    doomed.die();
  }
  EventsAttachment heir(segment);
  CHECK_EQUAL(heir.line(), 1u);  // alive, and the lock would bear its number
  CHECK_EQUAL(watcher.queue().enter(watcher.line(), 0), Entered::yes);
  CHECK_EQUAL(segment.control().repairs.load(), 1u);
  watcher.queue().leave();
}

TEST(a_lock_that_bears_an_impossible_number_is_taken_over) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  for (const std::uint64_t number : {participants_limit + 1, 0xfffeu}) {
    segment.control().lock = number;
    CHECK_EQUAL(attached.queue().enter(attached.line(), 0), Entered::yes);
    attached.queue().leave();
  }
}

TEST(a_machine_that_crashed_with_the_lock_held_is_rolled_back_before_anything_is_looked_at) {
  EventsSegment segment({});
  const Identity yesterday{{1, 2}, 0};
  const Identity today{{3, 4}, 0};
  {
    EventsAttachment before(segment, yesterday);
    {
      const Inside inside(before);
      CHECK(before.queue().settle_boot());
    }
    put_each(before, 0, 10);
    CHECK_EQUAL(before.queue().sync(), 0);
    put_each(before, 10, 40);
    REQUIRE(before.queue().enter(before.line(), 0) == Entered::yes);
    for (std::uint64_t lost = 3; lost < segment.control().chunks_made; ++lost) segment.map().chunk(lost).items = 0;
  }
  EventsAttachment after(segment, today);
  CHECK(after.queue().is_of_another_boot());
  EventsReader reader(after);
  CHECK(!after.queue().is_of_another_boot());
  CHECK(reader.read() == counted(0, 10));
  put_each(after, 10, 5);
  CHECK(reader.read() == counted(10, 5));
}

}  // namespace queueduct::testing
