// What happened in a case, in memory that every process of it shares and that no kill can take away.
//
// An item is known by its id. Its bytes are the id, its length and a pattern of both, so that a torn one shows.
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

#include "failpoint.hpp"

namespace penstock::crash {

inline constexpr std::uint32_t item_limit = 1 << 16;
inline constexpr std::uint32_t probe_limit = 16;
inline constexpr std::uint32_t trace_limit = 512;
inline constexpr std::uint32_t operation_items = 8;

struct Item {
  std::atomic<std::uint16_t> length{0};  // 0: no such item
  std::atomic<bool> is_in{false};        // its put returned, or its operation's probe proves it
  std::atomic<std::uint8_t> delivered{0};
  std::atomic<std::uint8_t> gone{0};  // released by a consumer that was killed before its get returned
  std::atomic<std::uint8_t> putter{0};
};

// What a named producer has to put, whoever puts it: one after the other, and each exactly once.
struct Plan {
  static constexpr std::uint32_t sequences = 2;
  static constexpr std::uint32_t longest = 4;
  std::uint32_t ids[sequences][longest] = {};
  std::uint32_t counts[sequences] = {};  // 0: there is no plan
};

enum class Fire : std::uint8_t { never, kill, stop, stop_then_kill };

struct Probe {
  // written before the operation
  Fire fire = Fire::never;
  const char* point = nullptr;  // nullptr: any
  std::uint32_t hit = 1;
  std::uint32_t second_hit = 0;  // of stop_then_kill: so many points later
  std::uint32_t put_ids[operation_items] = {};
  std::uint32_t put_slots[operation_items] = {};
  std::uint32_t put_count = 0;
  // written during it
  std::uint32_t line = UINT32_MAX;
  std::uint32_t hits = 0;
  std::uint32_t reached = 0;
  const char* trace[trace_limit] = {};  // string literals: every process here is a fork of one image
  std::uint32_t published = 0;          // slots
  std::uint32_t released = 0;           // slots since the last claim
  std::uint32_t taken_ids[operation_items] = {};
  std::uint32_t taken_slots[operation_items] = {};
  std::uint32_t taken_count = 0;
  bool has_fired = false;
  bool has_returned = false;
  bool found_corrupt = false;
  char problem[160] = {};

  [[nodiscard]] const char* last_point() const noexcept {
    return reached == 0 || reached > trace_limit ? "" : trace[reached - 1];
  }
  void restart() noexcept {
    const bool is_used = line != UINT32_MAX || reached != 0 || problem[0] != 0;
    if (is_used) new (this) Probe;  // most are not, and a trace is long
    fire = Fire::never;
  }
  void begin_operation() noexcept {
    reached = published = released = taken_count = put_count = 0;
    has_returned = false;
  }
  void complain(const char* what) noexcept {
    if (problem[0] == 0) std::strncpy(problem, what, sizeof problem - 1);
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

// Bytes of an item, and back.

inline constexpr std::size_t item_header = 8;

inline void write_item(std::uint32_t id, std::uint16_t length, unsigned char* to) noexcept {
  const std::uint32_t header[2] = {id, length};
  std::memcpy(to, header, sizeof header);
  for (std::size_t i = item_header; i < length; ++i) to[i] = static_cast<unsigned char>(id * 31 + i * 7 + length);
}

// The id of what was got; 0 if it is torn.
[[nodiscard]] inline std::uint32_t read_item(const History& history, const unsigned char* from,
                                             std::uint64_t length) noexcept {
  std::uint32_t header[2] = {};
  if (length < item_header || length > 4096) return 0;
  std::memcpy(header, from, sizeof header);
  if (header[0] == 0 || header[0] >= item_limit || header[1] != length) return 0;
  if (history.items[header[0]].length.load() != length) return 0;
  unsigned char expected[4096];
  write_item(header[0], static_cast<std::uint16_t>(length), expected);
  return std::memcmp(expected, from, length) == 0 ? header[0] : 0;
}

// The failpoint hook: writes down where this process is, and fires.

inline Probe* my_probe = nullptr;

inline void fire_at(Fire fire) noexcept {
  if (fire == Fire::kill) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  raise(SIGSTOP);
}

inline void on_failpoint(const char* name) noexcept {
  Probe& probe = *my_probe;
  if (probe.reached < trace_limit) probe.trace[probe.reached] = name;
  ++probe.reached;
  probe.published += std::strcmp(name, "push.published") == 0;
  probe.released += std::strcmp(name, "pop.released") == 0;
  if (probe.fire == Fire::never) return;
  if (probe.point != nullptr && std::strcmp(probe.point, name) != 0) return;
  if (++probe.hits != probe.hit) return;
  const Fire fire = probe.fire;
  probe.has_fired = true;
  if (fire == Fire::stop_then_kill) {
    probe.fire = Fire::kill;
    probe.hit += probe.second_hit;
  }
  fire_at(fire == Fire::kill ? Fire::kill : Fire::stop);
}

inline void arm(Probe& probe) noexcept {
  my_probe = &probe;
  failpoint::armed = {failpoint::Action::record, nullptr, 1, 0, on_failpoint};
}

inline void disarm() noexcept { failpoint::disarm(); }

}  // namespace penstock::crash
