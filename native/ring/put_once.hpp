// Puts of named producers on a ring: how much of a claim is in when its producer was killed.
//
// Shape      a put is claim, copy, publish; a named producer records it in its line (producers.hpp) meanwhile:
//              intend -> [ledger: declare -> claim] -> confirm -> copy, publish in order -> complete
//            kept, one word:  | slots : 22 | position (low bits) : 42 |
//              the claim, cut short at the first position that a recoverer abandons.
// Roles      the owner of a line puts and settles; a recoverer that abandons a slot cuts claims short.
// Invariants C1  a claim is confirmed before any of its slots is published: of a claim that is only intended nothing is
//                in and nothing will be.
//            C2  a claim is one-slot items, published in order, or one long item, published head last (I3): the slots
//                before the first abandoned one are in, or all of the long item, or nothing of it.
//            C3  a slot is abandoned only after the claim that covers it was cut short there. So once none of a dead
//                producer's slots is free any more, `kept` says how much was published, for ever: slots are used again,
//                `kept` is not before the next intend.
//            C4  a cut is a compare-and-swap of a word that itself covers the slot. The slot was claimed once, by a
//                dead producer: a late cut finds this very claim, or a word that does not cover it.
//            C5  a line that is found claimed is settled before its next intend, and by its owner alone.
// Progress   as a put; a settle waits until the dead producer's slots are abandoned, which any participant can do.
// Source     ours; searched by kills in tests/native/crash/rings/crash_put_once.cpp.
//
// Memory orders come in pairs:
//   C3  cut: acq_rel compare-and-swap before the acq_rel swap to a tombstone, with the acquire load of the generation
//       in settle(). A participant that pops or reuses the slot has acquired the tombstone and releases its successor.
#pragma once

#include "ring/items.hpp"
#include "segment/producers.hpp"

namespace queueduct {

struct Kept {
  std::uint64_t position = 0;  // modulo 2^42
  std::uint64_t slots = 0;

  static constexpr int position_bits = 42;
  static constexpr std::uint64_t position_mask = (std::uint64_t{1} << position_bits) - 1;

  [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
    return slots << position_bits | (position & position_mask);
  }
  [[nodiscard]] static constexpr Kept unpack(std::uint64_t word) noexcept {
    return {word & position_mask, word >> position_bits};
  }
  // Returns how many slots are before p; at least `slots` if p is not covered.
  [[nodiscard]] constexpr std::uint64_t slots_before(std::uint64_t p) const noexcept {
    return (p - position) & position_mask;
  }
};
static_assert(Intent::count_limit < std::uint64_t{1} << (64 - Kept::position_bits));
static_assert(Kept::unpack(Kept{77, Intent::count_limit}.packed()).slots == Intent::count_limit);

// Called before p is abandoned; its producer is dead for certain. keeps C3, C4
// Returns the next position that needs this call: those between are in no claim of a named producer. A claim written
// later is not a dead producer's.
inline std::uint64_t cut_claims(ProducerLine* lines, std::uint32_t count, std::uint64_t p) noexcept {
  std::uint64_t ahead = Kept::position_mask / 2;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t word = lines[i].kept.load(std::memory_order_acquire);
    for (;;) {
      const Kept kept = Kept::unpack(word);
      const std::uint64_t before = kept.slots_before(p);
      if (before >= kept.slots) {
        const std::uint64_t begins_after = (kept.position - p) & Kept::position_mask;
        if (kept.slots != 0 && begins_after != 0 && begins_after < ahead) ahead = begins_after;
        break;
      }
      QUEUEDUCT_FAILPOINT("once.before_cut");
      const bool is_cut = lines[i].kept.compare_exchange_strong(word, Kept{kept.position, before}.packed(),
                                                                std::memory_order_acq_rel, std::memory_order_acquire);
      QUEUEDUCT_FAILPOINT("once.cut");
      if (is_cut) break;
    }
  }
  return p + ahead;
}

// The claims of a named producer: wraps the ledger.
class OnceLedger {
 public:
  // `is_one_item`: all slots of a claim are one item; else each is one.
  OnceLedger(Participant shared, ProducerLine* line, bool is_one_item) noexcept
      : shared_(shared), line_(line), is_one_item_(is_one_item) {}

