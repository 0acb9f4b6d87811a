// The shelf of an overwriting queue: where messages on lease are kept, out of the ring.
//
// Shape      place   0: free ─► filler: being copied there ─┬─► keeper: whole ─┬─► 0
//                                                           │                  └─► its keeper is gone: another keeper
//                                                           └─► overtaken: overwritten meanwhile ─► 0
//            A put never waits for a reader, so what is to outlive its reader cannot stay in the ring. A place's word
//            names its owner as a lock does (overwriting_lock.hpp); beside it stand the message's position and data.
// Roles      leases fill and release, gets and leases take over what the dead and those who gave back have left.
// Invariants S1  a place is filled by a change in the journal only, from 0, under the header's lock: the one that takes
//                the message from the queue. So a message is in the queue or on the shelf, never on both or neither.
//            S2  the data of a place is written by its filler, and by nobody once it has a keeper.
//            S3  a place whose keeper is gone (dead, or its line let go) is taken over by one compare-and-swap from
//                that keeper's word, which nobody ever stores again (N1): so by one, and by another if that one dies.
//            S4  a place whose filler is gone has half a message: it is lost with its reader, and counted as that until
//                somebody with the header's lock makes it free and counts it for good, by one change. A filler that
//                was overtaken says so by one store: from then on it is counted as overwritten, until the same change.
//            S5  a keeper frees a place by one store of 0: what is released never comes again.
// Progress   lock-free, but for filling and burying, which take the header's lock.
// Source     ours; killed at every step in tests/native/crash_overwriting.cpp.
//
// Memory orders come in pairs:
//   P5  filled() and make() of the journal: release   with acquire in word(): the place's position, and its data
//   P6  release_place(), overtaken(): release         with acquire in word(), by the next filler: who had the place has
//                                                     read, or written, the last of it. overtaken() by way of the one
//                                                     who abandons it, whose own release is make()'s
#pragma once

#include <algorithm>

#include "overwriting/journal.hpp"

namespace queueduct {

// A message on the shelf.
struct LeasedMessage {
  std::uint64_t position;
  std::uint64_t place;
  std::uint64_t owner;  // the place's word when it was found
};

class LeasedMessages {
 public:
  LeasedMessages(std::byte* base, const OverwritingOffsets& at, const OverwritingMemory& memory,
                   const ParticipantTable* participant_table) noexcept
      : words_(reinterpret_cast<std::atomic<std::uint64_t>*>(base + at.shelf_words)),
        positions_(reinterpret_cast<std::atomic<std::uint64_t>*>(base + at.shelf_positions)),
        data_(base + at.shelf_data),
        data_offset_(at.shelf_data),
        memory_(memory),
        participant_table_(participant_table),
        places_(shelf_places(memory.capacity(), memory.words())) {}

  [[nodiscard]] std::uint64_t places() const noexcept { return places_; }
  [[nodiscard]] std::uint64_t message_bytes() const noexcept { return 8 * memory_.words(); }
  // In the segment: it has no memory before somebody asks for it.
  [[nodiscard]] std::uint64_t data_offset() const noexcept { return data_offset_; }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return places_ * message_bytes(); }
  [[nodiscard]] std::byte* data(std::uint64_t place) const noexcept { return data_ + place * message_bytes(); }
  [[nodiscard]] std::uint64_t word(std::uint64_t place) const noexcept {
    return words_[place].load(std::memory_order_acquire);  // acquire P5, P6
  }
  [[nodiscard]] std::uint64_t position(std::uint64_t place) const noexcept {
    return positions_[place].load(std::memory_order_relaxed);  // P5
  }
  // The shared word is only believed within the shelf. 0: nobody has ever leased.
  [[nodiscard]] std::uint64_t used() const noexcept {
    const std::uint64_t used = memory_.control().shelf_used.load(std::memory_order_acquire);
    return used < places_ ? used : places_;
  }

  // Without a lock, so it may be another's by the time of the claim. The lowest one: scans are as short as can be.
  [[nodiscard]] bool find_free(std::uint64_t& place) const noexcept {
    for (; place < places_; ++place)
      if (word(place) == 0) return true;
    return false;
  }

  // Under the header's lock, of a free place, before the change that fills it.
  void address(std::uint64_t place, std::uint64_t position) noexcept {
    QUEUEDUCT_FAILPOINT("shelf.before_address");
    positions_[place].store(position, std::memory_order_relaxed);  // published by P5
    std::atomic<std::uint64_t>& used = memory_.control().shelf_used;
    // release: who scans after the change must look this far
    if (used.load(std::memory_order_relaxed) <= place) used.store(place + 1, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("shelf.addressed");
  }

  // The data is whole, and ours to keep.
  void filled(std::uint64_t place, std::uint32_t line) noexcept {
    QUEUEDUCT_FAILPOINT("shelf.before_filled");
    words_[place].store(lock_word::of(*participant_table_, line, LockRole::keeper), std::memory_order_release);  // release P5
    QUEUEDUCT_FAILPOINT("shelf.filled");
  }

  // What was copied there is not the message. keeps S4
  void overtaken(LeasedMessage& kept, std::uint32_t line) noexcept {
    kept.owner = lock_word::of(*participant_table_, line, LockRole::overtaken);
    QUEUEDUCT_FAILPOINT("shelf.before_overtaken");
    words_[kept.place].store(kept.owner, std::memory_order_release);  // release P6: our copy ends before the next begins
    QUEUEDUCT_FAILPOINT("shelf.overtaken");
  }

  // keeps S5
  void release_place(std::uint64_t place) noexcept {
    QUEUEDUCT_FAILPOINT("shelf.before_release");
    words_[place].store(0, std::memory_order_release);  // release P6
    QUEUEDUCT_FAILPOINT("shelf.released");
  }

  // What nobody keeps any more, the oldest first and at most so many, is kept by us now.
  [[nodiscard]] std::uint64_t take_over(std::uint32_t line, LeasedMessage* taken, std::uint64_t limit) noexcept {
    const std::uint64_t me = lock_word::of(*participant_table_, line, LockRole::keeper);
    const std::uint64_t left = list_left(taken, limit);
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < left; ++i) {
      std::uint64_t owner = taken[i].owner;
      QUEUEDUCT_FAILPOINT("shelf.before_take_over");
      // acquire P5; keeps S3
      if (!words_[taken[i].place].compare_exchange_strong(owner, me, std::memory_order_acquire)) continue;
      QUEUEDUCT_FAILPOINT("shelf.taken_over");
      memory_.control().redelivered.fetch_add(1, std::memory_order_relaxed);  // nothing depends on a count
      taken[count++] = {taken[i].position, taken[i].place, me};
    }
    return count;
  }

