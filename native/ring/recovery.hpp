// Recovery of a ring: finishes the claims of dead participants.
//
// Shape      read the positions → read every line's intent, ask which owners are dead → compare-and-swap slots.
// Roles      a participant that cannot go on. Producers and consumers abandon; only consumers redeliver.
// Invariants B1  as in claims.hpp: the positions are read before the lines.
//            B2  a slot is touched only if a dead line names it and no live line does (L3).
//            B3  each change is a compare-and-swap from the exact generation that was judged. If its owner
//                lived and went on, the generation has moved and the swap fails (L2).
//            B4  before a slot is abandoned, the claims of named producers are cut short at it (C3).
//            B5  redelivery is declared before it is made, like every claim: a dead redeliverer is found as well.
// Progress   lock-free; a pass costs a load a line, one fcntl for each line that names anything, and the slots of dead
//            lines. These are judged in stretches, with one scan of the lines for each: a dead claim of millions of
//            slots costs a load and a compare-and-swap a slot, however many participants there are.
// Source     ours; searched exhaustively in models/ring, kills of the recoverer included.
#pragma once

#include "ring/claims.hpp"
#include "ring/put_once.hpp"

namespace queueduct {

struct RecoveryCounters {
  std::atomic<std::uint64_t>* tombstones;
  std::atomic<std::uint64_t>* redelivered;
};

// An item that a consumer takes over from a dead consumer, or is about to.
struct Redelivered {
  Span span;
  std::uint64_t bytes = 0;
  std::uint64_t seen = 0;  // the generation that was judged; 0: it is delivered for the first time
};

// Returns how often the item has been delivered, this time included: exact up to 16,384, then at least 8,193.
[[nodiscard]] inline std::uint64_t count_deliveries(const Redelivered& item) noexcept {
  return item.seen == 0 ? 1 : generation::next_redelivery(item.seen) + 1;
}

template <class Rings>
class BasicRecovery : public BasicClaims<Rings> {
  using Claims = BasicClaims<Rings>;
  using typename Claims::Positions;

 public:
  using typename Claims::Ring;
  using Claims::is_held;
  using Claims::is_settled;

  BasicRecovery(Rings rings, ParticipantTable& table, const Producers& producers, RecoveryCounters counters) noexcept
      : Claims(rings, table), producers_(producers), counters_(counters) {}

  struct RecoveryScan {
    bool changed = false;        // a slot was abandoned or freed: try again
    bool redeliverable = false;  // a dead consumer had claimed `peeked`: try_redeliver() takes it over
    bool unclaimed = false;      // the front is claimed and no line, live or dead, names it: corrupt
    Peeked peeked;
    std::uint64_t seen = 0;
    Ring ring = {};  // of `peeked`
  };

  // Makes one pass over the table for each ring.
  [[nodiscard]] RecoveryScan run() noexcept {
    RecoveryScan found;
    rings().each([&](const Ring& ring) { pass(ring, found); });
    has_more_.store(found.changed || found.redeliverable, std::memory_order_relaxed);
    return found;
  }

  // Returns true if the last pass found anything, so the next one may, too. A hint for when to make it.
  [[nodiscard]] bool has_more() const noexcept { return has_more_.load(std::memory_order_relaxed); }

  // Takes over what run() found. The caller then copies and calls release_redelivered().
  [[nodiscard]] bool try_redeliver(Participant ledger, const RecoveryScan& found) noexcept {
    const Span span = found.peeked.span;
    ledger.declare(Side::pop, span.position, span.slots);  // B5
    if (swap_to_redelivered(found.ring, {span, found.peeked.bytes, found.seen})) return true;
    ledger.clear();
    return false;
  }

  // Takes over what run() found and the items behind it that dead consumers had taken, up to `limit`. Returns how many
  // are ours now; the caller copies them, calls release_one() for each, and clears the line.
  [[nodiscard]] std::uint64_t try_redeliver_many(Participant ledger, const RecoveryScan& found, Redelivered* items,
                                             std::uint64_t limit) noexcept {
    const std::uint64_t count = list_redeliverable(found.ring, found.peeked.span.position, items, limit);
    if (count == 0) return 0;
    const std::uint64_t first = items[0].span.position;
    const Span last = items[count - 1].span;
    // B5. It names all of them first, also those that another consumer takes over before us: naming more than is ours
    // only delays (L3).
    ledger.declare(Side::pop, first, last.position + last.slots - first);
    std::uint64_t redelivered = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      if (swap_to_redelivered(found.ring, items[i])) items[redelivered++] = items[i];
    if (redelivered == 0) ledger.clear();
    return redelivered;
  }

  // The head is ours alone. A recoverer that sees it released may free the other slots before us (settle_popped), and a
  // producer may then claim them: so these go by compare-and-swap, and a slot whose swap fails is no longer ours.
  static void release_one(const Ring& ring, Span span) noexcept {
    release(ring, {span.position, 1});
    for (std::uint64_t p = span.position + 1; p != span.position + span.slots; ++p)
      (void)swap(ring, p, generation::published(p), ring.free(p + ring.capacity));
  }
  static void release_redelivered(const Ring& ring, Participant ledger, Span span) noexcept {
    release_one(ring, span);
    ledger.clear();
  }

