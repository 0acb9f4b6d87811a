// A robust lock: its word names its owner, so a dead owner's lock can be taken over.
//
// Shape      | sequence : 47 | a waiter may sleep : 1 | owner's line + 1 : 16 |      owner 0: free
//            the low half is the futex word
// Roles      a participant locks and unlocks; a waiter asks the kernel now and then whether the owner lives.
// Invariants K1  the participant that the word names holds the lock; its name is set by compare-and-swap only.
//            K2  each time the lock is taken the sequence rises, so a compare-and-swap from a word seen earlier takes
//                nothing from a later owner, even one that has inherited the dead owner's line.
//            K3  a participant that gets the lock from a dead owner is told, and repairs before anything else.
//            K4  before a dead owner's line gets a new owner, orphan() has removed its name from the lock: the lock
//                is then held by no participant, and the next one that takes it repairs.
//            K5  where an owner's line says that it is at the lock, from before it locks until after it has unlocked,
//                a word that names a live participant elsewhere is corrupt: is_corrupt().
// Progress   blocking: a stopped owner stops the others, a dead one for less than check_owner_ns.
// Source     ours. Robust mutexes of the C library are honoured for 2,048 entries only, and need its own layout.
//
// Memory orders: P1  unlock(), orphan(): release   with acquire in lock(): all that is written under the lock
//                P2  take(): release   with acquire in is_corrupt(): the owner is at the lock
//                P3  the line's next word: release, after unlock()   with acquire there: the owner has unlocked
#pragma once

#include "segment/event.hpp"
#include "segment/participants.hpp"

namespace queueduct {

enum class Locked : std::uint8_t { no, yes, from_the_dead };

class RobustLock {
 public:
  explicit RobustLock(std::atomic<std::uint64_t>* word) noexcept : word_(word) {}

  [[nodiscard]] Locked try_lock(std::uint32_t line) noexcept {
    std::uint64_t seen = word_->load(std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("lock.read");
    if (owner_in(seen) != 0 && owner_in(seen) != orphaned) return Locked::no;
    return take(seen, line, seen & sleeping);
  }

  // `is_alive(line)` asks the kernel. Returns no only when limit_ns has passed, or a signal came.
  template <class IsAlive>
  [[nodiscard]] Locked lock(std::uint32_t line, IsAlive is_alive, std::int64_t limit_ns) noexcept {
    const std::int64_t end = monotonic_ns() + limit_ns;
    for (int i = 0; i < spins; ++i) {
      if (const Locked locked = try_lock(line); locked != Locked::no) return locked;
      cpu_pause();
    }
    for (;;) {
      std::uint64_t seen = word_->load(std::memory_order_relaxed);
      const std::uint32_t owner = owner_in(seen);
      if (owner == 0 || owner == orphaned || !is_alive(owner - 1)) {
        QUEUEDUCT_FAILPOINT("lock.before_take_over");
        // others may sleep too: the participant that woke us has cleared their mark
        if (const Locked locked = take(seen, line, sleeping); locked != Locked::no) return locked;
        continue;
      }
      const std::int64_t left = end - monotonic_ns();
      if (left <= 0) return Locked::no;
      if (!(seen & sleeping) && !word_->compare_exchange_strong(seen, seen | sleeping, std::memory_order_relaxed))
        continue;
      const auto expected = static_cast<std::uint32_t>(seen | sleeping);
      if (futex::sleep(word_, expected, left < check_owner_ns ? left : check_owner_ns) == EINTR) return Locked::no;
    }
  }

  void unlock() noexcept {
    QUEUEDUCT_FAILPOINT("lock.before_unlock");
    // release P1; the sequence stays
    const std::uint64_t before = word_->fetch_and(~(owner_mask | sleeping), std::memory_order_release);
    QUEUEDUCT_FAILPOINT("lock.unlocked");
    if (before & sleeping) futex::wake(word_, 1);
  }

  // The caller knows that the line's owner is dead, and keeps the next one out. keeps K4
  void orphan(std::uint32_t line) noexcept {
    std::uint64_t seen = word_->load(std::memory_order_relaxed);
    while (owner_in(seen) == line + 1) {
      QUEUEDUCT_FAILPOINT("lock.before_orphan");
      // release P1: the kernel told us of the death, and this tells the next owner
      if (word_->compare_exchange_weak(seen, (seen & ~owner_mask) | orphaned, std::memory_order_release,
                                       std::memory_order_relaxed))
        return;
    }
  }

  // The caller knows that no participant that could hold it lives, for example because the machine was restarted.
  void orphan_whoever() noexcept {
    const std::uint64_t seen = word_->load(std::memory_order_relaxed);
    if (owner_in(seen) != 0) word_->store((seen & ~owner_mask) | orphaned, std::memory_order_release);  // P1
  }

  // Returns true if the word names a participant, and sets its line.
  [[nodiscard]] static bool names(std::uint64_t word, std::uint32_t& line) noexcept {
    line = owner_in(word) - 1;
    return owner_in(word) != 0 && owner_in(word) != orphaned;
  }

  // Returns true if the lock names a live participant that is not at the lock. No correct participant writes that, and
  // the word would never be cleared. The word changes each time the lock is taken (K2): if it is the same before and
  // after, it stood there meanwhile. keeps K5
  [[nodiscard]] bool is_corrupt(const ParticipantTable& participant_table,
                                       std::uint64_t at_the_lock) const noexcept {
    const std::uint64_t before = word_->load(std::memory_order_acquire);  // acquire P2
    std::uint32_t line;
    if (!names(before, line) || line >= participant_table.count() || !participant_table.is_alive(line)) return false;
    const std::uint64_t where = participant_table.lines()[line].intent.load(std::memory_order_acquire);  // acquire P3
    return where != at_the_lock && ((word_->load(std::memory_order_relaxed) ^ before) & ~sleeping) == 0;
  }

  [[nodiscard]] bool is_held_by(std::uint32_t line) const noexcept {
    return owner_in(word_->load(std::memory_order_relaxed)) == line + 1;
  }

 private:
  static constexpr std::uint64_t owner_mask = 0xffff;
  static constexpr std::uint64_t sleeping = 0x10000;
  static constexpr std::uint64_t sequence_one = 0x20000;
  static constexpr std::uint32_t orphaned = 0xffff;
  static constexpr int spins = 100;
  static constexpr std::int64_t check_owner_ns = 10'000'000;
  static_assert(participants_limit < orphaned);

  [[nodiscard]] static std::uint32_t owner_in(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word & owner_mask);
  }

  [[nodiscard]] Locked take(std::uint64_t seen, std::uint32_t line, std::uint64_t mark) noexcept {
    const std::uint64_t mine = ((seen & ~(owner_mask | sleeping)) + sequence_one) | mark | (line + 1);  // keeps K2
    // acquire P1, release P2
    if (!word_->compare_exchange_strong(seen, mine, std::memory_order_acq_rel, std::memory_order_relaxed))
      return Locked::no;
    QUEUEDUCT_FAILPOINT("lock.taken");
    return owner_in(seen) == 0 ? Locked::yes : Locked::from_the_dead;
  }

  std::atomic<std::uint64_t>* word_;
};

}  // namespace queueduct
