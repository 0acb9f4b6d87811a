// Owner words: which participant has a part of the segment to itself.
//
// Shape      | tenure : 32 | participant line + 1 : 32 |      0: free
// Roles      a participant owns and disowns; any participant asks.
// Invariants O1  a line has a new tenure with each owner, so an owner word names one participant for good.
//            O2  a word is taken by a compare-and-swap from 0, or from the exact word of a dead participant. A dead
//                owner keeps it until then, and what it guards stays as it was left.
// Progress   wait-free; one fcntl when another process seems to own it. Whether to wait is the caller's decision.
//
// Memory orders come in pairs:
//   O2  disown(): release store  with acquire in try_own(): what the last owner did
//       An owner that dies stores nothing: the kernel orders its stores before the loss of its lock.
#pragma once

#include "segment/participants.hpp"

namespace queueduct::owner {

// The word of the line's owner, which calls this itself.
[[nodiscard]] inline std::uint64_t word_of(const ParticipantTable& table, std::uint32_t line) noexcept {
  // relaxed: written by us when we joined
  return std::uint64_t{table.lines()[line].tenure.load(std::memory_order_relaxed)} << 32 | (line + 1);
}

// Returns false for a word that no participant can have written.
[[nodiscard]] inline bool is_alive(const ParticipantTable& table, std::uint64_t word) noexcept {
  const std::uint64_t line = (word & 0xffff'ffff) - 1;
  if (line >= table.count() || !table.is_alive(static_cast<std::uint32_t>(line))) return false;
  // The next owner of a line writes its tenure right after it has the lock: until then the last one seems to be alive,
  // which only delays.
  return word_of(table, static_cast<std::uint32_t>(line)) == word;
}

// Returns false if a live participant owns it, perhaps `me`.
[[nodiscard]] inline bool try_own(std::atomic<std::uint64_t>& word, std::uint64_t me,
                                  const ParticipantTable& table) noexcept {
  std::uint64_t seen = word.load(std::memory_order_relaxed);  // a hint until the compare-and-swap confirms it
  if (seen != 0 && is_alive(table, seen)) return false;
  QUEUEDUCT_FAILPOINT("owner.before_own");
  // acquire O2
  const bool owned = word.compare_exchange_strong(seen, me, std::memory_order_acq_rel, std::memory_order_relaxed);
  QUEUEDUCT_FAILPOINT("owner.owned");
  return owned;
}

inline void disown(std::atomic<std::uint64_t>& word) noexcept {
  QUEUEDUCT_FAILPOINT("owner.before_disown");
  word.store(0, std::memory_order_release);  // release O2
  QUEUEDUCT_FAILPOINT("owner.disowned");
}

}  // namespace queueduct::owner
