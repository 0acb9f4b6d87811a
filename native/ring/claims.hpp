// The claims that the participant lines name in the rings of a queue. Nothing is changed here.
//
// Shape      the lines: intents, and claims inherited from earlier owners -> positions of a ring -> its generations
// Roles      any participant or reader asks; recovery.hpp changes slots by the answers.
// Invariants B1  the positions are read before the lines: the participants that claimed the slots between them have
//                declared it (L1).
//            A1  of slots that are judged, the generations are read before the lines: a slot that is claimed or
//                redelivered in between has another generation by then (B3).
//            A2  a line's intent is read before its inherited word: a dead owner's intent is cleared only when it is
//                settled, or was written down as inherited first. So a held slot is seen to be named.
//            A3  a line may name more than is held (L3), so the slot's generation is read as well.
//            A4  an item that is out stays named from its claim to its release, also while another consumer takes it
//                over (B5, A2). So if the push position is the same before and after, the rings were empty in between,
//                and then nothing was out, then at the second look every item that was put is released: one that is
//                out then was out all the time. A consumer's put that comes before its release is seen by the second
//                look: P2 and L2 order the two.
// Progress   wait-free: a load a line, an fcntl for each line whose owner may be dead, and a load a slot. Slots are
//            judged in stretches, with one scan of the lines for each.
// Source     ours, as the ledger is (ledger.hpp); L1, L2 and L3 are there, P1 and P3 in ring.hpp.
#pragma once

#include "ring/ring.hpp"
#include "segment/participants.hpp"

namespace queueduct {

// The calling thread's line. Returns false if it has none yet; after a fork it must join again.
[[nodiscard]] inline bool find_participant(const ParticipantTable& table, Participant& participant) noexcept {
  const std::uint32_t line = table.mine_plus_one();
  if (line == 0) [[unlikely]] return false;
  participant = {table.lines() + line - 1, line - 1};
  return true;
}

// Neighbouring positions as one scan found them: first the generations, then which ones a live line names (A1).
struct Stretch {
  static constexpr std::uint64_t limit = 1024;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  std::uint64_t seen[limit];
  std::uint64_t named[limit / 64];  // a bit a position

  [[nodiscard]] bool is_named(std::uint64_t i) const noexcept { return named[i / 64] >> (i % 64) & 1; }
  // Returns the part that an intent names; its positions are known modulo 2^40.
  [[nodiscard]] Span part_of(Intent intent) const noexcept {
    const std::uint64_t ahead = (intent.position - begin) & Intent::position_mask;
    const std::uint64_t behind = (begin - intent.position) & Intent::position_mask;
    const std::uint64_t first = ahead < count ? ahead : 0;
    const std::uint64_t most = ahead < count ? intent.count : behind < intent.count ? intent.count - behind : 0;
    return {first, most < count - first ? most : count - first};
  }
  void name(Span part) noexcept {
    for (std::uint64_t i = part.position; i < part.position + part.slots; ++i)
      named[i / 64] |= std::uint64_t{1} << (i % 64);
  }
};

// The one ring in which claims may be outstanding. Those of a growing queue are in growing/queue.hpp.
class OneRing {
 public:
  using Ring = queueduct::Ring;
  explicit OneRing(const Ring& ring) noexcept : ring_(ring) {}
  void each(auto use) const noexcept { use(ring_); }
  [[nodiscard]] std::uint64_t claim_limit() const noexcept { return ring_.claim_limit(); }
  // Returns the current position of that side.
  [[nodiscard]] std::uint64_t near(Side side) const noexcept {
    const auto* position = side == Side::push ? ring_.push_position : ring_.pop_position;
    return position->load(std::memory_order_acquire) & ~closed_bit;
  }

 private:
  const Ring& ring_;
};

template <class Rings>
class BasicClaims {
 public:
  using Ring = typename Rings::Ring;

  BasicClaims(Rings rings, ParticipantTable& table) noexcept : rings_(rings), participant_table_(table) {}

