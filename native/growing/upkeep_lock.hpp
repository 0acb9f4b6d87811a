// The upkeep lock, as one process has it: a participant that prepares or reclaims memory, or reads all of it, holds it.
//
// Shape      note in the line -> take the lock -> redo what a dead owner left -> … -> unlock -> clear the line
//            a joiner has no line, and holds a number in the file meanwhile
// Roles      participants enter and leave, with no intent outstanding; joiners, one at a time, use as_joiner().
// Invariants U1  a line says that its owner is at the lock from before it asks for it until after it has let go (K5).
//            U2  a participant that has entered has redone what the last owner began (M4).
//            U3  before a dead owner's line, or the joiners' number, gets a new owner the lock names it no more (K4).
// Progress   blocking, up to the caller's limit; with a limit of 0 it takes only a free or a dead owner's lock.
// Source     ours; K1 to K5 and their memory orders are in robust_lock.hpp, M4 in memory.hpp.
#pragma once

#include "growing/memory.hpp"
#include "ring/claims.hpp"
#include "segment/robust_lock.hpp"

namespace queueduct {

class UpkeepLock {
 public:
  static constexpr std::int64_t moment_ns = 1'000'000;  // for callers that never wait, and have the GIL

  // No participant table: a queue within a process.
  UpkeepLock(ParticipantTable* participant_table, Upkeep& upkeep, std::atomic<std::uint64_t>* word) noexcept
      : participant_table_(participant_table), upkeep_(upkeep), word_(word), lock_(word) {}

  // The line says first that its owner is at the lock, so no intent may be outstanding. keeps U1
  [[nodiscard]] bool enter(bool must) noexcept { return enter_within(must ? moment_ns : 0); }
  [[nodiscard]] bool enter_within(std::int64_t limit_ns) noexcept {
    if (participant_table_ == nullptr) return enter_in_process(limit_ns);
    Participant ledger;
    // without the segment's file no participant can prepare or reclaim
    if (!find_participant(*participant_table_, ledger) || participant_table_->is_lost()) return false;
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
  [[nodiscard]] int file() const noexcept {
    return participant_table_ == nullptr ? -1 : participant_table_->descriptor();
  }

  // A joiner has no line yet to enter with, so there is one more number for joiners, and a lock in the file that says
  // whether its holder lives. Returns false if another joiner has the number, or another participant the lock.
  [[nodiscard]] bool as_joiner(std::int64_t limit_ns, auto use) noexcept {
    if (!participant_table_->hold(joiner)) return false;
    lock_.orphan(joiner);  // U3: a dead joiner's
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

  // Calls use() while nothing is reclaimed, so that it can read all levels. If another participant holds the lock for
  // long, calls it without the lock: what it sees is still true, but pages just reclaimed may come back.
  // A watcher never takes it.
  void with_upkeep_lock(auto use) noexcept {
    if (participant_table_->file().is_read_only()) return use();
    Participant ledger;
    if (find_participant(*participant_table_, ledger)) {
      const bool is_entered = enter_within(moment_ns);
      use();
      if (is_entered) leave();
    } else if (!as_joiner(moment_ns, use)) {
      use();
    }
  }

  // For a dead owner's line, before it gets a new owner. keeps U3
  void orphan(std::uint32_t line) noexcept { lock_.orphan(line); }
  // Returns true if the lock would never be released: the words of the segment contradict each other (K5).
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
