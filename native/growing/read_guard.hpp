// ReadGuards at the memory of a growing queue: who looks says so first, and what is looked at is not given back meanwhile.
//
// Shape      look         announce the stage ─► is it still that one? ─► read slots of its rings ─► over
//            give back    the level has left the stage ─► a fence for everybody ─► who still looks at an older stage?
//                         nobody ─► give back;   somebody alive ─► later
//            A look that came late, at what was given back, would make the kernel give a page of zeros for it: memory
//            beyond what is reserved, or a SIGBUS where there is none left.
// Roles      participants look, each with a word in its line; whoever has the lock of upkeep gives back.
// Invariants V1  a slot that its reader has not claimed is read during a look, at a ring of the stage that was announced
//                and then seen; or by whoever has the lock of upkeep.
//            V2  a level is given back only when every live line looks at the stage without it, or at nothing. A line
//                that announces the older stage later sees that it has moved, and does not look.
//            V3  a look at everything is announced by who has the lock, so it comes before or after a giving back; or by
//                who holds a slot of what it looks at, and releases it afterwards (P2): who finds it released sees the look.
// Progress   wait-free for who looks: two stores, and a load that it needs anyway. Who was stopped in a look holds back
//            what it may see, as one who has claimed an item does.
//
// Memory orders come in pairs:
//   V2  announce(): a store, then the load of the stage   with the load of the stage, then those of the lines, in
//       allow_reclaim(): each needs a full fence between the two. ReadGuards are many and givings back are few, so the latter make
//       all processors have one (membarrier(2)), and a look keeps only the compiler from swapping.
//   V4  drop(): release   with acquire in allow_reclaim(): what was read is read
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

// This process takes part in others' fences; a child of a fork says so again. False: the kernel knows no such fence, or
// it is forbidden here.
inline std::atomic<bool> is_registered{false};
inline void take_part() noexcept {
  is_registered.store(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0,
                      std::memory_order_relaxed);
}

// Before the few.
inline void heavy() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0) return;
  // Others may leave it to us and we cannot do it. No store stays in a processor's buffer for so long.
  const timespec moment{.tv_sec = 0, .tv_nsec = 1'000'000};
  nanosleep(&moment, nullptr);
}

// Before the many.
[[gnu::always_inline]] inline void light() noexcept {
  if (is_registered.load(std::memory_order_relaxed)) [[likely]]
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace fence_for_all

// A participant's look.
class ReadGuard {
 public:
  explicit ReadGuard(ParticipantLine& line) noexcept : word_(&line.guarded) {}

  [[nodiscard]] static constexpr std::uint64_t word_of(LevelRange range) noexcept { return range.moves() + 1; }

  void announce(LevelRange range) noexcept {
    word_->store(word_of(range), std::memory_order_relaxed);
    fence_for_all::light();  // V2
    QUEUEDUCT_FAILPOINT("guard.announced");
  }
  // With the lock of upkeep, or something that is held. keeps V3
  void announce_all() noexcept {
    word_->store(everything, std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("guard.announced");
  }
  // Has nothing else that this line did ended it?
  [[nodiscard]] bool is_at_all() const noexcept { return word_->load(std::memory_order_relaxed) == everything; }
  void drop() noexcept {
    word_->store(0, std::memory_order_release);  // release V4
    QUEUEDUCT_FAILPOINT("guard.dropped");
  }

 private:
  static constexpr std::uint64_t everything = ~std::uint64_t{0};
  std::atomic<std::uint64_t>* word_;
};

// Within one process: what is given back reads as zeros and costs nothing that was promised to anybody.
struct NoGuard {
  static void announce(LevelRange) noexcept {}
  static void drop() noexcept {}
};

// Everybody's looks, for who gives back.
class ReadGuards {
 public:
  // nullptr: there are none, see NoGuard.
  explicit ReadGuards(const ParticipantTable* participant_table) noexcept : participant_table_(participant_table) {}

  // Does nobody alive look at another stage? Asked after `now` was read. Those who do are about to end it, or are
  // stopped, so it is worth a moment. keeps V2
  [[nodiscard]] bool allow_reclaim(LevelRange now) const noexcept {
    if (participant_table_ == nullptr) return true;
    fence_for_all::heavy();
    for (std::uint32_t line = 0, used = participant_table_->used(), tries = 0; line < used;) {
      const std::uint64_t word = participant_table_->lines()[line].guarded.load(std::memory_order_acquire);  // acquire V4
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
