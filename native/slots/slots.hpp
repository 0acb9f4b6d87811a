// Slots: memory that is loaned, filled, queued, taken, read and loaned again, without a copy.
//
// Shape      free --hold--> HELD(me) --publish--> used --take--> TAKEN(me) --leave--> free
//            `free` and `used` are index queues; each slot has a word with its state and owner:
//              | generation : 46 | owner's line + 1 : 15 | state : 3 |
//              FREE             in `free`
//              HELD(owner)      loaned, no item; in neither queue
//              ARRIVING(owner)  its item is complete; going into `used`, or just there
//              QUEUED           in `used`
//              TAKEN(owner)     its item is being read; in neither queue
//              LEAVING(owner)   its item is over; going into `free`, or just there
//              STRAY            its owner died, no item: to be brought back into `free`
//              ORPHANED         its owner died or gave it back: its item is to be redelivered
// Roles      any number of participants, each with a line of the participant table; any of them recovers
//            (slots/recovery.hpp).
// Invariants S1  a slot is claimed by the compare-and-swap of its word while it is at the front of a queue. Only then
//                is that queue's head moved, by the claimer or by any participant that sees the claim. So a slot is
//                never out of both queues without an owner in its word, at whatever step a participant dies.
//            S2  a claimed word becomes claimable for the same queue again (FREE, LEAVING; QUEUED, ARRIVING) only
//                after that head has moved: so a participant that reads the word, and then finds the head where it
//                was, has read a word of this stay in the queue.
//            S3  each change of a word raises its generation: a compare-and-swap from an old word fails.
//            S4  only the owner writes a slot's bytes, length, position and arrival, and only while it is HELD or
//                ARRIVING.
//            S5  at most `capacity` slots are out of `free`; but for those loaned before it was lowered.
//            S6  shutdown() sees every publish that succeeds: a publish after it has read the words fails.
//            S7  from its arrival to its end an item is claimed by one generation, and comes back by the next one:
//                  ARRIVING --> [QUEUED] --> claimed --> ORPHANED --> claimed --> ORPHANED --> claimed ...
//                So the distance from the arrival tells how often it was delivered, and a kill cannot come between
//                a delivery and its count.
// Progress   lock-free. A stopped participant keeps the slots that it owns, and nothing else.
// Source     a queue of data as two queues of indices, free and used (SCQ, section 2: Nikolaev 2019); the owner words
//            and recovery are ours.
//
// Memory orders come in pairs, besides those of slots/index_queue.hpp:
//   P1  swap():  acq_rel compare-and-swap of a word  with acquire load of it: all that its owners before did, and
//                the moves of head that they saw (S2)
//   P2  seq_cst  swap() to ARRIVING, then load of `closed`; shut_down() sets `closed`, then loads the words. One of
//                the two must see the other (S6), which release and acquire do not promise: each is a store and
//                then a load of another word. The same with `capacity` and the claims of try_hold() (S5).
#pragma once

#include "slots/layout.hpp"

namespace queueduct {

namespace slot_word {

enum class State : std::uint8_t { free, held, arriving, queued, taken, leaving, stray, orphaned };

inline constexpr unsigned owner_shift = 3;
inline constexpr unsigned generation_shift = 18;
inline constexpr std::uint64_t owner_mask = (std::uint64_t{1} << (generation_shift - owner_shift)) - 1;
static_assert(participants_limit < owner_mask);

[[nodiscard]] constexpr State state_of(std::uint64_t word) noexcept { return static_cast<State>(word & 7); }
[[nodiscard]] constexpr std::uint32_t owner_of(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> owner_shift & owner_mask);
}
// The word after this one. keeps S3
[[nodiscard]] constexpr std::uint64_t next(std::uint64_t word, State state, std::uint32_t owner) noexcept {
  return ((word >> generation_shift) + 1) << generation_shift | std::uint64_t{owner} << owner_shift |
         static_cast<std::uint64_t>(state);
}

[[nodiscard]] constexpr std::uint64_t generation_of(std::uint64_t word) noexcept { return word >> generation_shift; }
// How often an item has been delivered whose claim made this word. Generations wrap. keeps S7
[[nodiscard]] constexpr std::uint64_t count_deliveries(std::uint64_t word, std::uint64_t arrival) noexcept {
  const std::uint64_t steps = (generation_of(word) - arrival) << generation_shift >> generation_shift;
  return (steps + 1) / 2;
}

[[nodiscard]] constexpr bool can_be_held(std::uint64_t word) noexcept {
  return state_of(word) == State::free || state_of(word) == State::leaving;
}
[[nodiscard]] constexpr bool can_be_taken(std::uint64_t word) noexcept {
  return state_of(word) == State::queued || state_of(word) == State::arriving;
}

}  // namespace slot_word

