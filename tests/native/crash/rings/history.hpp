// What happened in a case, in memory that every process of it shares and that no kill can take away.
//
// A probe is one process's own account: which failpoints it reached in its last operation, what it was putting,
// what it had taken. From this alone follows what may have become of the items of a process that was killed:
//   an item is in    once as many of its operation's slots are published as its head needs (the head comes last)
//   an item is gone  once the dead one had released its head (the head goes first)
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>

#include "crash/harness/plan.hpp"
#include "crash/harness/probe.hpp"

namespace queueduct::crash {

inline constexpr std::uint32_t operation_items = 8;

struct Item {
  std::atomic<std::uint16_t> length{0};  // 0: no such item
  std::atomic<bool> is_in{false};        // its put returned, or its operation's probe proves it
  std::atomic<std::uint8_t> delivered{0};
  std::atomic<std::uint8_t> gone{0};  // released by a consumer that was killed before its get returned
  std::atomic<std::uint8_t> putter{0};
};

struct Probe : Trace {
  // written before the operation
  std::uint32_t put_ids[operation_items] = {};
  std::uint32_t put_slots[operation_items] = {};
  std::uint32_t put_count = 0;
  // written during it
  std::uint32_t published = 0;  // slots
  std::uint32_t released = 0;   // slots since the last claim
  std::uint32_t taken_ids[operation_items] = {};
  std::uint32_t taken_slots[operation_items] = {};
  std::uint32_t taken_count = 0;

  void restart() noexcept {
    if (is_used()) new (this) Probe;  // most are not, and a trace is long
    fire = Fire::never;
  }
  void begin_operation() noexcept {
    reached = published = released = taken_count = put_count = 0;
    has_returned = false;
  }
  void note(const char* name) noexcept {
    published += std::strcmp(name, "push.published") == 0;
    released += std::strcmp(name, "pop.released") == 0;
  }
};

struct History {
  Item items[item_limit];
  std::atomic<std::uint32_t> next_id{1};
  std::atomic<std::uint32_t> torn{0};
  std::atomic<std::uint32_t> disordered{0};
  std::atomic<std::uint64_t> delivered_in_all{0};
  std::atomic<bool> is_over{false};
  Probe probes[probe_limit];
  std::uint32_t probes_used = 0;
  Plan plan;

  static History* create() {
    void* memory =
        mmap(nullptr, sizeof(History), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for a history");
    return new (memory) History;
  }

  void reset() noexcept {
    const std::uint32_t used = next_id.load();
    for (std::uint32_t id = 0; id < used && id < item_limit; ++id) new (&items[id]) Item;
    for (Probe& probe : probes) probe.restart();
    probes_used = 0;
    plan = {};
    next_id.store(1);
    torn.store(0);
    disordered.store(0);
    delivered_in_all.store(0);
    is_over.store(false);
  }

  [[nodiscard]] std::uint32_t new_item(std::uint16_t length, std::uint8_t putter) noexcept {
    const std::uint32_t id = next_id.fetch_add(1);
    if (id >= item_limit) return 0;
    items[id].putter.store(putter);
    items[id].length.store(length);
    return id;
  }

  // After the process of `probe` is dead: what its unfinished operation has done for certain.
  void settle(const Probe& probe) noexcept {
    if (probe.has_returned) return;
    std::uint32_t slots = 0;
    for (std::uint32_t i = 0; i < probe.put_count; ++i) {
      slots += probe.put_slots[i];
      if (probe.published >= slots) items[probe.put_ids[i]].is_in.store(true);
    }
    slots = 0;
    for (std::uint32_t i = 0; i < probe.taken_count; ++i) {
      if (probe.released > slots) items[probe.taken_ids[i]].gone.fetch_add(1);
      slots += probe.taken_slots[i];
    }
  }
};

}  // namespace queueduct::crash
