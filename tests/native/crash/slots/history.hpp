// What happened in a case of the slot queue, in memory that every process of it shares and no kill can take away.
//
// An item is in by one compare-and-swap, and is over by another: so from a dead process's probe alone follows which
// of the two it has done.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <new>
#include <stdexcept>

#include "crash/harness/plan.hpp"
#include "crash/harness/probe.hpp"
#include "support/slots_segment.hpp"

namespace queueduct::crash {

// What an operation is about to do to its item.
enum class Doing : std::uint8_t { nothing, publishing, ending, evicting, releasing };

inline constexpr std::uint32_t lease_limit = 4;

struct SlotsProbe : Trace {
  std::uint8_t op = 0;
  Doing doing = Doing::nothing;
  std::uint32_t put_id = 0;
  std::uint32_t got_id = 0;
  std::uint32_t evicted_id = 0;
  bool has_published = false;
  bool has_ended = false;
  bool has_evicted = false;
  std::uint32_t leased_ids[lease_limit] = {};
  std::uint32_t leased = 0;
  std::uint32_t released = 0;  // the first so many of them
  bool is_leaving = false;     // the next of them: its next swap ends it
  std::uint32_t handed_ids[lease_limit] = {};  // what this operation has taken, and counted
  std::uint32_t handed = 0;

  void restart() noexcept {
    if (is_used()) new (this) SlotsProbe;
    fire = Fire::never;
  }
  void begin_operation() noexcept {
    reached = 0;
    doing = Doing::nothing;
    put_id = got_id = evicted_id = 0;
    has_returned = has_published = has_ended = has_evicted = is_leaving = false;
    leased = released = handed = 0;
  }
  void note(const char* name) noexcept {
    const auto is = [name](const char* wanted) { return std::strcmp(name, wanted) == 0; };
    if (doing == Doing::publishing && is("slots.leaving")) doing = Doing::nothing;  // it was refused, and goes back
    has_published |= doing == Doing::publishing && is("index.pushed");
    has_ended |= doing == Doing::ending && is("slots.swapped");
    has_evicted |= doing == Doing::evicting && is("slots.swapped");
    if (doing != Doing::releasing) return;
    is_leaving |= is("lease.before_release");
    if (is_leaving && is("slots.swapped")) {
      ++released;
      is_leaving = false;
    }
  }
};

struct SlotsItem {
  std::atomic<std::uint16_t> length{0};  // 0: no such item
  std::atomic<std::uint8_t> published{0};
  std::atomic<std::uint8_t> ended{0};
  std::atomic<std::uint32_t> handed{0};  // how often it was taken
};

struct SlotsHistory {
  SlotsItem items[item_limit];
  std::atomic<std::uint32_t> next_id{1};
  std::atomic<std::uint32_t> torn{0};
  std::atomic<bool> is_over{false};
  std::atomic<bool> is_soak{false};  // then nobody looks at the dead before others take what they had
  SlotsProbe probes[probe_limit];
  std::uint32_t probes_used = 0;
  Plan plan;

  static SlotsHistory* create() {
    void* memory = mmap(nullptr, sizeof(SlotsHistory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for a history");
    return new (memory) SlotsHistory;
  }

  void reset() noexcept {
    for (std::uint32_t id = 0; id < next_id.load() && id < item_limit; ++id) new (&items[id]) SlotsItem;
    for (SlotsProbe& probe : probes) probe.restart();
    probes_used = 0;
    next_id = 1;
    torn = 0;
    is_over = is_soak = false;
    plan = {};
  }

  [[nodiscard]] std::uint32_t new_item(std::uint16_t length) noexcept {
    const std::uint32_t id = next_id.fetch_add(1);
    if (id >= item_limit) return 0;
    items[id].length.store(length);
    return id;
  }

  // The id of what lies there.
  [[nodiscard]] std::uint32_t see(const Lease& lease) noexcept {
    const std::uint32_t id = read_item(*this, reinterpret_cast<const unsigned char*>(lease.data), lease.bytes);
    if (id == 0) torn.fetch_add(1);
    return id;
  }

  // The caller has taken this item: the queue must say how often that was done, deaths included.
  void hand(SlotsProbe& probe, const Lease& lease, std::uint32_t id) noexcept {
    const std::uint32_t handed = items[id].handed.fetch_add(1) + 1;
    if (probe.handed < lease_limit) probe.handed_ids[probe.handed++] = id;
    if (!is_soak.load() && id != 0 && lease.deliveries != handed) probe.complain("deliveries are miscounted");
  }
  // Whoever is dead had taken this item; it may have died before it could count that.
  void hand_late(const SlotsProbe& probe, std::uint32_t id) noexcept {
    for (std::uint32_t i = 0; i < probe.handed; ++i)
      if (probe.handed_ids[i] == id) return;
    items[id].handed.fetch_add(1);
  }

  // After the operation, or after its process is dead: what it has done. Once: the probe forgets it.
  void settle(SlotsProbe& probe) noexcept {
    if (probe.has_published) items[probe.put_id].published.fetch_add(1);
    if (probe.has_ended && probe.got_id != 0) items[probe.got_id].ended.fetch_add(1);
    if (probe.has_evicted && probe.evicted_id != 0) items[probe.evicted_id].ended.fetch_add(1);
    for (std::uint32_t i = 0; i < probe.released; ++i) items[probe.leased_ids[i]].ended.fetch_add(1);
    probe.leased = probe.released = 0;
    probe.has_published = probe.has_ended = probe.has_evicted = false;
    probe.doing = Doing::nothing;
  }

  [[nodiscard]] const char* judge() const noexcept {
    if (torn.load() != 0) return "an item is torn";
    if (next_id.load() >= item_limit) return "the history is full";
    for (std::uint32_t id = 1; id < next_id.load(); ++id) {
      const int published = items[id].published.load();
      const int ended = items[id].ended.load();
      if (published > 1) return "an item was put twice";
      if (ended > 1) return "an item came twice";
      if (published > ended) return "an item is lost";
      if (published < ended) return "an item came that was not put";
    }
    const char* problem = nullptr;
    plan.for_each([&](std::uint32_t id) {
      if (items[id].published.load() == 0) problem = "an item of a producer that was started again is lost";
    });
    return problem;
  }
};

}  // namespace queueduct::crash
