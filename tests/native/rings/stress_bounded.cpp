// Many producers and consumers at once, on two mappings of one file in one process, so that a sanitizer sees
// both sides. Allowed outcome: every item exactly once, whole, and in its producer's order for each consumer.
// Workers sleep and wake each other through the queue's events; nothing here waits for a time to pass.
#include "stress.hpp"

#include <memory>
#include <thread>

#include "support/check.hpp"

namespace queueduct::testing {

struct Load {
  Shape shape;
  std::uint32_t producers = 1;
  std::uint32_t consumers = 1;
  std::uint32_t items = 4000;  // of each producer
  std::uint32_t deaths = 0;    // of producers and of consumers, as others see it
};

// Some die while the others work: they claim, and are never heard of again. They die before they touch the
// payload: after a real kill the kernel orders the victim's accesses before its lock is gone, but
// ThreadSanitizer cannot know that of a thread that only pretends.
static void die_at_work(const Segment& segment, std::uint32_t times, const std::atomic<bool>& over,
                        std::atomic<bool>& has_begun) {
  std::mt19937 random(7);
  for (std::uint32_t i = 0; i < 2 * times && !over.load(); ++i) {
    Attachment doomed(segment);
    (void)doomed.ledger();
    for (int tries = 0; tries < 10000 && !over.load(); ++tries) {
      Span span;
      Peeked peeked;
      if (i % 2 == 0) {
        const std::uint64_t count = 1 + random() % std::min<std::uint64_t>(3, segment.shape().capacity);
        if (claim_slots(doomed, count, span) == Outcome::done) break;
      } else if (peek(doomed.ring(), doomed.ledger(), peeked) == Outcome::done) {
        if (claim_pop(doomed.ring(), doomed.ledger(), peeked.span)) break;
      }
      std::this_thread::yield();
    }
    doomed.die();
    has_begun.store(true);
  }
}

static void stress(const Load& load) {
  Segment segment(load.shape);
  Attachment here(segment);
  Attachment there(segment);
  Tally tally(load.producers, load.items);
  std::atomic<bool> over{false};
  std::vector<std::thread> consumers;
  std::vector<std::thread> producers;
  std::atomic<bool> has_begun{load.deaths == 0};
  std::thread doomed([&] { die_at_work(segment, load.deaths, over, has_begun); });
  while (!has_begun.load()) std::this_thread::yield();  // the first has died before the others are done
  for (std::uint32_t i = 0; i < load.consumers; ++i)
    consumers.emplace_back([&, i] { Consumer(i % 2 == 0 ? there : here, load.shape, i, tally).run(); });
  for (std::uint32_t i = 0; i < load.producers; ++i)
    producers.emplace_back(
        [&, i] { Producer(i % 2 == 0 ? here : there, load.shape, i, load.items, tally).run(); });
  for (std::thread& thread : producers) thread.join();
  over.store(true);
  doomed.join();
  here.queue().shut_down(false);
  for (std::thread& thread : consumers) thread.join();

  CHECK_EQUAL(tally.failures.load(), 0u);
  CHECK_EQUAL(tally.torn.load(), 0u);
  CHECK_EQUAL(tally.doubled.load(), 0u);
  CHECK_EQUAL(tally.disordered.load(), 0u);
  CHECK_EQUAL(tally.missing(), 0u);
  CHECK_EQUAL(tally.got.load(), std::uint64_t{load.producers} * load.items);
  CHECK(is_ended(here.ring()));
  const std::uint64_t end = here.ring().pop_position->load();
  for (std::uint64_t p = end; p < end + load.shape.capacity; ++p) CHECK_EQUAL(here.ring().generation_of(p).load(), p);
  if (load.deaths == 0) {
    CHECK_EQUAL(segment.control().tombstones.load(), 0u);  // nobody died, so nobody was abandoned
    CHECK_EQUAL(segment.control().redelivered.load(), 0u);
  } else {
    CHECK(segment.control().tombstones.load() + segment.control().redelivered.load() > 0);
  }
}

constexpr Shape narrow{.capacity = 8, .slot_bytes = 16, .participants = 32, .varying = true};
constexpr Shape wide{.capacity = 256, .slot_bytes = 24, .participants = 32, .varying = true};
constexpr Shape fixed{.capacity = 64, .slot_bytes = 16, .participants = 32, .varying = false};
constexpr Shape odd{.capacity = 5, .slot_bytes = 16, .participants = 32, .varying = true};
constexpr Shape smallest{.capacity = 1, .slot_bytes = 40, .participants = 32, .varying = false};

TEST(one_producer_and_one_consumer_of_bytes) { stress({.shape = wide, .items = 20000}); }
TEST(one_producer_and_one_consumer_that_wait_for_each_other) { stress({.shape = narrow, .items = 10000}); }
TEST(one_producer_and_one_consumer_of_records) { stress({.shape = fixed, .items = 20000}); }
TEST(many_producers_and_many_consumers_of_bytes) {
  stress({.shape = wide, .producers = 4, .consumers = 4, .items = 4000});
}
TEST(many_producers_and_many_consumers_on_a_narrow_ring) {
  stress({.shape = narrow, .producers = 3, .consumers = 3, .items = 2500});
}
TEST(many_producers_and_many_consumers_of_records) {
  stress({.shape = fixed, .producers = 4, .consumers = 4, .items = 4000});
}
TEST(many_producers_and_many_consumers_on_the_smallest_ring) {
  stress({.shape = smallest, .producers = 3, .consumers = 3, .items = 1500});
}
TEST(many_producers_and_one_consumer) { stress({.shape = wide, .producers = 6, .consumers = 1, .items = 3000}); }
TEST(one_producer_and_many_consumers) { stress({.shape = wide, .producers = 1, .consumers = 6, .items = 12000}); }
TEST(the_living_lose_nothing_while_others_die_on_a_ring_of_five) {
  stress({.shape = odd, .producers = 2, .consumers = 2, .items = 2000, .deaths = 12});
}
TEST(the_living_lose_nothing_while_others_die_on_the_smallest_ring) {
  stress({.shape = smallest, .producers = 2, .consumers = 2, .items = 1500, .deaths = 12});
}
TEST(the_living_lose_nothing_while_others_die_among_bytes) {
  stress({.shape = narrow, .producers = 2, .consumers = 2, .items = 3000, .deaths = 12});
}
TEST(the_living_lose_nothing_while_others_die_among_records) {
  stress({.shape = fixed, .producers = 2, .consumers = 2, .items = 6000, .deaths = 12});
}

}  // namespace queueduct::testing

int main(int argc, char** argv) { return queueduct::testing::run_tests(argc, argv); }
