// The overwriting ring: the oldest message goes when there is no room.
//
// Shape      [lock | start, length]  {lock | data} {lock | data} {lock | data} …      see overwriting/layout.hpp
// Roles      any number of producers and consumers, in any process. Claims are made under the header's lock, copies
//            after it: a slow copy keeps no participant from the other messages.
// Invariants I1  start < capacity and length <= capacity, in one word that is changed by one store.
//            I2  a message's lock is taken under the header's lock only, and released by its owner without it.
//            I3  a message locked by a writer is not read. One locked by a reader may be overwritten: the writer puts
//                its own name over the reader's first, and the reader, which checks last, finds that it lost the lock.
//            I4  a change is in the journal, whole, before it is made (overwriting/journal.hpp).
//            I5  a message in the queue whose lock names a dead writer is torn: it is counted, and not delivered. The
//                lock is read again after its writer was found dead: the writer may have published just before.
//            I6  puts = delivered + overwritten + torn + lost with a reader + length, whenever the header's lock is
//                free. Delivered are the messages that were taken and neither overwritten nor lost meanwhile.
//            I7  a position belongs to one message for good: it is the number of puts before it. Puts of foreign
//                programs are not counted: with them positions still rise and never repeat, but do not count puts.
// Progress   blocking, by the header's lock for a few stores. A put also waits for a live writer that is copying into
//            the same message, one lap before; a get for the writer of the oldest message. Neither waits for a reader,
//            or for a dead participant.
// Source     the published layout and its six traces (docs/memory-layout.md). Ours: locks that name their owner, start
//            and length in one word, the journal, and that a reader never delays a writer.
//
//
// The newest message is also read without being taken, by any number of readers: found under the header's lock, where
// no writer can begin (I2). A short one is copied there. A long one is copied after it, and counts only if its lock is
// free afterwards and the put that comes round to it is not counted yet: a reader that has read one word of that put
// sees its lock (P3), or the lock that its publish freed, and with that its count (P2, the header's lock). Foreign puts
// are not counted: one that comes round during the copy of a long message is not noticed.
//
// Memory orders come in pairs:
//   P1  the header's lock (overwriting/lock.hpp): state, journal, counters, and the taking of messages' locks
//   P2  publish(): release store of 0     with acquire in claim_oldest(): the message's data
//   P3  copy_in(): release fence between the lock's store and the data   with the acquire fence in unlock_read():
//       a reader that has read one word of the new data sees that the lock is no longer its own
//   P4  unlock_read(): release            with acquire in claim_put(): the reader's loads come before the next data
#pragma once

#include <cstring>

#include "overwriting/leased_messages.hpp"

namespace queueduct {

// busy: a live writer is copying into the message. locked: a live participant has the header's lock.
enum class Claim : std::uint8_t { done, full, empty, busy, locked, closed, corrupt };

struct Claimed {
  std::uint32_t index = 0;
  std::uint64_t lock = 0;  // the message's, while it is ours
  std::uint64_t skipped = 0;
  std::uint64_t position = 0;  // I7
};

class OverwritingRing : public OverwritingMemory {
 public:
  OverwritingRing(const OverwritingMemory& memory, const LeasedMessages& leased_messages,
                  const ParticipantTable* participant_table) noexcept
      : OverwritingMemory(memory), leased_messages_(leased_messages), participant_table_(participant_table) {}

  [[nodiscard]] std::atomic<std::uint64_t>& message_lock(std::uint64_t index) const noexcept {
    return *words_of(index);
  }

  // Under the header's lock: locks a message to write to. Inlined, as commit() is: a change that goes through memory
  // costs a fifth of the put.
  [[nodiscard, gnu::always_inline]] Claim claim_put(std::uint32_t line, bool may_overwrite, Claimed& claimed) noexcept {
    if (closed() & closed_to_puts) return Claim::closed;
    RingState at = state();
    if (!is_sound(at)) return Claim::corrupt;
    const bool is_full = at.length == capacity();
    claimed.index = next_index(at);
    std::uint64_t seen = message_lock(claimed.index).load(std::memory_order_acquire);  // acquire P4
    const bool is_readers = lock_word::has_role(seen, LockRole::reader);
    bool is_torn = false;
    if (seen != 0 && !(is_readers && may_overwrite)) {
      if (!lock_word::is_left(*participant_table_, message_lock(claimed.index), seen))
        return is_readers ? Claim::full : Claim::busy;  // keeps I3
      is_torn = seen != 0 && !is_readers;
    }
    if (is_full && !may_overwrite && !is_torn) return Claim::full;
    OverwritingCounts counts = counted();
    claimed.position = counts.puts++;
    if (is_full) {
      ++(is_torn ? counts.torn : counts.dropped);  // keeps I5
      at.start = wrapped(std::uint64_t{at.start} + 1);
    } else {
      ++at.length;
    }
    claimed.lock = lock_word::of(*participant_table_, line, LockRole::writer);
    commit({at.packed(), claimed.index, claimed.lock, 0, 0, counts});
    return Claim::done;
  }

