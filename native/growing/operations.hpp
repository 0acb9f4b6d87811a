// Puts and gets on a growing queue: the ring's own steps, and the moves between rings that they run into.
//
// An operation reads the level range and the ring, tries, and learns from the ring what is in its way: it makes that
// move, or finishes another participant's, and tries again. Memory is prepared and reclaimed under the upkeep lock.
// A `ReadGuard` protects slots that are read before they are claimed (read_guard.hpp).
#pragma once

#include "growing/moments.hpp"
#include "growing/upkeep_lock.hpp"

namespace queueduct {

// The rings that one thread has last put into and got from: refreshed only when the level range has moved.
struct LastRings {
  GrowingRing put;
  GrowingRing get;
  GrowingRing redelivered;   // of the item that a recovery found last
  std::uint64_t resets = 0;  // as it was before a put found no room
};

class GrowingFlow {
 public:
  GrowingFlow(UpkeepLock& lock, const Levels& levels, Upkeep& upkeep) noexcept
      : lock_(lock), levels_(levels), upkeep_(upkeep), moments_(levels) {}

  // attempt(ring) puts as in ring/items.hpp. `slots`: of its first item.
  // full: no room, and none can be made now; busy: not known, since another participant has the lock or a guard;
  // unbacked: the system has no memory, see error().
  [[nodiscard, gnu::always_inline]] inline Outcome put(LastRings& last, auto guard, std::uint64_t slots,
                                                       auto attempt) noexcept {
    GrowingRing& ring = last.put;
    const LevelRange now = guarded_range(guard, LevelRange{ring.range_seen});
    if (slots == 1 && is_of(ring, now)) [[likely]] {
      const Outcome outcome = attempt(ring);
      guard.drop();
      if (outcome == Outcome::done) [[likely]] {
        after_put(ring, now);
        return outcome;
      }
      ring.level_range = nullptr;  // its limit may have changed: refresh it
    }
    return put_anew(last, guard, slots, attempt);
  }

  // Finds the item at the front. Its ring is last.get, until range_seen changes there.
  [[nodiscard, gnu::always_inline]] inline Outcome peek(LastRings& last, auto guard, auto ledger,
                                                        Peeked& peeked) noexcept {
    const LevelRange now = guarded_range(guard, LevelRange{last.get.range_seen});
    std::uint64_t skipped = 0;
    if (is_of(last.get, now)) [[likely]] {
      const Outcome outcome = queueduct::peek(last.get, ledger, peeked);
      guard.drop();
      if (outcome == Outcome::done) [[likely]] return outcome;
      skipped = peeked.skipped;
    }
    return peek_anew(last, guard, ledger, peeked, skipped);
  }

  // After peek(): use() reads what follows. Returns false, without use(), if the level range has moved.
  [[nodiscard]] bool with_guard(auto guard, const GrowingRing& ring, auto use) const noexcept {
    guard.announce(LevelRange{ring.range_seen});
    const bool is_current = ring.is_current();
    if (is_current) use();
    guard.drop();
    return is_current;
  }

  void after_get(const GrowingRing& ring) noexcept {
    const std::uint64_t position = LevelNumbering::position_of(ring.pop_position->load(std::memory_order_relaxed));
    if (position >= next_get_check_.load(std::memory_order_relaxed)) [[unlikely]] {
      next_get_check_.store(position + get_check_slots, std::memory_order_relaxed);
      after_some_gets();
    }
    if (may_reclaim_.load(std::memory_order_relaxed)) [[unlikely]] (void)reclaim_some();
  }

  // After a lease, or a redelivery: the item may have been the last of a level that is not read any more.
  void after_release(const GrowingRing& ring) noexcept {
    const bool is_read = ring.pop_position == &levels_[levels_.level_range().read_level()].control->pop_position;
    if (!is_read) may_reclaim_.store(true, std::memory_order_relaxed);
    after_get(ring);
  }

  // Checks whether the queue can shrink, and whether memory can be reclaimed that was held.
  void after_some_gets() noexcept {
    (void)shrink_if_idle();
    if (is_held_.exchange(false, std::memory_order_relaxed)) may_reclaim_.store(true, std::memory_order_relaxed);
  }

