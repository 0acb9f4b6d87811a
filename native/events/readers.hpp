// The table of readers: from which position on each reader needs the log.
//
// Shape      one line a reader: it needs every item from `place` on. The place of an ephemeral reader follows its
//            cursor chunk by chunk; the place of a durable reader is the position that it has committed.
// Roles      lines are taken, freed and dropped under the queue's lock; a reader moves its own place.
//            The reader's process holds the OFD lock of the line's number. It ends with the process, however that ends.
// Invariants D1  a place only rises, so all that the reader has not finished is at or after it.
//            D2  `kind` is stored last when a line is taken, and first when it is freed: a kill in between leaves a
//                free line.
//            D3  a dropped reader keeps its line and its place, with dropped_bit, so it learns of the drop.
//            D4  another participant raises a place only if the reader was dead before that participant read the place:
//                a place that was read while the reader lived may be older than the reader's last commit.
//            D5  if the log was cut before a durable reader's place, `beyond` holds that place until it is told.
// Progress   a reader's move is one store, or one compare-and-swap if readers can be dropped.
//
// Memory orders: R1  move_to(): release       with acquire in least_place(): the reader's loads of earlier chunks
#pragma once

#include "events/chunks.hpp"
#include "segment/participants.hpp"
#include "segment/event.hpp"

namespace queueduct {

class Readers {
 public:
  explicit Readers(const EventsMap& map) noexcept : map_(&map) {}

  static constexpr std::uint32_t none = ~std::uint32_t{0};

  [[nodiscard]] std::uint32_t used() const noexcept {
    return std::min(map_->control->readers_used.load(std::memory_order_relaxed), map_->reader_lines);
  }
  [[nodiscard]] ReaderLine& line(std::uint32_t i) const noexcept { return map_->readers[i]; }
  [[nodiscard]] ReaderKind kind(std::uint32_t i) const noexcept {
    return static_cast<ReaderKind>(line(i).kind.load(std::memory_order_relaxed));
  }

  // Returns the place of the slowest reader that was not dropped, and its line in `slowest`. Without one: `otherwise`,
  // and none.
  [[nodiscard]] std::uint64_t least_place(std::uint64_t otherwise, std::uint32_t& slowest) const noexcept {
    std::uint64_t least = otherwise;
    slowest = none;
    for (std::uint32_t i = 0, n = used(); i < n; ++i) {
      if (kind(i) == ReaderKind::none) continue;
      const std::uint64_t place = line(i).place.load(std::memory_order_acquire);  // R1
      if ((place & dropped_bit) || (slowest != none && place >= least)) continue;
      least = place;
      slowest = i;
    }
    return least;
  }

  [[nodiscard]] std::uint32_t find(const char* name, std::uint32_t length) const noexcept {
    for (std::uint32_t i = 0, n = used(); i < n; ++i)
      if (kind(i) == ReaderKind::durable && line(i).name_length.load(std::memory_order_relaxed) == length &&
          std::memcmp(line(i).name, name, length) == 0)
        return i;
    return none;
  }

  // Returns a free line whose lock this process now holds, or none if the table is full.
  [[nodiscard]] std::uint32_t take_line(ParticipantTable& participant_table) noexcept {
    for (std::uint32_t i = 0; i < map_->reader_lines; ++i)
      if (kind(i) == ReaderKind::none && participant_table.hold(reader_lock_number(i))) return i;
    return none;
  }