  // Returns how many items consumers have claimed and not released, at most `limit`: on lease, in an unfinished get, or
  // left by a dead consumer. A snapshot, as the next one; the caller of a growing queue has the upkeep lock.
  [[nodiscard]] std::uint64_t count_out(std::uint64_t limit) const noexcept {
    return count_named(Whose::all, limit, [](const Ring& ring, Positions named, std::uint64_t most) {
      std::uint64_t count = 0;
      for (std::uint64_t p = named.begin; p < named.end && count < most; ++p)
        count += is_item_out(ring, p, ring.generation_of(p).load(std::memory_order_acquire));
      return count;
    });
  }
  // Returns true if every item that was put is released. keeps A4
  [[nodiscard]] bool is_all_released() const noexcept {
    const std::uint64_t pushed = rings_.near(Side::push);  // acquire, as both positions below
    bool is_empty = true;
    rings_.each([&](const Ring& ring) {
      is_empty = is_empty && ring.position_of(ring.pop_position->load(std::memory_order_acquire)) ==
                                 ring.position_of(ring.push_position->load(std::memory_order_acquire));
    });
    return is_empty && count_out(1) == 0 && rings_.near(Side::push) == pushed;
  }
  // Returns how many of them no live consumer holds: they will be delivered again.
  [[nodiscard]] std::uint64_t count_left() const noexcept {
    return count_named(Whose::of_the_dead, ~std::uint64_t{0}, [this](const Ring& ring, Positions named, std::uint64_t) {
      std::uint64_t count = 0;
      Stretch stretch;
      for (std::uint64_t at = named.begin; at < named.end; at += stretch.count) {
        judge(ring, Side::pop, at, named.end, stretch);
        for (std::uint64_t i = 0; i < stretch.count; ++i)
          count += !stretch.is_named(i) && is_item_out(ring, at + i, stretch.seen[i]);
      }
      return count;
    });
  }
  // A hint for it that reads no slot.
  [[nodiscard]] bool may_have_left() const noexcept {
    bool may = false;
    each_pop([&](Intent, auto is_left) { may = may || is_left(); });
    return may;
  }

  // Returns true if the slot of p, which a consumer has claimed, is not released yet.
  [[nodiscard]] static bool is_held(std::uint64_t seen, std::uint64_t p) noexcept {
    return seen == generation::published(p) || seen == generation::tombstone(p) || generation::is_redelivered(seen, p);
  }

  // Returns true if a consumer has claimed this position and it is not released. In a reclaimed level all are released.
  [[nodiscard]] bool is_unreleased(std::uint64_t position) const noexcept {
    bool is_unreleased = false;
    rings_.each([&](const Ring& ring) {
      // acquire P3: the position first, then the generation (B1)
      const std::uint64_t popped = ring.position_of(ring.pop_position->load(std::memory_order_acquire));
      // acquire P2: a caller that sees it released sees all that its holder did before
      if (position >= ring.first_position() && position < popped)
        is_unreleased |= is_held(ring.generation_of(position).load(std::memory_order_acquire), position);
    });
    return is_unreleased;
  }

  // Returns true if nothing that this line names is outstanding. The caller holds the line's lock, so its owner is dead
  // and the positions read here are later than its last claim.
  [[nodiscard]] bool is_settled(std::uint32_t line) const noexcept { return is_settled(read_intent(line)); }
  // Returns true if the line names nothing; reads no slot.
  [[nodiscard]] bool names_nothing(std::uint32_t line) const noexcept { return !is_meant(read_intent(line)); }

 protected:
  struct Positions {
    std::uint64_t begin, end;
  };

  [[nodiscard]] const Rings& rings() const noexcept { return rings_; }
  [[nodiscard]] ParticipantTable& participant_table() const noexcept { return participant_table_; }

  [[nodiscard]] Intent read_intent(std::uint32_t line) const noexcept {
    // acquire L2: if the owner has gone on, its slots' generations are seen too
    return Intent::unpack(participant_table_.lines()[line].intent.load(std::memory_order_acquire));
  }
  [[nodiscard]] Intent read_inherited(std::uint32_t line) const noexcept {
    return Intent::unpack(participant_table_.lines()[line].inherited.load(std::memory_order_acquire));
  }

  // Returns true if the intent names anything.
  [[nodiscard]] static bool is_meant(Intent intent) noexcept { return intent.side != Side::none && intent.count != 0; }

  // Returns the part of an intent that may be outstanding in this ring; `limit` is the ring's position of that side. A
  // merged intent may begin in one ring and end in another. Positions that have left the ring do not count: those a lap
  // behind, those of an earlier opening, and of a push those popped: they were published or abandoned, and their slots
  // may be zeroed by now.
  [[nodiscard]] static Positions positions_in(const Ring& ring, Intent intent, std::uint64_t limit) noexcept {
    const std::uint64_t first = whole_position(intent, limit);
    std::uint64_t begin = first > ring.first_position() ? first : ring.first_position();
    if (begin + ring.capacity < limit) begin = limit - ring.capacity;
    if (intent.side == Side::push) {
      const std::uint64_t popped = ring.position_of(ring.pop_position->load(std::memory_order_acquire));
      if (begin < popped) begin = popped;
    }
    return {begin, first + intent.count < limit ? first + intent.count : limit};
  }

  [[nodiscard]] bool is_settled(Intent intent) const noexcept {
    bool settled = true;
    rings_.each([&](const Ring& ring) { settled = settled && is_settled_in(ring, intent); });
    return settled;
  }