  // For a consumer that finds nothing, perhaps the only active participant: returns to level 0 if the queue has been
  // empty for long, and reclaims drained levels for a moment.
  void rest() noexcept {
    if (!moments_.is_rest_due()) return;
    after_some_gets();
    calm_if_idle();
    const std::int64_t end = monotonic_ns() + GrowingMoments::rest_ns;
    while (reclaim_some() && monotonic_ns() < end) {
    }
  }
  void calm_if_idle() noexcept {
    const LevelRange now = levels_.level_range();
    const std::uint32_t level = now.written_level();
    if (level == 0 || now.read_level() != level) return;
    const LevelControl& control = *levels_[level].control;
    const std::uint64_t popped = LevelNumbering::position_of(control.pop_position.load(std::memory_order_acquire));
    const std::uint64_t pushed = LevelNumbering::position_of(control.push_position.load(std::memory_order_acquire));
    if (pushed == popped && moments_.is_idle(popped)) (void)shrink(now);
  }

  // After a put that may not wait and returned full or busy: returns true if another attempt in a moment is worthwhile.
  [[nodiscard]] bool is_worth_a_try(Outcome outcome) noexcept {
    if (outcome == Outcome::busy) return moments_.is_worth_a_try(GrowingMoments::stopped_ns);
    return outcome == Outcome::full && upkeep_.has_drained_levels() &&
           moments_.is_worth_a_try(GrowingMoments::claimed_ns);
  }

  // Records the fill level. Returns to level 0 if the queue is empty and has been nearly empty for calm_slots items.
  // Returns true if it did.
  [[nodiscard]] bool shrink_if_idle() noexcept {
    const LevelRange now = levels_.level_range();
    const std::uint32_t level = now.written_level();
    if (level == 0 || now.read_level() != level) return false;
    const GrowingRing ring = levels_.ring(level, now);
    const std::uint64_t popped = LevelNumbering::position_of(ring.pop_position->load(std::memory_order_acquire));
    const std::uint64_t pushed = LevelNumbering::position_of(ring.push_position->load(std::memory_order_acquire));
    if (!ring.is_current() || pushed < popped) return false;
    const std::uint64_t high = levels_.control().last_high.load(std::memory_order_relaxed);
    if (pushed - popped > ring.capacity / 8) {
      if (popped - high > calm_slots / 4) levels_.control().last_high.store(popped, std::memory_order_relaxed);
      return false;
    }
    return pushed == popped && popped - high > calm_slots && shrink(now);
  }

  // Makes a step of reclaiming memory. Returns true if there may be more to do.
  bool reclaim_some() noexcept {
    if (!upkeep_.has_drained_levels()) {
      may_reclaim_.store(false, std::memory_order_relaxed);
      return false;
    }
    if (!lock_.enter(false)) return false;
    const Upkeep::Step step = upkeep_.reset_some(lock_.file());
    lock_.leave();
    if (step == Upkeep::Step::held || step == Upkeep::Step::guarded) {  // not with every get: see after_some_gets()
      is_held_.store(true, std::memory_order_relaxed);
      may_reclaim_.store(false, std::memory_order_relaxed);
    }
    return step == Upkeep::Step::some;
  }

  // Returns why a put returned unbacked.
  [[nodiscard]] int error() const noexcept { return error_.load(std::memory_order_relaxed); }

  // Returns true if another attempt may succeed. `guard` protects the slots; OutsideGuard reads them from the file.
  [[nodiscard]] bool may_be_gettable(auto guard) const noexcept {
    const LevelRange now = levels_.level_range();
    if (now.is_discarded()) return true;
    const GrowingRing ring = levels_.ring(now.read_level(), now);
    const std::uint64_t position = ring.pop_position->load(std::memory_order_relaxed);
    const std::uint64_t word = ring.push_position->load(std::memory_order_relaxed);
    if (LevelNumbering::position_of(word) == position) return (word & closed_bit) || now.is_shut();
    if (position & closed_bit || !ring.is_current()) return true;
    if constexpr (requires { guard.may_be_poppable(now, ring, position); }) {
      return guard.may_be_poppable(now, ring, position) || !ring.is_current();
    } else {
      bool is_poppable = true;
      return !with_guard(guard, ring, [&] { is_poppable = may_be_poppable(ring); }) || is_poppable;
    }
  }