enum class SlotOutcome : std::uint8_t {
  done,
  full,     // no slot to fill now
  empty,    // no item to read now
  closed,   // shut down
  corrupt,  // the shared words contradict each other
};

// A slot that the caller has to itself: HELD or TAKEN.
struct Lease {
  std::uint64_t slot = 0;
  std::uint64_t word = 0;
  std::uint64_t bytes = 0;       // of its item
  std::uint64_t position = 0;    // of its item
  std::uint64_t deliveries = 0;  // of its item, this one included
  bool redelivered = false;      // another participant had it before
  std::byte* data = nullptr;
};

class Slots {
 public:
  using State = slot_word::State;
  static constexpr std::uint32_t puts_closed = 1;
  static constexpr std::uint32_t gets_closed = 2;

  Slots(SlotsControl* control, IndexQueue free, IndexQueue used, SlotLine* lines, std::byte* payload,
        std::uint64_t count, std::uint64_t slot_bytes, std::uint64_t stride) noexcept
      : control_(control), free_(free), used_(used), lines_(lines), payload_(payload), count_(count),
        slot_bytes_(slot_bytes), stride_(stride) {}

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] IndexQueue& free() noexcept { return free_; }
  [[nodiscard]] IndexQueue& used() noexcept { return used_; }
  [[nodiscard]] SlotsControl& control() const noexcept { return *control_; }
  [[nodiscard]] std::uint64_t word_of(std::uint64_t slot) const noexcept {
    return lines_[slot].word.load(std::memory_order_acquire);  // acquire P1
  }

  // The shared word is only believed within the slots there are.
  [[nodiscard]] std::uint64_t capacity() const noexcept {
    const std::uint64_t capacity = control_->capacity.load(std::memory_order_seq_cst);  // P2
    return capacity >= 1 && capacity <= count_ ? capacity : count_;
  }
  [[nodiscard]] std::uint32_t closed() const noexcept {
    return control_->closed.load(std::memory_order_seq_cst);  // P2
  }

  // A slot to fill: done, full, closed or corrupt.
  [[nodiscard]] SlotOutcome try_hold(std::uint32_t me, Lease& lease) noexcept {
    if (closed() & puts_closed) return SlotOutcome::closed;
    for (;;) {
      const std::uint64_t allowed = capacity();
      const SlotOutcome outcome = claim(free_, count_ - allowed + 1, slot_word::can_be_held, State::held, me, lease);
      if (outcome != SlotOutcome::done) return outcome == SlotOutcome::empty ? SlotOutcome::full : outcome;
      lease.bytes = slot_bytes_;
      // P2: set_capacity() either sees our claim, or we see its number. keeps S5
      const std::uint64_t now = capacity();
      if (now >= allowed || free_.size() >= count_ - now) return SlotOutcome::done;
      if (!leave(lease)) return SlotOutcome::corrupt;
    }
  }

  // Publishes a complete item. After closed the slot is back in `free`; after corrupt it is lost.
  // refused() is called before a slot goes back whose item was never in the queue.
  template <class Refused>
  [[nodiscard]] SlotOutcome publish(Lease& lease, std::uint64_t bytes, Refused refused) noexcept {
    SlotLine& line = lines_[lease.slot];
    const std::uint32_t me = slot_word::owner_of(lease.word);
    line.length.store(bytes, std::memory_order_relaxed);  // Q1 carries it out
    QUEUEDUCT_FAILPOINT("slots.before_arrival");
    const std::uint64_t arrives = slot_word::next(lease.word, State::arriving, me);
    line.arrival.store(slot_word::generation_of(arrives), std::memory_order_relaxed);  // Q1 carries it out
    QUEUEDUCT_FAILPOINT("slots.arrival_noted");
    if (!swap(lease.slot, lease.word, State::arriving, me)) return SlotOutcome::corrupt;
    QUEUEDUCT_FAILPOINT("slots.arriving");
    if (closed() & puts_closed) {  // P2; keeps S6
      refused();
      return leave(lease) ? SlotOutcome::closed : SlotOutcome::corrupt;
    }
    const bool pushed = used_.push(lease.slot, [&](std::uint64_t at) {
      lease.position = used_.cyclic().ordinal(at);
      line.position.store(lease.position, std::memory_order_relaxed);  // Q1 carries it out
    });
    if (!pushed) return SlotOutcome::corrupt;
    QUEUEDUCT_FAILPOINT("slots.published");
    (void)swap(lease.slot, lease.word, State::queued, 0);  // fails if it is taken by now: the same to us
    return SlotOutcome::done;
  }
  [[nodiscard]] SlotOutcome publish(Lease& lease, std::uint64_t bytes) noexcept {
    return publish(lease, bytes, [] {});
  }

  // An item to read: done, empty, closed (no more gets) or corrupt. ORPHANED items come first: they are the oldest.
  [[nodiscard]] SlotOutcome try_take(std::uint32_t me, Lease& lease) noexcept {
    if (closed() & gets_closed) return SlotOutcome::closed;
    return claim_oldest(State::taken, me, lease);
  }

  // The same, without ORPHANED items.
  [[nodiscard]] SlotOutcome try_take_new(std::uint32_t me, Lease& lease) noexcept {
    if (closed() & gets_closed) return SlotOutcome::closed;
    return claim(used_, 1, slot_word::can_be_taken, State::taken, me, lease);
  }

  // The oldest item's slot, to be filled anew; what is in it until then is the evicted item's.
  [[nodiscard]] SlotOutcome try_evict(std::uint32_t me, Lease& lease) noexcept {
    if (closed() & puts_closed) return SlotOutcome::closed;
    const SlotOutcome outcome = claim_oldest(State::held, me, lease);
    if (outcome == SlotOutcome::done) control_->evicted.fetch_add(1, std::memory_order_relaxed);  // a statistic
    return outcome;
  }

  // The same while more slots are out than `capacity` allows.
  [[nodiscard]] SlotOutcome try_evict_surplus(std::uint32_t me, Lease& lease) noexcept {
    if (free_.size() >= count_ - capacity()) return SlotOutcome::empty;
    const SlotOutcome outcome = claim_oldest(State::held, me, lease);
    if (outcome == SlotOutcome::done) control_->evicted.fetch_add(1, std::memory_order_relaxed);  // a statistic
    return outcome;
  }

  // Gives a slot back, its item released. Returns false if the words contradict each other.
  [[nodiscard]] bool leave(Lease& lease) noexcept {
    if (!swap(lease.slot, lease.word, State::leaving, slot_word::owner_of(lease.word))) return false;
    QUEUEDUCT_FAILPOINT("slots.leaving");
    if (!free_.push(lease.slot)) return false;
    QUEUEDUCT_FAILPOINT("slots.left");
    (void)swap(lease.slot, lease.word, State::free, 0);  // fails if another participant holds it by now
    return true;
  }

  // A taken item that its consumer did not use: it is redelivered, flagged.
  [[nodiscard]] bool put_back(Lease& lease) noexcept {
    if (!swap(lease.slot, lease.word, State::orphaned, 0)) return false;
    QUEUEDUCT_FAILPOINT("slots.orphaned");
    control_->may_be_orphaned.store(1, std::memory_order_release);
    return true;
  }

  // Brings the strays back into `free`. Returns how many.
  [[nodiscard]] std::uint64_t gather_strays(std::uint32_t me) noexcept {
    // before the scan, so that a recoverer that adds one later sets it again. Relaxed: one that this misses for want of
    // an order is found without the hint, by recover_if_due()
    control_->may_be_stray.store(0, std::memory_order_relaxed);
    std::uint64_t gathered = 0;
    for (std::uint64_t slot = 0; slot < count_; ++slot) {
      Lease lease{slot, word_of(slot)};
      if (slot_word::state_of(lease.word) != State::stray) continue;
      if (!swap(slot, lease.word, State::held, me)) continue;
      QUEUEDUCT_FAILPOINT("slots.gathering");
      gathered += leave(lease);
    }
    return gathered;
  }

  // Claims the oldest ORPHANED item, if there is one.
  [[nodiscard]] bool claim_orphan(State to, std::uint32_t me, Lease& lease) noexcept {
    control_->may_be_orphaned.store(0, std::memory_order_relaxed);  // as above
    // the oldest, by position: read before the claim, and so a hint when others claim as well
    std::uint64_t oldest = count_;
    for (std::uint64_t slot = 0; slot < count_; ++slot) {
      if (slot_word::state_of(word_of(slot)) != State::orphaned) continue;
      if (oldest == count_ || position_of(slot) < position_of(oldest)) oldest = slot;
    }
    if (oldest == count_) return false;
    control_->may_be_orphaned.store(1, std::memory_order_release);  // there may be more
    return claim_orphan(oldest, to, me, lease);
  }

  // Claims the ORPHANED item of this slot, if there is one.
  [[nodiscard]] bool claim_orphan(std::uint64_t slot, State to, std::uint32_t me, Lease& lease) noexcept {
    lease = Lease{slot, word_of(slot)};
    if (slot_word::state_of(lease.word) != State::orphaned) return false;
    QUEUEDUCT_FAILPOINT("slots.before_redelivery");
    if (!swap(slot, lease.word, to, me)) return false;
    QUEUEDUCT_FAILPOINT("slots.redelivered");
    lease.redelivered = true;
    if (to == State::taken) control_->redelivered.fetch_add(1, std::memory_order_relaxed);  // a statistic
    return read_line(lease);
  }

  // Changes a word that is still `word`. keeps S3
  [[nodiscard]] bool swap(std::uint64_t slot, std::uint64_t& word, State state, std::uint32_t owner) noexcept {
    const std::uint64_t to = slot_word::next(word, state, owner);
    std::uint64_t expected = word;
    QUEUEDUCT_FAILPOINT("slots.before_swap");
    // P1, P2
    if (!lines_[slot].word.compare_exchange_strong(expected, to, std::memory_order_seq_cst, std::memory_order_acquire))
      return false;
    QUEUEDUCT_FAILPOINT("slots.swapped");
    word = to;
    return true;
  }

  // How many items were ever published.
  [[nodiscard]] std::uint64_t published() const noexcept { return used_.cyclic().ordinal(used_.seen_tail()); }

  // How many slots are in one of these states. A snapshot.
  template <class Wanted>
  [[nodiscard]] std::uint64_t count_words(Wanted wanted) const noexcept {
    std::uint64_t found = 0;
    for (std::uint64_t slot = 0; slot < count_; ++slot) found += wanted(word_of(slot));
    return found;
  }

  [[nodiscard]] bool may_be_holdable() noexcept {
    return free_.size() > count_ - capacity() || control_->may_be_stray.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] bool may_be_takeable() noexcept {
    return used_.front().seen == IndexQueue::Seen::index ||
           control_->may_be_orphaned.load(std::memory_order_relaxed) != 0;
  }

  // relaxed: exact for the slot's owner, since P1 carried it there; for others a hint
  [[nodiscard]] std::uint64_t position_of(std::uint64_t slot) const noexcept {
    return lines_[slot].position.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] SlotOutcome claim_oldest(State to, std::uint32_t me, Lease& lease) noexcept {
    const bool may_be_orphaned = control_->may_be_orphaned.load(std::memory_order_acquire) != 0;
    if (may_be_orphaned && claim_orphan(to, me, lease)) return SlotOutcome::done;
    return claim(used_, 1, slot_word::can_be_taken, to, me, lease);
  }

  // The slot at the front of a queue that has at least so many: its word first, then the head. keeps S1, S2
  template <class Claimable>
  [[nodiscard]] SlotOutcome claim(IndexQueue& queue, std::uint64_t least, Claimable is_claimable, State to,
                                  std::uint32_t me, Lease& lease) noexcept {
    for (;;) {
      const IndexQueue::Front front = queue.front();
      if (front.seen == IndexQueue::Seen::corrupt) return SlotOutcome::corrupt;
      if (front.seen == IndexQueue::Seen::nothing) {
        lease.position = queue.cyclic().ordinal(front.at);  // which would be next
        return SlotOutcome::empty;
      }
      if (least > 1 && !queue.has_at_least(least, front.at)) {
        if (queue.is_front(front.at)) return SlotOutcome::empty;
        continue;
      }
      lease = Lease{front.index, word_of(front.index)};
      QUEUEDUCT_FAILPOINT("slots.read_word");
      if (!queue.is_front(front.at)) continue;  // S2
      const bool claimed = is_claimable(lease.word) && swap(front.index, lease.word, to, me);
      if (!claimed && is_claimable(word_of(front.index))) continue;  // a recoverer was here
      queue.advance_head(front.at);                                  // S1
      if (claimed) return read_line(lease) ? SlotOutcome::done : SlotOutcome::corrupt;
    }
  }

  // A peer may have written anything there: the length is checked against the slot.
  [[nodiscard]] bool read_line(Lease& lease) const noexcept {
    lease.bytes = lines_[lease.slot].length.load(std::memory_order_relaxed);
    lease.position = position_of(lease.slot);
    const std::uint64_t arrival = lines_[lease.slot].arrival.load(std::memory_order_relaxed);  // as the position
    lease.deliveries = slot_word::count_deliveries(lease.word, arrival);
    lease.data = payload_ + lease.slot * stride_;
    return lease.bytes <= slot_bytes_;
  }

  SlotsControl* control_;
  IndexQueue free_;
  IndexQueue used_;
  SlotLine* lines_;
  std::byte* payload_;
  std::uint64_t count_;
  std::uint64_t slot_bytes_;
  std::uint64_t stride_;
};

}  // namespace queueduct
