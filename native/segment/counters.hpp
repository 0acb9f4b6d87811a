// What participants count: items and bytes put and got, waits. For people and watchers; no algorithm reads it.
//
// Shape      eight words in each participant's line, and in each line of a log's reader. A sum over all lines counts
//            since the queue was made.
// Roles      the owner of a line counts; every process reads.
// Invariants N1  a counter has one writer at a time: the owner of its line, in one call at a time. So it is counted by
//                a load and a store, without an atomic read-modify-write.
//            N2  no counter is ever reset: the line's next owner goes on from what it finds (it has got the line after
//                the last owner's stores: the kernel's lock orders them). So a sum never falls, whoever is killed.
//            N3  an item counts as put after it is published, and as got after it is released for good, by the same
//                call. A participant that is killed in between leaves it uncounted: at most one call's items a kill.
// Progress   wait-free. Relaxed: the counters publish nothing. They have no failpoints of their own: each lies between
//            two that the operation has, and a kill there changes nothing but N3.
#pragma once

#include "segment/event.hpp"
#include "segment/layout.hpp"

namespace queueduct {

// keeps N1, N2
[[gnu::always_inline]] inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t more) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void count_put(Counters& mine, std::uint64_t items, std::uint64_t bytes) noexcept {
  count(mine.items_put, items);
  count(mine.bytes_put, bytes);
}
[[gnu::always_inline]] inline void count_got(Counters& mine, std::uint64_t items, std::uint64_t bytes) noexcept {
  count(mine.items_got, items);
  count(mine.bytes_got, bytes);
}

[[nodiscard]] inline std::uint64_t realtime_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// After a sleep that began at began_ns (monotonic_ns()). `is_first`: the call's first; a call counts as one wait.
inline void count_wait(Counters& mine, bool for_items, bool is_first, std::int64_t began_ns) noexcept {
  if (is_first) count(for_items ? mine.waits_for_items : mine.waits_for_room, 1);
  const std::int64_t waited = monotonic_ns() - began_ns;
  if (waited > 0) count(mine.waited_ns, static_cast<std::uint64_t>(waited));
  mine.last_use_ns.store(realtime_ns(), std::memory_order_relaxed);
}

// A snapshot of one line's counters, or the sum of several.
struct Counted {
  std::uint64_t items_put = 0, bytes_put = 0, items_got = 0, bytes_got = 0;
  std::uint64_t waits_for_room = 0, waits_for_items = 0, waited_ns = 0;

  void add(const Counters& one) noexcept {
    items_put += one.items_put.load(std::memory_order_relaxed);
    bytes_put += one.bytes_put.load(std::memory_order_relaxed);
    items_got += one.items_got.load(std::memory_order_relaxed);
    bytes_got += one.bytes_got.load(std::memory_order_relaxed);
    waits_for_room += one.waits_for_room.load(std::memory_order_relaxed);
    waits_for_items += one.waits_for_items.load(std::memory_order_relaxed);
    waited_ns += one.waited_ns.load(std::memory_order_relaxed);
  }
};

// A participant's line as a watcher reads it.
struct ParticipantSeen {
  std::uint32_t pid = 0, thread = 0, tenure = 0;
  std::uint64_t start_ticks = 0, boot_id[2] = {}, last_use_ns = 0;
  Counted counted;
};

// Returns false if the line gets new owners faster than it can be read. Writes nothing.
[[nodiscard]] inline bool see_participant(const ParticipantLine& line, ParticipantSeen& seen) noexcept {
  for (int attempt = 0; attempt < 10; ++attempt) {
    // acquire, with the release of a new owner's first store: what follows is this owner's, or a later one's
    const std::uint32_t tenure = line.tenure.load(std::memory_order_acquire);
    seen = {};
    seen.pid = line.pid.load(std::memory_order_relaxed);
    seen.thread = line.thread.load(std::memory_order_relaxed);
    seen.tenure = tenure;
    seen.start_ticks = line.start_ticks.load(std::memory_order_relaxed);
    for (int i : {0, 1}) seen.boot_id[i] = line.boot_id[i].load(std::memory_order_relaxed);
    seen.last_use_ns = line.counters.last_use_ns.load(std::memory_order_relaxed);
    seen.counted.add(line.counters);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (line.tenure.load(std::memory_order_relaxed) == tenure) return true;
  }
  return false;
}

// The sum over all lines of a table, those of ended and dead owners included.
template <class Table>
[[nodiscard]] Counted counted(const Table& table) noexcept {
  Counted sum;
  for (std::uint32_t line = 0, end = table.used(); line < end; ++line) sum.add(table.lines()[line].counters);
  return sum;
}

}  // namespace queueduct
