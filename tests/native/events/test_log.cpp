// The log of chunks: how large they are, when they go, and what a budget does.
#include "support/check.hpp"
#include "support/events_for_tests.hpp"

namespace queueduct::testing {

TEST(chunks_have_sizes_n_n_2n_2n_4n) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  CHECK_EQUAL(put_each(attached, 0, 32), 32u);
  CHECK(chunk_sizes(segment) == (Numbers{4, 4, 8, 8, 16}));
  std::uint64_t put = 0;
  segment.reset();
  EventsAttachment again(segment);
  CHECK_EQUAL(put_events(again, 0, 32, put), Appended::done);
  CHECK_EQUAL(put, 32u);
  CHECK(chunk_sizes(segment) == (Numbers{4, 4, 8, 8, 16}));
}

TEST(the_right_size_is_found_when_one_chunk_is_left_and_the_one_before_was_as_large) {
  for (const std::uint64_t batch : {1, 6, 40}) {
    EventsSegment segment({});
    EventsAttachment attached(segment);
    EventsReader reader(attached);
    Numbers sizes;
    for (std::uint64_t i = 0; i < 200; ++i) {
      CHECK_EQUAL(put_each(attached, i * batch, batch), batch);
      CHECK(reader.read() == counted(i * batch, batch));
      sizes.push_back(segment.map().chunk(segment.control().chunks_made - 1).items);
    }
    CHECK_EQUAL(sizes.back(), sizes[20]);
    CHECK(sizes.back() >= batch && sizes.back() < 4 * batch + 4);
  }
}

TEST(what_was_put_is_read_by_every_reader_in_order) {
  for (const bool varies : {false, true}) {
    EventsSegment segment({.varies = varies});
    EventsAttachment attached(segment);
    EventsAttachment other(segment);
    EventsReader one(attached);
    EventsReader two(other);
    CHECK_EQUAL(put_each(attached, 0, 50), 50u);
    CHECK(one.read() == counted(0, 50));
    CHECK_EQUAL(put_each(other, 50, 50), 50u);
    CHECK(one.read() == counted(50, 50));
    CHECK(two.read() == counted(0, 100));
  }
}

TEST(a_chunk_is_freed_when_every_reader_has_passed_it) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader fast(attached);
  EventsReader slow(attached);
  put_each(attached, 0, 30);
  CHECK_EQUAL(segment.kept(), 5u);
  (void)fast.read();
  {
    const Inside inside(attached);
    CHECK_EQUAL(attached.log().reclaim(attached.queue().backing()), 0u);
  }
  (void)slow.read(9);  // in the third chunk
  const Inside inside(attached);
  CHECK_EQUAL(attached.log().reclaim(attached.queue().backing()), 2u);
  CHECK_EQUAL(segment.blocks_in_use(), 3u);
}

TEST(a_reader_stopped_exactly_at_the_end_of_a_chunk_has_not_left_it) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 10);
  CHECK(reader.read(4) == counted(0, 4));
  {
    const Inside inside(attached);
    CHECK_EQUAL(attached.log().reclaim(attached.queue().backing()), 0u);
  }
  CHECK(reader.read(1) == counted(4, 1));
  const Inside inside(attached);
  CHECK_EQUAL(attached.log().reclaim(attached.queue().backing()), 1u);
}

TEST(memory_stays_the_same_over_a_thousand_rounds_of_fill_and_drain) {
  for (const bool varies : {false, true}) {
    EventsSegment segment({.varies = varies});
    EventsAttachment attached(segment);
    EventsReader reader(attached);
    std::uint64_t number = 0;
    std::uint64_t most = 0;
    for (int round = 0; round < 1000; ++round) {
      CHECK_EQUAL(put_each(attached, number, 40), 40u);
      CHECK(reader.read() == counted(number, 40));
      number += 40;
      const std::uint64_t memory = segment.memory_of_blocks();
      if (round < 10) most = memory > most ? memory : most;
      CHECK(memory <= most);
    }
    CHECK(segment.blocks_in_use() <= 2);
    CHECK_EQUAL(segment.blocks_in_use(), segment.blocks_of_chunks());
  }
}

TEST(clear_and_keep_last_work_with_thousands_of_chunks) {
  // two of these records fill a block, so chunks stay small
  EventsSegment many({.max_bytes = 1 << 24, .block_bytes = 4096, .blocks = 4096, .first_items = 2,
                      .item_bytes = 2048, .chunk_lines = 4096});
  EventsAttachment attached(many);
  CHECK_EQUAL(put_each(attached, 0, 6000), 6000u);
  CHECK_EQUAL(many.kept(), 3000u);
  {
    const Inside inside(attached);
    attached.log().keep_last(attached.queue().backing(), 5);
  }
  CHECK_EQUAL(many.kept(), 3u);
  EventsReader reader(attached);
  CHECK(reader.read() == counted(5995, 5));
  const Inside inside(attached);
  attached.log().keep_last(attached.queue().backing(), 100);  // more than there is: nothing changes
  CHECK_EQUAL(earliest_position(many.map()), 5995u);
  attached.log().keep_last(attached.queue().backing(), 0);
  CHECK_EQUAL(earliest_position(many.map()), 6000u);
}

TEST(with_nobody_to_read_a_budget_that_waits_is_full) {
  EventsSegment segment({.max_bytes = 8 * 64});
  EventsAttachment attached(segment);
  CHECK_EQUAL(put_each(attached, 0, 1000), 32u);
  std::uint64_t put = 7;
  CHECK_EQUAL(put_events(attached, 32, 1, put), Appended::full);
  CHECK_EQUAL(put, 0u);
  CHECK_EQUAL(segment.control().used_bytes.load(), 8u * 64);
}

