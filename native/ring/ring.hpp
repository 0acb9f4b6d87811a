// A ring of slots, each with a generation that says which operation may use it next.
//
// Shape      position:     pop_position ──► … ──► push_position          (both only rise)
//            generation of the slot of position p, capacity C, any number from 1 on:
//              free(p)           p may be pushed here              ┐ a push waits for free(p) and leaves published(p),
//              published(p)      p may be popped                   │ a pop waits for that and leaves free(p+C)
//              free(p+C)         free for the next lap             ┘
//              tombstone(p)      its producer died: consumers skip it
//              redelivered(p, n) its consumer died: another one delivers it, the n-th to try
//            No two of them are equal, also of different positions: so a ring of one slot works as any other.
//            An item of k slots holds k consecutive positions: the head has its length, each other slot its distance
//            to the head.
// Roles      any number of producers and consumers, threads or processes.
// Invariants I1  a position is claimed by exactly one compare-and-swap of push_position, and one of
//                pop_position; a claim of k positions is one compare-and-swap.
//            I2  only the producer that claimed p writes the slot, and only while its generation is free(p); it then
//                publishes it. Only the consumer that claimed p reads it, and only while it is published(p) (or
//                redelivered).
//            I3  the slots of one item are published head last and released head first: a published head
//                means a whole item, a released head means a delivered one.
//            I4  positions never fall or wrap (62 bits: 146 years at 1 ns an item), so a compare-and-swap
//                that succeeds saw no ABA, and what was read under it was still true.
//            I5  every claim is declared in the ledger first.
// Progress   lock-free claims: a failed compare-and-swap means that another one succeeded. A slot in mid-copy delays
//            only the participant that needs that slot next; recovery ends the claims of the dead.
// Source     D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010; the ledger is ours (ledger.hpp, recovery.hpp).
//
// Memory orders come in pairs:
//   P1  publish():  release store published(p) with acquire load in pop: the item's bytes
//   P2  release():  release store free(p+C)    with acquire load in push: our reads of them are over
//   P3  claim():    acq_rel compare-and-swap   with acquire load of the position in recovery: the intent (L1)
#pragma once

#include "ring/ledger.hpp"
#include "ring/look_ahead.hpp"

namespace queueduct {

enum class Outcome : std::uint8_t {
  done,
  full,     // no room for it now
  empty,    // nothing published, nothing claimed
  busy,     // the next slot is claimed and not yet published: its producer is in mid-copy, or dead
  closed,   // shut down: nothing more will come (pop) or go (push)
  corrupt,  // the shared words contradict each other
  moved,    // of a growing queue: the level range has moved on from this ring
  unbacked,  // of a growing queue: the next slots have no memory yet
};

namespace generation {

// The two highest bits say what the slot is:
//   00 free | position : 62      01 published | position : 62
//   10 tombstone | position : 62      11 redelivered | times : 14 | position : 48
inline constexpr std::uint64_t published_bits = std::uint64_t{1} << 62;
inline constexpr std::uint64_t tombstone_bits = std::uint64_t{2} << 62;
inline constexpr std::uint64_t redelivered_bits = std::uint64_t{3} << 62;
inline constexpr std::uint64_t redelivered_position_mask = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t times_mask = (std::uint64_t{1} << 14) - 1;

[[nodiscard]] constexpr std::uint64_t free(std::uint64_t p) noexcept { return p; }
[[nodiscard]] constexpr std::uint64_t published(std::uint64_t p) noexcept { return p | published_bits; }
[[nodiscard]] constexpr std::uint64_t tombstone(std::uint64_t p) noexcept { return p | tombstone_bits; }
// Each redelivery has another value, so that a recoverer's compare-and-swap from an old one fails. The ledger, not this
// word, names the redeliverer: a line gets new owners, which the word could not tell apart.
[[nodiscard]] constexpr std::uint64_t redelivered(std::uint64_t p, std::uint64_t times) noexcept {
  return redelivered_bits | (times & times_mask) << 48 | (p & redelivered_position_mask);
}
[[nodiscard]] constexpr bool is_redelivered(std::uint64_t g, std::uint64_t p) noexcept {
  return g >= redelivered_bits && (g & redelivered_position_mask) == (p & redelivered_position_mask);
}
// Returns how often the item in a slot of this generation was redelivered: exact up to 16,383, then at least 8,192.
[[nodiscard]] constexpr std::uint64_t times_redelivered(std::uint64_t g) noexcept {
  return g >= redelivered_bits ? g >> 48 & times_mask : 0;
}
// Returns the number of the next redelivery. Behind the largest comes the middle: a number is never small again, and
// the same one returns after 8,192 redeliveries only.
[[nodiscard]] constexpr std::uint64_t next_redelivery(std::uint64_t g) noexcept {
  const std::uint64_t times = times_redelivered(g);
  return times == times_mask ? (times_mask + 1) / 2 : times + 1;
}

}  // namespace generation

// The length word of a slot.
struct Length {
  static constexpr std::uint32_t continuation_bit = 1u << 31;
  std::uint32_t word;
  [[nodiscard]] constexpr bool is_continuation() const noexcept { return word & continuation_bit; }
  [[nodiscard]] constexpr std::uint32_t distance() const noexcept { return word & ~continuation_bit; }
};
inline constexpr std::uint64_t item_bytes_limit = Length::continuation_bit - 1;

// Positions are counted from the queue's creation; slot i starts free for position i. The numbering of a ring that is
// opened more than once is in growing/levels.hpp.
struct FixedNumbering {
  Modulus modulus;

