// What a kill or a crash of the machine leaves is put right by the next holder of the lock.
#include "support/check.hpp"
#include "support/events_for_tests.hpp"

namespace queueduct::testing {

// Dies with the lock, at a moment that `leave` makes by hand.
template <class Leave>
static void die_inside(const EventsSegment& segment, Leave leave) {
  EventsAttachment doomed(segment);
  REQUIRE(doomed.queue().enter(doomed.line(), 0) == Entered::yes);
  leave(doomed);
  doomed.die();
}

// As if killed before the publish: all was written, and `end` says nothing of it.
static void die_before_publishing(const EventsSegment& segment, std::uint64_t count) {
  die_inside(segment, [&](EventsAttachment& doomed) {
    const std::uint64_t end = segment.control().end;
    std::uint64_t put = 0;
    const Bytes garbage(count * segment.settings().item_bytes);
    const Bytes item(segment.settings().item_bytes);
    const std::vector<Buffer> items(count, Buffer{item.data(), item.size()});
    if (segment.settings().varies)
      (void)doomed.queue().append_bytes(items.data(), count, put);
    else
      (void)doomed.queue().append_records(garbage.data(), count, put);
    CHECK_EQUAL(put, count);
    segment.control().end.store(end);
  });
}

TEST(a_batch_over_several_chunks_that_was_not_published_leaves_nothing) {
  for (const bool varies : {false, true}) {
    for (const std::uint64_t before : {0, 1, 4, 6, 30}) {
      for (const std::uint64_t count : {1, 3, 20, 100}) {
        EventsSegment segment({.varies = varies});
        EventsAttachment attached(segment);
        EventsReader reader(attached);
        put_each(attached, 0, before);
        die_before_publishing(segment, count);
        CHECK_EQUAL(put_each(attached, before, 50), 50u);
        CHECK_EQUAL(segment.control().repairs.load(), 1u);
        CHECK(reader.read() == counted(0, before + 50));
        CHECK_EQUAL(segment.blocks_in_use(), segment.blocks_of_chunks());
      }
    }
  }
}

TEST(a_reader_at_the_end_of_a_chunk_goes_on_after_a_batch_that_was_not_published) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 6);
  CHECK(reader.read() == counted(0, 6));
  die_before_publishing(segment, 30);
  put_each(attached, 6, 30);
  CHECK(reader.read() == counted(6, 30));
}

TEST(a_clear_that_was_intended_is_finished) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 10);
  die_inside(segment, [&](EventsAttachment&) {
    segment.control().start.store(EventsWord{EventsWord::epoch_one}.at(7).word);
  });
  put_each(attached, 10, 1);
  CHECK(reader.read() == counted(7, 4));
}

TEST(blocks_are_made_anew_from_the_chunks) {
  EventsSegment segment({.varies = true});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 60);
  put_each(attached, 60, 1, 40'000);
  const std::uint64_t used = segment.control().used_bytes;
  die_inside(segment, [&](EventsAttachment&) {
    for (std::uint64_t i = 0; i < segment.control().blocks_used; ++i) segment.map().blocks[i] ^= block_in_use;
    segment.control().used_bytes = 1;
    segment.control().spare_bytes = 1 << 30;
  });
  put_each(attached, 61, 1);
  CHECK_EQUAL(segment.blocks_in_use(), segment.blocks_of_chunks());
  CHECK(segment.control().used_bytes.load() >= used);
  CHECK(reader.read() == counted(0, 62));
}

TEST(a_directory_that_contradicts_itself_is_corrupt_for_everybody) {
  const auto break_at = [](auto damage) {
    EventsSegment segment({});
    EventsAttachment attached(segment);
    EventsAttachment other(segment);
    put_each(attached, 0, 30);
    die_inside(segment, [&](EventsAttachment&) { damage(segment); });
    for (EventsAttachment* each : {&attached, &other, &attached})
      CHECK_EQUAL(each->queue().enter(each->line(), 0), Entered::corrupt);
  };
  break_at([](EventsSegment& segment) { segment.map().chunk(1).first_position = 5; });
  break_at([](EventsSegment& segment) { segment.map().chunk(2).items = 0; });
  break_at([](EventsSegment& segment) { segment.map().chunk(2).items = 3; });
  break_at([](EventsSegment& segment) { segment.map().chunk(0).block = 1 << 20; });
  break_at([](EventsSegment& segment) { segment.map().chunk(1).block = segment.map().chunk(0).block.load(); });
  break_at([](EventsSegment& segment) { segment.map().chunk(1).end_position = 4; });
  break_at([](EventsSegment& segment) { segment.control().chunks_made = 1000; });
  break_at([](EventsSegment& segment) { segment.control().head_chunk = 1000; });
  break_at([](EventsSegment& segment) { segment.control().end = 1000; });
}

TEST(a_roll_back_keeps_what_was_synced) {
  for (const std::uint64_t synced : {0, 1, 4, 5, 16, 29, 30}) {
    EventsSegment segment({});
    EventsAttachment attached(segment);
    EventsReader keeper(attached, 0);
    EventsReader reader(attached, 0, "durable");
    put_each(attached, 0, 30);
    CHECK(reader.read() == counted(0, 30));
    CHECK(reader.commit());
    {
      const Inside inside(attached);
      CHECK_EQUAL(attached.log().repair().roll_back_to(synced), synced);
      CHECK(attached.log().repair().after_kill(attached.queue().backing()));
    }
    CHECK_EQUAL(segment.end().position(), synced);
    CHECK_EQUAL(reader.place(), synced);
    put_each(attached, 100, 20);
    Numbers expected = counted(0, synced);
    for (const std::uint64_t number : counted(100, 20)) expected.push_back(number);
    CHECK(keeper.read() == expected);
    CHECK_EQUAL(segment.blocks_in_use(), segment.blocks_of_chunks());
  }
}

TEST(a_roll_back_does_not_trust_lines_that_never_reached_the_disk) {
  for (const bool was_used : {false, true}) {
    EventsSegment segment({});
    EventsAttachment attached(segment);
    put_each(attached, 0, 30);
    for (const std::uint64_t lost : {3, 4}) {  // as they were: never used, or another chunk's a lap ago
      ChunkLine& line = segment.map().chunk(lost);
      line.first_position = was_used ? 2 : 0;
      line.end_position = was_used ? 3 : 0;
      if (!was_used) line.items = 0;
    }
    const Inside inside(attached);
    CHECK_EQUAL(attached.log().repair().roll_back_to(10), 10u);
    CHECK(attached.log().repair().after_kill(attached.queue().backing()));
    CHECK_EQUAL(segment.end().position(), 10u);
    CHECK_EQUAL(segment.kept(), 3u);
  }
}

}  // namespace queueduct::testing
