// Puts of named producers into slots by single steps: whether a killed one's item is in, and that nothing is put twice.
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "support/check.hpp"
#include "support/slots_segment.hpp"

namespace queueduct::testing {

using State = slot_word::State;

static const SlotsSizes sizes{.producers = 2};

// Somebody who puts for a producer.
struct Putter {
  explicit Putter(const SlotsSegment& segment, std::string producer = "p")
      : attached(segment), producer_(std::move(producer)) {}

  [[nodiscard]] Producers::Taken take(std::uint64_t sequence, std::uint64_t total) {
    ProducerName name;
    REQUIRE(ProducerName::of(producer_.data(), producer_.size(), name));
    (void)attached.me();
    return attached.producers().take(name, attached.queue().owner_word(), sequence, total, line);
  }

  [[nodiscard]] Lease held(std::uint64_t number) {
    Lease lease;
    REQUIRE(attached.hold(lease) == SlotOutcome::done);
    std::memcpy(lease.data, &number, sizeof number);
    return lease;
  }

  // One call of put_once that does not wait, for the numbers from 0 on: how many it has put.
  [[nodiscard]] std::uint64_t put(std::uint64_t sequence, std::uint64_t total) {
    REQUIRE(take(sequence, total) == Producers::Taken::yes);
    REQUIRE(attached.queue().settle_producer(*line));
    const std::uint64_t before = begin(*line, sequence, total) == Begun::yes ? progress_of(*line).done : total;
    std::uint64_t done = before;
    for (Lease lease; done < total && attached.hold(lease) == SlotOutcome::done;) {
      std::memcpy(lease.data, &done, sizeof done);
      if (publish_once(attached.slots(), *line, lease, sizeof done) != SlotOutcome::done) break;
      CHECK_EQUAL(progress_of(*line).done, ++done);
    }
    Producers::leave(*line);
    return done - before;
  }

  SlotsAttachment attached;
  ProducerLine* line = nullptr;