  void set_capacity(std::uint64_t capacity) noexcept { modulus = Modulus::of(capacity); }
  [[nodiscard]] std::uint64_t index_of(std::uint64_t position) const noexcept { return modulus.index_of(position); }
  static constexpr std::memory_order position_order = std::memory_order_relaxed;
  [[nodiscard]] static constexpr std::uint64_t position_of(std::uint64_t word) noexcept { return word & ~closed_bit; }
  [[nodiscard]] static constexpr std::uint64_t first_position() noexcept { return 0; }
  [[nodiscard]] static constexpr bool is_in_zeroed_lap(std::uint64_t, std::uint64_t) noexcept { return false; }
  // Returns true if the positions read before belong to this opening of the ring.
  [[nodiscard]] static constexpr bool is_current() noexcept { return true; }
  // Returns how many of the wanted slots have memory.
  [[nodiscard]] static constexpr std::uint64_t backed(std::uint64_t, std::uint64_t wanted) noexcept { return wanted; }
};

// This process's own copy of the geometry: a peer cannot overwrite it.
template <class Numbering>
struct BasicRing : Numbering {
  std::atomic<std::uint64_t>* push_position = nullptr;
  std::atomic<std::uint64_t>* pop_position = nullptr;
  std::atomic<std::uint64_t>* generations = nullptr;
  std::atomic<std::uint32_t>* lengths = nullptr;  // nullptr: every item is one slot
  std::byte* payload = nullptr;
  std::uint64_t capacity = 0;
  std::uint64_t slot_bytes = 0;

