// What happened in a case of the events queue, in memory that every process of it shares and no kill can take away.
//
// An item is in once `end` lies beyond it, and its position follows from where the end was before: so from a dead
// process's probe alone follows which items must be read where. Whoever reads writes down what it saw at a position:
// two who see different items there have caught the queue.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <new>
#include <stdexcept>

#include "support/events_segment.hpp"
#include "crash/harness/plan.hpp"
#include "crash/harness/probe.hpp"

namespace queueduct::crash {

inline constexpr std::uint32_t events_operation_items = 64;
inline constexpr std::uint32_t position_limit = 1 << 16;
inline constexpr std::uint64_t nowhere = ~std::uint64_t{0};

struct EventItem {
  std::atomic<std::uint16_t> length{0};  // 0: no such item
  std::atomic<std::uint64_t> position{nowhere};
};

struct EventsProbe : Trace {
  // written before the operation
  std::uint8_t op = 0;
  std::uint32_t put_ids[events_operation_items] = {};
  std::uint32_t put_count = 0;
  std::uint64_t first_position = 0;   // where the end was
  std::uint64_t target = nowhere;     // of a clear, a commit, a subscription
  const EventsControl* control = nullptr;  // in the process's own mapping
  // written during it
  std::uint64_t published_end = 0;
  bool has_cleared = false;
  bool has_moved = false;
  bool has_joined = false;
  bool has_removed = false;

  void restart() noexcept {
    if (is_used()) new (this) EventsProbe;
    fire = Fire::never;
  }
  void begin_operation() noexcept {
    reached = put_count = 0;
    published_end = 0;
    target = nowhere;
    has_returned = has_cleared = has_moved = has_joined = has_removed = false;
  }
  void note(const char* name) noexcept {
    const auto is = [name](const char* wanted) { return std::strcmp(name, wanted) == 0; };
    if (is("put.published")) published_end = EventsWord{control->end.load()}.position();
    has_cleared |= is("clear.intended");
    has_moved |= is("reader.moved");
    has_joined |= is("readers.joined");
    has_removed |= is("readers.removed");
  }
};

// What a durable reader's line must say.
struct Expected {
  std::atomic<std::uint64_t> place{nowhere};  // nowhere: there is no such reader
};

struct EventsHistory {
  EventItem items[item_limit];
  std::atomic<std::uint32_t> seen[position_limit];  // by position: the id that was read there
  std::atomic<std::uint32_t> next_id{1};
  std::atomic<std::uint32_t> torn{0};
  std::atomic<std::uint32_t> confused{0};  // two read different items at one position
  std::atomic<std::uint32_t> doubled{0};   // an item was put at two positions
  std::atomic<std::uint64_t> base{0};      // the witness's place: all from here on must be there
  std::atomic<std::uint64_t> start{0};     // of the last clear
  std::atomic<std::uint64_t> read_from{0};
  std::atomic<bool> is_full{false};  // somebody has filled the budget
  std::atomic<bool> is_over{false};
  Expected mover;
  Expected fresh;
  EventsProbe probes[probe_limit];
  std::uint32_t probes_used = 0;
  Plan plan;

  static EventsHistory* create() {
    void* memory =
        mmap(nullptr, sizeof(EventsHistory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for a history");
    return new (memory) EventsHistory;
  }

  void reset(std::uint64_t positions) noexcept {
    for (std::uint32_t id = 0; id < next_id.load() && id < item_limit; ++id) new (&items[id]) EventItem;
    for (std::uint64_t i = 0; i < positions && i < position_limit; ++i) seen[i].store(0);
    for (EventsProbe& probe : probes) probe.restart();
    probes_used = 0;
    next_id = 1;
    plan = {};
    torn = confused = doubled = 0;
    base = start = read_from = 0;
    is_over = is_full = false;
    mover.place = fresh.place = nowhere;
  }

  [[nodiscard]] std::uint32_t new_item(std::uint16_t length) noexcept {
    const std::uint32_t id = next_id.fetch_add(1);
    if (id >= item_limit) return 0;
    items[id].length.store(length);
    return id;
  }

  void see(std::uint64_t position, const unsigned char* bytes, std::uint64_t length) noexcept {
    const std::uint32_t id = read_item(*this, bytes, length);
    if (id == 0 || position >= position_limit) return void(torn.fetch_add(1));
    std::uint32_t before = 0;
    if (!seen[position].compare_exchange_strong(before, id) && before != id) confused.fetch_add(1);
  }

  // After the operation, or after its process is dead: what it has done for certain. Twice is once.
  void settle(const EventsProbe& probe) noexcept {
    for (std::uint32_t i = 0; i < probe.put_count && probe.first_position + i < probe.published_end; ++i)
      place(items[probe.put_ids[i]], probe.first_position + i);
    if (probe.has_cleared && start.load() < probe.target) start.store(probe.target);
  }

 private:
  void place(EventItem& item, std::uint64_t position) noexcept {
    const std::uint64_t before = item.position.exchange(position);
    if (before != nowhere && before != position) doubled.fetch_add(1);
  }
};

}  // namespace queueduct::crash
