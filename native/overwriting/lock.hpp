// Locks that name their owner: the header's lock and each message's lock.
//
// Shape      0: free
//            | 1 : 1 | tenure : 31 | 0 : 12 | role : 4 | a waiter may sleep : 1 | 0 : 1 | participant line : 14 |
//              in the word of a cell's holder the 12 bits count redeliveries (overwriting/leased_messages.hpp)
//            any other word without bit 63: a foreign program's, which knows the published format only
//            the low half of the header's lock is its futex word
// Roles      a participant locks and unlocks; a waiter asks the kernel whether the owner lives.
// Invariants N1  a line has a new tenure with each owner, so a word names one participant for good. A dead participant
//                never locks again: a compare-and-swap from its word takes nothing from another participant.
//            N2  the header's lock is set by compare-and-swap only, from 0 or from the word of a dead participant.
//            N3  a foreign program never counts as dead, and its word is never changed: it may compare it.
//            N4  a participant's line counts its calls (`guarded`): odd from before a call asks for the header until
//                it has let go of header and message, even at rest. So a word that names a participant at rest was
//                not written by it: in a message's lock it counts as a dead one's, in the header's it is corrupt.
// Progress   blocking: a stopped owner stops the others, a dead one for less than check_owner_ns, a foreign program as
//            long as it likes.
//
// Memory orders: P1  unlock(): release   with acquire in take(): all that is written under the lock.
//                    A dead owner stores nothing: the kernel orders its stores before the loss of its file lock.
//                P7  begin(): release, before the lock's swap, which is a release too   with acquire of both in
//                    is_bystander(): the named participant is at work.  rest(): release   with acquire there
//                a line's new tenure: release in ParticipantTable   with the acquire fence in is_left()
#pragma once

#include <sched.h>

#include "overwriting/layout.hpp"
#include "segment/participants.hpp"
#include "segment/event.hpp"

namespace queueduct {

// The last three are words of cells, not of locks (overwriting/leased_messages.hpp).
enum class LockRole : std::uint64_t { header = 1, writer = 2, reader = 3, filler = 4, holder = 5, overtaken = 6 };

namespace lock_word {

inline constexpr std::uint64_t ours = std::uint64_t{1} << 63;
inline constexpr std::uint64_t line_mask = participants_limit - 1;
inline constexpr std::uint64_t sleeping = 1 << 15;
inline constexpr int role_shift = 16;
inline constexpr int redeliveries_shift = 20;
inline constexpr std::uint64_t redeliveries_most = (std::uint64_t{1} << 12) - 1;
static_assert(participants_limit <= 1 << 14);

[[nodiscard]] inline std::uint64_t tenure_of(const ParticipantTable& participant_table, std::uint64_t line) noexcept {
  // relaxed: its owner wrote it when it joined. Another line's new tenure that is not seen yet only delays.
  return participant_table.lines()[line].tenure.load(std::memory_order_relaxed) & 0x7fff'ffffu;
}

[[nodiscard]] inline std::uint64_t of(const ParticipantTable& participant_table, std::uint32_t line,
                                      LockRole role) noexcept {
  return ours | tenure_of(participant_table, line) << 32 | static_cast<std::uint64_t>(role) << role_shift | line;
}

[[nodiscard]] constexpr bool is_foreign(std::uint64_t word) noexcept { return word != 0 && !(word & ours); }

[[nodiscard]] constexpr bool has_role(std::uint64_t word, LockRole role) noexcept {
  return (word & ours) && (word >> role_shift & 0xf) == static_cast<std::uint64_t>(role);
}

// How often the message of a cell was delivered again; redeliveries_most: so often, or more.
[[nodiscard]] constexpr std::uint64_t redeliveries_of(std::uint64_t word) noexcept {
  return word >> redeliveries_shift & redeliveries_most;
}
[[nodiscard]] constexpr std::uint64_t with_redeliveries(std::uint64_t word, std::uint64_t count) noexcept {
  return (word & ~(redeliveries_most << redeliveries_shift)) |
         (count < redeliveries_most ? count : redeliveries_most) << redeliveries_shift;
}

// Returns false for a word in our format that no participant can have written.
[[nodiscard]] inline bool is_alive(const ParticipantTable& participant_table, std::uint64_t word) noexcept {
  if (!(word & ours)) return word != 0;  // keeps N3
  const std::uint64_t line = word & line_mask;
  if (line >= participant_table.count() || !participant_table.is_alive(static_cast<std::uint32_t>(line))) return false;
  return tenure_of(participant_table, line) == (word >> 32 & 0x7fff'ffffu);  // keeps N1
}

// The line's owner goes to work, and comes to rest. keeps N4
inline void begin(const ParticipantTable& participant_table, std::uint32_t line) noexcept {
  std::atomic<std::uint64_t>& calls = participant_table.lines()[line].guarded;
  calls.store(calls.load(std::memory_order_relaxed) | 1, std::memory_order_release);  // release P7
  QUEUEDUCT_FAILPOINT("line.at_work");
}
inline void rest(const ParticipantTable& participant_table, std::uint32_t line) noexcept {
  std::atomic<std::uint64_t>& calls = participant_table.lines()[line].guarded;
  calls.store((calls.load(std::memory_order_relaxed) | 1) + 1, std::memory_order_release);  // release P7
  QUEUEDUCT_FAILPOINT("line.at_rest");
}

// Returns true if `lock` still has `word`, and the participant it names was at rest all the while. keeps N4
[[nodiscard]] inline bool is_bystander(const ParticipantTable& participant_table,
                                       const std::atomic<std::uint64_t>& lock, std::uint64_t word) noexcept {
  const std::uint64_t line = word & line_mask;
  if (!(word & ours) || line >= participant_table.count()) return false;
  const std::uint64_t calls = participant_table.lines()[line].guarded.load(std::memory_order_acquire);
  if (calls & 1 || ((lock.load(std::memory_order_acquire) ^ word) & ~sleeping) != 0) return false;
  return participant_table.lines()[line].guarded.load(std::memory_order_acquire) == calls;
}

// Returns true if the participant that `word` names, which was read from `lock`, is gone or never had the lock. Then
// `word` is read again: the participant may have unlocked, and died, after the first read.
[[nodiscard]] inline bool is_left(const ParticipantTable& participant_table, const std::atomic<std::uint64_t>& lock,
                                  std::uint64_t& word) noexcept {
  QUEUEDUCT_FAILPOINT("message.before_question");
  if (is_alive(participant_table, word) && !is_bystander(participant_table, lock, word)) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  word = lock.load(std::memory_order_acquire);
  return true;
}

}  // namespace lock_word

class HeaderLock {
 public:
  enum class Locked : std::uint8_t { no, yes, corrupt };