  // Returns true if so many slots are claimed in front of consumers that one of them need not linger. A hint: of
  // positions only, so nothing is guarded.
  [[nodiscard]] bool is_ahead(std::uint64_t slots) const noexcept {
    const LevelRange now = levels_.level_range();
    const LevelControl& level = *levels_[now.read_level()].control;
    const std::uint64_t popped = LevelNumbering::position_of(level.pop_position.load(std::memory_order_relaxed));
    const std::uint64_t word = level.push_position.load(std::memory_order_relaxed);
    return LevelNumbering::position_of(word) - popped >= slots || now.read_level() != now.written_level() ||
           now.is_shut();
  }

  // May another put succeed? `resets`: as it was when there was no room.
  [[nodiscard]] bool may_be_puttable(auto guard, std::uint64_t slots, std::uint64_t resets) const noexcept {
    const LevelRange now = levels_.level_range();
    if (now.is_shut() || levels_.control().resets.load(std::memory_order_relaxed) != resets) return true;
    const GrowingRing ring = levels_.ring(now.written_level(), now);
    const std::uint64_t position = ring.push_position->load(std::memory_order_relaxed);
    if (position & closed_bit || !ring.is_current()) return true;
    if (slots > ring.claim_limit()) return false;
    if (ring.backed(position, slots) < slots) return true;
    if constexpr (requires { guard.may_be_pushable(now, ring, position, slots); }) {
      return guard.may_be_pushable(now, ring, position, slots) || !ring.is_current();
    } else {
      bool is_pushable = true;
      return !with_guard(guard, ring, [&] { is_pushable = may_be_pushable(ring, position, slots); }) || is_pushable;
    }
  }

 private:
  // A turn fails only after another participant's move, and there are few moves in thousands of items. Only words that
  // contradict each other take more turns than this.
  static constexpr int turns_limit = 100'000;
  static constexpr std::uint64_t get_check_slots = 64;
  static constexpr std::uint64_t calm_slots = 4096;

  [[nodiscard]] static bool is_of(const GrowingRing& ring, LevelRange now) noexcept {
    return ring.range_seen == now.word && ring.level_range != nullptr;
  }

  // Returns the level range, guarded from here on; it is probably the expected one. keeps V1
  [[nodiscard, gnu::always_inline]] inline LevelRange guarded_range(auto guard, LevelRange expected) const noexcept {
    for (;;) {
      guard.announce(expected);
      const LevelRange now = levels_.unchecked_level_range();
      if (now.moves() == expected.moves()) [[likely]] return now;
      expected = now;
    }
  }

  // Puts, and makes the moves that are in the way.
  [[nodiscard, gnu::noinline]] Outcome put_anew(LastRings& last, auto guard, std::uint64_t slots,
                                                auto attempt) noexcept {
    GrowingRing& ring = last.put;
    last.resets = levels_.control().resets.load(std::memory_order_relaxed);  // a hint: a wait reads it again
    bool may_start_over = true;
    for (int turn = 0; turn < turns_limit; ++turn) {
      const LevelRange now = guarded_range(guard, LevelRange{ring.range_seen});
      if (!is_of(ring, now)) [[unlikely]] {
        if (!levels_.is_sound(now) || now.is_shut()) {
          guard.drop();
          return levels_.is_sound(now) ? Outcome::closed : Outcome::corrupt;
        }
        ring = levels_.ring(now.written_level(), now);
      }
      const Outcome outcome = slots == 1 || slots <= ring.claim_limit() ? attempt(ring) : Outcome::full;
      guard.drop();
      if (outcome == Outcome::done) [[likely]] {
        after_put(ring, now);
        return outcome;
      }
      ring.level_range = nullptr;  // its limit may have changed: refresh it
      const Outcome way = resolve_full(now, guard, ring, outcome, slots, may_start_over);
      if (way != Outcome::moved) return way;
    }
    return Outcome::corrupt;
  }