  // Under the header's lock: locks the oldest whole message and takes it out of the queue.
  [[nodiscard, gnu::always_inline]] Claim claim_get(std::uint32_t line, Claimed& claimed) noexcept {
    return claim_oldest(line, claimed, [&](RingState, const OverwritingCounts&) noexcept {
      return Note{noted_at_line(line), reading_at_rest(line) | is_reading, {}};
    });
  }

  // The same for a lease, which copies the message to a cell. full: another lease has that cell by now.
  [[nodiscard]] Claim claim_to_lease(std::uint32_t line, LeasedMessage& leased, Claimed& claimed) noexcept {
    if (leased_messages_.word(leased.cell) != 0) return Claim::full;
    leased.owner = lock_word::of(*participant_table_, line, LockRole::filler);
    return claim_oldest(line, claimed, [&](RingState at, const OverwritingCounts& counts) noexcept {
      LeaseCounts leases = leases_counted();
      // keeps I7: without foreign programs this is the number of puts before it, and never below next_position
      const std::uint64_t before = counts.puts > at.length ? counts.puts - at.length : 0;
      leased.position = before > leases.next_position ? before : leases.next_position;
      leases.next_position = leased.position + 1;
      leased_messages_.address(leased.cell, leased.position);
      return Note{noted_at_cell(leased.cell), leased.owner, leases};  // keeps S1
    });
  }

