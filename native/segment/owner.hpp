// Owner words: who of the participants has something in the segment to itself.
//
// Shape      | tenure : 32 | participant line + 1 : 32 |      0: nobody
// Roles      a participant owns and disowns; anybody asks.
// Invariants O1  a line has a new tenure with each owner, so an owner word stands for one participant for good.
//            O2  a word is taken by a compare-and-swap from 0, or from the exact word of somebody dead. Whoever
//                dies keeps it until then, and what it guards stays as it was left.
// Progress   wait-free; one fcntl when another process seems to own it. Whether to wait is the caller's decision.
//
// Memory orders come in pairs:
//   O2  disown(): release store  with acquire in try_own(): what was done by the owner before
//       An owner that dies stores nothing: there it is the kernel that orders its stores before the loss of its lock.
#pragma once

#include "segment/participants.hpp"

namespace queueduct::owner {

// The word of whoever owns this line now; asked by that owner itself.
[[nodiscard]] inline std::uint64_t word_of(const ParticipantTable& participant_table, std::uint32_t line) noexcept {
  // relaxed: written by us when we joined
  return std::uint64_t{participant_table.lines()[line].tenure.load(std::memory_order_relaxed)} << 32 | (line + 1);
}

// A word that no participant can have written is nobody's.
[[nodiscard]] inline bool is_alive(const ParticipantTable& participant_table, std::uint64_t word) noexcept {
  const std::uint64_t line = (word & 0xffff'ffff) - 1;
  if (line >= participant_table.count() || !participant_table.is_alive(static_cast<std::uint32_t>(line))) return false;
  // The next owner of a line writes its tenure right after it has the lock: until then the last one seems to
  // live on, which only delays.
  return word_of(participant_table, static_cast<std::uint32_t>(line)) == word;
}

// False: somebody alive owns it, which may be `me`.
[[nodiscard]] inline bool try_own(std::atomic<std::uint64_t>& word, std::uint64_t me, const ParticipantTable& participant_table) noexcept {
  std::uint64_t seen = word.load(std::memory_order_relaxed);  // a hint until the compare-and-swap confirms it
  if (seen != 0 && is_alive(participant_table, seen)) return false;
  QUEUEDUCT_FAILPOINT("owner.before_own");
  const bool owned = word.compare_exchange_strong(seen, me, std::memory_order_acq_rel, std::memory_order_relaxed);  // O2
  QUEUEDUCT_FAILPOINT("owner.owned");
  return owned;
}

inline void disown(std::atomic<std::uint64_t>& word) noexcept {
  QUEUEDUCT_FAILPOINT("owner.before_disown");
  word.store(0, std::memory_order_release);  // release O2
  QUEUEDUCT_FAILPOINT("owner.disowned");
}

}  // namespace queueduct::owner
