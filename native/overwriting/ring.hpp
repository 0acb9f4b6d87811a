// The overwriting ring: the oldest message goes when there is no room.
//
// Shape      [lock | start, length]  {lock | data} {lock | data} {lock | data} …      see overwriting_layout.hpp
// Roles      any number of writers and readers, in any process. The claims are made under the header's lock, the
//            copies after it: a slow copy keeps nobody from the other messages.
// Invariants I1  start < capacity and length <= capacity, in one word that is changed by one store.
//            I2  a message's lock is taken under the header's lock only, and released by its owner without it.
//            I3  what is locked by a writer is not read. What is locked by a reader may be written to: the writer puts
//                its own name over the reader's first, and the reader, which looks last, finds that it has lost it.
//            I4  a change is in the journal before it is made, whole (overwriting_memory.hpp).
//            I5  a message in the queue whose lock names a dead writer is torn: it is counted, and not delivered. The
//                lock is read again when its writer is known to be dead: it may have published just before it died.
//            I6  puts = delivered + overwritten + torn + lost with a reader + length, at every instant at which nobody
//                holds the header's lock. Delivered is what was taken and neither overwritten nor lost meanwhile.
//            I7  a position is one message's for good: how many were put before it. What strangers put is not counted,
//                so with them positions still rise and are never given twice, and no longer count puts.
// Progress   blocking, by the header's lock for a few stores. A put waits besides for a writer that lives and is just
//            copying into the very message, one lap before; a get for the writer of the oldest message. Neither waits
//            for a reader, and nobody for the dead.
// Source     the published layout and its six traces (docs/memory-layout.md). Ours: the lock names its owner, both
//            places are one word, the journal, and that a reader never holds up a writer.
//
// Memory orders come in pairs:
//   P1  the header's lock (overwriting_lock.hpp): places, journal, counters, and the taking of messages' locks
//   P2  publish(): release store of 0     with acquire in claim_oldest(): the message's data
//   P3  copy_in(): release fence between the lock's store and the data   with the acquire fence in unlock_read():
//       a reader that has read one word of the new data sees that the lock is no longer its own
//   P4  unlock_read(): release            with acquire in claim_put(): the reader's loads come before the next data
#pragma once

#include <cstring>

#include "overwriting/leased_messages.hpp"

namespace queueduct {

// busy: a writer that lives is copying just there. locked: somebody who lives has the header.
enum class Claim : std::uint8_t { done, full, empty, busy, locked, closed, corrupt };

struct Claimed {
  std::uint32_t index = 0;
  std::uint64_t lock = 0;  // the message's, while it is ours
  std::uint64_t skipped = 0;
  std::uint64_t position = 0;  // of the message: how many were put before it
};

class OverwritingRing {
 public:
  OverwritingRing(const OverwritingMemory& memory, const LeasedMessages& leased_messages, const ParticipantTable* participant_table) noexcept
      : memory_(memory),
        leased_messages_(leased_messages),
        control_(&memory.control()),
        capacity_(memory.capacity()),
        words_(memory.words()),
        participant_table_(participant_table) {}

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t message_bytes() const noexcept { return words_ * 8; }
  [[nodiscard]] std::atomic<std::uint64_t>& header_lock() const noexcept { return memory_.header_lock(); }
  [[nodiscard]] std::atomic<std::uint64_t>& message_lock(std::uint64_t index) const noexcept {
    return *words_of(index);
  }
  [[nodiscard]] RingState places() const noexcept { return memory_.places(); }
  // Under the header's lock, before anything else. False: the journal makes no sense.
  [[nodiscard]] bool settle() noexcept { return memory_.settle(); }

