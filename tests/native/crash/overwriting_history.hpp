// What happened in a case of the overwriting queue, in memory that no kill can take away.
//
// At each failpoint a process notes what it has just done for certain, before it may die there:
//   a put counts      once its change is in the journal; what it drops stands there, too
//   an item is whole  once its message is unlocked; until then it is torn if its writer dies
//   a get has taken   once its change is in the journal; until it has ended, the message is lost if the reader dies
// From these notes follows what the queue's own counters must say, to the unit.
#pragma once

#include <sys/mman.h>

#include <new>
#include <stdexcept>

#include "item_bytes.hpp"
#include "overwriting_segment.hpp"
#include "probe.hpp"
#include "staging.hpp"

namespace penstock::crash {

using testing::OverwritingAttachment;
using testing::OverwritingSegment;
using testing::OverwritingShape;

struct OverwritingHistory;

struct OverwritingProbe : Trace {
  OverwritingHistory* history = nullptr;
  const OverwritingControl* control = nullptr;
  const ReadingLine* reading = nullptr;
  std::uint8_t op = 0;
  std::uint32_t put_id = 0;  // 0: it puts nothing just now
  bool is_reading = false;
  std::uint64_t overwritten_before = 0;

  void note(const char* name) noexcept;
  void restart() noexcept { *this = {}; }
};

struct OverwritingItem {
  std::atomic<std::uint16_t> length{0};  // 0: no such item
  std::atomic<bool> is_committed{false};
  std::atomic<bool> is_whole{false};
  std::atomic<std::uint8_t> delivered{0};
  std::uint8_t putter = 0;
};

struct OverwritingHistory {
  OverwritingProbe probes[probe_limit];
  std::uint32_t probes_used = 0;
  std::atomic<std::uint32_t> next_id{1};
  OverwritingItem items[item_limit];
  std::atomic<std::uint64_t> dropped{0}, taken{0}, ended_whole{0}, ended_overwritten{0}, lost{0};
  std::atomic<std::uint64_t> torn{0}, disordered{0};
  std::atomic<bool> is_over{false};

  static OverwritingHistory* create() {
    void* memory = mmap(nullptr, sizeof(OverwritingHistory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for the history");
    return new (memory) OverwritingHistory;
  }

  void reset() noexcept {
    for (OverwritingProbe& probe : probes) probe.restart();
    for (std::uint32_t id = 1; id < next_id.load() && id < item_limit; ++id) {
      items[id].~OverwritingItem();
      new (&items[id]) OverwritingItem;
    }
    probes_used = 0;
    next_id = 1;
    for (auto* count : {&dropped, &taken, &ended_whole, &ended_overwritten, &lost, &torn, &disordered}) count->store(0);
    is_over = false;
  }

  // 0: the history is full.
  [[nodiscard]] std::uint32_t new_item(std::uint16_t length, std::uint8_t putter) noexcept {
    const std::uint32_t id = next_id.fetch_add(1);
    if (id >= item_limit) return 0;
    items[id].putter = putter;
    items[id].length.store(length);
    return id;
  }

  // Somebody is dead.
  void settle(OverwritingProbe& probe) noexcept {
    if (probe.is_reading) lost.fetch_add(1);
    probe.is_reading = false;
  }

  template <class Is>
  [[nodiscard]] std::uint64_t count(Is is) const noexcept {
    std::uint64_t found = 0;
    for (std::uint32_t id = 1; id < next_id.load() && id < item_limit; ++id) found += is(items[id]);
    return found;
  }
};

[[nodiscard]] inline std::uint64_t overwritten_in(std::uint64_t reading) noexcept { return reading << 20 >> 21; }

inline void OverwritingProbe::note(const char* name) noexcept {
  if (history == nullptr) return;
  const auto is = [name](const char* point) { return std::strcmp(name, point) == 0; };
  if (is("journal.committed")) {
    const OverwritingJournal& journal = control->journal;
    history->dropped.fetch_add(journal.counters.dropped.load() - control->counters.dropped.load());
    if (put_id != 0) history->items[put_id].is_committed.store(true);
    if (journal.line_plus_one.load() == 0) return;
    is_reading = true;
    history->taken.fetch_add(1);
    overwritten_before = overwritten_in(journal.reading.load());
  } else if (is("message.published") && put_id != 0) {
    history->items[put_id].is_whole.store(true);
  } else if (is("reading.ended")) {
    is_reading = false;
    const bool is_mine = overwritten_in(reading->word.load()) == overwritten_before;
    (is_mine ? history->ended_whole : history->ended_overwritten).fetch_add(1);
  }
}

}  // namespace penstock::crash
