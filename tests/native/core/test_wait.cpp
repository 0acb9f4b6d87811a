// The eventcount: nobody who announced before a publish sleeps through it.
#include <atomic>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

TEST(a_notify_without_sleepers_leaves_the_word_alone) {
  std::atomic<std::uint32_t> word{8};
  Event(&word).notify();
  CHECK_EQUAL(word.load(), 8u);
}

TEST(an_announcement_is_seen_and_answered_by_a_count) {
  std::atomic<std::uint32_t> word{8};
  Event event(&word);
  CHECK_EQUAL(event.announce(), 9u);
  CHECK_EQUAL(word.load(), 9u);
  event.notify();
  CHECK_EQUAL(word.load(), 10u);  // counted up, and nobody marked as asleep
}

TEST(who_announced_before_the_wake_up_does_not_fall_asleep) {
  std::atomic<std::uint32_t> word{0};
  Event event(&word);
  for (const bool all : {false, true}) {
    const std::uint32_t ticket = event.announce();
    if (all)
      event.wake_all();
    else
      event.notify();
    const std::int64_t before = monotonic_ns();
    event.park(ticket, 5 * second);
    CHECK(monotonic_ns() - before < 4 * second);
  }
}

TEST(a_sleep_ends_at_its_limit_when_nobody_wakes_it) {
  std::atomic<std::uint32_t> word{0};
  Event event(&word);
  const std::int64_t before = monotonic_ns();
  event.park(event.announce(), 20'000'000);
  CHECK(monotonic_ns() - before >= 19'000'000);
  CHECK_EQUAL(word.load() & 1, 1u);  // others may still sleep
}

TEST(a_sleeper_is_woken_through_another_mapping_of_the_same_file) {
  Segment segment({});
  Attachment sleeper(segment);
  Attachment waker(segment);
  std::atomic<bool> announced{false};
  std::atomic<std::int64_t> slept{0};
  std::thread thread([&] {
    Event event = sleeper.queue().items();
    const std::uint32_t ticket = event.announce();
    announced.store(true);
    const std::int64_t before = monotonic_ns();
    event.park(ticket, 10 * second);
    slept.store(monotonic_ns() - before);
  });
  while (!announced.load()) std::this_thread::yield();
  waker.queue().items().notify();  // before or after it fell asleep: W3 makes both right
  thread.join();
  CHECK(slept.load() < 9 * second);
}

TEST(wake_all_ends_every_sleep) {
  Segment segment({});
  Attachment attached(segment);
  std::atomic<int> announced{0};
  std::vector<std::thread> threads;
  const std::int64_t before = monotonic_ns();
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const std::uint32_t ticket = attached.queue().room().announce();
      announced.fetch_add(1);
      attached.queue().room().park(ticket, 10 * second);
    });
  while (announced.load() < 4) std::this_thread::yield();
  attached.queue().room().wake_all();
  for (std::thread& thread : threads) thread.join();
  CHECK(monotonic_ns() - before < 9 * second);
}

// Of this process.
bool is_asleep(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string line((std::istreambuf_iterator<char>(stat)), {});
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.substr(name_end, 3) == ") S";
}

TEST(one_notify_ends_every_sleep_where_the_woken_wake_the_rest) {
  std::atomic<std::uint32_t> word{0};
  Event event(&word);
  constexpr int sleepers = 4;
  std::atomic<pid_t> ids[sleepers]{};
  std::vector<std::thread> threads;
  const std::uint32_t ticket = event.announce();
  for (auto& id : ids)
    threads.emplace_back([&event, &id, ticket] {
      id.store(gettid());
      event.park_and_relay(ticket, 10 * second);
    });
  for (auto& id : ids)
    while (id.load() == 0 || !is_asleep(id.load())) std::this_thread::yield();
  const std::int64_t before = monotonic_ns();
  event.notify();
  for (std::thread& thread : threads) thread.join();
  CHECK(monotonic_ns() - before < 9 * second);
  CHECK_EQUAL(word.load() & 1, 0u);  // nobody is left asleep, and nobody is said to be
}

TEST(a_wait_that_has_nothing_to_wait_for_returns_at_once) {
  Segment segment({});
  Attachment attached(segment);
  REQUIRE(put_number(attached, 1) == Outcome::done);
  const std::int64_t before = monotonic_ns();
  attached.queue().wait_for_items(10 * second);
  attached.queue().wait_for_room(Outcome::full, 7, 10 * second);
  std::uint64_t number = 0;
  REQUIRE(get_number(attached, number) == Outcome::done);
  attached.queue().shut_down(false);
  attached.queue().wait_for_items(10 * second);
  attached.queue().wait_for_room(Outcome::full, 8, 10 * second);
  CHECK(monotonic_ns() - before < 9 * second);
}

// With more participants than cores, too: then spinning would keep the core from the one who is waited for.
TEST(who_waits_for_a_slot_in_mid_copy_sleeps_although_later_ones_are_ready) {
  Segment segment({});
  std::vector<std::unique_ptr<Attachment>> crowd;
  for (int i = 0; i < 8; ++i) {
    crowd.push_back(std::make_unique<Attachment>(segment));
    (void)crowd.back()->ledger();
  }
  Attachment& slow = *crowd[0];
  Attachment& other = *crowd[1];
  Span span;
  REQUIRE(claim_one(slow, span) == Outcome::done);
  for (std::uint64_t i = 1; i < 8; ++i) REQUIRE(put_number(other, i) == Outcome::done);
  std::int64_t before = monotonic_ns();
  other.queue().wait_for_items(20'000'000);
  CHECK(monotonic_ns() - before >= 19'000'000);
  write_claimed(slow, span, 0);
  publish(slow.ring(), span);
  Peeked peeked;
  REQUIRE(peek(slow.ring(), slow.ledger(), peeked) == Outcome::done);
  REQUIRE(claim_pop(slow.ring(), slow.ledger(), peeked.span));
  std::uint64_t number = 0;
  for (std::uint64_t i = 1; i < 8; ++i) REQUIRE(get_number(other, number) == Outcome::done);
  before = monotonic_ns();
  other.queue().wait_for_room(Outcome::full, 1, 20'000'000);  // seven slots are free, the next one is being read
  CHECK(monotonic_ns() - before >= 19'000'000);
}

// A kill between a publish and its wake-up loses the wake-up: so no sleep is longer than this.
TEST(no_sleep_is_longer_than_the_park_limit) {
  Segment segment({});
  Attachment attached(segment);
  const std::int64_t before = monotonic_ns();
  attached.queue().wait_for_items(100 * second);
  CHECK(monotonic_ns() - before < 50 * second);
  CHECK(park_limit_ns <= 125'000'000);  // two of them within the 250 ms that a recovery may take
}

}  // namespace queueduct::testing
