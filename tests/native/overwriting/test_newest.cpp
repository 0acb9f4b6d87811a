// The newest message, read without being taken: whole, beside writers that lap it and writers that die.
#include <atomic>
#include <thread>

#include "support/overwriting_fates.hpp"

namespace queueduct::testing {

// Reads it into a message of one number again and again.
[[nodiscard]] Claim newest(OverwritingAttachment& attached, std::uint64_t wanted, std::uint64_t& number,
                           std::uint64_t& position) {
  std::vector<std::uint64_t> message(attached.ring().message_bytes() / 8);
  const Claim claim = attached.queue().try_read_newest(attached.line(), wanted, message.data(),
                                                       attached.ring().message_bytes(), 10'000'000, position);
  number = message[0];
  for (const std::uint64_t word : message)
    if (word != number) number = OverwritingAttachment::torn;
  return claim;
}

TEST(the_newest_stays_and_is_seen_by_its_position) {
  OverwritingSegment segment({.capacity = 3, .words = 2});
  OverwritingAttachment attached(segment);
  std::uint64_t number = 0;
  std::uint64_t position = 0;
  CHECK_EQUAL(newest(attached, 0, number, position), Claim::empty);
  for (std::uint64_t i = 1; i <= 7; ++i) {
    CHECK_EQUAL(attached.put(i), Claim::done);
    CHECK_EQUAL(newest(attached, i - 1, number, position), Claim::done);
    CHECK_EQUAL(number, i);
    CHECK_EQUAL(position, i - 1);
    CHECK_EQUAL(newest(attached, i, number, position), Claim::empty);
  }
  CHECK_EQUAL(attached.ring().fates().delivered, 0u);
  attached.queue().shut_down(false);
  CHECK_EQUAL(newest(attached, 0, number, position), Claim::done);
  CHECK_EQUAL(newest(attached, 7, number, position), Claim::closed);
  check_sum(attached, __LINE__);
}

TEST(a_message_in_mid_copy_is_passed_over_and_one_of_a_dead_writer_too) {
  OverwritingSegment segment({.capacity = 2, .words = 2});
  OverwritingAttachment reader(segment);
  OverwritingAttachment writer(segment);
  std::uint64_t number = 0;
  std::uint64_t position = 0;
  CHECK_EQUAL(writer.put(1), Claim::done);
  Claimed claimed;
  std::thread other([&] {
    const std::uint32_t line = writer.line();
    CHECK_EQUAL(writer.queue().enter(line, 0), Claim::done);
    CHECK_EQUAL(writer.ring().claim_put(line, true, claimed), Claim::done);
    writer.queue().leave();
    CHECK_EQUAL(newest(reader, 0, number, position), Claim::done);
    CHECK_EQUAL(number, 1u);
    CHECK_EQUAL(position, 0u);
    CHECK_EQUAL(newest(reader, 1, number, position), Claim::busy);
    writer.die();
    CHECK_EQUAL(newest(reader, 0, number, position), Claim::done);
    CHECK_EQUAL(position, 0u);
    CHECK_EQUAL(newest(reader, 1, number, position), Claim::empty);
  });
  other.join();
}

TEST(a_copy_counts_until_a_put_comes_round_to_its_message) {
  OverwritingSegment segment({.capacity = 3, .words = 2});
  OverwritingAttachment attached(segment);
  const std::uint32_t line = attached.line();
  CHECK_EQUAL(attached.put(1), Claim::done);
  for (const bool is_published : {false, true}) {
    Claimed found;
    CHECK_EQUAL(attached.queue().enter(line, 0), Claim::done);
    CHECK_EQUAL(attached.ring().find_newest(0, found), Claim::done);
    attached.queue().leave();
    attached.queue().rest(line);
    for (std::uint64_t i = 0; i < 2; ++i) {
      CHECK(attached.ring().is_still_whole(found));
      CHECK_EQUAL(attached.put(2), Claim::done);
    }
    CHECK(attached.ring().is_still_whole(found));
    Claimed next;
    CHECK_EQUAL(attached.queue().enter(line, 0), Claim::done);
    CHECK_EQUAL(attached.ring().claim_put(line, true, next), Claim::done);
    attached.queue().leave();
    CHECK_EQUAL(next.index, found.index);
    if (is_published) attached.ring().publish(next);  // its lock is free again: only the count tells
    CHECK(!attached.ring().is_still_whole(found));
    if (!is_published) attached.ring().publish(next);
    attached.queue().rest(line);
  }
}

TEST(a_foreign_writer_in_mid_copy_is_passed_over) {
  OverwritingSegment segment({.capacity = 1, .words = 2});
  OverwritingAttachment attached(segment);
  std::uint64_t number = 0;
  std::uint64_t position = 0;
  CHECK_EQUAL(attached.put(1), Claim::done);
  attached.ring().message_lock(0).store(1);
  CHECK_EQUAL(newest(attached, 0, number, position), Claim::busy);
  attached.ring().message_lock(0).store(0);
  CHECK_EQUAL(newest(attached, 0, number, position), Claim::done);
}

TEST(readers_beside_fast_writers_see_whole_messages_and_never_go_back) {
  for (const std::uint64_t words : {std::uint64_t{4}, std::uint64_t{400}}) {  // copied under the header's lock; after
    for (const std::uint64_t capacity : {std::uint64_t{1}, std::uint64_t{3}}) {
      OverwritingSegment segment({.capacity = capacity, .words = words, .participants = 16});
      std::atomic<std::uint32_t> writing{2};
      std::atomic<std::uint64_t> wrong{0};
      std::atomic<std::uint64_t> seen{0};
      std::atomic<std::uint64_t> puts{0};
      std::vector<std::thread> threads;
      // until a reader has met a message, however the threads are scheduled; with one cell it may never meet one
      const auto goes_on = [&](std::uint64_t n) {
        return n <= 2000 || (capacity > 1 && seen.load() == 0 && n < 5'000'000);
      };
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
          OverwritingAttachment attached(segment);
          std::uint64_t n = 1;
          while (goes_on(n)) n += attached.put(n, true, 10'000'000) == Claim::done;
          puts.fetch_add(n - 1);
          writing.fetch_sub(1);
        });
        threads.emplace_back([&] {
          OverwritingAttachment attached(segment);
          std::uint64_t last = 0;
          while (writing.load() != 0) {
            std::uint64_t number = 0;
            std::uint64_t position = 0;
            const Claim claim = newest(attached, last, number, position);
            if (claim != Claim::done) continue;
            if (number == OverwritingAttachment::torn || position < last) wrong.fetch_add(1);
            last = position + 1;
            seen.fetch_add(1);
          }
        });
      }
      for (std::thread& each : threads) each.join();
      CHECK_EQUAL(wrong.load(), 0u);
      OverwritingAttachment last(segment);
      std::uint64_t number = 0;
      std::uint64_t position = 0;
      CHECK_EQUAL(newest(last, 0, number, position), Claim::done);
      CHECK_EQUAL(position, puts.load() - 1);
      CHECK_EQUAL(last.ring().fates().delivered, 0u);
      CHECK(seen.load() > 0 || capacity == 1);
    }
  }
}

}  // namespace queueduct::testing