  [[nodiscard, gnu::noinline]] Outcome peek_anew(LastRings& last, auto guard, auto ledger, Peeked& peeked,
                                                 std::uint64_t skipped) noexcept {
    GrowingRing& ring = last.get;
    for (int turn = 0; turn < turns_limit; ++turn) {
      const LevelRange now = guarded_range(guard, LevelRange{ring.range_seen});
      if (!is_of(ring, now)) [[unlikely]] {
        may_reclaim_.store(true, std::memory_order_relaxed);  // a level may have been left
        if (!levels_.is_sound(now) || now.is_discarded()) {
          guard.drop();
          return levels_.is_sound(now) ? Outcome::closed : Outcome::corrupt;
        }
        ring = levels_.ring(now.read_level(), now);
      }
      const Outcome outcome = queueduct::peek(ring, ledger, peeked);
      guard.drop();
      peeked.skipped += skipped;
      if (outcome == Outcome::done) [[likely]] return outcome;
      skipped = peeked.skipped;
      if (outcome == Outcome::busy) return outcome;
      if (outcome == Outcome::empty) {
        // only the written level is open
        if (now.read_level() != now.written_level() && levels_.is_still(now)) return Outcome::corrupt;
        if (!now.is_shut()) return outcome;
        levels_.finish_shutting();  // the participant that shuts it down is dead, or about to do it
      } else if (outcome == Outcome::closed) {
        const Levels::Moved moved = levels_.read_on(now);
        if (moved == Levels::Moved::corrupt) return Outcome::corrupt;
        if (moved == Levels::Moved::no && levels_.is_still(now)) return outcome;
      } else if (is_contradiction(outcome, now)) {
        return Outcome::corrupt;
      }
    }
    return Outcome::corrupt;
  }

  // Returns true if the words contradict each other. A ring outside the level range proves nothing.
  [[nodiscard]] bool is_contradiction(Outcome outcome, LevelRange now) const noexcept {
    const LevelRange raw{levels_.control().level_range.load(std::memory_order_acquire)};
    return !levels_.is_sound(raw) || (outcome == Outcome::corrupt && raw.word == now.word);
  }

  [[gnu::noinline]] Outcome resolve_full(LevelRange now, auto guard, const GrowingRing& ring, Outcome outcome,
                                         std::uint64_t slots, bool& may_start_over) noexcept {
    switch (outcome) {
      case Outcome::closed:
        return levels_.follow_closing(now) == Levels::Moved::corrupt ? Outcome::corrupt : Outcome::moved;
      case Outcome::full: {
        const Outcome grown = grow(now, guard, ring, slots);
        if (grown != Outcome::full || slots <= ring.claim_limit()) return grown;
        if (start_over(now, may_start_over)) return Outcome::moved;
        // Memory that the system does not take back leaves no budget for a ring of that size: no get will change that.
        const int refusal = upkeep_.refusal();
        if (refusal != 0) error_.store(refusal, std::memory_order_relaxed);
        return refusal != 0 ? Outcome::unbacked : grown;
      }
      case Outcome::unbacked: return back_open_level(now, slots);
      default: return is_contradiction(outcome, now) ? Outcome::corrupt : Outcome::moved;
    }
  }

  [[nodiscard]] Outcome grow(LevelRange now, auto guard, const GrowingRing& ring, std::uint64_t slots) noexcept {
    const std::uint32_t next = now.written_level() + 1;
    if (next == levels_.steps()) return Outcome::full;
    if (levels_.is_ready(next)) {
      guard.announce(now);
      levels_.close_full(now, slots);
      guard.drop();
      return levels_.follow_closing(now) == Levels::Moved::corrupt ? Outcome::corrupt : Outcome::moved;
    }
    return plan(now, next, least_for(ring, next, slots), true);
  }

  // For an item too long for its ring, where the budget or the table ends: leaves the rings of an empty queue and
  // starts again with level 0 and the whole budget. Once in a put: it must not loop while another participant holds
  // the memory.
  [[nodiscard]] bool start_over(LevelRange now, bool& may_start_over) noexcept {
    if (now.read_level() != now.written_level()) return levels_.read_on(now) == Levels::Moved::yes;
    if (!may_start_over) return false;
    may_start_over = false;
    return shrink(now);
  }

  // Returns the least capacity that is worth opening when the budget does not allow the whole level.
  [[nodiscard]] std::uint64_t least_for(const GrowingRing& ring, std::uint32_t next,
                                        std::uint64_t slots) const noexcept {
    const std::uint64_t least = slots > 2 * ring.capacity ? slots : 2 * ring.capacity;
    return least < levels_[next].capacity ? least : levels_[next].capacity;
  }

  [[nodiscard]] Outcome plan(LevelRange now, std::uint32_t next, std::uint64_t least, bool must) noexcept {
    if (!lock_.enter(must)) return Outcome::busy;
    int error = 0;
    Upkeep::Given given = Upkeep::Given::not_clean;
    if (levels_.is_still(now))
      given = retry_after_reclaim(must, [&] { return upkeep_.plan(lock_.file(), next, least, error); });
    lock_.leave();
    return outcome_of(given, error, now);
  }

