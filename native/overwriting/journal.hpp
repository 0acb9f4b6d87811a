// The words of an overwriting segment, and the journal by which several of them change at once.
//
// Shape      write down the whole change ─► is_committed = 1 ─► make it ─► is_committed = 0
// Roles      the owner of the header's lock commits and settles; any participant reads.
// Invariants J1  every field of the journal has the value after the change, not a difference: making it twice is making
//                it once.
//            J2  a participant killed before it set the mark has changed nothing. What one killed later has not yet
//                made, the next owner of the header's lock makes before anything else.
//            J3  a lease's cell has its owner before the message leaves the ring: without the lock, too, a message is
//                seen in the ring, in its cell, or in both.
// Progress   a few stores.
//
// Memory orders: all stores are relaxed, since the header's lock carries them (P1 in overwriting/lock.hpp), except
//   J2  commit(): release store of the mark, after the journal; for a dead writer the kernel orders it, see there
//   P5  make(): release store of a cell's word, after its position   with acquire in overwriting/leased_messages.hpp
//   P8  make(): release store of start and length, after the cell's word   with the acquire fences of queue.hpp
#pragma once

#include "overwriting/lock.hpp"

namespace queueduct {

class OverwritingMemory {
 public:
  OverwritingMemory(std::byte* base, const OverwritingOffsets& at, std::uint64_t capacity, std::uint64_t words,
                    std::uint32_t participants) noexcept
      : head_(reinterpret_cast<PublishedHeader*>(base)),
        messages_(base + sizeof(PublishedHeader)),
        control_(reinterpret_cast<OverwritingControl*>(base + at.control)),
        readings_(reinterpret_cast<ReadingLine*>(base + at.readings)),
        cell_words_(reinterpret_cast<std::atomic<std::uint64_t>*>(base + at.leased_words)),
        capacity_(capacity),
        words_(words),
        participants_(participants) {}

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t words() const noexcept { return words_; }
  [[nodiscard]] std::uint64_t message_bytes() const noexcept { return 8 * words_; }
  [[nodiscard]] OverwritingControl& control() const noexcept { return *control_; }
  [[nodiscard]] std::atomic<std::uint64_t>& cell_word(std::uint64_t cell) const noexcept { return cell_words_[cell]; }
  [[nodiscard]] std::atomic<std::uint64_t>& header_lock() const noexcept { return head_->header_lock; }
  // A message: its lock, then its data.
  [[nodiscard]] std::atomic<std::uint64_t>* words_of(std::uint64_t index) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(messages_ + index * message_stride(words_));
  }
  [[nodiscard]] RingState state() const noexcept {
    return RingState::unpack(head_->ring_state.load(std::memory_order_relaxed));
  }
  [[nodiscard]] bool is_sound(RingState at) const noexcept { return at.start < capacity_ && at.length <= capacity_; }
  [[nodiscard]] OverwritingCounts counted() const noexcept { return load(control_->counters); }
  [[nodiscard]] LeaseCounts leases_counted() const noexcept { return load(control_->leases); }
  [[nodiscard]] std::atomic<std::uint64_t>& reading(std::uint32_t line) const noexcept { return readings_[line].word; }

  [[nodiscard]] std::uint64_t noted_at_line(std::uint32_t line) const noexcept { return line + 1; }
  [[nodiscard]] std::uint64_t noted_at_cell(std::uint64_t cell) const noexcept { return participants_ + cell + 1; }

  // Under the header's lock, before anything else: makes what its last owner had committed. Returns false if the
  // journal is corrupt.
  [[nodiscard]] bool settle() noexcept {
    return control_->journal.is_committed.load(std::memory_order_relaxed) == 0 || make_again();
  }