  [[nodiscard]] bool claim(std::atomic<std::uint64_t>& word, Side side, std::uint64_t position,
                           std::uint64_t count) noexcept {
    line_->kept.store(Kept{position, count}.packed(), std::memory_order_relaxed);  // published by release N2
    intend(*line_, position, {count, is_one_item_ ? 1 : count});
    if (!shared_.claim(word, side, position, count)) return false;
    confirm(*line_);  // keeps C1
    return true;
  }

  void clear() noexcept {
    complete(*line_, Extent::unpack(line_->extent.load(std::memory_order_relaxed)).items);
    shared_.clear();
  }
  void count_put(std::uint64_t items, std::uint64_t bytes) noexcept { shared_.count_put(items, bytes); }

 private:
  Participant shared_;
  ProducerLine* line_;
  bool is_one_item_;
};

// After a put that did not succeed.
inline void drop_intent(ProducerLine& line) noexcept {
  if (progress_of(line).phase == Phase::intended) complete(line, 0);
}

// Puts as many items as one claim takes now: those of one slot up to the first long one, or that one. keeps C2
template <class Ledger = OnceLedger, class R>
[[nodiscard]] Outcome try_put_bytes_once(const R& ring, Participant ledger, ProducerLine& line, const Buffer* items,
                                         std::uint64_t count, std::uint64_t& put) noexcept {
  std::uint64_t run = 0;
  while (run < count && run < ring.claim_limit() && ring.slots_for(items[run].bytes) == 1) ++run;
  Outcome outcome;
  if (run > 0) {
    outcome = try_put_bytes_many(ring, Ledger(ledger, &line, false), items, run, put);
  } else {
    outcome = try_put_bytes(ring, Ledger(ledger, &line, true), items[0].data, items[0].bytes);
    put = outcome == Outcome::done;
  }
  if (outcome != Outcome::done) drop_intent(line);
  return outcome;
}

// Puts as many of `count` records as fit now.
template <class Ledger = OnceLedger, class R>
[[nodiscard]] Outcome try_put_records_once(const R& ring, Participant ledger, ProducerLine& line, const void* data,
                                           std::uint64_t count, std::uint64_t& put) noexcept {
  const Outcome outcome = try_put_records(ring, Ledger(ledger, &line, false), data, count, put);
  if (outcome != Outcome::done) drop_intent(line);
  return outcome;
}

// Records how much of a dead producer's claim was published; none of its slots is free any more. keeps C5
[[nodiscard]] inline Outcome settle_abandoned(ProducerLine& line) noexcept {
  const Extent extent = Extent::unpack(line.extent.load(std::memory_order_relaxed));
  const std::uint64_t kept = Kept::unpack(line.kept.load(std::memory_order_acquire)).slots;
  const std::uint64_t published = kept >= extent.slots ? extent.items : extent.items == extent.slots ? kept : 0;  // C2
  complete(line, published);
  return Outcome::done;
}

// Finishes the put of the line's last owner, if that was killed. busy: not all of its slots are abandoned yet, run a
// recovery and call again. keeps C5
template <class R>
[[nodiscard]] Outcome settle(const R& ring, ProducerLine& line) noexcept {
  const Progress now = progress_of(line);
  if (now.phase == Phase::idle) return Outcome::done;
  if (now.phase == Phase::intended) {  // C1
    complete(line, 0);
    return Outcome::done;
  }
  // relaxed: carried to us by acquire N2; the words are checked before they are used
  const std::uint64_t position = line.position.load(std::memory_order_relaxed);
  const Extent extent = Extent::unpack(line.extent.load(std::memory_order_relaxed));
  const std::uint64_t pushed = ring.position_of(ring.push_position->load(std::memory_order_acquire));
  const std::uint64_t popped = ring.pop_position->load(std::memory_order_acquire) & ~closed_bit;
  const bool is_sound = extent.items != 0 && extent.slots <= ring.claim_limit() && position <= pushed &&
                        extent.slots <= pushed - position && now.done <= now.total &&
                        extent.items <= now.total - now.done && (extent.items == 1 || extent.items == extent.slots);
  if (!is_sound) return Outcome::corrupt;
  for (std::uint64_t p = position; p != position + extent.slots; ++p)
    if (ring.generation_of(p).load(std::memory_order_acquire) == ring.free(p))  // C3
      return p < popped ? Outcome::corrupt : Outcome::busy;  // only published or abandoned slots are popped
  return settle_abandoned(line);
}

}  // namespace queueduct