  // Returns one intent that names all that two pops name, or 0. Naming more does no harm (L3).
  [[nodiscard]] std::uint64_t merged(Intent a, Intent b) const noexcept {
    const std::uint64_t popped = rings_.near(Side::pop);
    const std::uint64_t begin_a = whole_position(a, popped);
    const std::uint64_t begin_b = whole_position(b, popped);
    const std::uint64_t begin = begin_a < begin_b ? begin_a : begin_b;
    const std::uint64_t end = begin_a + a.count > begin_b + b.count ? begin_a + a.count : begin_b + b.count;
    // Farther apart than 40 bits can tell: no ring is as long, and no consumer holds an item for so long.
    return end - begin <= Intent::position_mask / 2 ? Intent{Side::pop, begin, end - begin}.packed() : 0;
  }

  // Judges the positions from `begin` on; the caller has read the queue's positions before (B1). keeps A1
  void judge(const Ring& ring, Side side, std::uint64_t begin, std::uint64_t end, Stretch& stretch) const noexcept {
    stretch.begin = begin;
    stretch.count = end - begin < Stretch::limit ? end - begin : Stretch::limit;
    for (std::uint64_t i = 0; i < stretch.count; ++i)
      stretch.seen[i] = ring.generation_of(begin + i).load(std::memory_order_acquire);
    for (std::uint64_t& named : stretch.named) named = 0;
    QUEUEDUCT_FAILPOINT("recover.read_generations");
    const std::uint32_t used = participant_table_.used();
    for (std::uint32_t line = 0; line < used; ++line) {
      const Intent intent = read_intent(line);
      if (intent.side != side) continue;
      const Span part = stretch.part_of(intent);
      if (part.slots != 0 && participant_table_.is_alive(line)) stretch.name(part);
    }
  }

 private:
  enum class Whose : std::uint8_t { all, of_the_dead };

  // Calls use(intent, is_left) for each pop that a line names; is_left(): no live owner named it. keeps A2
  void each_pop(auto use) const noexcept {
    const std::uint32_t used = participant_table_.used();
    for (std::uint32_t line = 0; line < used; ++line) {
      const Intent intent = read_intent(line);
      if (intent.side == Side::pop && is_meant(intent))
        use(intent, [this, line] { return !participant_table_.is_alive(line); });
      const Intent inherited = read_inherited(line);
      if (inherited.side == Side::pop && is_meant(inherited)) use(inherited, [] { return true; });
    }
  }

  // Finds the first positions from `at` on that one line names for a pop in this ring. Returns false if there are none.
  [[nodiscard]] bool next_named(const Ring& ring, Whose whose, std::uint64_t popped, std::uint64_t at,
                                Positions& found) const noexcept {
    found = {popped, popped};
    each_pop([&](Intent intent, auto is_left) {
      Positions positions = positions_in(ring, intent, popped);
      if (positions.begin < at) positions.begin = at;
      if (positions.begin >= positions.end || positions.begin >= found.begin) return;
      if (whose == Whose::all || is_left()) found = positions;
    });
    return found.begin < found.end;
  }

  // Returns the sum of count(ring, positions, how many are still wanted) over all pops named, each position once.
  [[nodiscard]] std::uint64_t count_named(Whose whose, std::uint64_t limit, auto count) const noexcept {
    std::uint64_t sum = 0;
    rings_.each([&](const Ring& ring) {
      const std::uint64_t popped = ring.position_of(ring.pop_position->load(std::memory_order_acquire));  // P3, B1
      std::uint64_t at = ring.first_position();
      for (Positions named; sum < limit && next_named(ring, whose, popped, at, named); at = named.end)
        sum += count(ring, named, limit - sum);
    });
    return sum;
  }

  // keeps A3
  [[nodiscard]] static bool is_item_out(const Ring& ring, std::uint64_t p, std::uint64_t seen) noexcept {
    if (!is_held(seen, p) || seen == generation::tombstone(p)) return false;
    return ring.lengths == nullptr || !Length{ring.length_of(p).load(std::memory_order_relaxed)}.is_continuation();
  }

  [[nodiscard]] static bool is_settled_in(const Ring& ring, Intent intent) noexcept {
    if (!is_meant(intent)) return true;
    const std::uint64_t limit = ring.position_of(
        (intent.side == Side::push ? ring.push_position : ring.pop_position)->load(std::memory_order_acquire));
    const Positions positions = positions_in(ring, intent, limit);
    for (std::uint64_t p = positions.begin; p < positions.end; ++p) {
      const std::uint64_t seen = ring.generation_of(p).load(std::memory_order_acquire);
      if (intent.side == Side::push ? seen == ring.free(p) : is_held(seen, p)) return false;
    }
    return true;
  }

  // Returns the full position that the 40 bits of an intent mean, near a current position.
  [[nodiscard]] static std::uint64_t whole_position(Intent intent, std::uint64_t near) noexcept {
    const std::uint64_t ahead = (intent.position - near) & Intent::position_mask;
    const std::uint64_t half = (Intent::position_mask >> 1) + 1;
    if (ahead < half) return near + ahead;
    const std::uint64_t behind = Intent::position_mask + 1 - ahead;
    return near >= behind ? near - behind : near + ahead;
  }

  Rings rings_;
  ParticipantTable& participant_table_;
};

}  // namespace queueduct
