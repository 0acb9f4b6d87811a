// Many writers and readers at once, on two mappings of one file in one process, so that a sanitizer sees both sides.
// Allowed outcome: every reader sees every item, whole, and each writer's in order; memory is used again all the time.
//
// Left out under ThreadSanitizer: queues that drop their slowest reader, and reads of who is not registered. Both copy
// bytes that a writer may be overwriting, and throw the copy away if it did (F1, F2): a race by design.
#include "stress.hpp"

#include <memory>
#include <thread>

#include "support/check.hpp"

namespace queueduct::testing {

struct EventsLoad {
  EventsSettings settings;
  std::uint32_t writers = 4;
  std::uint32_t readers = 8;
  std::uint32_t items = 4000;  // of each writer
  bool some_die = false;       // with the lock, as others see it
  bool some_come_and_go = false;
  bool some_look = false;  // without being registered
};

// They die before they touch a chunk: after a real kill the kernel orders the victim's accesses before its lock is
// gone, but ThreadSanitizer cannot know that of a thread that only pretends.
static void die_with_the_lock(const EventsSegment& segment, const std::atomic<bool>& over,
                              std::atomic<bool>& has_begun) {
  while (!over.load()) {
    EventsAttachment doomed(segment);
    while (doomed.queue().enter(doomed.line(), 1'000'000'000) != Entered::yes) {
    }
    doomed.die();
    has_begun.store(true);
    std::this_thread::yield();
  }
}

static void come_and_go(const EventsSegment& segment, const std::atomic<bool>& over, EventsTally& tally) {
  EventsAttachment attached(segment);
  while (!over.load()) {
    EventsReader reader(attached);
    Numbers numbers;
    const ReadResult found = reader.read(numbers);
    if (found == ReadResult::corrupt) tally.failures.fetch_add(1);
    for (const std::uint64_t number : numbers) tally.torn.fetch_add(number == torn);
    reader.unsubscribe();
  }
}

static void look(const EventsSegment& segment, const std::atomic<bool>& over, EventsTally& tally) {
  const EventsMap& map = segment.map();
  while (!over.load()) {
    const std::uint64_t end = segment.end().position();
    for (std::uint64_t at = earliest_position(map); at < end;) {
      Run run;
      Numbers numbers;
      if (run_at(map, at, end, 20, run) != ReadResult::items) break;
      read_run(map, run, numbers);
      if (!is_still_kept(map, run.chunk.number)) break;
      for (const std::uint64_t number : numbers) tally.torn.fetch_add(number == torn);
      at += run.items;
    }
    std::this_thread::yield();
  }
}

static void stress(const EventsLoad& load) {
  EventsSegment segment(load.settings);
  EventsAttachment here(segment);
  EventsAttachment there(segment);
  EventsTally tally;
  std::atomic<bool> over{false};
  std::vector<std::unique_ptr<StressReader>> readers;
  std::vector<std::thread> reading;
  std::vector<std::thread> writing;
  std::vector<std::thread> others;
  for (std::uint32_t i = 0; i < load.readers; ++i) {
    const std::string name = i % 3 == 0 ? "durable" + std::to_string(i) : "";
    readers.push_back(std::make_unique<StressReader>(i % 2 == 0 ? here : there, name, load.writers, tally));
  }
  std::atomic<bool> has_begun{!load.some_die};
  if (load.some_die) others.emplace_back([&] { die_with_the_lock(segment, over, has_begun); });
  while (!has_begun.load()) std::this_thread::yield();  // the first has died before the others are done
  for (const auto& reader : readers) reading.emplace_back([&] { reader->run(); });
  for (std::uint32_t i = 0; i < load.writers; ++i)
    writing.emplace_back([&, i] { EventsWriter(i % 2 == 0 ? here : there, i, load.items, tally).run(); });
  if (load.some_come_and_go) others.emplace_back([&] { come_and_go(segment, over, tally); });
  if (load.some_look) others.emplace_back([&] { look(segment, over, tally); });
  for (std::thread& thread : writing) thread.join();
  over.store(true);
  for (std::thread& thread : others) thread.join();
  {
    const Inside inside(here);
    here.log().shut_down();
  }
  here.queue().items().wake_all();
  for (std::thread& thread : reading) thread.join();

  CHECK_EQUAL(tally.failures.load(), 0u);
  CHECK_EQUAL(tally.torn.load(), 0u);
  CHECK_EQUAL(tally.missing.load(), 0u);
  const std::uint64_t all = std::uint64_t{load.writers} * load.items;
  CHECK_EQUAL(segment.end().position(), all);
  if (!load.settings.may_drop) {
    for (const auto& reader : readers) CHECK_EQUAL(reader->seen(), all);
    CHECK_EQUAL(tally.lost.load(), 0u);
  }
  CHECK(segment.control().used_bytes.load() <= load.settings.max_bytes);
  CHECK(segment.control().chunks_made.load() > 2 * load.settings.chunk_lines);  // lines were used again
  CHECK_EQUAL(segment.blocks_in_use(), segment.blocks_of_chunks());
  if (load.some_die) CHECK(segment.control().repairs.load() > 0);
}

constexpr EventsSettings records{.max_bytes = 1 << 14, .block_bytes = 4096, .blocks = 16, .chunk_lines = 16,
                                 .participants = 32, .readers = 16};
constexpr EventsSettings bytes{.max_bytes = 1 << 16, .block_bytes = 4096, .blocks = 64, .chunk_lines = 16,
                               .participants = 32, .readers = 16, .varies = true};

TEST(every_reader_sees_every_record) { stress({.settings = records, .items = 16000}); }
TEST(every_reader_sees_all_bytes) { stress({.settings = bytes, .items = 8000}); }
TEST(one_writer_and_one_reader_that_wait_for_each_other) {
  stress({.settings = records, .writers = 1, .readers = 1, .items = 40000});
}
TEST(every_reader_sees_everything_while_writers_die_with_the_lock) {
  stress({.settings = bytes, .some_die = true});
}
TEST(every_reader_sees_everything_while_others_come_and_go) {
  stress({.settings = bytes, .readers = 4, .some_come_and_go = true});
}
#ifndef __SANITIZE_THREAD__
static EventsSettings dropping(EventsSettings settings) {
  settings.may_drop = true;
  return settings;
}

TEST(who_looks_without_being_registered_sees_nothing_torn) {
  stress({.settings = bytes, .readers = 4, .some_look = true});
}
TEST(who_is_dropped_sees_nothing_torn_and_nothing_twice) {
  stress({.settings = dropping(bytes), .items = 8000, .some_come_and_go = true, .some_look = true});
  stress({.settings = dropping(records), .items = 8000, .some_die = true});
}
#endif

}  // namespace queueduct::testing

int main(int argc, char** argv) { return queueduct::testing::run_tests(argc, argv); }
