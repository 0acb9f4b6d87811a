// A handle on a growing queue: levels, each a ring, whose memory comes and goes. The protocol is in
// ring/operations.hpp, the moves between levels that a put or a get runs into in growing/operations.hpp.
//
// A lease, or a redelivered item, and levels:
// Positions  run through all levels, and no position ever comes back (G6). So an item is redelivered at its position,
//            in whatever level it lies, and order of positions is order of puts.
// Levels     a level with a held item is drained but not released: it is not reclaimed (M3), and until then not opened
//            again. So a held item stays where it is, and the ring remembered for it stays true. A queue that must
//            grow into that level waits for the release.
#pragma once

#include "growing/operations.hpp"
#include "growing/outside_guard.hpp"
#include "ring/lease.hpp"

namespace queueduct {

// For a recovery: every ring that may hold claims of dead participants. Under the upkeep lock (M5).
class GrowingRings {
 public:
  using Ring = GrowingRing;
  explicit GrowingRings(const Levels& levels) noexcept : levels_(&levels) {}

  void each(auto use) const noexcept {
    const LevelRange now = levels_->level_range();
    for (std::uint32_t i = 0; i < levels_->steps(); ++i) {
      const bool is_in_use = i >= now.read_level() && i <= now.written_level();
      if (is_in_use || !levels_->is_clean(i)) use(levels_->ring(i, now));
    }
  }
  [[nodiscard]] std::uint64_t claim_limit() const noexcept { return Intent::count_limit; }
  [[nodiscard]] std::uint64_t near(Side side) const noexcept {
    const LevelRange now = levels_->level_range();
    const LevelControl& level = *(*levels_)[side == Side::push ? now.written_level() : now.read_level()].control;
    return LevelNumbering::position_of(
        (side == Side::push ? level.push_position : level.pop_position).load(std::memory_order_acquire));
  }

 private:
  const Levels* levels_;
};
// Returns the items in all rings in use: exact while no operation runs. `walk` reads every slot.
[[nodiscard]] inline std::uint64_t count_items(const Levels& levels, bool walk) noexcept {
  const LevelRange now = levels.level_range();
  std::uint64_t items = 0;
  for (std::uint32_t i = now.read_level(); i <= now.written_level(); ++i)
    items += count_items(levels.ring(i, now), walk);
  return items;
}

// One process's handle on a queue in shared memory.
class GrowingQueue final : public RingOperations<GrowingQueue, GrowingRings> {
 public:
  static constexpr bool recovers_with_own_line = true;  // its guard is in that line
  static constexpr bool has_tickets = false;  // a ring that closes takes a position too (G3): positions have gaps

  // `last`: zeroed memory, one for each participant.
  GrowingQueue(std::byte* base, const GrowingOffsets& at, std::uint64_t first_bytes, std::uint32_t steps,
               std::uint64_t slot_bytes, bool varying, std::uint64_t max_bytes, std::uint32_t participants,
               std::uint32_t producers, int lock_fd, Identity identity, LastRings* last) noexcept
      : RingOperations(words_of(*reinterpret_cast<GrowingControl*>(base + at.control)), base, at, slot_bytes,
                       {participants, producers}, lock_fd, identity, GrowingRings(levels_)),
        levels_(base, at, first_bytes, steps, slot_bytes, varying, false),
        upkeep_(levels_, ReadGuards(&participant_table_), base, at.regions, max_bytes),
        lock_(&participant_table_, upkeep_, &control().upkeep),
        flow_(lock_, levels_, upkeep_),
        last_(last) {}

  [[nodiscard]] const Levels& levels() const noexcept { return levels_; }
  [[nodiscard]] const Upkeep& upkeep() const noexcept { return upkeep_; }
  [[nodiscard]] GrowingControl& control() const noexcept { return levels_.control(); }
  [[nodiscard]] GrowingFlow& flow() noexcept { return flow_; }
  [[nodiscard]] int file() const noexcept { return lock_.file(); }
  // As many as the largest ring has that this queue can ever open.
  [[nodiscard]] std::uint64_t item_slots_limit() const noexcept override {
    const std::uint64_t capacity = upkeep_.largest_capacity();
    return capacity < Intent::count_limit ? capacity : Intent::count_limit;
  }

