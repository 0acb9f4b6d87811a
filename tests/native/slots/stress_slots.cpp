// Many who put, get, overwrite, give back and die at once, on two mappings of one file in one process, so that a
// sanitizer sees both sides. Allowed outcome: every item exactly once, got or evicted, whole; from the front of the
// queue in its producer's order for each consumer; at the end every slot is free.
// Workers sleep and wake each other through the queue's events; nothing here waits for a time to pass.
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/slots_segment.hpp"

namespace queueduct::testing {

struct SlotsLoad {
  std::uint64_t slots = 4;
  std::uint32_t producers = 1;
  std::uint32_t consumers = 1;
  std::uint64_t items = 4000;  // of each producer
  bool overwrites = false;
  bool puts_back = false;  // consumers let another have every tenth item
  bool resizes = false;    // somebody changes the capacity all the time
  std::uint32_t deaths = 0;
};

constexpr std::uint64_t words = 32;  // of an item, each the same number

class SlotsTally {
 public:
  SlotsTally(std::uint64_t producers, std::uint64_t items) : items_(items), seen_(producers * items) {}

  void see(const Lease& lease, std::uint64_t& number) {
    std::uint64_t copy[words];
    std::memcpy(copy, lease.data, sizeof copy);
    number = copy[0];
    for (const std::uint64_t word : copy)
      if (word != number || lease.bytes != sizeof copy || number >= seen_.size()) return void(torn.fetch_add(1));
  }
  void end(std::uint64_t number) {
    if (number < seen_.size() && seen_[number].fetch_add(1) != 0) doubled.fetch_add(1);
  }
  [[nodiscard]] std::uint64_t missing() const {
    std::uint64_t missing = 0;
    for (const auto& times : seen_) missing += times.load() == 0;
    return missing;
  }
  [[nodiscard]] std::uint64_t producer_of(std::uint64_t number) const noexcept { return number / items_; }

  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> doubled{0};
  std::atomic<std::uint64_t> disordered{0};
  std::atomic<std::uint64_t> failures{0};

