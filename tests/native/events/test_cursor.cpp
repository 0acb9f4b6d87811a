// Readers: sessions, jumps, drops, and reads by position of who is not registered.
#include "support/check.hpp"
#include "support/events_for_tests.hpp"

namespace queueduct::testing {

static void clear(EventsAttachment& attached) {
  const Inside inside(attached);
  attached.log().keep_last(attached.queue().backing(), 0);
}

static std::uint64_t reclaim(EventsAttachment& attached) {
  const Inside inside(attached);
  return attached.log().reclaim(attached.queue().backing());
}

TEST(a_session_ends_where_the_end_was_when_it_began) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 3);
  std::uint64_t end = 0;
  CHECK_EQUAL(begin_session(segment.map(), reader.line(), reader.cursor(), end), ReadResult::items);
  put_each(attached, 3, 3);
  CHECK_EQUAL(end, 3u);
  Run run;
  CHECK_EQUAL(next_run(segment.map(), reader.line(), true, reader.cursor(), end, 100, run), ReadResult::items);
  CHECK_EQUAL(run.items, 3u);
}

TEST(a_reader_starts_where_it_subscribed) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  put_each(attached, 0, 30);
  for (const std::uint64_t start : {0, 3, 4, 17, 29, 30}) {
    EventsReader reader(attached, start);
    CHECK_EQUAL(reader.outcome(), Subscribed::yes);
    CHECK(reader.read() == counted(start, 30 - start));
    reader.unsubscribe();
  }
  CHECK_EQUAL(EventsReader(attached, 31).outcome(), Subscribed::beyond);
}

TEST(a_reader_left_behind_by_clear_starts_at_the_new_position) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader behind(attached);
  EventsReader ahead(attached);
  put_each(attached, 0, 30);
  CHECK(ahead.read() == counted(0, 30));
  CHECK(behind.read(2) == counted(0, 2));
  clear(attached);
  put_each(attached, 30, 5);
  CHECK(behind.read() == counted(30, 5));
  CHECK(ahead.read() == counted(30, 5));
}

TEST(a_reader_that_jumped_holds_nothing_back) {
  for (const char* name : {"", "durable"}) {
    EventsSegment segment({.max_bytes = 8 * 64});
    EventsAttachment attached(segment);
    EventsReader reader(attached, 0, name);
    CHECK_EQUAL(put_each(attached, 0, 100), 32u);
    clear(attached);
    CHECK(reader.read().empty());
    CHECK_EQUAL(put_each(attached, 32, 8), 8u);
    CHECK(reader.read() == counted(32, 8));
  }
}

TEST(a_clear_later_than_the_session_is_left_to_the_next_one) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 10);
  clear(attached);
  const EventsWord before = segment.end();
  put_each(attached, 10, 10);
  clear(attached);
  const EventsWord after = segment.end();
  segment.control().end.store(before.word);  // what the reader loads, if it is that slow
  Numbers numbers;
  CHECK_EQUAL(reader.read(numbers), ReadResult::nothing);
  segment.control().end.store(after.word);
  CHECK_EQUAL(reader.read(numbers), ReadResult::nothing);
  CHECK(numbers.empty());
  put_each(attached, 20, 1);
  CHECK(reader.read() == counted(20, 1));
}

