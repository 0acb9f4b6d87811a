// What the lines of the participant table name in the rings of a queue. It is only read here: nothing is changed.
//
// Shape      the lines: intents, and what earlier owners left ─► positions of a ring ─► generations of its slots
// Roles      anybody asks. Who changes slots for what is found here is in bounded_recovery.hpp.
// Invariants B1  the positions are read before the lines: who claimed what they cover has declared it (L1).
//            A1  of slots that are judged, the generations are read before the lines: what is claimed or redelivered in
//                between has another generation by then (B3).
//            A2  a line's intent is read before what it has inherited: a dead one's intent is forgotten only when it is
//                settled, or was written down as inherited first. So what is held is seen to be named.
//            A3  a line may name more than is held (L3): a slot's generation is asked as well.
// Progress   wait-free: a load a line, an fcntl for each line of which it matters whether its owner lives, and a load a
//            slot. What is judged is judged in stretches, with one look at the lines for each.
// Source     ours, as the ledger is (ledger.hpp); L1, L2 and L3 are there, P1 and P3 in bounded.hpp.
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

// Neighbouring positions, as one look found them: their generations first, then who of the living names them (A1).
struct Stretch {
  static constexpr std::uint64_t limit = 1024;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  std::uint64_t seen[limit];
  std::uint64_t named[limit / 64];  // a bit a position

  [[nodiscard]] bool is_named(std::uint64_t i) const noexcept { return named[i / 64] >> (i % 64) & 1; }
  // All that an intent names of it, whose positions are known modulo 2^40.
  [[nodiscard]] Span part_of(Intent intent) const noexcept {
    const std::uint64_t ahead = (intent.position - begin) & Intent::position_mask;
    const std::uint64_t behind = (begin - intent.position) & Intent::position_mask;
    const std::uint64_t first = ahead < count ? ahead : 0;
    const std::uint64_t most = ahead < count ? intent.count : behind < intent.count ? intent.count - behind : 0;
    return {first, most < count - first ? most : count - first};
  }
  void name(Span part) noexcept {
    for (std::uint64_t i = part.position; i < part.position + part.slots; ++i) named[i / 64] |= std::uint64_t{1} << (i % 64);
  }
};

// The rings in which claims may be outstanding: one. Those of a growing queue are in growing_queue.hpp.
class OneRing {
 public:
  using Ring = queueduct::Ring;
  explicit OneRing(const Ring& ring) noexcept : ring_(ring) {}
  template <class Use>
  void each(Use use) const noexcept {
    use(ring_);
  }
  [[nodiscard]] std::uint64_t claim_limit() const noexcept { return ring_.claim_limit(); }
  // A position of now, of that side.
  [[nodiscard]] std::uint64_t near(Side side) const noexcept {
    return (side == Side::push ? ring_.push_position : ring_.pop_position)->load(std::memory_order_acquire) & ~closed_bit;
  }

 private:
  const Ring& ring_;
};

template <class Rings>
class BasicClaims {
 public:
  using Ring = typename Rings::Ring;

  BasicClaims(Rings rings, ParticipantTable& participant_table) noexcept : rings_(rings), participant_table_(participant_table) {}

  // How many items consumers have claimed and not given back: on lease, in a get that is not over, or left by the dead;
  // at most `limit`. A snapshot, as the next one; where memory comes and goes the caller keeps it meanwhile.
  [[nodiscard]] std::uint64_t count_out(std::uint64_t limit) const noexcept {
    return count_named(Whose::anybodys, limit, [](const Ring& ring, Positions named, std::uint64_t most) {
      std::uint64_t count = 0;
      for (std::uint64_t p = named.begin; p < named.end && count < most; ++p)
        count += is_item_out(ring, p, ring.generation_of(p).load(std::memory_order_acquire));
      return count;
    });
  }
  // Those of them that nobody alive has: they will be delivered again.
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
  // Without a look at any slot.
  [[nodiscard]] bool may_have_left() const noexcept {
    bool may = false;
    each_pop([&](Intent, auto is_left) { may = may || is_left(); });
    return may;
  }

