// Recovery of a bounded ring: what the dead claimed and did not finish.
//
// Shape      read the positions → read every line's intent, ask who is dead → compare-and-swap slots.
// Roles      whoever cannot go on. Producers and consumers abandon; only consumers redeliver.
// Invariants B1  as in bounded_claims.hpp: the positions are read before the lines.
//            B2  a slot is touched only if a dead line names it and no live line does (L3).
//            B3  each change is a compare-and-swap from the exact generation that was judged. If its owner
//                lived and went on, the generation has moved and the swap fails (L2).
//            B4  before a slot is abandoned, the claims of named producers are cut short at it (C3).
//            B5  redelivery is declared before it is made, like every claim: a dead redeliverer is found as well.
// Progress   lock-free; a pass costs a load a line, one fcntl for each line that names anything, and the
//            slots that the dead named. Those are judged in stretches, with one look at the lines for each: a claim of
//            millions of slots is a load and a compare-and-swap a slot, whoever else takes part.
// Source     searched exhaustively in models/ring, kills of the recoverer included.
#pragma once

#include "ring/claims.hpp"
#include "ring/put_once.hpp"

namespace queueduct {

struct RecoveryCounters {
  std::atomic<std::uint64_t>* tombstones;
  std::atomic<std::uint64_t>* redelivered;
};

// An item that a consumer takes over from a dead one, or is about to.
struct Redelivered {
  Span span;
  std::uint64_t bytes = 0;
  std::uint64_t seen = 0;  // the generation that was judged
};

template <class Rings>
class BasicRecovery : public BasicClaims<Rings> {
  using Claims = BasicClaims<Rings>;
  using typename Claims::Positions;

 public:
  using typename Claims::Ring;
  using Claims::is_held;
  using Claims::is_settled;

  BasicRecovery(Rings rings, ParticipantTable& participant_table, const Producers& producers, RecoveryCounters counters) noexcept
      : Claims(rings, participant_table), producers_(producers), counters_(counters) {}

  struct RecoveryScan {
    bool changed = false;    // a slot was abandoned or freed: try again
    bool redeliverable = false;  // `peeked` was claimed by a dead consumer and can be delivered by try_redeliver
    bool unclaimed = false;  // the front is claimed and nobody, alive or dead, says so: corrupt
    Peeked peeked;
    std::uint64_t seen = 0;
    Ring ring = {};  // where it is
  };

  // One pass over the table for each ring.
  [[nodiscard]] RecoveryScan run() noexcept {
    RecoveryScan found;
    rings().each([&](const Ring& ring) { pass(ring, found); });
    has_more_.store(found.changed || found.redeliverable, std::memory_order_relaxed);
    return found;
  }

  // Did the last pass find anything? Then the next one may, too. A hint for when to make it.
  [[nodiscard]] bool has_more() const noexcept { return has_more_.load(std::memory_order_relaxed); }

  // Take over what run() found. The caller then copies and calls release_redelivered().
  [[nodiscard]] bool try_redeliver(Participant ledger, const RecoveryScan& found) noexcept {
    const Span span = found.peeked.span;
    ledger.declare(Side::pop, span.position, span.slots);  // B5
    if (swap_to_redelivered(found.ring, {span, found.peeked.bytes, found.seen})) return true;
    ledger.clear();
    return false;
  }

  // Take over what run() found, and with it what follows: up to `limit` items that dead consumers had taken. How many
  // are ours now; the caller copies them and calls release_one() for each, and clears the line.
  [[nodiscard]] std::uint64_t try_redeliver_many(Participant ledger, const RecoveryScan& found, Redelivered* items,
                                             std::uint64_t limit) noexcept {
    const std::uint64_t count = list_redeliverable(found.ring, found.peeked.span.position, items, limit);
    if (count == 0) return 0;
    const std::uint64_t first = items[0].span.position;
    const Span last = items[count - 1].span;
    // B5. It names all of them before the first is redelivered, and those that others redeliver first as well: to name more
    // than is ours only delays (L3).
    ledger.declare(Side::pop, first, last.position + last.slots - first);
    std::uint64_t redelivered = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      if (swap_to_redelivered(found.ring, items[i])) items[redelivered++] = items[i];
    if (redelivered == 0) ledger.clear();
    return redelivered;
  }