  // Under the header's lock. keeps J1, J2
  [[gnu::always_inline]] void commit(const OverwritingChange& change) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    auto& journal = control_->journal.change;
    QUEUEDUCT_FAILPOINT("journal.before_write");
    journal.ring_state.store(change.ring_state, relaxed);
    journal.index.store(change.index, relaxed);
    QUEUEDUCT_FAILPOINT("journal.half_written");
    journal.message_lock.store(change.message_lock, relaxed);
    journal.noted_at.store(change.noted_at, relaxed);
    journal.note.store(change.note, relaxed);
    store(journal.counters, change.counters);
    if (is_lease(change)) store(journal.leases, change.leases);
    QUEUEDUCT_FAILPOINT("journal.before_commit");
    control_->journal.is_committed.store(1, std::memory_order_release);  // release J2
    QUEUEDUCT_FAILPOINT("journal.committed");
    make(change);
  }

 private:
  [[nodiscard]] bool is_lease(const OverwritingChange& change) const noexcept {
    return change.noted_at > participants_;
  }

  // Out of line: almost no call of settle() needs it.
  [[nodiscard, gnu::noinline, gnu::cold]] bool make_again() noexcept {
    const OverwritingChange change = journaled();
    if (change.index > capacity_ || !is_sound(RingState::unpack(change.ring_state))) return false;
    if (change.index == capacity_ && !is_lease(change)) return false;
    if (change.noted_at > participants_ + leased_cells(capacity_, words_)) return false;
    make(change);
    return true;
  }

  // Reads each word of the journal once.
  [[nodiscard]] OverwritingChange journaled() const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const auto& journal = control_->journal.change;
    return {journal.ring_state.load(relaxed),
            journal.index.load(relaxed),
            journal.message_lock.load(relaxed),
            journal.noted_at.load(relaxed),
            journal.note.load(relaxed),
            load(journal.counters),
            load(journal.leases)};
  }

  [[gnu::always_inline]] void make(const OverwritingChange& change) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    if (change.index < capacity_) words_of(change.index)->store(change.message_lock, relaxed);
    QUEUEDUCT_FAILPOINT("make.message_locked");
    if (is_lease(change)) [[unlikely]] {
      store(control_->leases, change.leases);
      QUEUEDUCT_FAILPOINT("make.lease_counted");
      cell_words_[change.noted_at - participants_ - 1].store(change.note, std::memory_order_release);  // release P5
      QUEUEDUCT_FAILPOINT("make.cell_named");
    }
    head_->ring_state.store(change.ring_state, std::memory_order_release);  // release P8; keeps J3, I1 of the ring
    QUEUEDUCT_FAILPOINT("make.placed");
    store(control_->counters, change.counters);
    QUEUEDUCT_FAILPOINT("make.counted");
    if (change.noted_at != 0 && !is_lease(change)) readings_[change.noted_at - 1].word.store(change.note, relaxed);
    QUEUEDUCT_FAILPOINT("make.read_noted");
    control_->journal.is_committed.store(0, std::memory_order_release);  // after all of it
    QUEUEDUCT_FAILPOINT("make.made");
  }

  // relaxed: exact under the header's lock, otherwise a snapshot
  [[nodiscard]] static OverwritingCounts load(const OverwritingCounters& from) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    return {from.puts.load(relaxed), from.taken.load(relaxed), from.dropped.load(relaxed), from.torn.load(relaxed)};
  }
  static void store(OverwritingCounters& to, const OverwritingCounts& counts) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    to.puts.store(counts.puts, relaxed);
    to.taken.store(counts.taken, relaxed);
    QUEUEDUCT_FAILPOINT("counters.half_stored");
    to.dropped.store(counts.dropped, relaxed);
    to.torn.store(counts.torn, relaxed);
  }
  [[nodiscard]] static LeaseCounts load(const LeaseCounters& from) noexcept {
    return {from.lost.load(std::memory_order_relaxed), from.next_position.load(std::memory_order_relaxed)};
  }
  static void store(LeaseCounters& to, const LeaseCounts& counts) noexcept {
    to.lost.store(counts.lost, std::memory_order_relaxed);
    to.next_position.store(counts.next_position, std::memory_order_relaxed);
  }

  PublishedHeader* head_;
  std::byte* messages_;
  OverwritingControl* control_;
  ReadingLine* readings_;
  std::atomic<std::uint64_t>* cell_words_;
  std::uint64_t capacity_;
  std::uint64_t words_;
  std::uint64_t participants_;
};

}  // namespace queueduct