  // Under the header's lock: a place for one message, locked. Inlined, as commit() is: a change that goes through
  // memory costs a fifth of the put.
  [[nodiscard, gnu::always_inline]] Claim claim_put(std::uint32_t line, bool may_overwrite, Claimed& claimed) noexcept {
    if (control_->closed.load(std::memory_order_relaxed) & closed_to_puts) return Claim::closed;
    RingState at = places();
    if (!is_sound(at)) return Claim::corrupt;
    const bool is_full = at.length == capacity_;
    claimed.index = is_full ? at.start : wrapped(std::uint64_t{at.start} + at.length);
    std::uint64_t seen = message_lock(claimed.index).load(std::memory_order_acquire);  // acquire P4
    const bool is_readers = lock_word::has_role(seen, LockRole::reader);
    bool is_dead = false;
    if (seen != 0 && !(is_readers && may_overwrite)) {
      if (!lock_word::is_left(*participant_table_, message_lock(claimed.index), seen))
        return is_readers ? Claim::full : Claim::busy;  // keeps I3
      is_dead = seen != 0;
    }
    if (is_full && !may_overwrite && !(is_dead && !is_readers)) return Claim::full;
    OverwritingCounts counts = memory_.counted();
    claimed.position = counts.puts;
    ++counts.puts;
    if (is_full && is_dead && !is_readers)
      ++counts.torn;  // keeps I5
    else if (is_full)
      ++counts.dropped;
    if (is_full)
      at.start = wrapped(std::uint64_t{at.start} + 1);
    else
      ++at.length;
    claimed.lock = lock_word::of(*participant_table_, line, LockRole::writer);
    memory_.commit({at, claimed.index, claimed.lock, 0, 0, counts});
    return Claim::done;
  }

  // Under the header's lock: the oldest message that is whole, locked and out of the queue.
  [[nodiscard, gnu::always_inline]] Claim claim_get(std::uint32_t line, Claimed& claimed) noexcept {
    return claim_oldest(line, claimed, [&](RingState, const OverwritingCounts&) noexcept {
      return Note{memory_.noted_at_line(line), without_the_dead(line) | is_reading, {}};
    });
  }

  // The same, on its way to a place on the shelf. full: that place is another's by now.
  [[nodiscard]] Claim claim_kept(std::uint32_t line, LeasedMessage& kept, Claimed& claimed) noexcept {
    if (leased_messages_.word(kept.place) != 0) return Claim::full;
    kept.owner = lock_word::of(*participant_table_, line, LockRole::filler);
    return claim_oldest(line, claimed, [&](RingState at, const OverwritingCounts& counts) noexcept {
      LeaseCounts leases = memory_.leases_counted();
      // keeps I7: without strangers this is how many were put before it, and never less than next_position
      const std::uint64_t before = counts.puts > at.length ? counts.puts - at.length : 0;
      kept.position = before > leases.next_position ? before : leases.next_position;
      leases.next_position = kept.position + 1;
      leased_messages_.address(kept.place, kept.position);
      return Note{memory_.noted_at_place(kept.place), kept.owner, leases};  // keeps S1
    });
  }

  // After the header was unlocked. `bytes` are at most a message's; the rest of it becomes zeros.
  void copy_in(const Claimed& claimed, const void* from, std::uint64_t bytes) noexcept {
    std::atomic_thread_fence(std::memory_order_release);  // release P3
    std::atomic<std::uint64_t>* data = words_of(claimed.index) + 1;
    QUEUEDUCT_FAILPOINT("message.before_copy");
    const auto* at = static_cast<const char*>(from);
    std::uint64_t i = 0;
    for (; i < bytes / 8; ++i) {
      std::uint64_t word;
      std::memcpy(&word, at + 8 * i, 8);
      data[i].store(word, std::memory_order_relaxed);  // published by P2; a reader that lost it is told by P3
      if (i == 0) QUEUEDUCT_FAILPOINT("message.half_copied");
    }
    if (bytes % 8 != 0) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + 8 * i, bytes % 8);
      data[i++].store(word, std::memory_order_relaxed);
    }
    for (; i < words_; ++i) data[i].store(0, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("message.copied");
  }

  void publish(const Claimed& claimed) noexcept {
    QUEUEDUCT_FAILPOINT("message.before_publish");
    message_lock(claimed.index).store(0, std::memory_order_release);  // release P2
    QUEUEDUCT_FAILPOINT("message.published");
  }