  // Is the slot of p, which a consumer has claimed, not given back yet?
  [[nodiscard]] static bool is_held(std::uint64_t seen, std::uint64_t p) noexcept {
    return seen == generation::published(p) || seen == generation::tombstone(p) || generation::is_redelivered(seen, p);
  }

  // Has a consumer claimed this position, and nobody given it back? Of a level that was given back everything was.
  [[nodiscard]] bool is_unreleased(std::uint64_t position) const noexcept {
    bool is_unreleased = false;
    rings_.each([&](const Ring& ring) {
      // acquire P3: the position first, then the generation (B1)
      const std::uint64_t popped = ring.position_of(ring.pop_position->load(std::memory_order_acquire));
      // acquire P2: a caller that sees it given back sees all that its holder did before
      if (position >= ring.first_position() && position < popped)
        is_unreleased |= is_held(ring.generation_of(position).load(std::memory_order_acquire), position);
    });
    return is_unreleased;
  }

  // Is nothing outstanding that this line names? Asked with the line's lock held, so its owner is dead
  // and the positions read here are later than its last claim.
  [[nodiscard]] bool is_settled(std::uint32_t line) const noexcept { return is_settled(read_intent(line)); }
  // The same without a look at any slot.
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

  // Does it name anything?
  [[nodiscard]] static bool is_meant(Intent intent) noexcept { return intent.side != Side::none && intent.count != 0; }

  // What of it may be in this ring; `limit` is the ring's own position of that side. Of several rings an intent that
  // names all that two pops named may begin in one and end in another; and what has left a ring is not in question:
  // what is a lap behind, what belongs to an earlier opening, and of a push what was popped, since that was published
  // or abandoned, and its slot may be zeroed by now.
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

  // One intent that names all that two pops name, or 0. To name more does no harm (L3).
  [[nodiscard]] std::uint64_t merged(Intent a, Intent b) const noexcept {
    const std::uint64_t popped = rings_.near(Side::pop);
    const std::uint64_t begin_a = whole_position(a, popped);
    const std::uint64_t begin_b = whole_position(b, popped);
    const std::uint64_t begin = begin_a < begin_b ? begin_a : begin_b;
    const std::uint64_t end = begin_a + a.count > begin_b + b.count ? begin_a + a.count : begin_b + b.count;
    // Farther apart than positions can be told: no ring is as long, and nobody holds an item for so long.
    return end - begin <= Intent::position_mask / 2 ? Intent{Side::pop, begin, end - begin}.packed() : 0;
  }

  // The positions from `begin` on, asked after the positions of the queue were read (B1). keeps A1
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
  enum class Whose : std::uint8_t { anybodys, of_the_dead };

  // Calls use(intent, is_left) for each pop that a line names; is_left(): nobody alive named it there. keeps A2
  template <class Use>
  void each_pop(Use use) const noexcept {
    const std::uint32_t used = participant_table_.used();
    for (std::uint32_t line = 0; line < used; ++line) {
      const Intent intent = read_intent(line);
      if (intent.side == Side::pop && is_meant(intent)) use(intent, [this, line] { return !participant_table_.is_alive(line); });
      const Intent inherited = read_inherited(line);
      if (inherited.side == Side::pop && is_meant(inherited)) use(inherited, [] { return true; });
    }
  }

  // The first positions from `at` on that are named for a pop in this ring, as far as one line names them. False: none are.
  [[nodiscard]] bool next_named(const Ring& ring, Whose whose, std::uint64_t popped, std::uint64_t at,
                                Positions& found) const noexcept {
    found = {popped, popped};
    each_pop([&](Intent intent, auto is_left) {
      Positions positions = positions_in(ring, intent, popped);
      if (positions.begin < at) positions.begin = at;
      if (positions.begin >= positions.end || positions.begin >= found.begin) return;
      if (whose == Whose::anybodys || is_left()) found = positions;
    });
    return found.begin < found.end;
  }

  // The sum of count(ring, positions, how many are still wanted) over all that is named for a pop, each position once.
  template <class Count>
  [[nodiscard]] std::uint64_t count_named(Whose whose, std::uint64_t limit, Count count) const noexcept {
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

  // The full position that the 40 bits of an intent mean, near a position of now.
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