  void set_capacity(std::uint64_t slots) noexcept {
    capacity = slots;
    Numbering::set_capacity(slots);
  }
  [[nodiscard]] std::uint64_t index(std::uint64_t position) const noexcept { return this->index_of(position); }
  // The generation of a slot that is free for this position.
  [[nodiscard]] std::uint64_t free(std::uint64_t position) const noexcept {
    return this->is_in_zeroed_lap(position, capacity) ? 0 : generation::free(position);
  }
  // In neighbouring slots free generations are consecutive numbers, or all the same.
  [[nodiscard]] std::uint64_t free_step(std::uint64_t position) const noexcept {
    return this->is_in_zeroed_lap(position, capacity) ? 0 : 1;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& generation_of(std::uint64_t position) const noexcept {
    return generations[index(position)];
  }
  [[nodiscard]] std::atomic<std::uint32_t>& length_of(std::uint64_t position) const noexcept {
    return lengths[index(position)];
  }
  [[nodiscard]] std::uint64_t slots_for(std::uint64_t bytes) const noexcept {
    return bytes <= slot_bytes ? 1 : (bytes + slot_bytes - 1) / slot_bytes;
  }
  // Returns the longest claim: the whole ring, or as much as an intent can name.
  [[nodiscard]] std::uint64_t claim_limit() const noexcept {
    return capacity < Intent::count_limit ? capacity : Intent::count_limit;
  }
};
using Ring = BasicRing<FixedNumbering>;

// A claimed or claimable range of positions.
struct Span {
  std::uint64_t position = 0;
  std::uint64_t slots = 0;
};

// Returns true if the slot of `position` may have generation g while it still belongs to the lap before.
template <class R>
[[nodiscard]] bool is_previous_lap(const R& ring, std::uint64_t g, std::uint64_t position) noexcept {
  if (position - ring.first_position() < ring.capacity) return false;
  const std::uint64_t before = position - ring.capacity;
  return g == ring.free(before) || g == generation::published(before) ||
         g == generation::tombstone(before) || generation::is_redelivered(g, before);
}

// Generations of a batch are read and written in runs that do not cross the end of the array. In such a run
// they are consecutive numbers (or all the same: step 0), so eight of them are compared with one branch.
[[nodiscard]] inline std::uint64_t count_holding_in_run(const std::atomic<std::uint64_t>* generations,
                                                        std::uint64_t first, std::uint64_t run,
                                                        std::uint64_t step = 1) noexcept {
  std::uint64_t i = 0;
  for (; i + 8 <= run; i += 8) {
    std::uint64_t difference = 0;
    for (std::uint64_t j = i; j < i + 8; ++j)
      difference |= generations[j].load(std::memory_order_acquire) ^ (first + j * step);
    if (difference != 0) break;
  }
  while (i < run && generations[i].load(std::memory_order_acquire) == first + i * step) ++i;
  return i;
}

// Returns how many slots from `position` on hold expected(position), …, at most `limit`. step(position) is the
// difference to the next slot's.
template <class R, class Expected, class Step>
[[nodiscard]] std::uint64_t count_holding(const R& ring, std::uint64_t position, std::uint64_t limit, Expected expected,
                                          Step step) noexcept {
  if (limit == 1) return ring.generation_of(position).load(std::memory_order_acquire) == expected(position);
  for (std::uint64_t found = 0;;) {
    const std::uint64_t first = position + found;
    const std::uint64_t index = ring.index(first);
    const std::uint64_t run = limit - found < ring.capacity - index ? limit - found : ring.capacity - index;
    const std::uint64_t more = count_holding_in_run(ring.generations + index, expected(first), run, step(first));
    found += more;
    if (more < run || found == limit) return found;
  }
}
// The same for consecutive numbers.
template <class R>
[[nodiscard]] std::uint64_t count_holding(const R& ring, std::uint64_t first, std::uint64_t position,
                                          std::uint64_t limit) noexcept {
  return count_holding(
      ring, position, limit, [=](std::uint64_t p) { return first + (p - position); }, [](std::uint64_t) { return 1; });
}

// Returns how many slots from `position` on are free, at most `limit`.
template <class R>
[[nodiscard, gnu::always_inline]] inline std::uint64_t count_free(const R& ring, std::uint64_t position,
                                                                  std::uint64_t limit) noexcept {
  if (limit == 1) [[likely]]
    return ring.generation_of(position).load(std::memory_order_acquire) == ring.free(position);
  return count_holding(
      ring, position, limit, [&](std::uint64_t p) { return ring.free(p); },
      [&](std::uint64_t p) { return ring.free_step(p); });
}

// Stores first, first + 1, … into the slots of a span, in order, each with release.
template <class R>
void store_each(const R& ring, Span span, std::uint64_t first, [[maybe_unused]] const char* before,
                       [[maybe_unused]] const char* after) noexcept {
  for (std::uint64_t stored = 0; stored < span.slots;) {
    const std::uint64_t index = ring.index(span.position + stored);
    const std::uint64_t left = span.slots - stored;
    const std::uint64_t run = left < ring.capacity - index ? left : ring.capacity - index;
    std::atomic<std::uint64_t>* const generations = ring.generations + index;  // a local: the stores might alias ring
    for (std::uint64_t i = 0; i < run; ++i) {
      QUEUEDUCT_FAILPOINT(before);
      generations[i].store(first + stored + i, std::memory_order_release);
      QUEUEDUCT_FAILPOINT(after);
    }
    stored += run;
  }
}

// Push, step 1: claims up to `wanted` consecutive free positions.
// fit(ready) returns how many of the free ones to claim: for an item all or none, for a batch as many as there are.
template <class R, class Ledger, class Fit>
[[nodiscard, gnu::always_inline]] inline Outcome claim_push(const R& ring, Ledger ledger, std::uint64_t wanted, Fit fit,
                                 Span& span) noexcept {
  for (;;) {
    // relaxed: only a hint until the compare-and-swap below confirms it
    const std::uint64_t position = ring.push_position->load(R::position_order);
    QUEUEDUCT_FAILPOINT("push.read_position");
    if (position & closed_bit) [[unlikely]] return Outcome::closed;
    if (!ring.is_current()) [[unlikely]] return Outcome::moved;
    const std::uint64_t backed = ring.backed(position, wanted);
    // acquire P2: the poppers of the lap before have finished reading
    const std::uint64_t ready = count_free(ring, position, backed);
    QUEUEDUCT_FAILPOINT("push.read_generations");
    const std::uint64_t slots = fit(ready);
    if (slots == 0) [[unlikely]] {
      if (ready == backed && backed < wanted) return Outcome::unbacked;
      const std::uint64_t seen = ring.generation_of(position + ready).load(std::memory_order_acquire);
      if (seen == ring.free(position + ready)) continue;  // released just now
      // A generation beyond its position means that our position is old: then it has moved (I1).
      if (ring.push_position->load(std::memory_order_relaxed) != position) continue;
      span = {position, 0};  // where there was no room
      return is_previous_lap(ring, seen, position + ready) ? Outcome::full : Outcome::corrupt;
    }
    if (ledger.claim(*ring.push_position, Side::push, position, slots)) [[likely]] {  // keeps I1, I5
      QUEUEDUCT_FAILPOINT("push.claimed");
      span = {position, slots};
      return Outcome::done;
    }
  }
}

// Push, step 3 (step 2 is the copy): gives the slots of one item to the consumers. keeps I3: head last
template <class R>
void publish(const R& ring, Span span) noexcept {
  for (std::uint64_t i = span.slots; i-- > 0;) {
    QUEUEDUCT_FAILPOINT("push.before_publish");
    // release P1: publishes the slot's bytes and length
    ring.generation_of(span.position + i).store(generation::published(span.position + i), std::memory_order_release);
    QUEUEDUCT_FAILPOINT("push.published");
  }
}

// The same for a batch of one-slot items: in order, so that consumers can start.
template <class R>
void publish_each(const R& ring, Span span) noexcept {
  store_each(ring, span, generation::published(span.position), "push.before_publish", "push.published");  // P1
}

// Pop, step 3: gives the slots back to the producers. keeps I3: head first
// release P2: our reads of the slots are over
template <class R>
void release(const R& ring, Span span) noexcept {
  store_each(ring, span, ring.free(span.position + ring.capacity), "pop.before_release", "pop.released");
}

// Pop, step 1b: claims exactly what was peeked. Returns false if another consumer was faster or the queue was closed.
// Success also proves that the lengths read since were the item's own: a producer can rewrite them only after a
// consumer has popped this position, and that compare-and-swap would come after ours (acq_rel P3).
template <class R, class Ledger>
[[nodiscard]] bool claim_pop(const R& ring, Ledger ledger, Span span) noexcept {
  const bool claimed = ledger.claim(*ring.pop_position, Side::pop, span.position, span.slots);  // keeps I1, I5
  QUEUEDUCT_FAILPOINT("pop.claimed");
  return claimed;
}

// An item seen at the front, not yet claimed.
struct Peeked {
  Span span;
  std::uint64_t bytes = 0;
  std::uint64_t skipped = 0;  // slots of dead producers before it, now free for producers
};

// Reads the length of the published item at `position`.
// Returns false if the length is impossible: the queue is corrupt unless the position has moved.
template <class R>
[[nodiscard]] bool read_length(const R& ring, std::uint64_t position, Peeked& peeked, bool& orphan) noexcept {
  // relaxed: written before the release P1 that we acquired; validated by claim_pop
  const Length length{ring.length_of(position).load(std::memory_order_relaxed)};
  orphan = length.is_continuation();
  peeked.bytes = orphan ? 0 : length.word;
  peeked.span = {position, orphan ? 1 : ring.slots_for(length.word)};
  return peeked.span.slots <= ring.claim_limit();
}

// Returns how many slots from `position` on are tombstones; that one is. A dead producer's batch may have millions.
template <class R>
[[nodiscard]] std::uint64_t count_abandoned(const R& ring, std::uint64_t position) noexcept {
  constexpr std::uint64_t most = 1u << 14;
  const std::uint64_t pushed = ring.position_of(ring.push_position->load(std::memory_order_acquire));
  std::uint64_t limit = pushed > position ? pushed - position : 1;
  if (limit > ring.claim_limit()) limit = ring.claim_limit();
  const std::uint64_t abandoned =
      count_holding(ring, generation::tombstone(position), position, limit < most ? limit : most);
  return abandoned == 0 ? 1 : abandoned;  // none: another consumer was faster, and the claim will fail
}

// Pop, step 1a: finds the item at the front. Skips the slots of dead producers there.
template <class R, class Ledger>
[[nodiscard]] Outcome peek(const R& ring, Ledger ledger, Peeked& peeked) noexcept {
  peeked.skipped = 0;
  for (;;) {
    const std::uint64_t position = ring.pop_position->load(R::position_order);  // a hint, as in push
    QUEUEDUCT_FAILPOINT("pop.read_position");
    if (position & closed_bit) [[unlikely]] return Outcome::closed;
    if (!ring.is_current()) [[unlikely]] return Outcome::moved;
    // acquire P1: the item's bytes and length
    const std::uint64_t seen = ring.generation_of(position).load(std::memory_order_acquire);
    QUEUEDUCT_FAILPOINT("pop.read_generation");
    bool skip = false;
    if (seen == generation::published(position)) [[likely]] {
      look_ahead_to_pop(ring, position);
      if (ring.lengths == nullptr) {
        peeked.span = {position, 1};
        peeked.bytes = ring.slot_bytes;
        return Outcome::done;
      }
      if (read_length(ring, position, peeked, skip)) [[likely]] {
        if (!skip) return Outcome::done;
      } else {
        // A read-modify-write sees the last position: if it is still ours, so was the length (see claim_pop).
        std::uint64_t expected = position;
        if (ring.pop_position->compare_exchange_strong(expected, position, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed))
          return Outcome::corrupt;
        continue;
      }
    } else if (seen == generation::tombstone(position)) {
      skip = true;
    }
    if (skip) {
      const std::uint64_t run = seen == generation::tombstone(position) ? count_abandoned(ring, position) : 1;
      if (claim_pop(ring, ledger, {position, run})) {
        release(ring, {position, run});
        ledger.clear();
        peeked.skipped += run;
      }
      continue;
    }
    if (ring.pop_position->load(std::memory_order_relaxed) != position) continue;
    peeked.span = {position, 0};  // where there was nothing
    // acquire P3: the producer that claimed this slot has declared it; recovery relies on it
    const std::uint64_t word = ring.push_position->load(std::memory_order_acquire);
    const std::uint64_t pushed = ring.position_of(word);
    if (seen == ring.free(position) || is_previous_lap(ring, seen, position)) {
      if (pushed == position) return word & closed_bit ? Outcome::closed : Outcome::empty;
      if (ring.generation_of(position).load(std::memory_order_acquire) != seen) continue;
      if (ring.pop_position->load(std::memory_order_relaxed) != position) continue;
      const bool plausible = seen == ring.free(position) && pushed - position <= ring.capacity;
      return plausible ? Outcome::busy : Outcome::corrupt;
    }
    return Outcome::corrupt;
  }
}

// Returns how many one-slot items from `position` on are published, at most `limit`. acquire P1
template <class R>
[[nodiscard]] std::uint64_t count_ready(const R& ring, std::uint64_t position, std::uint64_t limit) noexcept {
  return limit == 0 ? 0 : count_holding(ring, generation::published(position), position, limit);
}

// Hints for a waiting participant: they read one shared cache line and return true if another attempt may succeed.
template <class R>
[[nodiscard]] bool may_be_poppable(const R& ring) noexcept {
  const std::uint64_t position = ring.pop_position->load(std::memory_order_relaxed);
  if (position & closed_bit) return true;
  const std::uint64_t seen = ring.generation_of(position).load(std::memory_order_relaxed);
  return seen == generation::published(position) || seen == generation::tombstone(position);
}

template <class R>
[[nodiscard]] bool may_be_pushable(const R& ring, std::uint64_t position, std::uint64_t slots) noexcept {
  if (position & closed_bit) return true;
  for (std::uint64_t i = slots; i-- > 0;)  // the last one first: it is the last to be released
    if (ring.generation_of(position + i).load(std::memory_order_relaxed) != ring.free(position + i)) return false;
  return true;
}

template <class R>
[[nodiscard]] bool may_be_pushable(const R& ring, std::uint64_t slots) noexcept {
  return may_be_pushable(ring, ring.push_position->load(std::memory_order_relaxed), slots);
}

// Returns true if the queue was shut down with `immediate`: gets end at once.
template <class R>
[[nodiscard]] bool is_discarded(const R& ring) noexcept {
  return ring.pop_position->load(std::memory_order_relaxed) & closed_bit;
}

// A snapshot: the pop position first, so that the difference is never negative while others work.
template <class R>
[[nodiscard]] std::uint64_t slots_in_use(const R& ring) noexcept {
  const std::uint64_t popped = ring.pop_position->load(std::memory_order_acquire);
  const std::uint64_t pushed = ring.position_of(ring.push_position->load(std::memory_order_acquire));
  if (popped & closed_bit || pushed < popped) return 0;
  return pushed - popped < ring.capacity ? pushed - popped : ring.capacity;
}

// Returns the items between the positions. `walk`: there may be long items or tombstones, so it counts heads.
template <class R>
[[nodiscard]] std::uint64_t count_items(const R& ring, bool walk) noexcept {
  const std::uint64_t slots = slots_in_use(ring);
  if (!walk) return slots;
  const std::uint64_t first = ring.pop_position->load(std::memory_order_acquire) & ~closed_bit;
  std::uint64_t items = 0;
  for (std::uint64_t p = first; p != first + slots; ++p)
    items += ring.generation_of(p).load(std::memory_order_acquire) == generation::published(p) &&  // acquire P1
             (ring.lengths == nullptr || !Length{ring.length_of(p).load(std::memory_order_relaxed)}.is_continuation());
  return items;
}

}  // namespace queueduct
