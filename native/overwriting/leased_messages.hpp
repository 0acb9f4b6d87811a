// Leased messages of an overwriting queue: each has a cell outside the ring.
//
// Shape      cell    0: free ─► filler: being copied there ─┬─► holder: whole ─┬─► 0
//                                                           │                  └─► its holder is gone: another
//                                                           └─► overtaken: overwritten during the copy ─► 0
//            A put never waits for a reader, so a message that must outlive its reader cannot stay in the ring.
//            A cell's word names its owner as a lock does (overwriting/lock.hpp).
// Roles      leases fill and release; gets and leases take over what dead holders, and holders that gave back, left.
// Invariants S1  a cell is filled from 0 only, under the header's lock, by the change in the journal that takes the
//                message from the queue. So a message is in the queue or in a cell, never in both or neither.
//            S2  a cell's data is written by its filler, and never once it has a holder.
//            S3  a cell whose holder is gone (dead, or its line let go) is taken over by one compare-and-swap from that
//                holder's word, which is never stored again (N1): so by one participant at a time.
//            S4  a cell whose filler is gone has half a message. It counts as lost with its reader until a participant
//                with the header's lock frees the cell and counts it for good, by one change. A filler that was
//                overtaken says so by one store: from then on it counts as overwritten, until the same change.
//            S5  a holder frees a cell by one store of 0: a released message is never delivered again.
//            S6  a holder's word counts how often its message was delivered again, and a take-over counts itself by the
//                compare-and-swap that makes it: so each holder counts once, at whatever step it dies.
// Progress   lock-free, except to fill a cell and to free half a message, which take the header's lock.
// Source     ours; killed at every step in tests/native/crash/overwriting.
//
// Memory orders come in pairs:
//   P5  filled() and make() of the journal: release   with acquire in word(): the cell's position, and its data
//   P6  release_cell(), overtaken(): release          with acquire in word(), by the next filler: the last owner's
//                                                     copy is over. overtaken() by way of make(), which frees the cell
#pragma once

#include <algorithm>

#include "overwriting/journal.hpp"

namespace queueduct {

struct LeasedMessage {
  std::uint64_t position;
  std::uint64_t cell;
  std::uint64_t owner;  // the cell's word when it was found

  // This delivery included: exact up to 4,096, then at least that. keeps S6
  [[nodiscard]] std::uint64_t deliveries() const noexcept { return lock_word::redeliveries_of(owner) + 1; }
};

class LeasedMessages {
 public:
  LeasedMessages(std::byte* base, const OverwritingOffsets& at, const OverwritingMemory& memory,
                 const ParticipantTable* participant_table) noexcept
      : positions_(reinterpret_cast<std::atomic<std::uint64_t>*>(base + at.leased_positions)),
        data_(base + at.leased_data),
        data_offset_(at.leased_data),
        memory_(memory),
        participant_table_(participant_table),
        cells_(leased_cells(memory.capacity(), memory.words())) {}

  [[nodiscard]] std::uint64_t cells() const noexcept { return cells_; }
  // In the segment. The data has no memory before the first lease.
  [[nodiscard]] std::uint64_t data_offset() const noexcept { return data_offset_; }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return cells_ * memory_.message_bytes(); }
  [[nodiscard]] std::byte* data(std::uint64_t cell) const noexcept { return data_ + cell * memory_.message_bytes(); }
  [[nodiscard]] std::uint64_t word(std::uint64_t cell) const noexcept {
    return memory_.cell_word(cell).load(std::memory_order_acquire);  // acquire P5, P6
  }
  [[nodiscard]] std::uint64_t position(std::uint64_t cell) const noexcept {
    return positions_[cell].load(std::memory_order_relaxed);  // P5
  }
  // Cells that were ever used; 0: there was no lease yet. The shared word is only believed within the table.
  [[nodiscard]] std::uint64_t used() const noexcept {
    return std::min(memory_.control().cells_used.load(std::memory_order_acquire), cells_);
  }

  // The lowest free cell from `cell` on, so that scans stay short. Without a lock: another lease may fill it first.
  [[nodiscard]] bool find_free(std::uint64_t& cell) const noexcept {
    while (cell < cells_ && word(cell) != 0) ++cell;
    return cell < cells_;
  }

  // Under the header's lock, of a free cell, before the change that fills it.
  void address(std::uint64_t cell, std::uint64_t position) noexcept {
    QUEUEDUCT_FAILPOINT("leased_message.before_address");
    positions_[cell].store(position, std::memory_order_relaxed);  // published by P5
    std::atomic<std::uint64_t>& used = memory_.control().cells_used;
    // release: a scan after the change must reach this cell
    if (used.load(std::memory_order_relaxed) <= cell) used.store(cell + 1, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("leased_message.addressed");
  }

  // The copy is whole, and `line` is its holder.
  void filled(std::uint64_t cell, std::uint32_t line) noexcept {
    QUEUEDUCT_FAILPOINT("leased_message.before_filled");
    memory_.cell_word(cell).store(word_of(line, LockRole::holder), std::memory_order_release);  // release P5
    QUEUEDUCT_FAILPOINT("leased_message.filled");
  }

  // The copy is not the message: a put overwrote it meanwhile. keeps S4
  void overtaken(LeasedMessage& leased, std::uint32_t line) noexcept {
    leased.owner = word_of(line, LockRole::overtaken);
    QUEUEDUCT_FAILPOINT("leased_message.before_overtaken");
    memory_.cell_word(leased.cell).store(leased.owner, std::memory_order_release);  // release P6
    QUEUEDUCT_FAILPOINT("leased_message.overtaken");
  }

  // keeps S5
  void release_cell(std::uint64_t cell) noexcept {
    QUEUEDUCT_FAILPOINT("leased_message.before_release");
    memory_.cell_word(cell).store(0, std::memory_order_release);  // release P6
    QUEUEDUCT_FAILPOINT("leased_message.released");
  }

  // Makes `line` the holder of messages whose holder is gone: the oldest ones, at most `limit`. Returns how many.
  [[nodiscard]] std::uint64_t take_over(std::uint32_t line, LeasedMessage* taken, std::uint64_t limit) noexcept {
    const std::uint64_t me = word_of(line, LockRole::holder);
    const std::uint64_t orphans = list_orphans(taken, limit);
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < orphans; ++i) {
      std::uint64_t owner = taken[i].owner;
      const std::uint64_t mine = lock_word::with_redeliveries(me, lock_word::redeliveries_of(owner) + 1);  // keeps S6
      QUEUEDUCT_FAILPOINT("leased_message.before_take_over");
      // acquire P5; keeps S3
      if (!memory_.cell_word(taken[i].cell).compare_exchange_strong(owner, mine, std::memory_order_acquire)) continue;
      QUEUEDUCT_FAILPOINT("leased_message.taken_over");
      memory_.control().redelivered.fetch_add(1, std::memory_order_relaxed);  // nothing depends on a count
      taken[count++] = {taken[i].position, taken[i].cell, mine};
    }
    return count;
  }