 private:
  std::string producer_;
};

// Take all that there is, also what the dead had.
static std::vector<std::uint64_t> drain(SlotsAttachment& attached) {
  std::vector<std::uint64_t> got;
  std::uint64_t number = 0;
  for (int looks = 0; looks < 3; ++looks) {
    while (attached.get(number) == SlotOutcome::done) got.push_back(number);
    (void)attached.queue().recover_if_due(attached.me(), true);
  }
  return got;
}

TEST(a_call_that_is_repeated_puts_nothing) {
  SlotsSegment segment(sizes);
  Putter putter(segment);
  SlotsAttachment consumer(segment);
  CHECK_EQUAL(putter.put(1, 3), 3u);
  CHECK_EQUAL(putter.put(1, 3), 0u);
  CHECK_EQUAL(putter.put(0, 3), 0u);
  CHECK(drain(consumer) == (std::vector<std::uint64_t>{0, 1, 2}));
  CHECK_EQUAL(putter.put(2, 7), 4u);
  CHECK_EQUAL(putter.put(2, 7), 0u);
  CHECK(drain(consumer) == (std::vector<std::uint64_t>{0, 1, 2, 3}));
  CHECK_EQUAL(putter.put(2, 7), 3u);
  CHECK(drain(consumer) == (std::vector<std::uint64_t>{4, 5, 6}));
}

// How far a producer came with its second item before it was killed.
enum class Death : std::uint8_t { held, intended, arriving, in_used, published };

static void die_at(const SlotsSegment& segment, Death death) {
  Putter doomed(segment);
  REQUIRE(doomed.take(1, 2) == Producers::Taken::yes);
  Lease first = doomed.held(0);
  REQUIRE(publish_once(doomed.attached.slots(), *doomed.line, first, 8) == SlotOutcome::done);
  Lease lease = doomed.held(1);
  Slots& slots = doomed.attached.slots();
  if (death == Death::held) return;
  doomed.line->kept.store(lease.word);
  intend(*doomed.line, lease.slot, {1, 1});
  if (death == Death::intended) return;
  if (death == Death::published) {
    REQUIRE(slots.publish(lease, 8) == SlotOutcome::done);
    return;
  }
  reinterpret_cast<SlotLine*>(segment.base() + segment.offsets().lines)[lease.slot].length.store(8);
  REQUIRE(slots.swap(lease.slot, lease.word, State::arriving, doomed.attached.me()));
  if (death == Death::in_used) REQUIRE(slots.used().push(lease.slot));
}

TEST(an_item_of_the_dead_is_put_again_if_and_only_if_it_was_not_in) {
  for (const Death death : {Death::held, Death::intended, Death::arriving, Death::in_used, Death::published}) {
    for (const bool is_used_again : {false, true}) {
      SlotsSegment segment(sizes);
      SlotsAttachment consumer(segment);
      die_at(segment, death);
      std::vector<std::uint64_t> got;
      if (is_used_again) {  // nothing in the slots themselves tells any more
        got = drain(consumer);
        std::uint64_t number = 0;
        for (std::uint64_t i = 0; i < 30; ++i) {
          REQUIRE(consumer.put(i) == SlotOutcome::done);
          REQUIRE(consumer.get(number) == SlotOutcome::done);
        }
      }
      Putter next(segment);
      const bool was_in = death == Death::in_used || death == Death::published;
      CHECK_EQUAL(next.put(1, 2), was_in ? 0u : 1u);
      for (const std::uint64_t number : drain(consumer)) got.push_back(number);
      CHECK(got == (std::vector<std::uint64_t>{0, 1}));
    }
  }
}

TEST(a_slot_that_was_taken_before_recovery_looked_for_it_is_not_cut) {
  SlotsSegment segment(sizes);
  SlotsAttachment consumer(segment);
  die_at(segment, Death::in_used);
  CHECK(drain(consumer) == (std::vector<std::uint64_t>{0, 1}));  // its word still named the dead
  Putter next(segment);
  CHECK_EQUAL(next.put(1, 2), 0u);
}

TEST(a_publish_that_shutdown_refuses_is_counted_as_not_in) {
  SlotsSegment segment(sizes);
  Putter putter(segment);
  REQUIRE(putter.take(1, 1) == Producers::Taken::yes);
  Lease lease = putter.held(0);
  putter.attached.queue().shut_down(false);
  CHECK_EQUAL(publish_once(putter.attached.slots(), *putter.line, lease, 8), SlotOutcome::closed);
  CHECK(progress_of(*putter.line).phase == Phase::idle);
  CHECK_EQUAL(progress_of(*putter.line).done, 0u);
  CHECK_EQUAL(putter.attached.queue().count_in(State::free), 4u);
}

TEST(a_cut_is_of_the_very_word_and_the_very_slot) {
  SlotsSegment segment(sizes);
  Putter putter(segment);
  REQUIRE(putter.take(1, 9) == Producers::Taken::yes);
  const std::uint64_t held = slot_word::next(slot_word::next(0, State::free, 0), State::held, 3);
  const auto kept_after_cut = [&](std::uint64_t kept, std::uint64_t slot, std::uint64_t word) {
    putter.line->position.store(2);
    putter.line->kept.store(kept);
    cut_claims({putter.attached.producers().lines(), 2}, slot, word);
    return putter.line->kept.load();
  };
  CHECK_EQUAL(kept_after_cut(held, 2, held), slot_claim::cut(held));
  CHECK_EQUAL(kept_after_cut(held, 2, slot_claim::arriving(held)), slot_claim::cut(held));
  CHECK_EQUAL(kept_after_cut(held, 1, held), held);
  CHECK_EQUAL(kept_after_cut(held, 2, slot_word::next(held, State::held, 3)), held);
  CHECK_EQUAL(kept_after_cut(held, 2, slot_word::next(held, State::arriving, 4)), held);
  CHECK_EQUAL(kept_after_cut(slot_claim::cut(held), 2, held), slot_claim::cut(held));
}

// One life of a producer: it goes on with its sequence, and at some point of it may die.
static bool put_until_death(const SlotsSegment& segment, std::uint32_t who, std::uint64_t sequence, std::uint64_t total,
                            std::mt19937& random) {
  Putter putter(segment, "producer " + std::to_string(who));
  if (putter.take(sequence, total) != Producers::Taken::yes) return false;
  REQUIRE(putter.attached.queue().settle_producer(*putter.line));
  Slots& slots = putter.attached.slots();
  if (begin(*putter.line, sequence, total) == Begun::yes) {
    for (std::uint64_t done = progress_of(*putter.line).done; done < total;) {
      Lease lease;
      if (putter.attached.hold(lease) != SlotOutcome::done) {
        (void)putter.attached.queue().recover_if_due(putter.attached.me(), true);
        std::this_thread::yield();
        continue;
      }
      const std::uint64_t number = std::uint64_t{who} << 32 | (sequence * total + done);
      const std::uint32_t chance = random() % 16;
      if (chance == 0) return false;  // killed with a slot in its hands
      // Who dies without a publish writes nothing: that the kernel orders its stores before its death, TSan cannot see.
      if (chance == 2 || chance > 3) std::memcpy(lease.data, &number, sizeof number);
      if (chance < 4) {               // or in the middle of its put
        putter.line->kept.store(lease.word);
        intend(*putter.line, lease.slot, {1, 1});
        if (chance == 2 && slots.publish(lease, sizeof number) != SlotOutcome::done) return false;
        if (chance == 3) (void)slots.swap(lease.slot, lease.word, State::arriving, putter.attached.me());
        return false;
      }
      REQUIRE(publish_once(slots, *putter.line, lease, sizeof number) == SlotOutcome::done);
      ++done;
    }
  }
  Producers::leave(*putter.line);
  return true;
}

TEST(producers_that_die_again_and_again_beside_each_other_put_each_item_once) {
  static constexpr std::uint32_t producers = 3;
  static constexpr std::uint64_t sequences = 40;
  static constexpr std::uint64_t total = 12;
  SlotsSegment segment({.count = 5, .participants = 16, .producers = producers});
  std::vector<std::thread> threads;
  for (std::uint32_t who = 0; who < producers; ++who) {
    threads.emplace_back([&segment, who] {
      std::mt19937 random(who);
      for (std::uint64_t sequence = 0; sequence < sequences; ++sequence)
        while (!put_until_death(segment, who, sequence, total, random)) {
        }
    });
  }
  SlotsAttachment consumer(segment);
  std::uint64_t next[producers] = {};
  std::uint64_t number = 0;
  const std::int64_t end = monotonic_ns() + 50'000'000'000;
  for (std::uint64_t left = producers * sequences * total; left > 0 && monotonic_ns() < end;) {
    if (consumer.get(number) != SlotOutcome::done) {
      (void)consumer.queue().recover_if_due(consumer.me(), true);
      continue;
    }
    REQUIRE(number >> 32 < producers);
    CHECK_EQUAL(number & 0xffff'ffff, next[number >> 32]++);
    --left;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(consumer.get(number) != SlotOutcome::done);
  for (const std::uint64_t each : next) CHECK_EQUAL(each, sequences * total);
  CHECK(segment.control().recovered.load() > 0);
}

}  // namespace queueduct::testing
