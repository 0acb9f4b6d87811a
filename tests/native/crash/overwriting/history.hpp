// What happened in a case of the overwriting queue, in memory that no kill can take away.
//
// At each failpoint a process notes what it has just done for certain, before it may die there:
//   a put counts      once its change is in the journal; what it drops stands there, too
//   an item is whole  once its message is unlocked; until then it is torn if its writer dies
//   a get has taken   once its change is in the journal; until it has ended, the message is lost if the reader dies
//   a lease has taken once its change is in the journal, too; until its cell is filled, it is lost if the holder dies.
//                     From then on it is kept: it must be released once, by this lease or by who takes it over
// From these notes follows what the queue's own counters must say, to the unit.
#pragma once

#include <sys/mman.h>

#include <new>
#include <stdexcept>

#include "crash/harness/item_bytes.hpp"
#include "support/overwriting_segment.hpp"
#include "crash/harness/probe.hpp"
#include "crash/harness/staging.hpp"

namespace queueduct::crash {

using testing::OverwritingAttachment;
using testing::OverwritingSegment;
using testing::OverwritingShape;

struct OverwritingHistory;

inline constexpr std::uint32_t kept_limit = 8;  // messages that a lease of a case holds

struct OverwritingProbe : Trace {
  OverwritingHistory* history = nullptr;
  const OverwritingControl* control = nullptr;
  const ReadingLine* reading = nullptr;
  const unsigned char* leased_messages = nullptr;
  std::uint32_t participants = 0;
  std::uint64_t length = 0;
  std::uint8_t op = 0;
  std::uint32_t put_id = 0;  // 0: it puts nothing just now
  bool is_reading = false;
  std::uint64_t overwritten_before = 0;
  bool is_filling = false;
  std::uint64_t cell = 0;                 // which it fills
  const unsigned char* getting = nullptr;  // where a get copies to
  bool has_counted = false;                // that get's message was leased before
  std::uint32_t kept_ids[kept_limit] = {};
  std::uint32_t kept = 0;
  std::uint32_t released = 0;
  std::uint64_t holder_words[2] = {};          // in the cells that it holds: as a thread, and as a lease
  std::uint32_t handed_ids[kept_limit] = {};  // what it has leased or taken over, and counted
  std::uint32_t handed = 0;

  void note_cell(const char* name) noexcept;
  void note(const char* name) noexcept;
  void restart() noexcept { *this = {}; }
};

struct OverwritingItem {
  std::atomic<std::uint16_t> length{0};  // 0: no such item
  std::atomic<bool> is_committed{false};
  std::atomic<bool> is_whole{false};
  std::atomic<bool> is_kept{false};
  std::atomic<std::uint8_t> delivered{0};
  std::atomic<std::uint32_t> handed{0};  // how often a consumer had it on lease
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
  std::atomic<bool> is_soak{false};  // then nobody looks at the dead before others take what they had

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
    is_over = is_soak = false;
  }

  // 0: the history is full.
  [[nodiscard]] std::uint32_t new_item(std::uint16_t length, std::uint8_t putter) noexcept {
    const std::uint32_t id = next_id.fetch_add(1);
    if (id >= item_limit) return 0;
    items[id].putter = putter;
    items[id].length.store(length);
    return id;
  }

  // The caller has this message on lease: the queue must say how often one had, deaths included.
  void hand(OverwritingProbe& probe, const LeasedMessage& leased, std::uint32_t id) noexcept {
    const std::uint32_t handed = items[id].handed.fetch_add(1) + 1;
    if (probe.handed < kept_limit) probe.handed_ids[probe.handed++] = id;
    if (!is_soak.load() && id != 0 && leased.deliveries() != handed) probe.complain("deliveries are miscounted");
  }
  // Whoever is dead held this message; it may have died before it could count that.
  void hand_late(const OverwritingProbe& probe, std::uint32_t id) noexcept {
    for (std::uint32_t i = 0; i < probe.handed; ++i)
      if (probe.handed_ids[i] == id) return;
    items[id].handed.fetch_add(1);
  }

  // Somebody is dead.
  void settle(OverwritingProbe& probe) noexcept {
    if (probe.is_reading || probe.is_filling) lost.fetch_add(1);
    probe.is_reading = probe.is_filling = false;
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
    const std::uint64_t dropped = journal.change.counters.dropped.load() - control->counters.dropped.load();
    if (put_id != 0) history->items[put_id].is_committed.store(true);
    const std::uint64_t noted_at = journal.change.noted_at.load();
    const bool frees_cell = noted_at > participants && journal.change.note.load() == 0;
    if (!frees_cell)
      history->dropped.fetch_add(dropped);  // else it is noted already, whether it was overwritten or lost
    if (noted_at > participants) {
      if (!frees_cell) {
        is_filling = true;
        cell = noted_at - participants - 1;
      }
    } else if (noted_at != 0) {
      is_reading = true;
      history->taken.fetch_add(1);
      overwritten_before = overwritten_in(journal.change.note.load());
    }
  } else if (is("message.published") && put_id != 0) {
    history->items[put_id].is_whole.store(true);
  } else if (is("reading.ended")) {
    is_reading = false;
    const bool is_mine = overwritten_in(reading->word.load()) == overwritten_before;
    (is_mine ? history->ended_whole : history->ended_overwritten).fetch_add(1);
  } else {
    note_cell(name);
  }
}

inline void OverwritingProbe::note_cell(const char* name) noexcept {
  const auto is = [name](const char* point) { return std::strcmp(name, point) == 0; };
  if (is("leased_message.filled")) {
    is_filling = false;
    history->ended_whole.fetch_add(1);
    const std::uint32_t id = read_item(*history, leased_messages + cell * length, length);
    if (id == 0) history->torn.fetch_add(1);
    history->items[id].is_kept.store(true);
  } else if (is("leased_message.released")) {
    const std::uint32_t id = getting != nullptr ? read_item(*history, getting, length) : kept_ids[released++];
    if (id == 0) history->torn.fetch_add(1);
    history->items[id].delivered.fetch_add(1);
    has_counted = getting != nullptr;
  } else if (is("leased_message.overtaken")) {
    is_filling = false;
    history->ended_overwritten.fetch_add(1);
  }
}

}  // namespace queueduct::crash