  // After the header was unlocked. What it finds is only believed after finish_get().
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

  // True: what was copied is the message. False: it was overwritten meanwhile, which is counted by this.
  [[nodiscard]] bool finish_get(std::uint32_t line, const Claimed& claimed) noexcept {
    const bool is_mine = unlock_read(claimed);
    std::atomic<std::uint64_t>& reading = memory_.reading(line);
    const std::uint64_t word = reading.load(std::memory_order_relaxed) & ~is_reading;
    // one store ends the get and says how: keeps I6. relaxed: nothing depends on a count
    reading.store(is_mine ? word : word + one_overwritten, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("reading.ended");
    return is_mine;
  }

  // The same for a place on the shelf; after False the place is to be ended.
  [[nodiscard]] bool finish_kept(std::uint32_t line, const Claimed& claimed, LeasedMessage& kept) noexcept {
    const bool is_mine = unlock_read(claimed);
    if (is_mine)
      leased_messages_.filled(kept.place, line);
    else
      leased_messages_.overtaken(kept, line);
    return is_mine;
  }

  // Under the header's lock: what was claimed for this place never came to be there.
  void end_place(const LeasedMessage& kept) noexcept {
    if (leased_messages_.word(kept.place) != kept.owner) return;  // somebody else has done it
    OverwritingCounts counts = memory_.counted();
    LeaseCounts leases = memory_.leases_counted();
    --counts.taken;
    ++(LeasedMessages::is_overtaken(kept.owner) ? counts.dropped : leases.lost);
    memory_.commit({places(), capacity_, 0, memory_.noted_at_place(kept.place), 0, counts, leases});  // keeps S4
  }

  // Under the header's lock, by the line's new owner: what the last one was reading when it died is lost with it.
  void bury_reading(std::uint32_t line) noexcept {
    QUEUEDUCT_FAILPOINT("reading.before_bury");
    memory_.reading(line).store(without_the_dead(line), std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("reading.abandoned");
  }

  struct Fates {
    std::uint64_t puts, delivered, overwritten, torn, lost_with_reader;
  };

  // Exact when nobody is at work.
  [[nodiscard]] Fates fates() const noexcept {
    const OverwritingCounts counts = memory_.counted();
    std::uint64_t lost = 0;
    std::uint64_t overwritten = 0;
    leased_messages_.count_half(lost, overwritten);
    for (std::uint32_t line = 0; line < participant_table_->used(); ++line) {
      const std::uint64_t word = memory_.reading(line).load(std::memory_order_relaxed);
      overwritten += (word >> 1) & overwritten_mask;
      lost += word >> lost_shift;
      lost += (word & is_reading) && !participant_table_->is_alive(line);
    }
    return {counts.puts, counts.taken - overwritten - lost, counts.dropped + overwritten, counts.torn,
            memory_.leases_counted().lost + lost};
  }

  [[nodiscard]] std::uint32_t index_of_next_put() const noexcept {
    const RingState at = places();
    if (!is_sound(at)) return 0;
    return at.length == capacity_ ? at.start : wrapped(std::uint64_t{at.start} + at.length);
  }
  [[nodiscard]] bool is_being_written(std::uint32_t index) const noexcept {
    const std::uint64_t seen = message_lock(index).load(std::memory_order_relaxed);
    return lock_word::has_role(seen, LockRole::writer) || lock_word::is_strangers(seen);
  }
  // A shutdown that ends gets at once throws away what is there.
  [[nodiscard]] bool is_discarded() const noexcept {
    return control_->closed.load(std::memory_order_relaxed) & closed_to_gets;
  }
  // Of messages that can be got.
  [[nodiscard]] std::uint32_t length() const noexcept { return is_discarded() ? 0 : places().length; }
  // Without the header's lock: it is empty at this moment, and not shut down.
  [[nodiscard]] bool looks_empty() const noexcept {
    return places().length == 0 && control_->closed.load(std::memory_order_relaxed) == 0;
  }
  // Shut down and empty, and not at once.
  [[nodiscard]] bool looks_ended() const noexcept {
    const std::uint32_t closed = control_->closed.load(std::memory_order_relaxed);
    return closed != 0 && !(closed & closed_to_gets) && places().length == 0;
  }
  [[nodiscard]] bool looks_gettable() const noexcept {
    const std::uint32_t closed = control_->closed.load(std::memory_order_relaxed);
    const RingState at = places();
    if (at.length == 0 || closed & closed_to_gets) return closed != 0;
    return !is_sound(at) || !is_being_written(at.start);
  }
  [[nodiscard]] bool looks_free() const noexcept {
    if (control_->closed.load(std::memory_order_relaxed) != 0) return true;
    return places().length < capacity_ &&
           message_lock(index_of_next_put()).load(std::memory_order_relaxed) == 0;
  }

 private:
  static constexpr std::uint64_t is_reading = 1;
  static constexpr std::uint64_t one_overwritten = 2;
  static constexpr std::uint64_t overwritten_mask = (std::uint64_t{1} << 43) - 1;
  static constexpr int lost_shift = 44;

  [[nodiscard]] bool is_sound(RingState at) const noexcept { return memory_.is_sound(at); }
  [[nodiscard]] std::uint32_t wrapped(std::uint64_t index) const noexcept {
    return static_cast<std::uint32_t>(index < capacity_ ? index : index - capacity_);
  }
  [[nodiscard]] std::atomic<std::uint64_t>* words_of(std::uint64_t index) const noexcept {
    return memory_.words_of(index);
  }

  [[nodiscard]] std::uint64_t without_the_dead(std::uint32_t line) const noexcept {
    const std::uint64_t word = memory_.reading(line).load(std::memory_order_relaxed);
    return word & is_reading ? (word & ~is_reading) + (std::uint64_t{1} << lost_shift) : word;
  }

  // Where a change notes who is reading, and what.
  struct Note {
    std::uint64_t at;
    std::uint64_t word;
    LeaseCounts leases;
  };

  // note(places, counts): as they are before the claim.
  template <class MakeNote>
  [[nodiscard, gnu::always_inline]] Claim claim_oldest(std::uint32_t line, Claimed& claimed, MakeNote note) noexcept {
    claimed.skipped = 0;
    for (;;) {
      const std::uint32_t closed = control_->closed.load(std::memory_order_relaxed);
      if (closed & closed_to_gets) return Claim::closed;
      RingState at = places();
      if (!is_sound(at)) return Claim::corrupt;
      OverwritingCounts counts = memory_.counted();
      claimed.position = counts.puts - at.length;
      if (at.length == 0) return closed != 0 ? Claim::closed : Claim::empty;
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
        memory_.commit({at, claimed.index, claimed.lock, 0, 0, counts});
        continue;
      }
      const Note noted = note(before, counts);
      ++counts.taken;
      claimed.lock = lock_word::of(*participant_table_, line, LockRole::reader);
      memory_.commit({at, claimed.index, claimed.lock, noted.at, noted.word, counts, noted.leases});
      return Claim::done;
    }
  }

  // True: what was copied out is the message, and its lock is free.
  [[nodiscard]] bool unlock_read(const Claimed& claimed) noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);  // acquire P3
    std::uint64_t expected = claimed.lock;
    QUEUEDUCT_FAILPOINT("message.before_release");
    const bool is_mine = message_lock(claimed.index).compare_exchange_strong(
        expected, 0, std::memory_order_release, std::memory_order_relaxed);  // release P4; keeps I3
    QUEUEDUCT_FAILPOINT("message.released");
    return is_mine;
  }

  OverwritingMemory memory_;
  LeasedMessages leased_messages_;
  OverwritingControl* control_;
  std::uint64_t capacity_;
  std::uint64_t words_;
  const ParticipantTable* participant_table_;
};

}  // namespace queueduct
