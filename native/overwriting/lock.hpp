// Locks that name their owner: the header's and the messages'.
//
// Shape      0: free
//            | 1 : 1 | tenure : 31 | 0 : 12 | role : 4 | somebody may sleep : 1 | 0 : 1 | participant line : 14 |
//            any other word without bit 63: a stranger's, that is a program which knows the published format only
//            the low half of the header's lock is its futex word
// Roles      a participant locks and unlocks; anybody who waits asks the kernel whether the owner lives.
// Invariants N1  a line has a new tenure with each owner, so a word stands for one participant for good. Whoever is
//                dead never locks again: a compare-and-swap from its word takes nothing from anybody else.
//            N2  the header's lock is set by compare-and-swap only, from 0 or from the word of somebody dead.
//            N4  a participant's line counts its calls (`guarded`): odd from before a call asks for the header until it has let
//                go of header and message, even at rest. So a word that names somebody who was at rest while it stood
//                there was written by nobody of us: of a message it is as a dead one's, of the header it is corrupt.
//            N3  a stranger is never found dead, and its word is never changed: it may compare before it clears it.
// Progress   blocking: a stopped owner stops the others, a dead one for less than one look (look_ns), a stranger as
//            long as it likes.
//
// Memory orders: P1  unlock(): release   with acquire in take(): all that is written under the lock.
//                    A dead owner stores nothing: the kernel orders its stores before the loss of its file lock.
//                P7  begin(): release, before the lock's swap, which is a release too   with acquire of both in
//                    is_bystander(): who is named is at work.  rest(): release   with acquire there: it has let go
//                a line's new tenure: release in ParticipantTable   with the acquire fence in is_left(): what its last owner did.
#pragma once

#include <sched.h>

#include "overwriting/layout.hpp"
#include "segment/participants.hpp"
#include "segment/event.hpp"

namespace queueduct {

// A filler copies a message to its place on the shelf, a keeper has it there, an overtaken one found it overwritten
// while it copied: words of places, not of locks.
enum class LockRole : std::uint64_t { header = 1, writer = 2, reader = 3, filler = 4, keeper = 5, overtaken = 6 };

namespace lock_word {

inline constexpr std::uint64_t ours = std::uint64_t{1} << 63;
inline constexpr std::uint64_t line_mask = participants_limit - 1;
inline constexpr std::uint64_t sleeping = 1 << 15;
inline constexpr int role_shift = 16;
static_assert(participants_limit <= 1 << 14);

[[nodiscard]] inline std::uint64_t tenure_of(const ParticipantTable& participant_table, std::uint64_t line) noexcept {
  // relaxed: written when its owner joined; another's new tenure that is not seen yet only delays
  return participant_table.lines()[line].tenure.load(std::memory_order_relaxed) & 0x7fff'ffffu;
}

[[nodiscard]] inline std::uint64_t of(const ParticipantTable& participant_table, std::uint32_t line, LockRole role) noexcept {
  return ours | tenure_of(participant_table, line) << 32 | static_cast<std::uint64_t>(role) << role_shift | line;
}

[[nodiscard]] constexpr bool is_strangers(std::uint64_t word) noexcept { return word != 0 && !(word & ours); }

[[nodiscard]] constexpr bool has_role(std::uint64_t word, LockRole role) noexcept {
  return (word & ours) && (word >> role_shift & 0xf) == static_cast<std::uint64_t>(role);
}

// A word of ours that no participant can have written is nobody's.
[[nodiscard]] inline bool is_alive(const ParticipantTable& participant_table, std::uint64_t word) noexcept {
  if (!(word & ours)) return word != 0;  // keeps N3
  const std::uint64_t line = word & line_mask;
  if (line >= participant_table.count() || !participant_table.is_alive(static_cast<std::uint32_t>(line))) return false;
  return tenure_of(participant_table, line) == (word >> 32 & 0x7fff'ffffu);  // keeps N1
}

// The owner of a line is at work, and at rest again. keeps N4
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

// Does `lock` have `word`, which names somebody alive who is at rest all the while? keeps N4
[[nodiscard]] inline bool is_bystander(const ParticipantTable& participant_table, const std::atomic<std::uint64_t>& lock,
                                       std::uint64_t word) noexcept {
  const std::uint64_t line = word & line_mask;
  if (!(word & ours) || line >= participant_table.count()) return false;
  const std::uint64_t calls = participant_table.lines()[line].guarded.load(std::memory_order_acquire);
  if (calls & 1 || ((lock.load(std::memory_order_acquire) ^ word) & ~sleeping) != 0) return false;
  return participant_table.lines()[line].guarded.load(std::memory_order_acquire) == calls;
}

// Is whoever is named in `word`, which was read from `lock`, gone, or was never there? Then `word` is what it left there: it may have let go
// of the lock, and died or ended, after we had read it.
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

  // no: limit_ns has passed, or a signal came. corrupt: it names us, or somebody at rest: it would never be free.
  [[nodiscard]] Locked lock(std::uint64_t me, const ParticipantTable& participant_table, std::int64_t limit_ns) noexcept {
    if (spin(me)) return Locked::yes;
    const std::int64_t end = monotonic_ns() + limit_ns;
    for (int look = 0;; ++look) {
      std::uint64_t seen = word_->load(std::memory_order_relaxed);
      if ((seen & ~lock_word::sleeping) == me) return Locked::corrupt;
      if (seen == 0 || !lock_word::is_alive(participant_table, seen)) {
        QUEUEDUCT_FAILPOINT("header.before_take_over");
        // others may sleep too: whoever woke us has cleared their mark
        if (take(seen, me | lock_word::sleeping)) return Locked::yes;
        continue;
      }
      if (lock_word::is_bystander(participant_table, *word_, seen)) return Locked::corrupt;
      const std::int64_t left = end - monotonic_ns();
      if (left <= 0) return Locked::no;
      if (look < yields) {
        // It is held for a few stores: who holds it for longer has lost its core, and gets it back before we wake up.
        sched_yield();
        if (spin(me)) return Locked::yes;
        continue;
      }
      const bool is_strangers = lock_word::is_strangers(seen);
      if (!is_strangers && !(seen & lock_word::sleeping)) {
        if (!word_->compare_exchange_strong(seen, seen | lock_word::sleeping, std::memory_order_relaxed)) continue;
        seen |= lock_word::sleeping;
      }
      const std::int64_t longest = is_strangers ? stranger_ns : look_ns;  // a stranger wakes nobody
      if (!sleep(static_cast<std::uint32_t>(seen), left < longest ? left : longest)) return Locked::no;
      if (spin(me | lock_word::sleeping)) return Locked::yes;
    }
  }

  void unlock() noexcept {
    QUEUEDUCT_FAILPOINT("header.before_unlock");
    const std::uint64_t before = word_->exchange(0, std::memory_order_release);  // release P1
    QUEUEDUCT_FAILPOINT("header.unlocked");
    if (before & lock_word::sleeping) syscall(SYS_futex, futex_word(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
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
  static constexpr std::int64_t look_ns = 10'000'000;
  static constexpr std::int64_t stranger_ns = 200'000;

  [[nodiscard]] bool take(std::uint64_t seen, std::uint64_t word) noexcept {
    // acquire P1, release P7; keeps N2
    if (!word_->compare_exchange_strong(seen, word, std::memory_order_acq_rel, std::memory_order_relaxed)) return false;
    QUEUEDUCT_FAILPOINT("header.taken");
    return true;
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
