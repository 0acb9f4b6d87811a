// Writers that lap the readers as fast as they can: nothing torn, nothing twice, each writer's order kept, every loss
// counted.
#include <algorithm>
#include <thread>

#include "support/check.hpp"
#include "support/overwriting_segment.hpp"

namespace queueduct::testing {

struct Race {
  std::uint64_t capacity;
  std::uint64_t words;
  std::uint32_t writers;
  std::uint32_t readers;
  std::uint64_t each;
  bool may_overwrite = true;
  std::uint32_t holders = 0;  // of leases, which they sometimes give back
};

class Racers {
 public:
  explicit Racers(const Race& race)
      : race_(race),
        segment_({.capacity = race.capacity, .words = race.words, .participants = 16}),
        seen_(race.writers * race.each) {}

  void run() {
    std::vector<std::thread> writers;
    std::vector<std::thread> readers;
    for (std::uint32_t i = 0; i < race_.readers; ++i) readers.emplace_back([this] { read(); });
    for (std::uint32_t i = 0; i < race_.holders; ++i) readers.emplace_back([this] { hold(); });
    for (std::uint32_t i = 0; i < race_.writers; ++i) writers.emplace_back([this, i] { write(i); });
    for (std::thread& each : writers) each.join();
    OverwritingAttachment last(segment_);
    last.queue().shut_down(false);
    for (std::thread& each : readers) each.join();
    if (race_.holders != 0) hold();  // what somebody gave back after the others had seen the end
    const OverwritingRing::Fates fates = last.ring().fates();
    const auto got =
        static_cast<std::uint64_t>(std::count_if(seen_.begin(), seen_.end(), [](auto& n) { return n.load() == 1; }));
    CHECK_EQUAL(failures_.load(), 0u);
    CHECK_EQUAL(torn_.load(), 0u);
    CHECK_EQUAL(disordered_.load(), 0u);
    CHECK_EQUAL(doubled_.load(), 0u);
    CHECK_EQUAL(fates.puts, race_.writers * race_.each);
    CHECK_EQUAL(fates.delivered, got);
    CHECK_EQUAL(fates.torn + fates.lost_with_consumer, 0u);
    CHECK_EQUAL(fates.puts, fates.delivered + fates.overwritten + last.ring().state().length);
    CHECK_EQUAL(last.ring().state().length, 0u);
    if (!race_.may_overwrite) CHECK_EQUAL(fates.overwritten, 0u);
  }

 private:
  void write(std::uint32_t writer) {
    OverwritingAttachment attached(segment_);
    for (std::uint64_t i = 0; i < race_.each;) {
      const Claim claim = attached.put(writer * race_.each + i + 1, race_.may_overwrite, 10'000'000);
      if (claim == Claim::done) {
        ++i;
      } else if (claim == Claim::busy) {
        attached.queue().wait_for_copy(park_limit_ns);
      } else if (claim == Claim::full) {
        attached.queue().wait_for_room(park_limit_ns);
      } else if (claim != Claim::locked) {
        failures_.fetch_add(1);
        return;
      }
    }
  }

  void read() {
    OverwritingAttachment attached(segment_);
    std::vector<std::uint64_t> last(race_.writers);
    for (;;) {
      std::uint64_t number = 0;
      const Claim claim = attached.get(number, 10'000'000);
      if (claim == Claim::closed) return;
      if (claim == Claim::corrupt) return void(failures_.fetch_add(1));
      if (claim != Claim::done) {
        attached.queue().wait_for_items(park_limit_ns);
        continue;
      }
      if (number == 0 || number > seen_.size()) {
        torn_.fetch_add(1);
        continue;
      }
      if (seen_[number - 1].fetch_add(1) != 0) doubled_.fetch_add(1);
      std::uint64_t& before = last[(number - 1) / race_.each];
      if (number <= before) disordered_.fetch_add(1);
      before = number;
    }
  }

  void hold() {
    constexpr std::uint64_t most = 3;
    OverwritingAttachment attached(segment_);
    std::vector<std::uint64_t> last(race_.writers);
    for (int turn = 0;; ++turn) {
      OverwritingLease lease(attached.queue());
      if (lease.join() != ParticipantTable::Joined::yes) return void(failures_.fetch_add(1));
      LeasedMessage kept[most];
      std::uint64_t count = lease.take_over(kept, most);
      const Claim claim = count == 0 ? lease.try_claim(kept, most, 10'000'000, count) : Claim::done;
      if (count == 0) {
        if (claim == Claim::closed) return;
        if (claim == Claim::corrupt) return void(failures_.fetch_add(1));
        if (claim == Claim::full)
          attached.queue().wait_for_cell(park_limit_ns);
        else
          attached.queue().wait_for_items(park_limit_ns);
        continue;
      }
      if (turn % 5 == 0 && attached.queue().control().closed.load() == 0) continue;  // gives it back
      for (std::uint64_t i = 0; i < count; ++i) note(attached, kept[i], lease.is_redelivered() ? nullptr : last.data());
      lease.release(kept, count);
    }
  }

  void note(OverwritingAttachment& attached, const LeasedMessage& kept, std::uint64_t* last) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(attached.queue().leased_messages().data(kept.cell));
    const std::uint64_t number = words[0];
    bool is_torn = number == 0 || number > seen_.size();
    for (std::uint64_t i = 0; i < race_.words; ++i) is_torn = is_torn || words[i] != number;
    if (is_torn) return void(torn_.fetch_add(1));
    if (seen_[number - 1].fetch_add(1) != 0) doubled_.fetch_add(1);
    if (last == nullptr) return;
    std::uint64_t& before = last[(number - 1) / race_.each];
    if (number <= before) disordered_.fetch_add(1);
    before = number;
  }

  Race race_;
  OverwritingSegment segment_;
  std::vector<std::atomic<std::uint8_t>> seen_;
  std::atomic<std::uint64_t> torn_{0}, doubled_{0}, disordered_{0}, failures_{0};
};

TEST(four_writers_lap_two_readers_in_a_small_queue) { Racers({5, 8, 4, 2, 150'000}).run(); }
TEST(four_writers_lap_four_readers_in_a_queue_of_one_message) { Racers({1, 8, 4, 4, 60'000}).run(); }
TEST(long_messages_are_overwritten_while_they_are_read_and_never_torn) { Racers({2, 512, 2, 2, 10'000}).run(); }
TEST(what_is_on_lease_is_never_torn_lost_or_doubled_though_writers_lap_it) {
  Racers({.capacity = 5, .words = 8, .writers = 4, .readers = 0, .each = 50'000, .holders = 3}).run();
}
TEST(nothing_is_lost_where_nobody_overwrites) { Racers({3, 8, 2, 2, 20'000, false}).run(); }

}  // namespace queueduct::testing

int main(int argc, char** argv) { return queueduct::testing::run_tests(argc, argv); }
