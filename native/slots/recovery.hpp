// Recovery of dead participants' slots: slots become free again, items are redelivered.
//
// Shape      one compare-and-swap a slot, from the word that names the dead:
//              HELD                            --> STRAY
//              ARRIVING  in `used`? --yes--> QUEUED      --no--> STRAY      (its put never returned)
//              TAKEN                           --> ORPHANED
//              LEAVING   in `free`? --yes--> FREE        --no--> STRAY
// Roles      any participant, at any time, also several at once; a recoverer needs no line of its own.
// Invariants V1  a line's slots are recovered under its lock in the participant table: its owner is dead, and it has no
//                next one. So only other recoverers and claims change a word that names the line.
//            V2  both heads are moved on past a claimed slot before its word becomes anything else (S2).
//            V3  a slot of the dead that is in `used`, or `free`, leaves it by a claim only, and a claim changes the
//                word. So if it was found in neither, and the word is still the same, it never was there.
//                (Without this test an item whose put returned could be lost, or a slot be in a queue twice.)
//            V4  before a slot becomes STRAY, the claim of the named producer that held it is cut (K2).
//            V5  a line is used again only when nothing names it any more: its intent is set as long as it has an
//                owner, and is cleared after this (R2).
// Progress   lock-free; one pass over the slots for all that have died.
#pragma once

#include "segment/participants.hpp"
#include "slots/put_once.hpp"

namespace queueduct {

class SlotsRecovery {
 public:
  SlotsRecovery(Slots& slots, ParticipantTable& participant_table, ProducerLines producers) noexcept
      : slots_(slots), participant_table_(participant_table), producers_(producers) {}

  // A participant's line is marked as long as it lives. keeps V5
  static constexpr std::uint64_t present = 1;

  // Finds dead participants and recovers their slots. Returns true if anything changed.
  [[nodiscard]] bool run() noexcept {
    bool changed = false;
    participant_table_.clear_all_settled([&](auto has_died) { changed = recover_all(has_died); });
    return changed;
  }

  // Everything that names this line. Called with its lock held: V1.
  bool recover_line(std::uint32_t line) noexcept {
    return recover_all([line](std::uint32_t named) { return named == line; });
  }

 private:
  using State = slot_word::State;

  // The same for several lines.
  template <class HasDied>
  [[nodiscard]] bool recover_all(HasDied has_died) noexcept {
    bool changed = false;
    for (std::uint64_t slot = 0; slot < slots_.count(); ++slot) {
      std::uint64_t word = slots_.word_of(slot);
      while (slot_word::owner_of(word) != 0 && has_died(static_cast<std::uint32_t>(slot_word::owner_of(word) - 1))) {
        if (recover_slot(slot, word)) changed = true;
        word = slots_.word_of(slot);  // no live participant writes this name: it is gone, or another recoverer's turn
      }
    }
    return changed;
  }

  [[nodiscard]] bool recover_slot(std::uint64_t slot, std::uint64_t word) noexcept {
    pass_heads(slot);
    QUEUEDUCT_FAILPOINT("recover.before_swap");
    const State to = next_state(slot, word);
    if (to == State::stray) {
      if (slots_.word_of(slot) != word) return false;  // V3: only now is it certain
      QUEUEDUCT_FAILPOINT("recover.is_stray");
      cut_claims(producers_, slot, word);  // keeps V4
    }
    if (!slots_.swap(slot, word, to, 0)) return false;
    QUEUEDUCT_FAILPOINT("recover.swapped");
    SlotsControl& control = slots_.control();
    if (to == State::stray) {
      control.may_be_stray.store(1, std::memory_order_release);
      control.recovered.fetch_add(1, std::memory_order_relaxed);  // a statistic
    }
    if (to == State::orphaned) control.may_be_orphaned.store(1, std::memory_order_release);
    return true;
  }

  [[nodiscard]] State next_state(std::uint64_t slot, std::uint64_t word) const noexcept {
    switch (slot_word::state_of(word)) {  // V3
      case State::arriving: return slots_.used().contains(slot) ? State::queued : State::stray;
      case State::leaving: return slots_.free().contains(slot) ? State::free : State::stray;
      case State::taken: return State::orphaned;
      case State::held: return State::stray;
      default: return slot_word::state_of(word);  // a corrupt word: these states have no owner; drop the name
    }
  }

  // keeps V2
  void pass_heads(std::uint64_t slot) noexcept {
    pass_head(slots_.free(), slot, slot_word::can_be_held);
    pass_head(slots_.used(), slot, slot_word::can_be_taken);
  }
  template <class Claimable>
  void pass_head(IndexQueue& queue, std::uint64_t slot, Claimable is_claimable) noexcept {
    const IndexQueue::Front front = queue.front();
    if (front.seen != IndexQueue::Seen::index || front.index != slot) return;
    const std::uint64_t word = slots_.word_of(slot);
    QUEUEDUCT_FAILPOINT("recover.read_front");
    if (!is_claimable(word) && queue.is_front(front.at)) queue.advance_head(front.at);
  }

  Slots& slots_;
  ParticipantTable& participant_table_;
  ProducerLines producers_;
};

}  // namespace queueduct