  explicit HeaderLock(std::atomic<std::uint64_t>* word) noexcept : word_(word) {}

  [[nodiscard]] bool try_lock(std::uint64_t me) noexcept {
    const std::uint64_t seen = word_->load(std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("header.read");
    return seen == 0 && take(seen, me);
  }

  // no: limit_ns has passed, or a signal came. corrupt: the word names us, or a participant at rest, and would never
  // be cleared.
  [[nodiscard]] Locked lock(std::uint64_t me, const ParticipantTable& participant_table,
                            std::int64_t limit_ns) noexcept {
    if (spin(me)) return Locked::yes;
    const std::int64_t end = monotonic_ns() + limit_ns;
    for (int attempt = 0;; ++attempt) {
      std::uint64_t seen = word_->load(std::memory_order_relaxed);
      if ((seen & ~lock_word::sleeping) == me) return Locked::corrupt;
      if (seen == 0 || !lock_word::is_alive(participant_table, seen)) {
        QUEUEDUCT_FAILPOINT("header.before_take_over");
        // others may sleep too: the participant that woke us has cleared their mark
        if (take(seen, me | lock_word::sleeping)) return Locked::yes;
        continue;
      }
      if (lock_word::is_bystander(participant_table, *word_, seen)) return Locked::corrupt;
      const std::int64_t left = end - monotonic_ns();
      if (left <= 0) return Locked::no;
      if (attempt < yields) {
        // The lock is held for a few stores: an owner that takes longer has lost its core, and a yield may return it.
        sched_yield();
        if (spin(me)) return Locked::yes;
        continue;
      }
      const bool is_foreign = lock_word::is_foreign(seen);
      if (!is_foreign && !(seen & lock_word::sleeping)) {
        if (!word_->compare_exchange_strong(seen, seen | lock_word::sleeping, std::memory_order_relaxed)) continue;
        seen |= lock_word::sleeping;
      }
      const std::int64_t longest = is_foreign ? check_foreign_ns : check_owner_ns;  // a foreign program wakes nobody
      const auto expected = static_cast<std::uint32_t>(seen);
      if (futex::sleep(word_, expected, left < longest ? left : longest) == EINTR) return Locked::no;
      if (spin(me | lock_word::sleeping)) return Locked::yes;
    }
  }

  void unlock() noexcept {
    QUEUEDUCT_FAILPOINT("header.before_unlock");
    const std::uint64_t before = word_->exchange(0, std::memory_order_release);  // release P1
    QUEUEDUCT_FAILPOINT("header.unlocked");
    if (before & lock_word::sleeping) futex::wake(word_, 1);
  }

 private:
  [[nodiscard]] bool spin(std::uint64_t me) noexcept {
    for (int i = 0; i < spins; ++i) {
      if (try_lock(me)) return true;
      cpu_pause();
    }
    return false;
  }

  static constexpr int spins = 100;
  static constexpr int yields = 8;
  static constexpr std::int64_t check_owner_ns = 10'000'000;
  static constexpr std::int64_t check_foreign_ns = 200'000;

  [[nodiscard]] bool take(std::uint64_t seen, std::uint64_t word) noexcept {
    // acquire P1, release P7; keeps N2
    if (!word_->compare_exchange_strong(seen, word, std::memory_order_acq_rel, std::memory_order_relaxed)) return false;
    QUEUEDUCT_FAILPOINT("header.taken");
    return true;
  }

  std::atomic<std::uint64_t>* word_;
};

}  // namespace queueduct
