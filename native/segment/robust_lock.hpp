// A lock whose word names its owner, so that a dead owner's lock can be taken over.
//
// Shape      | sequence : 47 | somebody may sleep : 1 | owner's line + 1 : 16 |      owner 0: free
//            the low half is the futex word
// Roles      a participant locks and unlocks; anybody who waits long asks the kernel whether the owner lives.
// Invariants K1  the word's owner is the one who holds it; it is set by compare-and-swap only.
//            K2  each time it is taken the sequence rises, so a compare-and-swap from a word seen earlier takes
//                nothing from a later owner, even one that has inherited the dead one's line.
//            K3  who gets it from a dead owner is told, and repairs before anything else.
//            K4  before a dead owner's line gets a new owner, orphan() has taken its name from the lock: the
//                lock is then held by nobody, and whoever takes it repairs.
//            K5  where an owner's line says that it is at the lock, from before it takes it until after it has let go, a
//                word that names somebody alive who is not there was written by nobody of us: names_a_bystander().
// Progress   blocking: a stopped owner stops the others, a dead one for less than one look (look_ns).
// Source     ours. Robust mutexes are honoured for 2,048 entries only, and need the C library's own layout.
//
// Memory orders: P1  unlock(), orphan(): release   with acquire in lock(): all that is written under the lock
//                P2  take(): release          with acquire in names_a_bystander(): that its owner is at the lock
//                P3  the line's next word: release, after unlock()   with acquire there: that it was let go
#pragma once

#include <limits.h>

#include "segment/participants.hpp"
#include "segment/event.hpp"

namespace queueduct {

enum class Locked : std::uint8_t { no, yes, from_the_dead };

class OwnerLock {
 public:
  explicit OwnerLock(std::atomic<std::uint64_t>* word) noexcept : word_(word) {}

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
        // others may sleep too: whoever woke us has cleared their mark
        if (const Locked locked = take(seen, line, sleeping); locked != Locked::no) return locked;
        continue;
      }
      const std::int64_t left = end - monotonic_ns();
      if (left <= 0) return Locked::no;
      if (!(seen & sleeping) &&
          !word_->compare_exchange_strong(seen, seen | sleeping, std::memory_order_relaxed))
        continue;
      if (!sleep(static_cast<std::uint32_t>(seen | sleeping), left < look_ns ? left : look_ns)) return Locked::no;
    }
  }

  void unlock() noexcept {
    QUEUEDUCT_FAILPOINT("lock.before_unlock");
    // release P1; the sequence stays
    const std::uint64_t before = word_->fetch_and(~(owner_mask | sleeping), std::memory_order_release);
    QUEUEDUCT_FAILPOINT("lock.unlocked");
    if (before & sleeping) syscall(SYS_futex, futex_word(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  // Keeps K4. The caller knows that the line's owner is dead, and keeps the next one out.
  void orphan(std::uint32_t line) noexcept {
    std::uint64_t seen = word_->load(std::memory_order_relaxed);
    while (owner_in(seen) == line + 1) {
      QUEUEDUCT_FAILPOINT("lock.before_orphan");
      // release P1: the kernel told us of the death, and this tells whoever locks next
      if (word_->compare_exchange_weak(seen, (seen & ~owner_mask) | orphaned, std::memory_order_release,
                                       std::memory_order_relaxed))
        return;
    }
  }

  // The caller knows that nobody who could hold it lives: of the machine's last boot, say.
  void orphan_whoever() noexcept {
    const std::uint64_t seen = word_->load(std::memory_order_relaxed);
    if (owner_in(seen) != 0) word_->store((seen & ~owner_mask) | orphaned, std::memory_order_release);  // P1
  }

  // Does that word name a participant, and which?
  [[nodiscard]] static bool names(std::uint64_t word, std::uint32_t& line) noexcept {
    line = owner_in(word) - 1;
    return owner_in(word) != 0 && owner_in(word) != orphaned;
  }

  // Somebody alive whom the lock names, and who is not at it: the lock would name that one for ever. The word changes with
  // each who takes it (K2): the same one before and after means that it was held meanwhile. keeps K5
  [[nodiscard]] bool names_a_bystander(const ParticipantTable& participant_table, std::uint64_t at_the_lock) const noexcept {
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
  static constexpr std::int64_t look_ns = 10'000'000;
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

  [[nodiscard]] std::uint32_t* futex_word() const noexcept { return reinterpret_cast<std::uint32_t*>(word_); }

  // False: a signal came.
  [[nodiscard]] bool sleep(std::uint32_t expected, std::int64_t limit_ns) noexcept {
    const timespec limit{.tv_sec = limit_ns / 1'000'000'000, .tv_nsec = limit_ns % 1'000'000'000};
    return syscall(SYS_futex, futex_word(), FUTEX_WAIT, expected, &limit, nullptr, 0) == 0 || errno != EINTR;
  }

  std::atomic<std::uint64_t>* word_;
};

}  // namespace queueduct
