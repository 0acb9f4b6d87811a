// The lock of upkeep, as one process has it: who gives or takes memory, or looks at all of it, holds this.
//
// Shape      note in the line ─► take the lock ─► redo what a dead owner left ─► … ─► unlock ─► clear the line
//            who joins has no line, and holds a number in the file meanwhile
// Roles      participants enter and leave, with no intent outstanding; others do as joiners, one at a time.
// Invariants U1  a line says that its owner is at the lock from before it asks for it until after it has let go (K5).
//            U2  who has entered has redone what the last owner began (M4).
//            U3  before a dead one's line, or the joiners' number, has a new owner the lock names it no more (K4).
// Progress   blocking, up to the limit that the caller gives; of a limit of 0 only a dead owner's lock is taken over.
// Source     ours; K1 to K5 and their memory orders are in robust_lock.hpp, M4 in growing_memory.hpp.
#pragma once

#include "growing/memory.hpp"
#include "ring/claims.hpp"
#include "segment/robust_lock.hpp"

namespace queueduct {

class UpkeepLock {
 public:
  static constexpr std::int64_t moment_ns = 1'000'000;  // for who never waits, and has the GIL

  // Without participants, of a queue within a process: threads are all that enters.
  UpkeepLock(ParticipantTable* participant_table, Upkeep& upkeep, std::atomic<std::uint64_t>* word) noexcept
      : participant_table_(participant_table), upkeep_(upkeep), word_(word), lock_(word) {}

  // Before it is asked for, the line says that its owner is at it: no intent may be outstanding. keeps U1
  [[nodiscard]] bool enter(bool must) noexcept { return enter_within(must ? moment_ns : 0); }
  [[nodiscard]] bool enter_within(std::int64_t limit_ns) noexcept {
    if (participant_table_ == nullptr) return enter_in_process(limit_ns);
    Participant ledger;
    if (!find_participant(*participant_table_, ledger) || participant_table_->is_lost()) return false;  // without its file nobody is at the memory
    const std::uint32_t line = ledger.number();
    participant_table_->lines()[line].intent.store(at_the_lock, std::memory_order_release);
    QUEUEDUCT_FAILPOINT("upkeep.noted");
    Locked locked = lock_.try_lock(line);
    if (locked == Locked::no && (limit_ns != 0 || is_owner_dead()))
      locked = lock_.lock(line, [this](std::uint32_t owner) { return is_alive(owner); }, limit_ns);
    if (locked == Locked::no) {
      ledger.clear();
      return false;
    }
    QUEUEDUCT_FAILPOINT("upkeep.entered");
    upkeep_.redo(file());  // U2
    return true;
  }
  void leave() noexcept {
    lock_.unlock();
    QUEUEDUCT_FAILPOINT("upkeep.left");
    Participant ledger;
    if (participant_table_ != nullptr && find_participant(*participant_table_, ledger)) ledger.clear();
  }
  [[nodiscard]] int file() const noexcept { return participant_table_ == nullptr ? -1 : participant_table_->descriptor(); }

  // Who joins has no line of its own to enter with, so there is one number more for those, and a lock in the file
  // that says whether its holder lives. False: somebody else has that, or the lock.
  template <class Use>
  [[nodiscard]] bool as_joiner(std::int64_t limit_ns, Use use) noexcept {
    if (!participant_table_->hold(joiner)) return false;
    lock_.orphan(joiner);  // U3: an earlier joiner's, who died
    Locked locked = lock_.try_lock(joiner);
    if (locked == Locked::no && limit_ns != 0)
      locked = lock_.lock(joiner, [this](std::uint32_t owner) { return is_alive(owner); }, limit_ns);
    const bool is_entered = locked != Locked::no;
    if (is_entered) {
      upkeep_.redo(file());  // U2
      use();
      lock_.unlock();
    }
    participant_table_->let_go(joiner);
    return is_entered;
  }

  // Calls use() while nothing is given back, so that it can look at everything. If somebody has the lock for long, also
  // without it: then what it sees is still true, but pages that were just given back may come again.
  template <class Use>
  void with_upkeep_lock(Use use) noexcept {
    Participant ledger;
    if (find_participant(*participant_table_, ledger)) {
      const bool is_entered = enter_within(moment_ns);
      use();
      if (is_entered) leave();
    } else if (!as_joiner(moment_ns, use)) {
      use();
    }
  }

  // Of somebody dead, before it has a new owner; a line is noted as soon as its owner is at the lock. keeps U3
  void orphan(std::uint32_t line) noexcept { lock_.orphan(line); }
  // Then it is never let go: the words of the segment contradict each other (K5).
  [[nodiscard]] bool is_corrupt() const noexcept { return lock_.is_corrupt(*participant_table_, at_the_lock); }

 private:
  static constexpr std::uint32_t joiner = participants_limit;  // beyond every line
  static constexpr std::uint64_t at_the_lock = Intent{Side::none, 1, 1}.packed();
  static_assert(at_the_lock != 0 && !Intent::unpack(at_the_lock).covers(Side::push, 1));

  [[nodiscard]] bool enter_in_process(std::int64_t limit_ns) noexcept {
    if (limit_ns == 0) return lock_.try_lock(0) != Locked::no;
    return lock_.lock(0, [](std::uint32_t) { return true; }, park_limit_ns) != Locked::no;
  }

  [[nodiscard]] bool is_owner_dead() const noexcept {
    std::uint32_t owner = 0;
    return RobustLock::names(word_->load(std::memory_order_relaxed), owner) && !is_alive(owner);
  }
  [[nodiscard]] bool is_alive(std::uint32_t owner) const noexcept {
    return (owner < participant_table_->count() || owner == joiner) && participant_table_->is_alive(owner);
  }

  ParticipantTable* participant_table_;
  Upkeep& upkeep_;
  std::atomic<std::uint64_t>* word_;
  RobustLock lock_;
};

}  // namespace queueduct