  // Returns true if the intent of this line may be cleared; the caller holds the line's lock. Items that its dead owner
  // had taken and that are not delivered are written down as inherited first: the line's new owner need not be a
  // consumer. Slots that it had claimed to push must be abandoned first, which any recoverer does.
  [[nodiscard]] bool hand_over_claims(std::uint32_t line) noexcept {
    const Intent left = read_intent(line);
    if (is_settled(left)) return true;
    if (left.side != Side::pop) return false;
    std::atomic<std::uint64_t>& inherited = participant_table().lines()[line].inherited;
    std::uint64_t before = inherited.load(std::memory_order_acquire);
    const Intent earlier = Intent::unpack(before);
    const std::uint64_t both = before == 0 || is_settled(earlier) ? left.packed() : merged(left, earlier);
    QUEUEDUCT_FAILPOINT("recover.before_hand_over");
    // release: a recoverer that sees the intent cleared sees this. If one cleared this word, the caller tries again.
    const bool is_named = both != 0 && inherited.compare_exchange_strong(before, both, std::memory_order_acq_rel,
                                                                         std::memory_order_relaxed);
    QUEUEDUCT_FAILPOINT("recover.handed_over");
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
        if (!abandon_or_find(ring, intent, pushed, popped, hint_of(line, false), found))
          participant_table().clear_settled(line, [this](std::uint32_t i) { return is_settled(i); });
      }
      recover_inherited(ring, line, pushed, popped, found);  // after the intent (A2)
    }
    found.unclaimed |= !front_is_named && !found.changed && popped < pushed &&
                      ring.generation_of(popped).load(std::memory_order_acquire) == ring.free(popped) &&
                      ring.pop_position->load(std::memory_order_relaxed) == popped_word;
    found.changed |= had_changed;
  }

  // The claims of a line's earlier owners, which are dead.
  void recover_inherited(const Ring& ring, std::uint32_t line, std::uint64_t pushed, std::uint64_t popped,
                         RecoveryScan& found) noexcept {
    std::atomic<std::uint64_t>& inherited = participant_table().lines()[line].inherited;
    std::uint64_t word = inherited.load(std::memory_order_acquire);
    if (word == 0) [[likely]] return;
    const Intent intent = Intent::unpack(word);
    if (is_meant(intent) && abandon_or_find(ring, intent, pushed, popped, hint_of(line, true), found)) return;
    QUEUEDUCT_FAILPOINT("recover.inherited");
    // From the exact word that was judged: a newer word stays. A settled intent stays settled.
    if (is_settled(intent))
      inherited.compare_exchange_strong(word, 0, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  // Lists the items from `first` on, without a gap, that are claimed, not released, and named by no live line: their
  // consumers are dead (L3).
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
    const std::uint64_t ours = generation::redelivered(p, generation::next_redelivery(item.seen));
    // B3; acquire P1 on success: the item's bytes
    if (!ring.generation_of(p).compare_exchange_strong(expected, ours, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed))
      return false;
    QUEUEDUCT_FAILPOINT("recover.redelivered");
    counters_.redelivered->fetch_add(1, std::memory_order_relaxed);  // a statistic
    return true;
  }

  // Settles a dead intent in this ring. Returns true if it found an item to redeliver; the scan ends there. `hint` is
  // where that was last time: a consumer that redelivers item after item need not scan from the beginning each time.
  bool abandon_or_find(const Ring& ring, Intent intent, std::uint64_t pushed, std::uint64_t popped,
                       std::atomic<std::uint64_t>& hint, RecoveryScan& found) noexcept {
    const Positions positions = positions_in(ring, intent, intent.side == Side::push ? pushed : popped);
    if (positions.begin >= positions.end) return false;
    if (intent.side == Side::push) {
      abandon(ring, positions, found);
      return false;
    }
    std::uint64_t middle = hint.load(std::memory_order_relaxed);
    if (middle < positions.begin || middle >= positions.end) middle = positions.begin;
    return settle_popped(ring, {middle, positions.end}, hint, found) ||
           settle_popped(ring, {positions.begin, middle}, hint, found);
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
          // Still free after the lines were read: its producer is dead, and died before it published.
          if (ring.generation_of(p).load(std::memory_order_acquire) != ring.free(p)) continue;
          cut_from = cut_claims(producers_.lines(), producers_.count(), p);  // B4
        }
        if (!swap(ring, p, ring.free(p), generation::tombstone(p))) continue;
        found.changed = true;
        counters_.tombstones->fetch_add(1, std::memory_order_relaxed);  // a statistic
      }
    }
  }

  // Frees a dead consumer's slots that hold no item to deliver. Returns true at the first item to redeliver.
  bool settle_popped(const Ring& ring, Positions positions, std::atomic<std::uint64_t>& hint,
                     RecoveryScan& found) noexcept {
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

  // Returns true if the slot holds an item to redeliver; notes the first. Frees a tombstone, and a slot without a head.
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

  // The other slots of a long item belong to its head as long as the head is held (I3).
  [[nodiscard]] static bool head_is_held(const Ring& ring, std::uint64_t p) noexcept {
    const Length length{ring.length_of(p).load(std::memory_order_relaxed)};
    const std::uint64_t head = p - length.distance();
    return is_held(ring.generation_of(head).load(std::memory_order_acquire), head) &&
           !(ring.generation_of(head).load(std::memory_order_acquire) == generation::tombstone(head));
  }

  [[nodiscard]] static bool swap(const Ring& ring, std::uint64_t p, std::uint64_t from, std::uint64_t to) noexcept {
    QUEUEDUCT_FAILPOINT("recover.before_swap");
    // B3; release P2 / P1: the participant that claims the slot next sees all that its last owner did
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