  // The head is ours alone. Another recoverer who sees it gone may free the rest before us (settle_popped), and
  // then a producer may have it: so the rest goes by compare-and-swap, and one that fails is no longer ours.
  static void release_one(const Ring& ring, Span span) noexcept {
    release(ring, {span.position, 1});
    for (std::uint64_t p = span.position + 1; p != span.position + span.slots; ++p)
      (void)swap(ring, p, generation::published(p), ring.free(p + ring.capacity));
  }
  static void release_redelivered(const Ring& ring, Participant ledger, Span span) noexcept {
    release_one(ring, span);
    ledger.clear();
  }

  // Asked with the line's lock held: may its intent be forgotten? What its dead owner had taken and nobody has
  // delivered is written down as inherited first: the line can have a new owner, who need not be a consumer.
  // What it had claimed to push has to be abandoned first, which anybody can do.
  [[nodiscard]] bool hand_over_claims(std::uint32_t line) noexcept {
    const Intent left = read_intent(line);
    if (is_settled(left)) return true;
    if (left.side != Side::pop) return false;
    std::atomic<std::uint64_t>& inherited = participant_table().lines()[line].inherited;
    std::uint64_t before = inherited.load(std::memory_order_acquire);
    const Intent earlier = Intent::unpack(before);
    const std::uint64_t both = before == 0 || is_settled(earlier) ? left.packed() : merged(left, earlier);
    QUEUEDUCT_FAILPOINT("recover.before_bequest");
    // release: who sees the intent gone sees this. Lost to a recoverer that cleared it: the caller tries again.
    const bool is_named = both != 0 && inherited.compare_exchange_strong(before, both, std::memory_order_acq_rel,
                                                                         std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("recover.bequeathed");
    return is_named;
  }

 private:
  using Claims::is_meant;
  using Claims::judge;
  using Claims::merged;
  using Claims::positions_in;
  using Claims::read_intent;
  using Claims::rings;
  using Claims::participant_table;

  void pass(const Ring& ring, RecoveryScan& found) noexcept {
    // acquire P3, B1
    const std::uint64_t pushed = ring.position_of(ring.push_position->load(std::memory_order_acquire));
    const std::uint64_t popped_word = ring.pop_position->load(std::memory_order_acquire);
    const std::uint64_t popped = ring.position_of(popped_word);
    const bool had_changed = found.changed;
    found.changed = false;
    QUEUEDUCT_FAILPOINT("recover.read_positions");
    bool front_is_named = false;
    const std::uint32_t used = participant_table().used();
    for (std::uint32_t line = 0; line < used; ++line) {
      const Intent intent = read_intent(line);
      front_is_named |= intent.covers(Side::push, popped);
      if (is_meant(intent) && !participant_table().is_alive(line)) {
        QUEUEDUCT_FAILPOINT("recover.found_dead");
        if (!bury_or_find(ring, intent, pushed, popped, hint_of(line, false), found))
          participant_table().clear_settled(line, [this](std::uint32_t i) { return is_settled(i); });
      }
      recover_inherited(ring, line, pushed, popped, found);  // after the intent (A2)
    }
    found.unclaimed |= !front_is_named && !found.changed && popped < pushed &&
                      ring.generation_of(popped).load(std::memory_order_acquire) == ring.free(popped) &&
                      ring.pop_position->load(std::memory_order_relaxed) == popped_word;
    found.changed |= had_changed;
  }

  // What earlier owners of a line had taken: they are dead, whoever owns it now.
  void recover_inherited(const Ring& ring, std::uint32_t line, std::uint64_t pushed, std::uint64_t popped, RecoveryScan& found) noexcept {
    std::atomic<std::uint64_t>& inherited = participant_table().lines()[line].inherited;
    std::uint64_t word = inherited.load(std::memory_order_acquire);
    if (word == 0) [[likely]] return;
    const Intent intent = Intent::unpack(word);
    if (is_meant(intent) && bury_or_find(ring, intent, pushed, popped, hint_of(line, true), found)) return;
    QUEUEDUCT_FAILPOINT("recover.inherited");
    // From the exact word that was judged: a newer bequest stays. What is settled stays settled.
    if (is_settled(intent)) inherited.compare_exchange_strong(word, 0, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  // Items from `first` on, without a gap, that consumers have claimed and not given back, and that no live line names:
  // then the dead have (L3).
  [[nodiscard]] std::uint64_t list_redeliverable(const Ring& ring, std::uint64_t first, Redelivered* items,
                                             std::uint64_t limit) noexcept {
    const std::uint64_t popped = ring.position_of(ring.pop_position->load(std::memory_order_acquire));  // B1
    std::uint64_t count = 0;
    Stretch stretch;
    for (std::uint64_t p = first; count < limit && p < popped;) {
      if (p - stretch.begin >= stretch.count) judge(ring, Side::pop, p, popped, stretch);
      const std::uint64_t seen = stretch.seen[p - stretch.begin];
      if (!is_held(seen, p) || seen == generation::tombstone(p) || stretch.is_named(p - stretch.begin)) break;
      Peeked peeked{{p, 1}, ring.slot_bytes, 0};
      bool orphan = false;
      if (ring.lengths != nullptr && (!read_length(ring, p, peeked, orphan) || orphan)) break;
      if (p + peeked.span.slots - first > ring.claim_limit()) break;
      items[count++] = {peeked.span, peeked.bytes, seen};
      p += peeked.span.slots;
    }
    return count;
  }

  [[nodiscard]] bool swap_to_redelivered(const Ring& ring, const Redelivered& item) noexcept {
    const std::uint64_t p = item.span.position;
    std::uint64_t expected = item.seen;
    QUEUEDUCT_FAILPOINT("recover.before_redeliver");
    // B3; acquire P1 on success: the item's bytes
    if (!ring.generation_of(p).compare_exchange_strong(expected,
                                                       generation::redelivered(p, generation::times_redelivered(item.seen) + 1),
                                                       std::memory_order_acq_rel, std::memory_order_relaxed))
      return false;
    QUEUEDUCT_FAILPOINT("recover.redelivered");
    counters_.redelivered->fetch_add(1, std::memory_order_relaxed);  // a statistic
    return true;
  }

  // What of it is not settled yet, in this ring. True: there is something to redeliver, and what follows it was not looked at.
  // `hint` is where that was last time, so that who redelivers one item after the other does not begin anew each time.
  bool bury_or_find(const Ring& ring, Intent intent, std::uint64_t pushed, std::uint64_t popped,
                    std::atomic<std::uint64_t>& hint, RecoveryScan& found) noexcept {
    const Positions positions = positions_in(ring, intent, intent.side == Side::push ? pushed : popped);
    if (positions.begin >= positions.end) return false;
    if (intent.side == Side::push) {
      abandon(ring, positions, found);
      return false;
    }
    std::uint64_t middle = hint.load(std::memory_order_relaxed);
    if (middle < positions.begin || middle >= positions.end) middle = positions.begin;
    const bool is_found = settle_popped(ring, {middle, positions.end}, hint, found) ||
                          settle_popped(ring, {positions.begin, middle}, hint, found);
    return is_found;
  }

  // Claimed slots whose producer died before it published.
  void abandon(const Ring& ring, Positions positions, RecoveryScan& found) noexcept {
    Stretch stretch;
    std::uint64_t cut_from = positions.begin;  // where claims of named producers may have to be cut next
    for (std::uint64_t at = positions.begin; at < positions.end; at += stretch.count) {
      judge(ring, Side::push, at, positions.end, stretch);
      for (std::uint64_t p = at; p < at + stretch.count; ++p) {
        if (stretch.seen[p - at] != ring.free(p) || stretch.is_named(p - at)) continue;
        QUEUEDUCT_FAILPOINT("recover.found_free");
        if (producers_.count() != 0 && p >= cut_from) {
          // Still free after the look at the lines: whoever claimed it is dead, and not only since it published.
          if (ring.generation_of(p).load(std::memory_order_acquire) != ring.free(p)) continue;
          cut_from = cut_claims(producers_.lines(), producers_.count(), p);  // B4
        }
        if (!swap(ring, p, ring.free(p), generation::tombstone(p))) continue;
        found.changed = true;
        counters_.tombstones->fetch_add(1, std::memory_order_relaxed);  // a statistic
      }
    }
  }

  // Slots that a dead consumer had claimed: those are freed in which nothing is owed to anybody. True: one is to be
  // redelivered, and the look ends there.
  bool settle_popped(const Ring& ring, Positions positions, std::atomic<std::uint64_t>& hint, RecoveryScan& found) noexcept {
    Stretch stretch;
    for (std::uint64_t at = positions.begin; at < positions.end; at += stretch.count) {
      judge(ring, Side::pop, at, positions.end, stretch);
      for (std::uint64_t p = at; p < at + stretch.count; ++p) {
        const std::uint64_t seen = stretch.seen[p - at];
        if (!is_held(seen, p) || stretch.is_named(p - at)) continue;
        QUEUEDUCT_FAILPOINT("recover.judged");
        if (!is_owed(ring, p, seen, found)) continue;
        hint.store(p, std::memory_order_relaxed);
        return true;
      }
    }
    return false;
  }

  // Is it an item that somebody is to have? It is noted, if it is the first. If not, and nobody needs it, it is freed.
  [[nodiscard]] bool is_owed(const Ring& ring, std::uint64_t p, std::uint64_t seen, RecoveryScan& found) noexcept {
    if (seen == generation::tombstone(p)) {
      found.changed |= swap(ring, p, seen, ring.free(p + ring.capacity));
      return false;
    }
    Peeked peeked{{p, 1}, ring.slot_bytes, 0};
    bool orphan = false;
    if (ring.lengths != nullptr && !read_length(ring, p, peeked, orphan)) return false;
    if (!orphan) {
      if (!found.redeliverable) found = {found.changed, true, found.unclaimed, peeked, seen, ring};
      return true;
    }
    if (!head_is_held(ring, p)) found.changed |= swap(ring, p, seen, ring.free(p + ring.capacity));
    return false;
  }

  // The rest of a long item goes with its head as long as the head is there (I3).
  [[nodiscard]] static bool head_is_held(const Ring& ring, std::uint64_t p) noexcept {
    const Length length{ring.length_of(p).load(std::memory_order_relaxed)};
    const std::uint64_t head = p - length.distance();
    return is_held(ring.generation_of(head).load(std::memory_order_acquire), head) &&
           !(ring.generation_of(head).load(std::memory_order_acquire) == generation::tombstone(head));
  }

  [[nodiscard]] static bool swap(const Ring& ring, std::uint64_t p, std::uint64_t from, std::uint64_t to) noexcept {
    QUEUEDUCT_FAILPOINT("recover.before_swap");
    // B3; release P2 / P1: whoever takes the slot next sees all that its last owner did
    const bool swapped = ring.generation_of(p).compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                                                        std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("recover.swapped");
    return swapped;
  }

  [[nodiscard]] std::atomic<std::uint64_t>& hint_of(std::uint32_t line, bool is_inherited) noexcept {
    return hints_[(line * 2 + is_inherited) % hints_count];
  }

  static constexpr std::uint32_t hints_count = 64;

  const Producers& producers_;
  RecoveryCounters counters_;
  std::atomic<std::uint64_t> hints_[hints_count] = {};
  std::atomic<bool> has_more_{false};
};

using Recovery = BasicRecovery<OneRing>;

}  // namespace queueduct