  // How many messages have lost their holder.
  [[nodiscard]] std::uint64_t count_orphans() const noexcept {
    std::uint64_t orphans = 0;
    for_each_orphan([&orphans](const LeasedMessage&) { ++orphans; });
    return orphans;
  }

  // Finds a cell with half a message, from `cell` on: its filler is gone, or was overtaken.
  [[nodiscard]] bool find_half(std::uint64_t& cell, std::uint64_t& owner) const noexcept {
    for (const std::uint64_t end = used(); cell < end; ++cell) {
      owner = word(cell);
      if (is_overtaken(owner)) return true;
      if (lock_word::has_role(owner, LockRole::filler) && !is_alive(owner)) return true;
    }
    return false;
  }
  [[nodiscard]] static bool is_overtaken(std::uint64_t owner) noexcept {
    return lock_word::has_role(owner, LockRole::overtaken);
  }
  void count_half(std::uint64_t& lost, std::uint64_t& overwritten) const noexcept {
    std::uint64_t owner;
    for (std::uint64_t cell = 0; find_half(cell, owner); ++cell) ++(is_overtaken(owner) ? overwritten : lost);
  }

  // How many messages are on lease, or were and will be delivered again; at most `limit`. Half a message never is.
  [[nodiscard]] std::uint64_t count_out(std::uint64_t limit) const noexcept {
    std::uint64_t count = 0;
    for (std::uint64_t cell = 0, end = used(); cell < end && count < limit; ++cell) {
      const std::uint64_t owner = word(cell);
      count += lock_word::has_role(owner, LockRole::holder) ||
               (lock_word::has_role(owner, LockRole::filler) && is_alive(owner));
    }
    return count;
  }
  // Those of them that a live consumer has.
  [[nodiscard]] std::uint64_t count_leased() const noexcept {
    const std::uint64_t out = count_out(~std::uint64_t{0});
    return out - std::min(out, count_orphans());
  }

  // Positions that are claimed and not released, at most `limit`, in no order. Returns how many.
  [[nodiscard]] std::uint64_t list(std::int64_t* positions, std::uint64_t limit) const noexcept {
    std::uint64_t count = 0;
    for (std::uint64_t cell = 0, end = used(); cell < end && count < limit; ++cell)
      if (const std::uint64_t owner = word(cell); owner != 0 && !is_overtaken(owner))
        positions[count++] = static_cast<std::int64_t>(position(cell));
    return count;
  }

 private:
  [[nodiscard]] std::uint64_t word_of(std::uint32_t line, LockRole role) const noexcept {
    return lock_word::of(*participant_table_, line, role);
  }
  [[nodiscard]] bool is_alive(std::uint64_t owner) const noexcept {
    return lock_word::is_alive(*participant_table_, owner);
  }

  // Messages whose holder is gone. Few system calls: the cells of a lease have the same word, but for the count.
  template <class Visit>
  void for_each_orphan(Visit visit) const noexcept {
    std::uint64_t living = 0;
    std::uint64_t gone = 0;
    for (std::uint64_t cell = 0, end = used(); cell < end; ++cell) {
      const std::uint64_t owner = word(cell);
      const std::uint64_t holder = lock_word::with_redeliveries(owner, 0);
      if (holder == living || !lock_word::has_role(owner, LockRole::holder)) continue;
      if (holder != gone && is_alive(owner)) {
        living = holder;
        continue;
      }
      gone = holder;
      visit({position(cell), cell, owner});
    }
  }

  // The oldest `limit` of them, by position. Returns how many.
  [[nodiscard]] std::uint64_t list_orphans(LeasedMessage* orphans, std::uint64_t limit) const noexcept {
    const auto is_older = [](const LeasedMessage& one, const LeasedMessage& other) {
      return one.position < other.position;
    };
    std::uint64_t count = 0;
    for_each_orphan([&](const LeasedMessage& found) {
      if (count == limit) {  // a heap: the youngest goes
        if (!is_older(found, orphans[0])) return;
        std::pop_heap(orphans, orphans + count--, is_older);
      }
      orphans[count++] = found;
      std::push_heap(orphans, orphans + count, is_older);
    });
    std::sort_heap(orphans, orphans + count, is_older);
    return count;
  }

  std::atomic<std::uint64_t>* positions_;
  std::byte* data_;
  std::uint64_t data_offset_;
  OverwritingMemory memory_;
  const ParticipantTable* participant_table_;
  std::uint64_t cells_;
};

}  // namespace queueduct