 private:
  std::uint64_t items_;
  std::vector<std::atomic<std::uint8_t>> seen_;
};

static void produce(SlotsAttachment& attached, const SlotsLoad& load, std::uint32_t me, SlotsTally& tally) {
  for (std::uint64_t i = 0; i < load.items;) {
    Lease lease;
    SlotOutcome outcome = attached.hold(lease);
    if (outcome == SlotOutcome::full && load.overwrites) {
      outcome = attached.slots().try_evict(attached.me(), lease);
      if (outcome == SlotOutcome::done) {
        std::uint64_t evicted = 0;
        tally.see(lease, evicted);
        tally.end(evicted);
      }
    }
    if (outcome != SlotOutcome::done) {
      if (outcome == SlotOutcome::corrupt || outcome == SlotOutcome::closed) return void(tally.failures.fetch_add(1));
      if (!attached.queue().recover_if_due(attached.me(), false)) attached.queue().wait_for_room(park_limit_ns);
      continue;
    }
    std::uint64_t copy[words];
    for (std::uint64_t& word : copy) word = me * load.items + i;
    std::memcpy(lease.data, copy, sizeof copy);
    if (attached.slots().publish(lease, sizeof copy) != SlotOutcome::done) return void(tally.failures.fetch_add(1));
    attached.queue().items().notify();
    if (attached.slots().may_be_holdable()) attached.queue().room().notify();  // W4: the chain goes on
    ++i;
  }
}

static void consume(SlotsAttachment& attached, const SlotsLoad& load, std::uint32_t seed, SlotsTally& tally) {
  std::mt19937 random(seed);
  std::vector<std::int64_t> last(load.producers, -1);
  for (;;) {
    Lease lease;
    const SlotOutcome outcome = attached.take(lease);
    if (outcome == SlotOutcome::done) {
      std::uint64_t number = 0;
      tally.see(lease, number);
      if (load.puts_back && random() % 10 == 0) {
        if (!attached.slots().put_back(lease)) tally.failures.fetch_add(1);
        attached.queue().items().notify();
        continue;
      }
      const std::uint64_t producer = tally.producer_of(number);
      if (!lease.redelivered && producer < load.producers) {
        if (static_cast<std::int64_t>(number) <= last[producer]) tally.disordered.fetch_add(1);
        last[producer] = static_cast<std::int64_t>(number);
      }
      tally.end(number);
      if (!attached.slots().leave(lease)) tally.failures.fetch_add(1);
      attached.queue().room().notify();
      if (attached.slots().may_be_takeable()) attached.queue().items().notify();  // W4: the chain goes on
      continue;
    }
    if (outcome != SlotOutcome::empty) return void(tally.failures.fetch_add(1));
    const bool is_closed = attached.slots().closed() != 0;
    if (attached.queue().recover_if_due(attached.me(), is_closed)) continue;
    if (is_closed && attached.queue().is_drained()) return;
    if (is_closed)
      std::this_thread::yield();
    else
      attached.queue().wait_for_items(park_limit_ns);
  }
}

// Some die while the others work: they claim, and are never heard of again. They die before they touch the payload:
// after a real kill the kernel orders the victim's accesses before its lock is gone, but ThreadSanitizer cannot know
// that of a thread that only pretends.
static void die_at_work(const SlotsSegment& segment, std::uint32_t times, const std::atomic<bool>& over) {
  for (std::uint32_t i = 0; i < times && !over.load(); ++i) {
    SlotsAttachment doomed(segment);
    const std::uint32_t me = doomed.me();
    for (int tries = 0; tries < 10000 && !over.load(); ++tries) {
      Lease lease;
      if ((i % 2 == 0 ? doomed.slots().try_hold(me, lease) : doomed.slots().try_take(me, lease)) == SlotOutcome::done)
        break;
      std::this_thread::yield();
    }
    doomed.die();
  }
}

static void resize(SlotsAttachment& attached, const SlotsLoad& load, SlotsTally& tally, const std::atomic<bool>& over) {
  for (std::uint64_t turn = 0; !over.load(); ++turn) {
    attached.queue().set_capacity(1 + turn * 5 % load.slots);
    Lease lease;
    while (attached.slots().try_evict_surplus(attached.me(), lease) == SlotOutcome::done) {
      std::uint64_t evicted = 0;
      tally.see(lease, evicted);
      tally.end(evicted);
      if (!attached.slots().leave(lease)) tally.failures.fetch_add(1);
      attached.queue().room().notify();
    }
    std::this_thread::yield();
  }
  attached.queue().set_capacity(load.slots);
}

static void stress(const SlotsLoad& load) {
  SlotsSegment segment({.count = load.slots, .slot_bytes = words * 8, .participants = 32});
  SlotsAttachment here(segment);
  SlotsAttachment there(segment);
  SlotsTally tally(load.producers, load.items);
  std::atomic<bool> over{false};
  std::vector<std::thread> consumers;
  std::vector<std::thread> producers;
  std::vector<std::thread> others;
  for (std::uint32_t i = 0; i < load.consumers; ++i)
    consumers.emplace_back([&, i] { consume(i % 2 == 0 ? there : here, load, i, tally); });
  for (std::uint32_t i = 0; i < load.producers; ++i)
    producers.emplace_back([&, i] { produce(i % 2 == 0 ? here : there, load, i, tally); });
  if (load.deaths != 0) others.emplace_back([&] { die_at_work(segment, load.deaths, over); });
  if (load.resizes) others.emplace_back([&] { resize(here, load, tally, over); });
  for (std::thread& thread : producers) thread.join();
  over.store(true);
  for (std::thread& thread : others) thread.join();
  here.queue().shut_down(false);
  for (std::thread& thread : consumers) thread.join();

  CHECK_EQUAL(tally.failures.load(), 0u);
  CHECK_EQUAL(tally.torn.load(), 0u);
  CHECK_EQUAL(tally.doubled.load(), 0u);
  CHECK_EQUAL(tally.disordered.load(), 0u);
  CHECK_EQUAL(tally.missing(), 0u);
  (void)here.queue().recover_if_due(here.me(), true);
  CHECK_EQUAL(here.queue().count_in(slot_word::State::free), load.slots);
  CHECK_EQUAL(here.slots().free().size(), load.slots);
  for (std::uint64_t slot = 0; slot < load.slots; ++slot) CHECK(here.slots().free().contains(slot));
  if (load.deaths == 0) CHECK_EQUAL(segment.control().recovered.load(), 0u);  // nobody died
}

TEST(one_producer_and_one_consumer) { stress({.slots = 8, .items = 20000}); }
TEST(one_slot) { stress({.slots = 1, .producers = 2, .consumers = 2, .items = 1500}); }
TEST(many_producers_and_many_consumers) { stress({.slots = 7, .producers = 4, .consumers = 4, .items = 4000}); }
TEST(many_on_two_slots) { stress({.slots = 2, .producers = 3, .consumers = 3, .items = 2000}); }
TEST(many_producers_and_one_consumer) { stress({.slots = 16, .producers = 6, .consumers = 1, .items = 2500}); }
TEST(producers_that_overwrite) {
  stress({.slots = 3, .producers = 3, .consumers = 2, .items = 4000, .overwrites = true});
}
TEST(consumers_that_put_back) {
  stress({.slots = 4, .producers = 2, .consumers = 3, .items = 3000, .puts_back = true});
}
TEST(a_capacity_that_changes) { stress({.slots = 6, .producers = 2, .consumers = 2, .items = 4000, .resizes = true}); }
TEST(the_living_lose_nothing_while_others_die) {
  stress({.slots = 4, .producers = 2, .consumers = 2, .items = 4000, .deaths = 24});
}
TEST(everything_at_once) {
  stress({.slots = 5, .producers = 3, .consumers = 3, .items = 3000, .overwrites = true, .puts_back = true,
          .resizes = true, .deaths = 16});
}

}  // namespace queueduct::testing

int main(int argc, char** argv) { return queueduct::testing::run_tests(argc, argv); }