  void write(std::uint32_t i, ReaderKind kind, const char* name, std::uint32_t length, std::uint64_t place) noexcept {
    ReaderLine& to = line(i);
    QUEUEDUCT_FAILPOINT("readers.before_write");
    if (length > 0) std::memcpy(to.name, name, length);
    to.name_length.store(length, std::memory_order_relaxed);
    to.pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
    to.place.store(place, std::memory_order_relaxed);
    to.beyond.store(0, std::memory_order_relaxed);
    to.epoch.store(static_cast<std::uint32_t>(map_->control->cuts.load(std::memory_order_relaxed)),
                   std::memory_order_relaxed);
    if (map_->control->readers_used.load(std::memory_order_relaxed) <= i)
      map_->control->readers_used.store(i + 1, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("readers.written");
    to.kind.store(static_cast<std::uint32_t>(kind), std::memory_order_release);  // keeps D2
    QUEUEDUCT_FAILPOINT("readers.joined");
  }

  void remove(std::uint32_t i) noexcept {
    QUEUEDUCT_FAILPOINT("readers.before_remove");
    line(i).kind.store(static_cast<std::uint32_t>(ReaderKind::none), std::memory_order_relaxed);  // keeps D2
    QUEUEDUCT_FAILPOINT("readers.removed");
  }

  // Under the lock. Removes the ephemeral readers of dead processes. A durable reader of a dead process needs nothing
  // before `start`, since it would jump there. Returns how many readers now need less than before.
  std::uint32_t abandon(const ParticipantTable& participant_table, std::uint64_t start) noexcept {
    std::uint32_t moved = 0;
    for (std::uint32_t i = 0, n = used(); i < n; ++i) {
      const ReaderKind kind = this->kind(i);
      const bool may_go = kind == ReaderKind::ephemeral || (kind == ReaderKind::durable && is_behind(i, start));
      QUEUEDUCT_FAILPOINT("readers.before_question");
      if (!may_go || participant_table.is_alive(reader_lock_number(i))) continue;
      QUEUEDUCT_FAILPOINT("readers.found_dead");
      if (kind == ReaderKind::ephemeral)
        remove(i);
      else if (is_behind(i, start))  // D4: the reader may have committed since the first check
        line(i).place.store(start, std::memory_order_relaxed);
      else
        continue;
      QUEUEDUCT_FAILPOINT("readers.abandoned");
      ++moved;
    }
    return moved;
  }

  // Returns false if the reader has moved meanwhile: then it may no longer be the slowest.
  [[nodiscard]] bool drop(std::uint32_t i) noexcept {
    std::uint64_t place = line(i).place.load(std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("readers.before_drop");
    // acquire R1: the reader's loads are over
    const bool dropped = !(place & dropped_bit) &&
                         line(i).place.compare_exchange_strong(place, place | dropped_bit, std::memory_order_acquire,
                                                               std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("readers.dropped");
    return dropped;
  }

 private:
  // False for a dropped reader, since dropped_bit is the highest. relaxed: the answer that counts is that of a dead
  // reader, whose stores the kernel has ordered before the loss of its lock.
  [[nodiscard]] bool is_behind(std::uint32_t i, std::uint64_t start) const noexcept {
    return line(i).place.load(std::memory_order_relaxed) < start;
  }

  const EventsMap* map_;
};

// Raises the reader's own place. Returns false if the reader was dropped.
[[nodiscard]] inline bool move_to(const EventsMap& map, ReaderLine& line, std::uint64_t position) noexcept {
  std::uint64_t place = line.place.load(std::memory_order_relaxed);
  QUEUEDUCT_FAILPOINT("reader.before_move");
  if (place & dropped_bit) return false;
  if (place >= position) return true;  // keeps D1
  if (!map.may_drop)
    line.place.store(position, std::memory_order_release);  // R1
  else if (!line.place.compare_exchange_strong(place, position, std::memory_order_release, std::memory_order_relaxed))
    return false;  // nothing but a drop changes it meanwhile
  QUEUEDUCT_FAILPOINT("reader.moved");
  Event(&map.control->room.word).notify_all();
  return true;
}

// After a copy: returns true if the reader had not been dropped. Pairs with the fence F2 of make_room().
[[nodiscard]] inline bool still_holds(const EventsMap& map, const ReaderLine& line) noexcept {
  if (!map.may_drop) return true;
  std::atomic_thread_fence(std::memory_order_acquire);  // F2
  return !(line.place.load(std::memory_order_relaxed) & dropped_bit);
}

}  // namespace queueduct