TEST(a_batch_goes_in_as_far_as_there_is_room) {
  EventsSegment segment({.max_bytes = 8 * 64});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  std::uint64_t put = 0;
  CHECK_EQUAL(put_events(attached, 0, 100, put), Appended::done);
  CHECK_EQUAL(put, 32u);
  CHECK(reader.read() == counted(0, 32));
  CHECK_EQUAL(put_events(attached, 32, 100, put), Appended::done);
  CHECK_EQUAL(put, 28u);  // the chunk under the reader is kept
  CHECK(reader.read() == counted(32, 28));
}

TEST(the_slowest_reader_is_dropped_and_goes_on_with_the_earliest) {
  EventsSegment segment({.max_bytes = 8 * 64, .may_drop = true});
  EventsAttachment attached(segment);
  EventsReader slow(attached);
  EventsReader fast(attached);
  for (std::uint64_t i = 0; i < 64; ++i) {
    CHECK_EQUAL(put_each(attached, i, 1), 1u);
    CHECK(fast.read() == Numbers{i});
  }
  Numbers numbers;
  CHECK_EQUAL(slow.read(numbers), ReadResult::lost);
  CHECK_EQUAL(segment.control().dropped.load(), 1u);
  std::uint64_t earliest = 0;
  {
    const Inside inside(attached);
    earliest = attached.queue().rejoin(slow.number(), slow.cursor());
  }
  CHECK(slow.read() == counted(earliest, 64 - earliest));
  CHECK_EQUAL(segment.blocks_in_use(), segment.blocks_of_chunks());
}

TEST(with_nobody_to_read_the_oldest_is_dropped) {
  EventsSegment segment({.max_bytes = 8 * 64, .may_drop = true});
  EventsAttachment attached(segment);
  CHECK_EQUAL(put_each(attached, 0, 100), 100u);
  CHECK(segment.control().used_bytes.load() <= 8u * 64);
  EventsReader reader(attached);
  const Numbers numbers = reader.read();
  CHECK(numbers.size() >= 28);
  CHECK(numbers == counted(100 - numbers.size(), numbers.size()));
}

TEST(an_item_longer_than_a_block_takes_several_in_a_row) {
  EventsSegment segment({.max_bytes = 1 << 18, .block_bytes = 4096, .varies = true});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 3);
  CHECK_EQUAL(put_each(attached, 3, 1, 50'000), 1u);
  put_each(attached, 4, 3);
  CHECK(segment.blocks_in_use() >= 13);
  CHECK_EQUAL(segment.blocks_in_use(), segment.blocks_of_chunks());
  CHECK(reader.read() == counted(0, 7));
}

TEST(an_item_that_could_never_fit_is_refused_and_nobody_is_dropped_for_it) {
  for (const std::uint64_t blocks : {4, 64}) {
    EventsSegment segment(
        {.max_bytes = 1 << 16, .block_bytes = 4096, .blocks = blocks, .varies = true, .may_drop = true});
    EventsAttachment attached(segment);
    EventsReader reader(attached);
    put_each(attached, 0, 10);
    std::uint64_t put = 0;
    const Bytes long_one = make_event(10, 70'000);
    const std::uint64_t lengths[] = {blocks * 4096, 70'000, std::uint64_t{1} << 31, ~std::uint64_t{0}};
    for (const std::uint64_t length : lengths) {
      const Buffer item{long_one.data(), length};
      const Inside inside(attached);
      CHECK_EQUAL(attached.queue().append_bytes(&item, 1, put), Appended::too_long);
    }
    CHECK_EQUAL(segment.control().dropped.load(), 0u);
    CHECK(reader.read() == counted(0, 10));
    CHECK_EQUAL(put_each(attached, 10, 1, (blocks == 4 ? 4 * 4096 : 1 << 16) - 512), 1u);
  }
}

TEST(a_chunk_that_claims_to_be_for_too_many_items_does_not_make_the_next_one_so) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  put_each(attached, 0, 8);
  for (const std::uint64_t items : {std::uint64_t{1} << 63, ~std::uint64_t{0}, (std::uint64_t{1} << 60) + 1}) {
    segment.map().chunk(0).items = items;
    segment.map().chunk(1).items = items;
    segment.map().chunk(1).end_position = 8;
    std::uint64_t put = 0;
    CHECK_EQUAL(put_events(attached, 8, 1, put), Appended::done);
    CHECK_EQUAL(segment.map().chunk(2).items.load(), 4u);
    segment.control().chunks_made = 2;
  }
}

TEST(a_clear_leaves_a_readers_memory_until_its_next_session) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 30);
  CHECK(reader.read(3) == counted(0, 3));
  {
    const Inside inside(attached);
    attached.log().keep_last(attached.queue().backing(), 0);
  }
  CHECK_EQUAL(segment.kept(), 5u);
  CHECK(reader.read().empty());
  put_each(attached, 30, 20);
  CHECK(reader.read() == counted(30, 20));
}

TEST(after_a_shutdown_nothing_goes_in_and_readers_end) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 3);
  {
    const Inside inside(attached);
    attached.log().shut_down();
  }
  std::uint64_t put = 0;
  CHECK_EQUAL(put_events(attached, 3, 1, put), Appended::closed);
  Numbers numbers;
  CHECK_EQUAL(reader.read(numbers), ReadResult::items);
  CHECK_EQUAL(reader.read(numbers), ReadResult::ended);
  CHECK(numbers == counted(0, 3));
}

}  // namespace queueduct::testing
