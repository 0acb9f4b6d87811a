// Puts of named producers by single steps: what of a killed one's claim is in, and that nothing is put twice.
#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

static const Shape shape{.producers = 2};

// Somebody who puts for a producer.
struct Putter {
  explicit Putter(const Segment& segment, std::string producer = "p")
      : attached(segment), producer_(std::move(producer)) {}

  [[nodiscard]] BoundedQueueHandle& queue() noexcept { return attached.queue(); }

  [[nodiscard]] Producers::Taken take(std::uint64_t sequence, std::uint64_t total) {
    ProducerName name;
    REQUIRE(ProducerName::of(producer_.data(), producer_.size(), name));
    const std::uint64_t me = owner::word_of(queue().participant_table(), attached.ledger().number());
    return queue().producers().take(name, me, sequence, total, line);
  }

  // One call of put_once that does not wait: how many it has put.
  [[nodiscard]] std::uint64_t put(std::uint64_t sequence, const std::vector<Bytes>& items) {
    REQUIRE(take(sequence, items.size()) == Producers::Taken::yes);
    REQUIRE(queue().settle_producer(*line) == Outcome::done);
    const std::uint64_t before =
        begin(*line, sequence, items.size()) == Begun::yes ? progress_of(*line).done : items.size();
    std::uint64_t done = before;
    std::vector<Buffer> buffers;
    for (const Bytes& item : items) buffers.push_back({item.data(), item.size()});
    while (done < items.size()) {
      std::uint64_t put = 0;
      if (try_put_bytes_once(attached.ring(), attached.ledger(), *line, buffers.data() + done, items.size() - done,
                             put) != Outcome::done)
        break;
      done += put;
      CHECK_EQUAL(progress_of(*line).done, done);
    }
    Producers::leave(*line);
    return done - before;
  }

  // The first steps of a put: so many slots are claimed.
  [[nodiscard]] Span claim(std::uint64_t slots, bool is_one_item) {
    Span span;
    REQUIRE(claim_push(
                attached.ring(), OnceLedger(attached.ledger(), line, is_one_item), slots,
                [](std::uint64_t ready) { return ready; }, span) == Outcome::done);
    REQUIRE(span.slots == slots);
    return span;
  }

  Attachment attached;
  ProducerLine* line = nullptr;

 private:
  std::string producer_;
};

static std::vector<Bytes> some_items(std::size_t count, std::size_t length = 10) {
  std::vector<Bytes> items;
  for (std::size_t i = 0; i < count; ++i) items.push_back(pattern(static_cast<std::uint32_t>(i), length));
  return items;
}

// Take all that there is, burying the dead.
static std::vector<Bytes> drain(Attachment& attached) {
  std::vector<Bytes> got;
  for (int attempt = 0; attempt < 3; ++attempt) {
    while (auto item = get_bytes(attached)) got.push_back(*item);
    (void)attached.queue().recovery().run();
  }
  return got;
}

TEST(a_call_that_is_repeated_puts_nothing) {
  Segment segment(shape);
  Putter putter(segment);
  Attachment consumer(segment);
  const std::vector<Bytes> items = some_items(3);
  CHECK_EQUAL(putter.put(1, items), 3u);
  CHECK_EQUAL(putter.put(1, items), 0u);
  CHECK_EQUAL(putter.put(0, items), 0u);
  CHECK(drain(consumer) == items);
  CHECK_EQUAL(putter.put(1, items), 0u);
  CHECK_EQUAL(putter.put(2, items), 3u);
  CHECK(drain(consumer) == items);
}

TEST(a_call_that_found_no_room_goes_on_where_it_stopped) {
  Segment segment(shape);
  segment.reset(5);
  Putter putter(segment);
  Attachment consumer(segment);
  const std::vector<Bytes> items = some_items(21);
  std::vector<Bytes> got;
  CHECK_EQUAL(putter.put(1, items), 8u);
  CHECK_EQUAL(putter.put(1, items), 0u);
  for (const std::uint64_t more : {8u, 5u, 0u}) {
    for (const Bytes& item : drain(consumer)) got.push_back(item);
    CHECK_EQUAL(putter.put(1, items), more);
  }
  CHECK(got == items);
}

TEST(long_items_among_short_ones_are_claims_of_their_own) {
  Segment segment(shape);
  Putter putter(segment);
  Attachment consumer(segment);
  const std::vector<Bytes> items = {pattern(1, 40), pattern(2, 3), pattern(3, 1), pattern(4, 17), pattern(5, 16)};
  CHECK_EQUAL(putter.put(1, items), 5u);
  CHECK(drain(consumer) == items);
}

TEST(of_a_claim_that_was_not_confirmed_nothing_is_in) {
  Segment segment(shape);
  const std::vector<Bytes> items = some_items(3);
  Attachment consumer(segment);
  {
    Putter doomed(segment);
    REQUIRE(doomed.take(1, 3) == Producers::Taken::yes);
    (void)doomed.claim(3, false);
    Progress now = progress_of(*doomed.line);
    now.phase = Phase::intended;  // as if it had been killed right after the compare-and-swap
    doomed.line->progress.store(now.packed());
  }
  Putter next(segment);
  CHECK_EQUAL(next.put(1, items), 3u);
  CHECK(drain(consumer) == items);
  CHECK_EQUAL(segment.control().tombstones.load(), 3u);
}