  [[nodiscard]] Outcome back_open_level(LevelRange now, std::uint64_t slots) noexcept {
    if (!lock_.enter(true)) return Outcome::busy;
    int error = 0;
    Upkeep::Given given = Upkeep::Given::yes;
    if (levels_.is_still(now))
      given = retry_after_reclaim(
          true, [&] { return upkeep_.prepare_open(lock_.file(), now.written_level(), slots, error); });
    lock_.leave();
    if (given == Upkeep::Given::refused && shrink(now)) return Outcome::moved;
    return outcome_of(given, error, now);
  }

  // With `must` reclaims all drained levels before it returns a refusal of the budget or the system. guarded: a drained
  // level cannot be reclaimed now.
  [[nodiscard]] Upkeep::Given retry_after_reclaim(bool must, auto attempt) noexcept {
    Upkeep::Given given = attempt();
    Upkeep::Step step = Upkeep::Step::some;
    while (must && given != Upkeep::Given::yes && step == Upkeep::Step::some) {
      step = upkeep_.reset_some(lock_.file());
      if (step == Upkeep::Step::some) given = attempt();
    }
    const bool is_no = given == Upkeep::Given::over_budget || given == Upkeep::Given::not_clean;
    return is_no && step == Upkeep::Step::guarded ? Upkeep::Given::guarded : given;
  }

  [[nodiscard]] Outcome outcome_of(Upkeep::Given given, int error, LevelRange now) noexcept {
    if (given == Upkeep::Given::yes || !levels_.is_still(now)) return Outcome::moved;
    if (given == Upkeep::Given::guarded) return Outcome::busy;
    if (given != Upkeep::Given::refused) return Outcome::full;
    error_.store(error, std::memory_order_relaxed);
    return Outcome::unbacked;
  }

  [[nodiscard]] bool shrink(LevelRange now) noexcept {
    return levels_.close_empty(now) && levels_.follow_closing(now) == Levels::Moved::yes;
  }

  [[gnu::always_inline]] inline void after_put(GrowingRing& ring, LevelRange now) noexcept {
    const std::uint64_t position = LevelNumbering::position_of(ring.push_position->load(std::memory_order_relaxed));
    if (position >= next_put_check_.load(std::memory_order_relaxed) || is_near_limit(ring, position)) [[unlikely]]
      prepare_next_level(ring, now, position);
  }

  // Returns true within half an extent of the end of the prepared slots.
  [[nodiscard]] static bool is_near_limit(const GrowingRing& ring, std::uint64_t position) noexcept {
    return ring.limit != ~std::uint64_t{0} && (ring.limit - position) * ring.slot_bytes < Upkeep::extent_bytes / 2;
  }

  // Prepares the next extent, and when three quarters are full the next level. The put itself is done.
  [[gnu::noinline]] void prepare_next_level(GrowingRing& last, LevelRange now, std::uint64_t position) noexcept {
    const GrowingRing ring = last;
    if (is_near_limit(ring, position)) last.level_range = nullptr;  // the limit moves: refresh it
    next_put_check_.store(position + ring.capacity / 8 + 1, std::memory_order_relaxed);
    int error = 0;
    if (is_near_limit(ring, position) && ring.is_current() && lock_.enter(false)) {
      if (levels_.is_still(now)) (void)upkeep_.prepare_open(lock_.file(), now.written_level(), 1, error);
      lock_.leave();
    }
    const std::uint32_t next = now.written_level() + 1;
    if (next == levels_.steps() || levels_.is_ready(next)) return;
    const std::uint64_t popped = LevelNumbering::position_of(ring.pop_position->load(std::memory_order_relaxed));
    if (position - popped >= ring.capacity / 4 * 3 && position - popped <= ring.capacity)
      (void)plan(now, next, least_for(ring, next, 1), false);
  }

  UpkeepLock& lock_;
  const Levels& levels_;
  Upkeep& upkeep_;
  GrowingMoments moments_;
  // Hints, shared by a process's threads; any value is correct.
  std::atomic<std::uint64_t> next_put_check_{0};
  std::atomic<std::uint64_t> next_get_check_{0};
  std::atomic<bool> may_reclaim_{false};
  std::atomic<bool> is_held_{false};
  std::atomic<int> error_{0};
};

}  // namespace queueduct
