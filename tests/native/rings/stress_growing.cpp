// Eight at full speed, driven up and down through eight levels: what is put comes out once, each producer's items in
// their order to each consumer, and the read level never passes the written one, at every read.
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/growing_steps.hpp"

namespace queueduct::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t items_each = 40'000;
#else
constexpr std::uint64_t items_each = 400'000;
#endif

// Tides: fill up to a mark, then let everything pass one by one until the queue has gone back to level 0. The highest
// mark comes first, when nothing has been got yet: it is reached however the threads are scheduled.
class Tides {
 public:
  Tides(const GrowingSegment& segment, std::uint64_t highest)
      : levels_(segment.levels()), highest_(highest), mark_(highest) {}

  [[nodiscard]] bool may_put() {
    if (is_ebb_.load(std::memory_order_relaxed)) return count_items(levels_, false) < 4;
    if (count_items(levels_, false) >= mark_.load(std::memory_order_relaxed)) turn(false);
    return true;
  }
  [[nodiscard]] bool may_get() {
    if (is_ebb_.load(std::memory_order_relaxed)) {
      if (levels_.level_range().written_level() == 0) turn(true);
      return true;
    }
    return is_over.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t tides() const noexcept { return turns_.load() / 2; }
  [[nodiscard]] std::uint32_t highest_level() const noexcept { return highest_level_.load(); }

  std::atomic<bool> is_over{false};  // nothing more is put

 private:
  // One of those who saw the tide's end turns it; `was_ebb` is what they saw.
  void turn(bool was_ebb) {
    const std::uint32_t level = levels_.level_range().written_level();
    if (!is_ebb_.compare_exchange_strong(was_ebb, !was_ebb)) return;
    turns_.fetch_add(1, std::memory_order_relaxed);
    if (was_ebb) {
      const std::uint64_t mark = mark_.load() / 4;
      mark_.store(mark < 20 ? highest_ : mark);
    } else if (level > highest_level_.load()) {
      highest_level_.store(level);
    }
  }
  Levels levels_;
  std::uint64_t highest_;
  std::atomic<bool> is_ebb_{false};
  std::atomic<std::uint64_t> mark_;
  std::atomic<std::uint32_t> highest_level_{0};
  std::atomic<std::uint64_t> turns_{0};
};

struct Tally {
  std::vector<std::uint64_t> last;
  std::uint64_t count = 0;
  std::uint64_t disordered = 0;
};

// Reads the level range as often as it can.
class Watch {
 public:
  explicit Watch(const GrowingSegment& segment)
      : level_range_(segment.control().level_range), thread_([this] { watch(); }) {}
  void end() {
    is_over_.store(true);
    thread_.join();
  }
  std::uint64_t unsound = 0;    // reads that found the read level beyond the written one
  std::uint64_t backwards = 0;  // and those that found a move undone, or a level skipped

 private:
  void watch() {
    LevelRange last{level_range_.load()};
    for (std::uint64_t reads = 0; !is_over_.load(std::memory_order_relaxed); ++reads) {
      if (reads % 64 == 0) std::this_thread::yield();
      const LevelRange now{level_range_.load()};
      unsound += now.read_level() > now.written_level();
      backwards += now.word >> 16 < last.word >> 16;
      const bool is_next_move = now.word >> 16 == (last.word >> 16) + 1;
      backwards += is_next_move && now.written_level() > last.written_level() + 1;
      last = now;
    }
  }
  const std::atomic<std::uint64_t>& level_range_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

static void produce(GrowingAttachment& attached, Tides& tides, std::uint64_t number) {
  unsigned char item[200] = {};
  for (std::uint64_t i = 0; i < items_each; ++i) {
    while (!tides.may_put()) std::this_thread::yield();
    const std::uint64_t value = number << 32 | i;
    std::memcpy(item, &value, 8);
    const std::uint64_t bytes = i % 97 == 0 ? 150 : 8;  // now and then a long one, longer than level 0 in all
    for (;;) {
      const Outcome outcome = attached.put(item, bytes);
      if (outcome == Outcome::done) break;
      if (outcome != Outcome::full && outcome != Outcome::busy) std::abort();
      std::this_thread::yield();
    }
  }
}

static void consume(GrowingAttachment& attached, Tides& tides, Tally& tally) {
  unsigned char item[200];
  std::uint64_t bytes = 0;
  for (;;) {
    if (!tides.may_get()) {
      std::this_thread::yield();
      continue;
    }
    const bool is_over = tides.is_over.load();
    const Outcome outcome = attached.get(item, sizeof item, bytes);
    if (outcome == Outcome::done) {
      std::uint64_t value = 0;
      std::memcpy(&value, item, 8);
      std::uint64_t& last = tally.last[value >> 32];
      const std::uint64_t i = value & 0xffff'ffff;
      tally.disordered += i + 1 <= last || bytes != (i % 97 == 0 ? 150u : 8u);
      last = i + 1;
      ++tally.count;
    } else if (outcome == Outcome::empty) {
      if (is_over) return;
      (void)attached.flow().reclaim_some();
      std::this_thread::yield();
    } else if (outcome == Outcome::corrupt) {
      std::abort();
    }
  }
}

TEST(every_item_comes_out_once_and_in_order_through_all_levels) {
  constexpr std::uint64_t sides = 4;
  GrowingSizes sizes{.first_bytes = 128, .steps = 9, .slot_bytes = 16, .participants = 16};
  GrowingSegment segment(sizes);
  Tides tides(segment, 81'920);  // the levels up to the sixth hold 43,690
  Watch watch(segment);
  std::vector<Tally> tallies(sides);
  std::vector<std::unique_ptr<GrowingAttachment>> attached;
  for (std::uint64_t i = 0; i < 2 * sides; ++i) attached.push_back(std::make_unique<GrowingAttachment>(segment));
  std::vector<std::thread> producers;
  std::vector<std::thread> consumers;
  for (std::uint64_t i = 0; i < sides; ++i) {
    tallies[i].last.resize(sides);
    producers.emplace_back([&, i] { produce(*attached[i], tides, i); });
    consumers.emplace_back([&, i] { consume(*attached[sides + i], tides, tallies[i]); });
  }
  for (auto& thread : producers) thread.join();
  tides.is_over.store(true);
  for (auto& thread : consumers) thread.join();
  watch.end();
  std::uint64_t count = 0;
  for (const Tally& tally : tallies) {
    count += tally.count;
    CHECK_EQUAL(tally.disordered, 0u);
  }
  CHECK_EQUAL(watch.unsound, 0u);
  CHECK_EQUAL(watch.backwards, 0u);
  CHECK(tides.highest_level() >= 7);
  CHECK_EQUAL(count, sides * items_each);
  std::printf("tides %llu, grown %llu, shrunk %llu\n", static_cast<unsigned long long>(tides.tides()),
              static_cast<unsigned long long>(segment.control().grown.load()),
              static_cast<unsigned long long>(segment.control().shrunk.load()));
  CHECK(segment.control().shrunk.load() > 0);
  CHECK_EQUAL(bytes_in_unused_levels(segment), 0u);
}

}  // namespace queueduct::testing

int main(int argc, char** argv) { return queueduct::testing::run_tests(argc, argv); }