TEST(of_a_claim_that_was_confirmed_what_was_published_is_in) {
  for (std::uint64_t published = 0; published <= 5; ++published) {
    for (const bool is_used_again : {false, true}) {
      Segment segment({.capacity = 16, .producers = 2});
      segment.reset(14);
      const std::vector<Bytes> items = some_items(5);
      Attachment consumer(segment);
      std::vector<Bytes> got;
      {
        Putter doomed(segment);
        REQUIRE(doomed.take(1, 5) == Producers::Taken::yes);
        const Span span = doomed.claim(5, false);
        for (std::uint64_t i = 0; i < published; ++i) {
          copy_in(doomed.attached.ring(), span.position + i, items[i].data(), items[i].size());
          write_lengths(doomed.attached.ring(), {span.position + i, 1}, items[i].size());
          publish(doomed.attached.ring(), {span.position + i, 1});
        }
      }
      if (is_used_again) {  // nothing in the ring itself tells any more
        got = drain(consumer);
        for (int i = 0; i < 30; ++i) {
          REQUIRE(put_number(consumer, 7) == Outcome::done);
          REQUIRE(get_bytes(consumer).has_value());
        }
      }
      Putter next(segment);
      CHECK_EQUAL(next.put(1, items), published == 5 ? 0 : 5 - published);
      for (const Bytes& item : drain(consumer)) got.push_back(item);
      CHECK(got == items);
    }
  }
}

TEST(a_long_item_is_in_as_a_whole_or_not_at_all) {
  for (std::uint64_t published = 0; published <= 3; ++published) {
    Segment segment(shape);
    segment.reset(7);
    const std::vector<Bytes> items = {pattern(1, 40)};
    Attachment consumer(segment);
    {
      Putter doomed(segment);
      REQUIRE(doomed.take(1, 1) == Producers::Taken::yes);
      const Span span = doomed.claim(3, true);
      copy_in(doomed.attached.ring(), span.position, items[0].data(), 40);
      write_lengths(doomed.attached.ring(), span, 40);
      for (std::uint64_t i = 0; i < published; ++i) publish(doomed.attached.ring(), {span.position + 2 - i, 1});
    }
    Putter next(segment);
    CHECK_EQUAL(next.put(1, items), published == 3 ? 0u : 1u);
    CHECK(drain(consumer) == items);
  }
}

TEST(what_is_in_is_not_known_before_the_rest_is_buried) {
  Segment segment(shape);
  Attachment slow(segment);
  Putter next(segment);
  {
    Putter doomed(segment);
    REQUIRE(doomed.take(1, 2) == Producers::Taken::yes);
    (void)doomed.claim(2, false);
  }
  // somebody alive seems to have claimed the same slot: it has declared it, and has not yet lost
  slow.ledger().declare(Side::push, 1, 1);
  REQUIRE(next.take(1, 2) == Producers::Taken::yes);
  CHECK_EQUAL(next.queue().settle_producer(*next.line), Outcome::busy);
  slow.ledger().clear();
  CHECK_EQUAL(next.queue().settle_producer(*next.line), Outcome::done);
  CHECK_EQUAL(progress_of(*next.line).done, 0u);
  CHECK(progress_of(*next.line).phase == Phase::idle);
}

// One life of a producer: it goes on with its sequence, and at some point of it may die.
static bool put_until_death(const Segment& segment, std::uint32_t who, std::uint64_t sequence, std::uint64_t total,
                            std::mt19937& random) {
  Putter putter(segment, "producer " + std::to_string(who));
  if (putter.take(sequence, total) != Producers::Taken::yes) return false;
  while (putter.queue().settle_producer(*putter.line) != Outcome::done) std::this_thread::yield();
  if (begin(*putter.line, sequence, total) != Begun::yes) return Producers::leave(*putter.line), true;
  for (std::uint64_t done = progress_of(*putter.line).done; done < total;) {
    const Ring& ring = putter.attached.ring();
    const std::uint64_t wanted = std::min<std::uint64_t>(1 + random() % 4, total - done);
    const OnceLedger ledger(putter.attached.ledger(), putter.line, false);
    Span span;
    if (claim_push(ring, ledger, wanted, [](std::uint64_t ready) { return ready; }, span) != Outcome::done) {
      drop_intent(*putter.line);
      (void)putter.queue().make_room(putter.attached.ledger());
      std::this_thread::yield();
      continue;
    }
    const std::uint64_t until = random() % 8 == 0 ? random() % (span.slots + 1) : span.slots + 1;
    for (std::uint64_t i = 0; i < span.slots; ++i) {
      if (i == until) return false;  // killed in the middle of its claim
      const std::uint64_t number = std::uint64_t{who} << 32 | (sequence * total + done + i);
      write_claimed(putter.attached, {span.position + i, 1}, number);
      publish(ring, {span.position + i, 1});
    }
    if (until == span.slots) return false;  // killed before it could count it
    OnceLedger(ledger).clear();
    done += span.slots;
  }
  Producers::leave(*putter.line);
  return true;
}

