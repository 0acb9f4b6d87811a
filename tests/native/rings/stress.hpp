// What the stress tests share: items that say who put them, workers that put and get them in every way there is,
// and a tally that says whether each came exactly once and in its producer's order.
#pragma once

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "support/items_for_tests.hpp"

namespace queueduct::testing {

struct Stamp {
  std::uint32_t producer;
  std::uint32_t number;
};

// The stamp, then bytes that follow from it up to `length`.
inline void write_item(Stamp stamp, std::size_t length, std::vector<unsigned char>& to) {
  to.resize(length);
  std::memcpy(to.data(), &stamp, sizeof stamp);
  for (std::size_t i = sizeof stamp; i < length; ++i)
    to[i] = static_cast<unsigned char>(stamp.producer * 17 + stamp.number * 31 + i * 7);
}

// Lengths of one slot mostly, of several now and then; a fixed function of the stamp, so that it can be checked.
[[nodiscard]] inline std::size_t length_of_item(Stamp stamp, const Shape& shape) {
  if (!shape.varying) return shape.slot_bytes;
  const std::size_t choice = (stamp.producer * 5 + stamp.number * 13) % 16;
  return choice < 12 ? sizeof(Stamp) + choice % 9 : shape.slot_bytes * (choice - 11) + choice - 10;
}

struct Tally {
  Tally(std::uint32_t producers_, std::uint32_t items_)
      : producers(producers_), items(items_), seen(std::size_t{producers_} * items_) {}

  std::uint32_t producers;
  std::uint32_t items;  // of each
  std::vector<std::atomic<std::uint8_t>> seen;
  std::atomic<std::uint64_t> got{0};
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> doubled{0};
  std::atomic<std::uint64_t> disordered{0};
  std::atomic<std::uint64_t> failures{0};  // outcomes that cannot be

  [[nodiscard]] std::uint64_t missing() const {
    return static_cast<std::uint64_t>(
        std::count_if(seen.begin(), seen.end(), [](const auto& times) { return times.load() == 0; }));
  }
};

// One consumer's view: per producer, what it gets from the front must rise.
class Receiver {
 public:
  Receiver(Tally& tally, const Shape& shape) : tally_(tally), shape_(shape), last_(tally.producers, -1) {}

  void receive(const unsigned char* data, std::size_t length, bool in_order) {
    Stamp stamp{};
    if (length < sizeof stamp) return void(tally_.torn.fetch_add(1));
    std::memcpy(&stamp, data, sizeof stamp);
    if (stamp.producer >= tally_.producers || stamp.number >= tally_.items ||
        length_of_item(stamp, shape_) != length)
      return void(tally_.torn.fetch_add(1));
    write_item(stamp, length, expected_);
    if (std::memcmp(expected_.data(), data, length) != 0) return void(tally_.torn.fetch_add(1));
    if (tally_.seen[std::size_t{stamp.producer} * tally_.items + stamp.number].fetch_add(1) != 0)
      tally_.doubled.fetch_add(1);
    if (in_order) {
      if (static_cast<std::int64_t>(stamp.number) <= last_[stamp.producer]) tally_.disordered.fetch_add(1);
      last_[stamp.producer] = stamp.number;
    }
    tally_.got.fetch_add(1);
  }

 private:
  Tally& tally_;
  const Shape& shape_;
  std::vector<std::int64_t> last_;
  std::vector<unsigned char> expected_;
};

// Puts its items in order, alone or in batches, and sleeps when there is no room.
class Producer {
 public:
  Producer(Attachment& attached, const Shape& shape, std::uint32_t me, std::uint32_t items, Tally& tally)
      : attached_(attached), shape_(shape), me_(me), items_(items), tally_(tally), random_(me + 1) {}

  void run() {
    std::uint32_t next = 0;
    while (next < items_) {
      const std::uint32_t batch = 1 + (random_() % 4 == 0 ? static_cast<std::uint32_t>(random_()) % 6 : 0);
      std::uint64_t put = 0;
      const Outcome outcome = try_put(next, std::min(batch, items_ - next), put);
      if (outcome == Outcome::done) {
        next += static_cast<std::uint32_t>(put);
        attached_.queue().after_put(true);
        continue;
      }
      if (outcome != Outcome::full) return void(tally_.failures.fetch_add(1));
      const std::size_t length = length_of_item({me_, next}, shape_);
      attached_.queue().wait_for_room(outcome, attached_.ring().slots_for(length), park_limit_ns);
    }
  }

 private:
  Outcome try_put(std::uint32_t first, std::uint32_t count, std::uint64_t& put) {
    put = 1;
    buffers_.resize(count);
    std::vector<Buffer> views;
    for (std::uint32_t i = 0; i < count; ++i) {
      write_item({me_, first + i}, length_of_item({me_, first + i}, shape_), buffers_[i]);
      views.push_back({buffers_[i].data(), buffers_[i].size()});
    }
    const Participant me = attached_.ledger();
    if (count == 1) return attached_.queue().put_bytes(me, views[0].data, views[0].bytes, run_here);
    if (shape_.varying) return attached_.queue().put_buffers(me, views.data(), count, put, run_here);
    flat_.clear();
    for (const auto& each : buffers_) flat_.insert(flat_.end(), each.begin(), each.end());
    Span span;
    const Outcome outcome = attached_.queue().put_records(me, flat_.data(), count, span, run_here);
    put = span.slots;
    return outcome;
  }

  Attachment& attached_;
  const Shape& shape_;
  std::uint32_t me_;
  std::uint32_t items_;
  Tally& tally_;
  std::mt19937 random_;
  std::vector<std::vector<unsigned char>> buffers_;
  std::vector<unsigned char> flat_;
};

// Gets alone or in batches until the queue has ended, and sleeps when there is nothing.
class Consumer {
 public:
  Consumer(Attachment& attached, const Shape& shape, std::uint32_t seed, Tally& tally)
      : attached_(attached), shape_(shape), tally_(tally), receiver_(tally, shape), random_(seed) {}

  void run() {
    for (;;) {
      Item item;
      item.has_waited = true;  // W4: the chain goes on
      const Outcome outcome = attached_.queue().find(attached_.ledger(), item, run_here);
      if (outcome == Outcome::done) {
        take(item);
        continue;
      }
      if (outcome == Outcome::corrupt) return void(tally_.failures.fetch_add(1));
      if (outcome == Outcome::closed) return;
      attached_.queue().wait_for_items(park_limit_ns);
    }
  }

 private:
  static constexpr std::uint64_t most = 6;

  void take(Item& item) {
    const bool in_order = !item.is_redelivered;
    Target targets[most];
    std::vector<unsigned char> out[most];
    const std::uint64_t limit = random_() % 3 == 0 ? 1 + random_() % most : 1;
    const std::uint64_t count = attached_.queue().widen(attached_.ledger(), item, limit, targets);
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i].resize(targets[i].bytes);
      targets[i].to = out[i].data();
    }
    if (!attached_.queue().take(attached_.ledger(), item, targets, count)) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t length = shape_.varying ? out[i].size() : shape_.slot_bytes;  // records lie in a row
      for (std::size_t at = 0; at < out[i].size(); at += length)
        receiver_.receive(out[i].data() + at, length, in_order);
    }
  }

  Attachment& attached_;
  const Shape& shape_;
  Tally& tally_;
  Receiver receiver_;
  std::mt19937 random_;
};

}  // namespace queueduct::testing