  // Under the header's lock: finds the newest whole message whose position is at least `wanted`. busy: a live writer is
  // still copying a newer one, and there is no whole one.
  [[nodiscard]] Claim find_newest(std::uint64_t wanted, Claimed& found) noexcept {
    if (is_discarded()) return Claim::closed;
    const RingState at = state();
    if (!is_sound(at)) return Claim::corrupt;
    const std::uint64_t puts = counted().puts;
    bool is_busy = false;
    for (std::uint32_t i = 0; i < at.length && i < look_back && puts > wanted + i; ++i) {
      found.index = wrapped(std::uint64_t{at.start} + at.length - 1 - i);
      found.position = puts - 1 - i;
      std::uint64_t seen = message_lock(found.index).load(std::memory_order_acquire);  // acquire P2
      if (seen != 0 && !lock_word::is_left(*participant_table_, message_lock(found.index), seen)) is_busy = true;
      if (seen == 0) return Claim::done;
    }
    if (is_busy) return Claim::busy;
    return closed() != 0 ? Claim::closed : Claim::empty;
  }
  // After the copy of a message that find_newest() has found: returns true if no put has come round to it.
  [[nodiscard]] bool is_still_whole(const Claimed& found) const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);  // acquire P3
    if (message_lock(found.index).load(std::memory_order_acquire) != 0) return false;  // acquire P2, P4
    return counted().puts <= found.position + capacity();
  }
  // A hint, without the header's lock.
  [[nodiscard]] bool may_be_newer(std::uint64_t wanted) const noexcept {
    return closed() != 0 || (counted().puts > wanted && state().length != 0);
  }

  // After the header was unlocked. `bytes` is at most a message's size; the rest of the message becomes zeros.
  void copy_in(const Claimed& claimed, const void* from, std::uint64_t bytes) noexcept {
    std::atomic_thread_fence(std::memory_order_release);  // release P3
    std::atomic<std::uint64_t>* data = words_of(claimed.index) + 1;
    QUEUEDUCT_FAILPOINT("message.before_copy");
    const auto* at = static_cast<const char*>(from);
    std::uint64_t i = 0;
    for (; i < bytes / 8; ++i) {
      std::uint64_t word;
      std::memcpy(&word, at + 8 * i, 8);
      data[i].store(word, std::memory_order_relaxed);  // published by P2; P3 tells a reader that lost it
      if (i == 0) QUEUEDUCT_FAILPOINT("message.half_copied");
    }
    if (bytes % 8 != 0) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + 8 * i, bytes % 8);
      data[i++].store(word, std::memory_order_relaxed);
    }
    for (; i < words(); ++i) data[i].store(0, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("message.copied");
  }

  void publish(const Claimed& claimed) noexcept {
    QUEUEDUCT_FAILPOINT("message.before_publish");
    message_lock(claimed.index).store(0, std::memory_order_release);  // release P2
    QUEUEDUCT_FAILPOINT("message.published");
  }

  // After the header was unlocked. finish_get() or finish_lease_copy() says whether the copy is the message.
  void copy_out(const Claimed& claimed, void* to, std::uint64_t bytes) const noexcept {
    const std::atomic<std::uint64_t>* data = words_of(claimed.index) + 1;
    QUEUEDUCT_FAILPOINT("message.before_read");
    auto* at = static_cast<char*>(to);
    std::uint64_t i = 0;
    for (; i < bytes / 8; ++i) {
      const std::uint64_t word = data[i].load(std::memory_order_relaxed);  // see P3
      std::memcpy(at + 8 * i, &word, 8);
      if (i == 0) QUEUEDUCT_FAILPOINT("message.half_read");
    }
    if (bytes % 8 != 0) {
      const std::uint64_t word = data[i].load(std::memory_order_relaxed);
      std::memcpy(at + 8 * i, &word, bytes % 8);
    }
    QUEUEDUCT_FAILPOINT("message.read");
  }

  // Returns true if the copy is the message. Otherwise it was overwritten meanwhile, and is counted here.
  [[nodiscard]] bool finish_get(std::uint32_t line, const Claimed& claimed) noexcept {
    const bool is_mine = unlock_read(claimed);
    std::atomic<std::uint64_t>& mine = reading(line);
    const std::uint64_t word = mine.load(std::memory_order_relaxed) & ~is_reading;
    // one store ends the get and says how: keeps I6. relaxed: nothing depends on a count
    mine.store(is_mine ? word : word + one_overwritten, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("reading.ended");
    return is_mine;
  }

  // The same for a lease. If it returns false, call free_half_cell() next.
  [[nodiscard]] bool finish_lease_copy(std::uint32_t line, const Claimed& claimed, LeasedMessage& leased) noexcept {
    const bool is_mine = unlock_read(claimed);
    if (is_mine)
      leased_messages_.filled(leased.cell, line);
    else
      leased_messages_.overtaken(leased, line);
    return is_mine;
  }

  // Under the header's lock: frees a cell that never got the whole message.
  void free_half_cell(const LeasedMessage& leased) noexcept {
    if (leased_messages_.word(leased.cell) != leased.owner) return;  // another participant has freed it
    OverwritingCounts counts = counted();
    LeaseCounts leases = leases_counted();
    --counts.taken;
    ++(LeasedMessages::is_overtaken(leased.owner) ? counts.dropped : leases.lost);
    commit({state().packed(), capacity(), 0, noted_at_cell(leased.cell), 0, counts, leases});  // keeps S4
  }

  // Under the header's lock, by the line's new owner: the message that the last owner read when it died is lost.
  void abandon_reading(std::uint32_t line) noexcept {
    QUEUEDUCT_FAILPOINT("reading.before_bury");
    reading(line).store(reading_at_rest(line), std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("reading.abandoned");
  }

  struct Fates {
    std::uint64_t puts, delivered, overwritten, torn, lost_with_consumer;
  };

  // Exact if no participant is in a call.
  [[nodiscard]] Fates fates() const noexcept {
    const OverwritingCounts counts = counted();
    std::uint64_t lost = 0;
    std::uint64_t overwritten = 0;
    leased_messages_.count_half(lost, overwritten);
    for (std::uint32_t line = 0; line < participant_table_->used(); ++line) {
      const std::uint64_t word = reading(line).load(std::memory_order_relaxed);
      overwritten += (word >> 1) & overwritten_mask;
      lost += word >> lost_shift;
      lost += (word & is_reading) && !participant_table_->is_alive(line);
    }
    return {counts.puts, counts.taken - overwritten - lost, counts.dropped + overwritten, counts.torn,
            leases_counted().lost + lost};
  }

  [[nodiscard]] std::uint32_t index_of_next_put() const noexcept {
    const RingState at = state();
    return is_sound(at) ? next_index(at) : 0;
  }
  [[nodiscard]] bool is_being_written(std::uint32_t index) const noexcept {
    const std::uint64_t seen = message_lock(index).load(std::memory_order_relaxed);
    return lock_word::has_role(seen, LockRole::writer) || lock_word::is_foreign(seen);
  }
  // An immediate shutdown discards the messages in the queue.
  [[nodiscard]] bool is_discarded() const noexcept { return closed() & closed_to_gets; }
  [[nodiscard]] std::uint32_t length() const noexcept { return is_discarded() ? 0 : state().length; }

  // Hints, without the header's lock.
  [[nodiscard]] bool may_be_empty() const noexcept { return state().length == 0 && closed() == 0; }
  // Shut down, not immediately, and empty.
  [[nodiscard]] bool may_be_ended() const noexcept { return closed() == closed_to_puts && state().length == 0; }
  [[nodiscard]] bool may_be_gettable() const noexcept {
    const RingState at = state();
    if (at.length == 0 || is_discarded()) return closed() != 0;
    return !is_sound(at) || !is_being_written(at.start);
  }
  [[nodiscard]] bool may_be_free() const noexcept {
    if (closed() != 0) return true;
    return state().length < capacity() && message_lock(index_of_next_put()).load(std::memory_order_relaxed) == 0;
  }

 private:
  static constexpr std::uint64_t is_reading = 1;
  static constexpr std::uint64_t one_overwritten = 2;
  static constexpr std::uint64_t overwritten_mask = (std::uint64_t{1} << 43) - 1;
  static constexpr int lost_shift = 44;
  static constexpr std::uint32_t look_back = 64;  // messages in mid-copy that a reader of the newest passes over

  // relaxed: shutdown() sets it without the header's lock, and wakes all sleepers after it
  [[nodiscard]] std::uint32_t closed() const noexcept { return control().closed.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t wrapped(std::uint64_t index) const noexcept {
    return static_cast<std::uint32_t>(index < capacity() ? index : index - capacity());
  }
  // The message that the next put writes to.
  [[nodiscard]] std::uint32_t next_index(RingState at) const noexcept {
    return at.length == capacity() ? at.start : wrapped(std::uint64_t{at.start} + at.length);
  }

  // The line's word, with a get that its last owner died in counted as lost.
  [[nodiscard]] std::uint64_t reading_at_rest(std::uint32_t line) const noexcept {
    const std::uint64_t word = reading(line).load(std::memory_order_relaxed);
    return word & is_reading ? (word & ~is_reading) + (std::uint64_t{1} << lost_shift) : word;
  }

  // What a change notes of the reader, and where: see OverwritingJournal.
  struct Note {
    std::uint64_t at;
    std::uint64_t word;
    LeaseCounts leases;
  };

  // note(state, counts): as they are before the claim.
  template <class MakeNote>
  [[nodiscard, gnu::always_inline]] Claim claim_oldest(std::uint32_t line, Claimed& claimed, MakeNote note) noexcept {
    claimed.skipped = 0;
    for (;;) {
      if (is_discarded()) return Claim::closed;
      RingState at = state();
      if (!is_sound(at)) return Claim::corrupt;
      OverwritingCounts counts = counted();
      claimed.position = counts.puts - at.length;
      if (at.length == 0) return closed() != 0 ? Claim::closed : Claim::empty;
      claimed.index = at.start;
      std::uint64_t seen = message_lock(at.start).load(std::memory_order_acquire);  // acquire P2
      if (seen != 0 && !lock_word::is_left(*participant_table_, message_lock(at.start), seen)) return Claim::busy;
      const RingState before = at;
      at.start = wrapped(std::uint64_t{at.start} + 1);
      --at.length;
      if (lock_word::has_role(seen, LockRole::writer)) {  // keeps I5
        ++counts.torn;
        ++claimed.skipped;
        claimed.lock = 0;
        commit({at.packed(), claimed.index, claimed.lock, 0, 0, counts});
        continue;
      }
      const Note noted = note(before, counts);
      ++counts.taken;
      claimed.lock = lock_word::of(*participant_table_, line, LockRole::reader);
      commit({at.packed(), claimed.index, claimed.lock, noted.at, noted.word, counts, noted.leases});
      return Claim::done;
    }
  }

  // Returns true if the copy is the message; its lock is then free.
  [[nodiscard]] bool unlock_read(const Claimed& claimed) noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);  // acquire P3
    std::uint64_t expected = claimed.lock;
    QUEUEDUCT_FAILPOINT("message.before_release");
    const bool is_mine = message_lock(claimed.index)
                             .compare_exchange_strong(expected, 0, std::memory_order_release,
                                                      std::memory_order_relaxed);  // release P4; keeps I3
    QUEUEDUCT_FAILPOINT("message.released");
    return is_mine;
  }

  LeasedMessages leased_messages_;
  const ParticipantTable* participant_table_;
};

}  // namespace queueduct