TEST(producers_that_die_again_and_again_beside_each_other_put_each_item_once) {
  static constexpr std::uint32_t producers = 3;
  static constexpr std::uint64_t sequences = 60;
  static constexpr std::uint64_t total = 12;
  Segment segment({.capacity = 16, .participants = 16, .producers = producers});
  std::vector<std::thread> threads;
  for (std::uint32_t who = 0; who < producers; ++who) {
    threads.emplace_back([&segment, who] {
      std::mt19937 random(who);
      for (std::uint64_t sequence = 0; sequence < sequences; ++sequence)
        while (!put_until_death(segment, who, sequence, total, random)) {
        }
    });
  }
  Attachment consumer(segment);
  std::uint64_t next[producers] = {};
  const std::int64_t end = monotonic_ns() + 50'000'000'000;
  for (std::uint64_t left = producers * sequences * total; left > 0 && monotonic_ns() < end;) {
    std::uint64_t number = 0;
    if (get_number(consumer, number) != Outcome::done) {
      (void)consumer.queue().recovery().run();
      continue;
    }
    REQUIRE(number >> 32 < producers);
    CHECK_EQUAL(number & 0xffff'ffff, next[number >> 32]++);
    --left;
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t number = 0;
  CHECK(get_number(consumer, number) != Outcome::done);
  for (const std::uint64_t each : next) CHECK_EQUAL(each, sequences * total);
  CHECK(segment.control().tombstones.load() > 0);
}

TEST(a_late_cut_leaves_later_claims_alone) {
  Segment segment(shape);
  Putter putter(segment);
  REQUIRE(putter.take(1, 100) == Producers::Taken::yes);
  ProducerLine& line = *putter.line;
  const auto kept_after_cut = [&](Kept kept, std::uint64_t p) {
    line.kept.store(kept.packed());
    cut_claims(putter.queue().producers().lines(), 2, p);
    return Kept::unpack(line.kept.load()).slots;
  };
  CHECK_EQUAL(kept_after_cut({7, 1}, 6), 1u);  // ends where a claim of 5 and 3 slots would have ended
  CHECK_EQUAL(kept_after_cut({5, 3}, 6), 1u);
  CHECK_EQUAL(kept_after_cut({5, 3}, 5), 0u);
  CHECK_EQUAL(kept_after_cut({5, 0}, 5), 0u);
  CHECK_EQUAL(kept_after_cut({5, 3}, 8), 3u);
  CHECK_EQUAL(kept_after_cut({5, 3}, 4), 3u);
  const std::uint64_t far = (std::uint64_t{9} << Kept::position_bits) - 2;
  CHECK_EQUAL(kept_after_cut({far, 5}, far + 3), 3u);  // across the end of its bits
}

TEST(nonsense_in_a_producers_line_is_corrupt_and_not_waited_for) {
  Segment segment(shape);
  Putter putter(segment);
  REQUIRE(putter.take(1, 4) == Producers::Taken::yes);
  ProducerLine& line = *putter.line;
  const std::uint64_t claimed = Progress{true, Phase::claimed, 0, 4, 0}.packed();
  const auto settled = [&](std::uint64_t position, Extent extent, std::uint64_t progress) {
    line.position.store(position);
    line.extent.store(extent.packed());
    line.progress.store(progress);
    return putter.queue().settle_producer(line);
  };
  segment.control().push_position.store(3);
  segment.control().pop_position.store(1);
  CHECK_EQUAL(settled(0, {1, 1}, claimed), Outcome::corrupt);  // popped, and neither published nor abandoned
  CHECK_EQUAL(settled(2, {2, 2}, claimed), Outcome::corrupt);  // beyond what was ever claimed
  CHECK_EQUAL(settled(~std::uint64_t{0}, {2, 2}, claimed), Outcome::corrupt);
  CHECK_EQUAL(settled(1, {2, 2}, claimed), Outcome::corrupt);  // free, and nobody says that he claimed it
  CHECK_EQUAL(settled(0, {0, 0}, claimed), Outcome::corrupt);
  CHECK_EQUAL(settled(0, {9, 9}, claimed), Outcome::corrupt);
  CHECK_EQUAL(settled(0, {3, 2}, claimed), Outcome::corrupt);
  CHECK_EQUAL(settled(0, {1, 1}, Progress{true, Phase::claimed, 0, 4, 4}.packed()), Outcome::corrupt);
  CHECK_EQUAL(settled(0, {1, 1}, Progress{true, Phase::claimed, 0, 4, 9}.packed()), Outcome::corrupt);
}

}  // namespace queueduct::testing
