// put_once on slots: is an item in whose producer was killed?
//
// Shape      a named producer puts one item after the other, and notes each in its line (segment/producers.hpp):
//              hold ─► fill ─► intend ─► [ARRIVING ─► in `used`] ─► complete(1)
//            position is the slot; kept is its word as it was HELD, which no slot has twice (S3).
//              kept:  HELD word ──cut──► the same with STRAY: the recoverer of the slot found no item in it
// Roles      the owner of a line puts and settles; the recoverer of a dead participant's slot cuts.
// Invariants K1  an intent is written while its slot is HELD, and ended before the slot is given back without an item.
//                So from a line that is found intended its slot went on by a publish, or was recovered.
//            K2  a slot becomes STRAY only after every intent that names its word was cut. An item that was in `used`
//                is never cut: HELD was not there yet; of ARRIVING it is first seen that it is not there, and then
//                that the word is still the same (V3): so it never was, and its producer is dead.
//            K3  so: once the word is neither the HELD one nor its ARRIVING, the item was in `used` if, and only if,
//                kept is not cut. What became of the slot afterwards says nothing, and need not.
//            K4  a cut is a compare-and-swap of a word that names the dead one's line. Recovery keeps that line from
//                a next owner (V1): so a late cut finds this very intent, or another word.
//            K5  a line that is found intended is settled before its next intend, and by its owner alone.
// Progress   as a publish: two stores more. Takers have nothing to do with it. A settle recovers the dead itself.
// Source     ours; searched in models/slots, and by kills in tests/native/crash/slots.
//
// Memory orders come in pairs:
//   K3  cut: acq_rel compare-and-swap before the seq_cst swap to STRAY, with the acquire load of the word in settle().
//       Later words are swaps too: a load that sees one has acquired all before it.
//   The intent of a dead one is carried to recovery by the kernel: it drops the lock after the last store.
#pragma once

#include "segment/producers.hpp"
#include "slots/slots.hpp"

namespace queueduct {

// The table as a recoverer needs it.
struct ProducerLines {
  ProducerLine* lines = nullptr;
  std::uint32_t count = 0;
};

namespace slot_claim {

using State = slot_word::State;

[[nodiscard]] constexpr std::uint64_t with_state(std::uint64_t word, State state) noexcept {
  return (word & ~std::uint64_t{7}) | static_cast<std::uint64_t>(state);
}
[[nodiscard]] constexpr std::uint64_t cut(std::uint64_t held) noexcept { return with_state(held, State::stray); }
[[nodiscard]] constexpr std::uint64_t arriving(std::uint64_t held) noexcept {
  return slot_word::next(held, State::arriving, slot_word::owner_of(held));
}
// Generations wrap: half of them lie after any one.
[[nodiscard]] constexpr bool is_later(std::uint64_t word, std::uint64_t than) noexcept {
  const std::uint64_t steps = (word >> slot_word::generation_shift) - (than >> slot_word::generation_shift);
  return static_cast<std::int64_t>(steps << slot_word::generation_shift) > 0;
}
static_assert(is_later(std::uint64_t{1} << slot_word::generation_shift, ~std::uint64_t{0}));
static_assert(!is_later(5, 5));

}  // namespace slot_claim

// Before a slot of the dead becomes STRAY whose word is HELD, or ARRIVING and seen to be in no queue. keeps K2, K4
inline void cut_claims(ProducerLines producers, std::uint64_t slot, std::uint64_t word) noexcept {
  for (std::uint32_t i = 0; i < producers.count; ++i) {
    ProducerLine& line = producers.lines[i];
    // relaxed: what the dead producer wrote is visible; a stale value of a living one only makes the swap fail
    std::uint64_t kept = line.kept.load(std::memory_order_relaxed);
    const bool is_claim = kept == word || slot_claim::arriving(kept) == word;
    if (!is_claim || slot_word::state_of(kept) != slot_word::State::held) continue;
    if (line.position.load(std::memory_order_relaxed) != slot) continue;
    QUEUEDUCT_FAILPOINT("once.before_cut");
    line.kept.compare_exchange_strong(kept, slot_claim::cut(kept), std::memory_order_acq_rel,  // K3
                                      std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("once.cut");
  }
}

// Publishes a slot that is held and filled, and counts it. Outcomes as of a publish. keeps K1
[[nodiscard]] inline SlotOutcome publish_once(Slots& slots, ProducerLine& line, Lease& lease,
                                              std::uint64_t bytes) noexcept {
  line.kept.store(lease.word, std::memory_order_relaxed);  // carried out by release N2, or by the kernel
  intend(line, lease.slot, {1, 1});
  const SlotOutcome outcome = slots.publish(lease, bytes, [&] { complete(line, 0); });
  if (outcome == SlotOutcome::done) complete(line, 1);
  return outcome;
}

enum class Settled : std::uint8_t {
  yes,
  undecided,  // the slot is still its dead producer's: recover it, and ask again
  corrupt,
};

// What the last owner of a line left unfinished, if it was killed. keeps K5
[[nodiscard]] inline Settled settle(const Slots& slots, ProducerLine& line) noexcept {
  const Progress now = progress_of(line);
  if (now.phase == Phase::idle) return Settled::yes;
  // relaxed: carried to us by acquire N2; what the words say is not believed before it is checked
  const std::uint64_t slot = line.position.load(std::memory_order_relaxed);
  const std::uint64_t seen = line.kept.load(std::memory_order_relaxed);
  const std::uint64_t held = slot_claim::with_state(seen, slot_word::State::held);
  const bool is_sound = now.phase == Phase::intended && slot < slots.count() && slot_word::owner_of(held) != 0 &&
                        (seen == held || seen == slot_claim::cut(held)) && now.done < now.total;
  if (!is_sound) return Settled::corrupt;
  const std::uint64_t word = slots.word_of(slot);  // acquire K3
  if (word == held || word == slot_claim::arriving(held)) return Settled::undecided;
  if (!slot_claim::is_later(word, held)) return Settled::corrupt;
  const bool is_cut = line.kept.load(std::memory_order_relaxed) != held;  // K3
  complete(line, is_cut ? 0 : 1);
  return Settled::yes;
}

}  // namespace queueduct
