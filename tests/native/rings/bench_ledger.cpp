// What the ledger costs: nanoseconds for a put and a get of 64 bytes, with it and without, on the same ring code.
//
// Rounds with and without take turns, so that what else the machine does meets both alike; medians of the rounds.
// Prints one JSON object.
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <vector>

#include "support/segment.hpp"

namespace queueduct::testing {

constexpr int rounds = 15;
constexpr std::uint64_t item_bytes = 64;
constexpr std::uint64_t batch = 64;
constexpr Shape shape{.capacity = 1024, .slot_bytes = item_bytes, .participants = 8, .varying = true};

struct Clock {
  std::int64_t start = monotonic_ns();
  [[nodiscard]] double per(std::uint64_t items) const {
    return static_cast<double>(monotonic_ns() - start) / static_cast<double>(items);
  }
};

template <class Ledger>
bool get_one(const Ring& ring, Ledger ledger, void* to) {
  Peeked peeked;
  while (peek(ring, ledger, peeked) == Outcome::done) {
    if (!claim_pop(ring, ledger, peeked.span)) continue;
    finish_pop(ring, ledger, peeked, to);
    return true;
  }
  return false;
}

// A put, then a get, in one thread.
struct OneAtATime {
  static constexpr const char* name = "one thread, one item a call";
  template <class Ledger>
  static double run(Attachment& attached, Ledger ledger) {
    constexpr std::uint64_t items = 200'000;
    std::array<std::byte, item_bytes> bytes{};
    const Clock clock;
    for (std::uint64_t i = 0; i < items; ++i) {
      if (try_put_bytes(attached.ring(), ledger, bytes.data(), item_bytes) != Outcome::done) return -1;
      if (!get_one(attached.ring(), ledger, bytes.data())) return -1;
    }
    return clock.per(items);
  }
};

struct Batches {
  static constexpr const char* name = "one thread, 64 items a call";
  template <class Ledger>
  static double run(Attachment& attached, Ledger ledger) {
    constexpr std::uint64_t turns = 10'000;
    std::vector<std::byte> bytes(batch * item_bytes);
    std::vector<Buffer> items(batch);
    for (std::uint64_t i = 0; i < batch; ++i) items[i] = {bytes.data() + i * item_bytes, item_bytes};
    std::array<std::uint64_t, batch> lengths{};
    const Ring& ring = attached.ring();
    const Clock clock;
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      std::uint64_t put = 0;
      Peeked peeked;
      if (try_put_bytes_many(ring, ledger, items.data(), batch, put) != Outcome::done || put != batch) return -1;
      if (peek(ring, ledger, peeked) != Outcome::done) return -1;
      if (widen_bytes(ring, batch, lengths.data(), peeked) != batch || !claim_pop(ring, ledger, peeked.span)) return -1;
      for (std::uint64_t i = 0; i < batch; ++i)
        copy_out(ring, peeked.span.position + i, bytes.data() + i * item_bytes, item_bytes);
      release_copied(ring, ledger, peeked.span);
    }
    return clock.per(turns * batch);
  }
};

// One process puts as fast as it can, another gets. Whoever is ahead gives its core away: it may be shared.
struct Streaming {
  static constexpr const char* name = "two processes, one item a call";
  template <class Ledger>
  static double run(Attachment& attached, Ledger ledger) {
    constexpr std::uint64_t items = 200'000;
    std::array<std::byte, item_bytes> bytes{};
    const pid_t consumer = fork();
    if (consumer == 0) {
      alarm(10);
      const auto mine = own_line(attached, ledger);
      for (std::uint64_t got = 0; got < items;) {
        if (get_one(attached.ring(), mine, bytes.data()))
          ++got;
        else
          sched_yield();
      }
      _exit(0);
    }
    const Clock clock;
    for (std::uint64_t put = 0; put < items && clock.per(1) < 10e9;) {
      if (try_put_bytes(attached.ring(), ledger, bytes.data(), item_bytes) == Outcome::done)
        ++put;
      else
        sched_yield();
    }
    int status = 1;
    waitpid(consumer, &status, 0);
    return status == 0 ? clock.per(items) : -1;
  }

  // A forked child joins anew; without a ledger there is nothing to join.
  static Participant own_line(Attachment& attached, Participant) { return attached.ledger(); }
  static NoLedger own_line(Attachment&, NoLedger ledger) { return ledger; }
};

[[nodiscard]] double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class Row>
bool measure(const char* comma) {
  Segment segment(shape);
  Attachment attached(segment);
  std::vector<double> on;
  std::vector<double> off;
  for (int round = 0; round < rounds; ++round) {
    on.push_back(Row::run(attached, attached.ledger()));
    off.push_back(Row::run(attached, NoLedger{}));
    if (on.back() < 0 || off.back() < 0) return false;
  }
  std::printf("%s{\"name\": \"%s\", \"on_ns\": %.2f, \"off_ns\": %.2f}", comma, Row::name, median(on), median(off));
  return true;
}

}  // namespace queueduct::testing

int main() {
  using namespace queueduct::testing;
  std::printf("{\"rows\": [");
  const bool measured = measure<OneAtATime>("") && measure<Batches>(", ") && measure<Streaming>(", ");
  std::printf("]}\n");
  return measured ? 0 : 1;
}