  // How many nobody keeps any more.
  [[nodiscard]] std::uint64_t count_left() const noexcept {
    std::uint64_t left = 0;
    std::uint64_t asked = 0;  // few owners are asked for, as in list_left()
    bool is_alive = false;
    for (std::uint64_t place = 0, end = used(); place < end; ++place) {
      const std::uint64_t owner = word(place);
      if (!lock_word::has_role(owner, LockRole::keeper)) continue;
      if (owner != asked) is_alive = lock_word::is_alive(*participant_table_, asked = owner);
      left += !is_alive;
    }
    return left;
  }

  // A place in which no message will be, from `place` on: its filler is gone, or was overtaken.
  [[nodiscard]] bool find_half(std::uint64_t& place, std::uint64_t& owner) const noexcept {
    for (const std::uint64_t end = used(); place < end; ++place) {
      owner = word(place);
      if (is_overtaken(owner)) return true;
      if (lock_word::has_role(owner, LockRole::filler) && !lock_word::is_alive(*participant_table_, owner)) return true;
    }
    return false;
  }
  [[nodiscard]] static bool is_overtaken(std::uint64_t owner) noexcept {
    return lock_word::has_role(owner, LockRole::overtaken);
  }
  // Of such places: what was lost with its filler, and what was overwritten.
  void count_half(std::uint64_t& lost, std::uint64_t& overwritten) const noexcept {
    std::uint64_t owner;
    for (std::uint64_t place = 0; find_half(place, owner); ++place) ++(is_overtaken(owner) ? overwritten : lost);
  }

  // How many messages are on lease, or were and are to come again; at most `limit`. Half a message never comes.
  [[nodiscard]] std::uint64_t count_kept(std::uint64_t limit) const noexcept {
    std::uint64_t count = 0;
    for (std::uint64_t place = 0, end = used(); place < end && count < limit; ++place) {
      const std::uint64_t owner = word(place);
      count += lock_word::has_role(owner, LockRole::keeper) ||
               (lock_word::has_role(owner, LockRole::filler) && lock_word::is_alive(*participant_table_, owner));
    }
    return count;
  }

  // Positions that somebody has claimed and nobody released, at most so many, in no order.
  [[nodiscard]] std::uint64_t list(std::int64_t* positions, std::uint64_t limit) const noexcept {
    std::uint64_t count = 0;
    for (std::uint64_t place = 0, end = used(); place < end && count < limit; ++place)
      if (const std::uint64_t owner = word(place); owner != 0 && !is_overtaken(owner))
        positions[count++] = static_cast<std::int64_t>(position(place));
    return count;
  }

 private:
  // Those whose keeper is gone, the oldest so many of them, by position. Few owners are asked for: a lease has one.
  [[nodiscard]] std::uint64_t list_left(LeasedMessage* left, std::uint64_t limit) const noexcept {
    const auto is_older = [](const LeasedMessage& one, const LeasedMessage& other) { return one.position < other.position; };
    std::uint64_t count = 0;
    std::uint64_t living = 0;
    std::uint64_t gone = 0;
    for (std::uint64_t place = 0, end = used(); place < end; ++place) {
      const std::uint64_t owner = word(place);
      if (owner == living || !lock_word::has_role(owner, LockRole::keeper)) continue;
      if (owner != gone) {
        const bool is_alive = lock_word::is_alive(*participant_table_, owner);
        (is_alive ? living : gone) = owner;
        if (is_alive) continue;
      }
      const LeasedMessage found{position(place), place, owner};
      if (count < limit) {
        left[count++] = found;
      } else if (is_older(found, left[0])) {  // the latest of them makes way
        std::pop_heap(left, left + count, is_older);
        left[count - 1] = found;
      } else {
        continue;
      }
      std::push_heap(left, left + count, is_older);
    }
    std::sort_heap(left, left + count, is_older);
    return count;
  }

  std::atomic<std::uint64_t>* words_;
  std::atomic<std::uint64_t>* positions_;
  std::byte* data_;
  std::uint64_t data_offset_;
  OverwritingMemory memory_;
  const ParticipantTable* participant_table_;
  std::uint64_t places_;
};

}  // namespace queueduct
