// What the stress of events needs: writers that stamp what they put, readers that must see every stamp in order.
#pragma once

#include <atomic>
#include <random>
#include <vector>

#include "support/events_for_tests.hpp"

namespace queueduct::testing {

// A stamp is the writer in the high half of an event's number, its count in the low one.
[[nodiscard]] constexpr std::uint64_t stamp(std::uint32_t writer, std::uint32_t count) noexcept {
  return std::uint64_t{writer} << 32 | count;
}

struct EventsTally {
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> missing{0};  // a count that does not follow the one before
  std::atomic<std::uint64_t> failures{0};  // outcomes that cannot be
  std::atomic<std::uint64_t> lost{0};      // sessions of readers that were dropped
};

// Lengths mostly short, long now and then, very long seldom: a fixed function of the stamp.
[[nodiscard]] inline std::uint64_t length_of_event(std::uint64_t number, const EventsMap& map) {
  if (!map.varies) return map.item_bytes;
  const std::uint64_t choice = (number >> 32) * 5 + number % 997;
  return choice == 700 ? 3 * map.block_bytes : choice % 16 == 0 ? 700 : 8 + choice % 23;
}

class EventsWriter {
 public:
  EventsWriter(EventsAttachment& attached, std::uint32_t me, std::uint32_t items, EventsTally& tally)
      : attached_(attached), me_(me), items_(items), tally_(tally), random_(me + 1) {}

  void run() {
    for (std::uint32_t next = 0; next < items_;) {
      const std::uint32_t batch = random_() % 4 == 0 ? 1 + static_cast<std::uint32_t>(random_()) % 60 : 1;
      const std::uint64_t put = put_some(next, batch < items_ - next ? batch : items_ - next);
      if (put == 0) return void(tally_.failures.fetch_add(1));
      next += static_cast<std::uint32_t>(put);
    }
  }

 private:
  // Waits until at least one is in. 0: it failed.
  std::uint64_t put_some(std::uint32_t first, std::uint32_t count) {
    make(first, count);
    EventsQueue& queue = attached_.queue();
    std::uint64_t put = 0;
    Appended outcome = try_put(count, put);
    while (outcome == Appended::full) {
      const std::uint32_t ticket = queue.room().announce();
      outcome = try_put(count, put);  // W1
      if (outcome == Appended::full) queue.room().park_for_all(ticket, park_limit_ns);
    }
    queue.items().notify();
    return outcome == Appended::done ? put : 0;
  }

  void make(std::uint32_t first, std::uint32_t count) {
    items_made_.clear();
    views_.clear();
    flat_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t number = stamp(me_, first + i);
      items_made_.push_back(make_event(number, length_of_event(number, attached_.map())));
      if (!attached_.map().varies) flat_.insert(flat_.end(), items_made_.back().begin(), items_made_.back().end());
    }
    for (const Bytes& item : items_made_) views_.push_back({item.data(), item.size()});
  }

  Appended try_put(std::uint32_t count, std::uint64_t& put) {
    const Inside inside(attached_);
    return attached_.map().varies ? attached_.queue().append_bytes(views_.data(), count, put)
                                  : attached_.queue().append_records(flat_.data(), count, put);
  }

  EventsAttachment& attached_;
  std::uint32_t me_;
  std::uint32_t items_;
  EventsTally& tally_;
  std::mt19937 random_;
  std::vector<Bytes> items_made_;
  std::vector<Buffer> views_;
  Bytes flat_;
};

// What one reader sees: every writer's counts, each one more than the last. After a loss they may leap, but not fall.
class Witness {
 public:
  Witness(EventsTally& tally, const EventsMap& map, std::uint32_t writers) : tally_(tally), map_(map), next_(writers) {}

  void see(std::uint64_t number, std::uint64_t length, bool may_leap) {
    const std::uint64_t writer = number >> 32;
    if (number == torn || writer >= next_.size() || length != length_of_event(number, map_))
      return void(tally_.torn.fetch_add(1));
    const auto count = static_cast<std::uint32_t>(number);
    if (count < next_[writer] || (count != next_[writer] && !may_leap)) tally_.missing.fetch_add(1);
    next_[writer] = count + 1;
    ++seen_;
  }
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }

 private:
  EventsTally& tally_;
  const EventsMap& map_;
  std::vector<std::uint32_t> next_;
  std::uint64_t seen_ = 0;
};

inline void copy_run(const EventsMap& map, const Run& run, std::vector<Bytes>& copied) {
  copied.clear();
  for (std::uint64_t i = run.at; i < run.at + run.items; ++i) {
    std::uint32_t begin = static_cast<std::uint32_t>(i * map.item_bytes);
    std::uint32_t end = static_cast<std::uint32_t>(begin + map.item_bytes);
    if (map.varies && !item_bounds(map, run.chunk, i, begin, end)) begin = end = 0;
    const auto* from = reinterpret_cast<const unsigned char*>(items_of(map, run.chunk));
    copied.emplace_back(from + begin, from + end);
  }
}

// Reads until the queue has ended. Without a name its place follows it; with one it commits now and then.
class StressReader {
 public:
  StressReader(EventsAttachment& attached, const std::string& name, std::uint32_t writers, EventsTally& tally)
      : attached_(attached), reader_(attached, 0, name), follows_(name.empty()), tally_(tally),
        witness_(tally, attached.map(), writers), random_(static_cast<std::uint32_t>(reader_.number())) {}

  void run() {
    const EventsMap& map = attached_.map();
    for (;;) {
      std::uint64_t end = 0;
      ReadResult found = begin_session(map, reader_.line(), reader_.cursor(), end);
      while (found == ReadResult::items && reader_.cursor().position < end) found = read_some(end);
      if (found == ReadResult::ended) return;
      if (found == ReadResult::lost) {
        rejoin();
      } else if (found == ReadResult::nothing) {
        if (move_to(map, reader_.line(), reader_.cursor().position))  // rest, or a commit
          attached_.queue().wait_for_items(reader_.cursor().position, park_limit_ns);
      } else if (found == ReadResult::corrupt) {
        return void(tally_.failures.fetch_add(1));
      }
    }
  }
  [[nodiscard]] std::uint64_t seen() const noexcept { return witness_.seen(); }

 private:
  ReadResult read_some(std::uint64_t end) {
    const EventsMap& map = attached_.map();
    Run run;
    const ReadResult found = next_run(map, reader_.line(), follows_, reader_.cursor(), end, 1 + random_() % 40, run);
    if (found != ReadResult::items) return found;
    copy_run(map, run, copied_);
    if (!still_holds(map, reader_.line())) return ReadResult::lost;
    for (const Bytes& each : copied_) {
      witness_.see(number_of(reinterpret_cast<const std::byte*>(each.data()), each.size()), each.size(), may_leap_);
    }
    reader_.cursor().position += run.items;
    if (!follows_ && random_() % 4 == 0 && !move_to(map, reader_.line(), reader_.cursor().position))
      return ReadResult::lost;
    return ReadResult::items;
  }

  void rejoin() {
    const Inside inside(attached_);
    attached_.queue().rejoin(reader_.number(), reader_.cursor());
    tally_.lost.fetch_add(1);
    may_leap_ = true;
  }

  EventsAttachment& attached_;
  EventsReader reader_;
  bool follows_;
  EventsTally& tally_;
  Witness witness_;
  std::mt19937 random_;
  std::vector<Bytes> copied_;
  bool may_leap_ = false;
};

}  // namespace queueduct::testing