TEST(a_reader_at_rest_lets_even_the_chunk_go_that_it_stopped_in) {
  EventsSegment segment({.max_bytes = 40'000, .varies = true});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  for (std::uint64_t i = 0; i < 5; ++i) {
    CHECK_EQUAL(put_each(attached, i, 1, 30'000), 1u);
    std::uint64_t put = 0;
    CHECK_EQUAL(put_events(attached, i + 1, 1, put, 30'000), Appended::full);
    CHECK(reader.read() == counted(i, 1));
    CHECK_EQUAL(put_events(attached, i + 1, 1, put, 30'000), Appended::full);  // it may still look at it
    CHECK(move_to(segment.map(), reader.line(), reader.cursor().position));
  }
  CHECK_EQUAL(put_each(attached, 5, 3), 3u);
  CHECK(reader.read() == counted(5, 3));
}

TEST(a_dropped_reader_is_told_in_its_middle) {
  EventsSegment segment({.max_bytes = 8 * 64, .may_drop = true});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 32);
  std::uint64_t end = 0;
  Run run;
  CHECK_EQUAL(begin_session(segment.map(), reader.line(), reader.cursor(), end), ReadResult::items);
  CHECK_EQUAL(next_run(segment.map(), reader.line(), true, reader.cursor(), end, 100, run), ReadResult::items);
  CHECK(still_holds(segment.map(), reader.line()));
  put_each(attached, 32, 1);
  CHECK(!still_holds(segment.map(), reader.line()));
  reader.cursor().position += run.items;
  CHECK_EQUAL(next_run(segment.map(), reader.line(), true, reader.cursor(), end, 100, run), ReadResult::lost);
  CHECK(!move_to(segment.map(), reader.line(), 8));
  CHECK_EQUAL(begin_session(segment.map(), reader.line(), reader.cursor(), end), ReadResult::lost);
}

TEST(who_is_not_registered_reads_any_range_that_is_kept) {
  EventsSegment segment({.varies = true});
  EventsAttachment attached(segment);
  EventsReader keeper(attached);
  put_each(attached, 0, 50);
  for (std::uint64_t from = 0; from < 50; ++from) {
    Numbers numbers;
    for (std::uint64_t at = from; at < 50;) {
      Run run;
      if (run_at(segment.map(), at, 50, 7, run) != ReadResult::items) break;
      read_run(segment.map(), run, numbers);
      CHECK(is_still_kept(segment.map(), run.chunk.number));
      at += run.items;
    }
    CHECK(numbers == counted(from, 50 - from));
  }
}

TEST(who_is_not_registered_learns_that_a_chunk_was_freed_under_it) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  EventsReader reader(attached);
  put_each(attached, 0, 30);
  Run run;
  CHECK_EQUAL(run_at(segment.map(), 2, 30, 100, run), ReadResult::items);
  (void)reader.read(10);
  CHECK(reclaim(attached) > 0);
  CHECK(!is_still_kept(segment.map(), run.chunk.number));
  CHECK_EQUAL(run_at(segment.map(), 2, 30, 100, run), ReadResult::lost);
}

TEST(a_durable_reader_is_found_again_where_it_committed) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  put_each(attached, 0, 30);
  {
    EventsAttachment gone(segment);
    EventsReader reader(gone, 0, "spark");
    CHECK(reader.read(10) == counted(0, 10));
    CHECK(reader.commit());
    CHECK(reader.read(10) == counted(10, 10));
    CHECK_EQUAL(EventsReader(attached, 0, "spark").outcome(), Subscribed::busy);
  }
  EventsReader again(attached, 30, "spark");
  CHECK_EQUAL(again.outcome(), Subscribed::yes);
  CHECK(again.read() == counted(10, 20));
  CHECK_EQUAL(EventsReader(attached, 30, "spar").cursor().position, 30u);  // a name of its own
}

TEST(an_ephemeral_reader_goes_with_its_process_and_a_durable_one_stays) {
  EventsSegment segment({});
  EventsAttachment attached(segment);
  put_each(attached, 0, 30);
  for (const char* name : {"durable", ""}) {
    EventsAttachment gone(segment);
    EventsReader reader(gone, 0, name);
  }
  const Inside inside(attached);
  CHECK(attached.queue().abandon_dead_readers(true));
  std::uint32_t slowest = 0;
  CHECK_EQUAL(attached.log().readers().least_place(30, slowest), 0u);
  CHECK_EQUAL(attached.log().readers().kind(slowest), ReaderKind::durable);
  CHECK(attached.queue().forget_reader(slowest));
  CHECK_EQUAL(attached.log().readers().least_place(30, slowest), 30u);
}

TEST(a_durable_reader_that_nobody_has_holds_nothing_back_that_was_cleared) {
  EventsSegment segment({.max_bytes = 8 * 64});
  EventsAttachment attached(segment);
  {
    EventsAttachment gone(segment);
    EventsReader reader(gone, 0, "durable");
  }
  CHECK_EQUAL(put_each(attached, 0, 100), 32u);
  clear(attached);
  {
    const Inside inside(attached);
    CHECK(attached.queue().abandon_dead_readers(true));
  }
  CHECK_EQUAL(put_each(attached, 32, 8), 8u);
  EventsReader again(attached, 0, "durable");
  CHECK(again.read() == counted(32, 8));
}

TEST(lines_of_readers_are_used_again) {
  EventsSegment segment({.readers = 2});
  EventsAttachment attached(segment);
  for (int round = 0; round < 5; ++round) {
    EventsReader one(attached);
    EventsReader two(attached, 0, "two");
    CHECK_EQUAL(EventsReader(attached).outcome(), Subscribed::table_full);
    one.unsubscribe();
    two.unsubscribe();
  }
}

TEST(a_reader_follows_through_a_full_directory) {
  EventsSegment segment({.chunk_lines = 4, .varies = true});
  EventsAttachment attached(segment);
  EventsReader reader(attached, 0, "durable");
  std::uint64_t number = 0;
  for (int round = 0; round < 40; ++round) {
    const std::uint64_t put = put_each(attached, number, 1000);
    CHECK(put > 0);
    CHECK(reader.read() == counted(number, put));
    CHECK(reader.commit());
    number += put;
  }
}

}  // namespace queueduct::testing
