// Read guards of a growing queue: a participant announces the levels that it reads, so they are not reclaimed.
//
// Shape      read       announce the level range -> is it still that one? -> read slots of its rings -> drop
//            reclaim    the level has left the range -> a fence on all processors -> does a live line guard an older
//                       range?   no -> reclaim;   yes -> later
//            A late read of a reclaimed level would make the kernel give a page of zeros for it: memory beyond what is
//            reserved, or a SIGBUS if there is none left.
// Roles      participants read, each with a word in its line; the holder of the upkeep lock reclaims.
// Invariants V1  a participant reads a slot that it has not claimed only under a guard, in a ring of the level range
//                that it announced and then saw; or under the upkeep lock.
//            V2  a level is reclaimed only when every live line guards the range without it, or nothing. A line that
//                announces the older range later sees that it has moved, and does not read.
//            V3  a guard on all levels is taken either under the upkeep lock, so it cannot overlap a reclaim, or by a
//                participant that holds a slot in the level; the release of that slot (P2) makes the guard visible to
//                the reclaimer.
// Progress   wait-free for readers: two stores, and a load that they need anyway. A participant stopped under a guard
//            delays the reclaim of the levels it may read, like one stopped with a claimed item.
// Source     guards as in crossbeam-epoch; the pair of fences is "Asymmetric Fences" (Goldblatt, WG21 P1202).
//
// Memory orders come in pairs:
//   V2  announce(): a store, then the load of the range   with the load of the range, then those of the lines, in
//       allow_reclaim(): each needs a full fence between the two. Guards are many and reclaims are few, so the latter
//       make all processors run one (membarrier(2)), and a guard keeps only the compiler from reordering.
//   V4  drop(): release   with acquire in allow_reclaim(): the guarded reads are over
#pragma once

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "growing/layout.hpp"
#include "segment/participants.hpp"

namespace queueduct {

namespace fence_for_all {

// True if this process takes part in others' fences; a forked child registers again. False if the kernel has no such
// fence, or forbids it.
inline std::atomic<bool> is_registered{false};
inline void take_part() noexcept {
  is_registered.store(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0,
                      std::memory_order_relaxed);
}

// For the few reclaims.
inline void heavy() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0) return;
  // Other processes may rely on our fence, and we cannot make it. No store stays in a processor's buffer for so long.
  const timespec moment{.tv_sec = 0, .tv_nsec = 1'000'000};
  nanosleep(&moment, nullptr);
}

// For the many guards.
[[gnu::always_inline]] inline void light() noexcept {
  if (is_registered.load(std::memory_order_relaxed)) [[likely]]
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace fence_for_all

// A participant's guard.
class ReadGuard {
 public:
  explicit ReadGuard(ParticipantLine& line) noexcept : word_(&line.guarded) {}

  [[nodiscard]] static constexpr std::uint64_t word_of(LevelRange range) noexcept { return range.moves() + 1; }

  void announce(LevelRange range) noexcept {
    word_->store(word_of(range), std::memory_order_relaxed);
    fence_for_all::light();  // V2
    QUEUEDUCT_FAILPOINT("guard.announced");
  }
  // The caller has the upkeep lock, or holds a slot. keeps V3
  void announce_all() noexcept {
    word_->store(all_levels, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("guard.announced");
  }
  // Returns true if no other operation of this line has replaced the guard on all levels.
  [[nodiscard]] bool is_on_all() const noexcept { return word_->load(std::memory_order_relaxed) == all_levels; }
  void drop() noexcept {
    word_->store(0, std::memory_order_release);  // release V4
    QUEUEDUCT_FAILPOINT("guard.dropped");
  }

 private:
  static constexpr std::uint64_t all_levels = ~std::uint64_t{0};
  std::atomic<std::uint64_t>* word_;
};

// Within one process: reclaimed memory reads as zeros, and no budget is promised.
struct NoGuard {
  static void announce(LevelRange) noexcept {}
  static void drop() noexcept {}
};

// The guards of all participants, for the reclaimer.
class ReadGuards {
 public:
  // nullptr: no guards, see NoGuard.
  explicit ReadGuards(const ParticipantTable* participant_table) noexcept : participant_table_(participant_table) {}

  // Returns true if no live participant guards another range; the caller has read `now` before. Waits a moment for
  // guards that are about to be dropped. keeps V2
  [[nodiscard]] bool allow_reclaim(LevelRange now) const noexcept {
    if (participant_table_ == nullptr) return true;
    fence_for_all::heavy();
    for (std::uint32_t line = 0, used = participant_table_->used(), tries = 0; line < used;) {
      const std::uint64_t word = participant_table_->lines()[line].guarded.load(std::memory_order_acquire);  // V4
      if (word == 0 || word == ReadGuard::word_of(now) || !participant_table_->is_alive(line)) {
        ++line;
      } else if (++tries > tries_limit) {
        return false;
      } else {
        sched_yield();
      }
    }
    return true;
  }

 private:
  static constexpr std::uint32_t tries_limit = 16;
  const ParticipantTable* participant_table_;
};

}  // namespace queueduct