  // What RingOperations needs.
  [[nodiscard, gnu::always_inline]] inline Outcome put_into_ring(Participant me, std::uint64_t slots,
                                                                 auto attempt) noexcept {
    return flow_.put(last_of(me), guard_of(me), slots, attempt);
  }
  [[nodiscard, gnu::always_inline]] inline Outcome peek(Participant me, Item& item) noexcept {
    const Outcome outcome = flow_.peek(last_of(me), guard_of(me), me, item);
    item.level_range = last_of(me).get.range_seen;
    return outcome;
  }
  // Not a copy. Returns nullptr if this thread has got from another range before the claim, as a finalizer may.
  [[nodiscard]] const GrowingRing* ring_of(Participant me, const Item& item) const noexcept {
    const GrowingRing& ring = last_[me.number()].get;
    return ring.range_seen == item.level_range ? &ring : nullptr;
  }
  // Makes one pass. Finds nothing if another participant has the lock; unclaimed: the lock is corrupt.
  // An item to redeliver is guarded until try_redeliver() or drop_guard().
  [[nodiscard]] RecoveryScan recover() noexcept {
    RecoveryScan found;
    if (!lock_.enter(false)) {
      found.unclaimed = is_lock_corrupt();
      return found;
    }
    found = recovery().run();
    Participant mine;
    if (found.redeliverable && find_participant(mine)) guard_of(mine).announce_all();  // V3
    lock_.leave();
    return found;
  }
  void remember(Participant me, const RecoveryScan& found) noexcept { last_of(me).redelivered = found.ring; }
  [[nodiscard]] const GrowingRing& remembered_ring(Participant me) const noexcept {
    return last_[me.number()].redelivered;
  }
  // Returns false if this thread has used the queue since it found the item to redeliver: that has ended the guard.
  [[nodiscard]] bool may_redeliver() const noexcept {
    Participant mine;
    return find_participant(mine) && guard_of(mine).is_on_all();
  }
  void drop_guard() noexcept override {
    Participant mine;
    if (find_participant(mine)) guard_of(mine).drop();
  }
  // After peek(): use() reads what follows in its ring. Returns false, without use(), if the level range has moved.
  [[nodiscard]] bool with_guard(Participant me, const GrowingRing& ring, auto use) noexcept {
    return flow_.with_guard(guard_of(me), ring, use);
  }
  // Recoverers may free the other slots of a redelivered long item as soon as its head is released. keeps V3
  void with_full_guard(Participant me, auto use) noexcept {
    ReadGuard guard = guard_of(me);
    guard.announce_all();
    use();
    guard.drop();
  }
  void with_upkeep_lock(auto use) noexcept { lock_.with_upkeep_lock(use); }
  [[nodiscard]] bool try_with_upkeep_lock(auto use) noexcept {
    if (!lock_.enter(true)) return false;
    use();
    lock_.leave();
    return true;
  }
  // Reusing a dead participant's line that still has claims needs the upkeep lock: it reads slots.
  void as_joiner(auto use) noexcept {
    fence_for_all::take_part();
    if (!lock_.as_joiner(0, [&] { use(true); })) use(false);
  }
  void before_new_owner(std::uint32_t line) noexcept { lock_.orphan(line); }  // U3
  [[nodiscard]] bool is_lock_corrupt() const noexcept { return lock_.is_corrupt(); }
  void after_get(const GrowingRing& ring) noexcept { flow_.after_get(ring); }
  using RingOperations::after_get;
  void after_release(const GrowingRing& ring) noexcept { flow_.after_release(ring); }
  [[nodiscard]] bool reclaim_some() noexcept { return flow_.reclaim_some(); }
  void upkeep_while_empty() noexcept override { flow_.rest(); }
  [[nodiscard]] Outcome try_settle(ProducerLine& line) noexcept {
    if (!lock_.enter_within(settle_limit_ns)) return Outcome::busy;
    const Outcome outcome = settle_entered(line);
    lock_.leave();
    return outcome;
  }
  [[nodiscard]] bool close_rings(bool immediate) noexcept { return levels_.shut(immediate); }
  [[nodiscard]] bool is_shut() const noexcept { return levels_.level_range().is_shut(); }
  [[nodiscard]] bool is_discarded() const noexcept override { return levels_.level_range().is_discarded(); }
  // Returns true if the queue is shut down and drained, and was not discarded.
  [[nodiscard]] bool is_ended() const noexcept {
    const LevelRange now = levels_.level_range();
    if (!now.is_shut() || now.is_discarded() || now.read_level() != now.written_level()) return false;
    const GrowingRing ring = levels_.ring(now.read_level(), now);
    const std::uint64_t word = ring.push_position->load(std::memory_order_relaxed);
    return (word & closed_bit) &&
           LevelNumbering::position_of(word) == ring.pop_position->load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t count_in_rings(bool walk) const noexcept { return queueduct::count_items(levels_, walk); }

  // Waits. A thread that waits for an event loop may have no line.
  [[nodiscard]] bool may_be_gettable() const noexcept override {
    Participant mine;
    if (!find_participant(mine)) return flow_.may_be_gettable(OutsideGuard(levels_, file()));
    return flow_.may_be_gettable(guard_of(mine));
  }
  [[nodiscard]] bool may_be_puttable() const noexcept override { return may_be_puttable(1, resets()); }
  [[nodiscard]] bool may_be_puttable(std::uint64_t slots, std::uint64_t resets) const noexcept {
    Participant mine;
    if (!find_participant(mine)) return flow_.may_be_puttable(OutsideGuard(levels_, file()), slots, resets);
    return flow_.may_be_puttable(guard_of(mine), slots, resets);
  }
  [[nodiscard]] bool is_worth_a_try(Outcome outcome) noexcept override { return flow_.is_worth_a_try(outcome); }
  void wait_for_front(std::int64_t limit_ns) noexcept {
    flow_.calm_if_idle();
    while (!may_be_gettable() && flow_.reclaim_some()) {
    }
    wait_until(
        items(), item_idle_, [this] { return may_be_gettable(); }, [this] { return flow_.is_ahead(lingering_items); },
        limit_ns);
  }
  // busy: another participant has the upkeep lock, and wakes no producer when it releases it.
  void wait_for_room(Outcome outcome, std::uint64_t slots, std::int64_t limit_ns) noexcept override {
    if (outcome == Outcome::busy || limit_ns <= 0) return pause_between_attempts();
    Participant mine;
    const std::uint64_t before = find_participant(mine) ? last_of(mine).resets : resets();
    wait_until(
        room(), room_idle_, [=, this] { return may_be_puttable(slots, before); }, [] { return true; }, limit_ns);
  }
  [[nodiscard]] std::size_t lease_bytes() const noexcept override { return sizeof(BasicLease<GrowingQueue>); }
  [[nodiscard]] RingLease* lease_at(void* memory) noexcept override {
    return new (memory) BasicLease<GrowingQueue>(*this);
  }

 private:
  static constexpr std::int64_t settle_limit_ns = 100'000'000;
  static constexpr std::uint64_t lingering_items = 64;

  [[nodiscard]] LastRings& last_of(Participant me) noexcept { return last_[me.number()]; }
  [[nodiscard]] ReadGuard guard_of(Participant me) const noexcept {
    return ReadGuard(participant_table_.lines()[me.number()]);
  }
  [[nodiscard]] std::uint64_t resets() const noexcept { return control().resets.load(std::memory_order_relaxed); }

  // Slots claimed in a level that was reclaimed since are all published or abandoned.
  [[nodiscard]] Outcome settle_entered(ProducerLine& line) noexcept {
    const LevelRange now = levels_.level_range();
    const std::uint64_t position = line.position.load(std::memory_order_relaxed);
    if (progress_of(line).phase != Phase::claimed)
      return settle(levels_.ring(now.written_level(), now), line);  // no item of it is in: any ring will do
    Outcome outcome = Outcome::done;
    bool is_there = false;
    GrowingRings(levels_).each([&](const GrowingRing& ring) {
      const std::uint64_t end = LevelNumbering::position_of(ring.push_position->load(std::memory_order_acquire));
      if (is_there || position < ring.base || position >= end) return;
      // drained: slots claimed there were published or abandoned, and may be zeroed by now
      if (LevelNumbering::position_of(ring.pop_position->load(std::memory_order_acquire)) == end) return;
      is_there = true;
      outcome = settle(ring, line);
    });
    if (is_there) return outcome;
    return position < GrowingRings(levels_).near(Side::push) ? settle_abandoned(line) : Outcome::corrupt;
  }

  Levels levels_;
  Upkeep upkeep_;
  UpkeepLock lock_;
  GrowingFlow flow_;
  LastRings* last_;  // one for each participant
};
using GrowingLease = BasicLease<GrowingQueue>;

}  // namespace queueduct
