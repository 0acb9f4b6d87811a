// Put, find, take, recover, wake: the protocol of every queue of rings. Bindings and stress runs call exactly this.
//
// Shape      put   try ─┬─ done -> wake a consumer
//                       └─ full -> is a recovery due? -> make room ─┬─ try again
//                                                                   └─ the caller waits for room
//            find  peek ─┬─ an item
//                        └─ none -> is a recovery due? -> recover ─┬─ an item of a dead consumer: redelivered
//                                                                  ├─ slots became free: peek again
//                                                                  └─ nothing: the caller waits for items
//            take  claim -> copy -> release -> upkeep -> wake a producer, and the next consumer if items are left
//                  a redelivered item: take over the dead consumer's claim -> the same
// Roles      participants, each with its own ledger line. `Queue` brings its rings:
//              put_into_ring(me, slots, attempt)   calls attempt(ring) with the ring that is written
//              peek(me, item), ring_of(me, item)   the item at the front, and its ring; nullptr: the queue has moved on
//              recover(), may_redeliver(), drop_guard(), remember(me, found), remembered_ring(me)
//              with_guard(me, ring, use), with_full_guard(me, use)   use() may read slots that are not claimed
//              with_upkeep_lock(use), try_with_upkeep_lock(use), as_joiner(use)
//              after_get(ring), after_release(ring), reclaim_some(), upkeep_while_empty()   reclaim memory
// Invariants Q1  an item that was found is claimed only if it is still as it was found: by the compare-and-swap of a
//                position (I4), or of a generation (B3).
//            Q2  the caller has memory for an item before the item is claimed: a failed allocation loses nothing.
//            Q3  a consumer that takes over a dead one's item does upkeep and wakes others as after a claim.
//            Q4  a slot that becomes free wakes a producer, also if a dead participant had it.
// Progress   as a claim (ring/ring.hpp); a recovery is a pass over the table, made when recovery_is_due().
#pragma once

#include "ring/handle.hpp"

namespace queueduct {

template <class Queue, class Rings>
class RingOperations : public RingHandle {
 public:
  using Ring = typename Rings::Ring;
  using Recovery = BasicRecovery<Rings>;
  using RecoveryScan = typename Recovery::RecoveryScan;

  [[nodiscard]] Recovery& recovery() noexcept { return recovery_; }

  // Returns table_full only if live participants own all lines. A dead owner's line is kept back until its claims are
  // recovered, perhaps by this call; or another participant has locked it for a moment to see if it is settled.
  [[nodiscard]] ParticipantTable::Joined join() noexcept final {
    return join_by([this](auto is_settled) { return participant_table_.join(is_settled); });
  }
  // Gets a line that belongs to no thread: see BasicLease.
  [[nodiscard]] ParticipantTable::Joined join_apart(Participant& ledger) noexcept {
    std::uint32_t line = 0;
    ParticipantTable::Joined joined = ParticipantTable::Joined::yes;
    if (Queue::recovers_with_own_line && !find_participant(ledger)) joined = join();
    if (joined == ParticipantTable::Joined::yes)
      joined = join_by([this, &line](auto is_settled) { return participant_table_.join_apart(is_settled, line); });
    if (joined == ParticipantTable::Joined::yes) ledger = {participant_table_.lines() + line, line};
    return joined;
  }

  // Puts. always_inline, here and below, works where the kind is known: its class is final.

  [[nodiscard, gnu::always_inline]] inline Outcome put_bytes(Participant me, const void* data, std::uint64_t bytes,
                                                             Aside aside) noexcept final {
    return put(me, slots_for(bytes), aside, [=](const Ring& ring) { return try_put_bytes(ring, me, data, bytes); });
  }
  [[nodiscard]] Outcome put_buffers(Participant me, const Buffer* items, std::uint64_t count, std::uint64_t& put_,
                                    Aside aside) noexcept final {
    return put(me, slots_for(items[0].bytes), aside,
               [&](const Ring& ring) { return try_put_bytes_many(ring, me, items, count, put_); });
  }
  [[nodiscard]] Outcome put_records(Participant me, const void* data, std::uint64_t count, Span& put_,
                                    Aside aside) noexcept final {
    return put(me, 1, aside, [&](const Ring& ring) { return try_put_records(ring, me, data, count, put_); });
  }
  [[nodiscard]] Outcome put_bytes_once(Participant me, ProducerLine& line, const Buffer* items, std::uint64_t count,
                                       std::uint64_t& put_, Aside aside) noexcept final {
    return put(me, slots_for(items[0].bytes), aside,
               [&](const Ring& ring) { return try_put_bytes_once(ring, me, line, items, count, put_); });
  }
  [[nodiscard]] Outcome put_records_once(Participant me, ProducerLine& line, const void* data, std::uint64_t count,
                                         std::uint64_t& put_, Aside aside) noexcept final {
    return put(me, 1, aside, [&](const Ring& ring) { return try_put_records_once(ring, me, line, data, count, put_); });
  }

  // For a producer: abandons dead producers' slots, skips tombstones at the front, and wakes a consumer for dead
  // consumers' items. Returns true if there may be room now.
  [[nodiscard]] bool make_room(Participant me) noexcept {
    const RecoveryScan found = self().recover();
    if (found.redeliverable) leave_to_consumers();
    const bool has_skipped = skip_tombstones(me) > 0;
    const bool has_reclaimed = self().reclaim_some();
    return has_skipped || has_reclaimed || found.changed;
  }

  [[nodiscard]] Outcome settle_producer(ProducerLine& line) noexcept final {
    for (int tries = 0;; ++tries) {
      const Outcome outcome = self().try_settle(line);
      if (outcome != Outcome::busy || tries == settle_tries) return outcome;
      if (self().is_lock_corrupt()) return Outcome::corrupt;
      const RecoveryScan found = self().recover();
      if (found.unclaimed) return Outcome::corrupt;
      if (found.redeliverable) leave_to_consumers();
      if (!found.changed) pause_between_attempts();
    }
  }

  // Gets.

  [[nodiscard, gnu::always_inline]] inline Outcome find(Participant me, Item& item, Aside aside) noexcept final {
    item.let_go();
    const Outcome outcome = self().peek(me, item);
    return outcome == Outcome::done ? outcome : find_slowly(me, item, outcome, aside);
  }

  [[nodiscard]] std::uint64_t widen(Participant me, Item& item, std::uint64_t limit, Target* targets) noexcept final {
    targets[0].bytes = item.bytes;
    const Ring* const ring = item.is_redelivered ? nullptr : self().ring_of(me, item);
    std::uint64_t count = 1;
    if (ring != nullptr && limit > 1)
      (void)self().with_guard(me, *ring, [&] {
        if (ring->lengths != nullptr) {
          count = widen_items(*ring, limit, item,
                              [&](std::uint64_t i, const Peeked& each) { targets[i].bytes = each.bytes; });
        } else {
          widen_records(*ring, limit, item);
          targets[0].bytes = item.bytes;
        }
      });
    return count;
  }

  [[nodiscard, gnu::always_inline]] inline bool take(Participant me, Item& item, const Target* targets,
                                                     std::uint64_t count) noexcept final {
    return take(me, item, targets, count, [] {});
  }
  // copied(): the items are the caller's, and only its own if it is killed from here on.
  [[nodiscard, gnu::always_inline]] inline bool take(Participant me, Item& item, const Target* targets,
                                                     std::uint64_t count, auto copied) noexcept {
    if (item.is_redelivered) [[unlikely]]
      return take_redelivered(me, item, targets[0].to, copied);
    const Ring* const ring = self().ring_of(me, item);
    if (ring == nullptr || !claim_pop(*ring, me, item.span)) [[unlikely]]
      return false;  // Q1
    std::uint64_t position = item.span.position;
    for (std::uint64_t i = 0; i < count; ++i) {
      copy_out(*ring, position, targets[i].to, targets[i].bytes);
      position += ring->slots_for(targets[i].bytes);
    }
    copied();
    release_copied(*ring, me, item.span);
    me.count_got(ring->lengths == nullptr ? item.span.slots : count, item.bytes);  // all records have one target
    self().after_get(*ring);
    after_get(item.has_waited);
    return true;
  }

  // The loop of every get, after an attempt that found nothing: redeliver(found) takes over a dead consumer's item, or
  // attempt(skipped) is made again. redeliver() returns false if another consumer was faster.
  [[nodiscard]] Outcome recover_and_find(Participant me, Outcome outcome, std::uint64_t skipped, Aside aside,
                                         auto attempt, auto redeliver) noexcept {
    for (;;) {
      RecoveryScan found;
      outcome = recover_for_get(me, outcome, skipped, aside, found);
      if (outcome == Outcome::done ? redeliver(found) : outcome != Outcome::moved) return outcome;
      outcome = attempt(skipped);
      if (outcome == Outcome::done) return outcome;
    }
  }

  // Takes over what recover() found. Returns false if another consumer was faster, or if this thread has used the queue
  // since.
  [[nodiscard]] bool try_redeliver(Participant me, const RecoveryScan& found) noexcept {
    const bool is_redelivered = self().may_redeliver() && recovery_.try_redeliver(me, found);
    self().drop_guard();
    return is_redelivered;
  }
  [[nodiscard]] std::uint64_t try_redeliver_many(Participant me, const RecoveryScan& found, Redelivered* items,
                                                 std::uint64_t limit) noexcept {
    const std::uint64_t count = self().may_redeliver() ? recovery_.try_redeliver_many(me, found, items, limit) : 0;
    self().drop_guard();
    return count;
  }
  // After try_redeliver() and the copy. keeps Q3
  void release_redelivered(Participant me, const RecoveryScan& found) noexcept {
    QUEUEDUCT_FAILPOINT("recover.copied");
    self().with_full_guard(me, [&] { Recovery::release_redelivered(found.ring, me, found.peeked.span); });
    me.count_got(1, found.peeked.bytes);
    self().after_release(found.ring);
    wake_the_rest();
    after_get(true);
  }

  void after_get(bool has_waited) noexcept {
    room().notify();  // Q4
    if (has_waited && self().may_be_gettable()) items().notify();
  }
  // After the release of items that were out of a queue that is shut down: see segment/rest.hpp.
  void wake_the_rest() noexcept {
    Rest::wake(items(), [this] { return self().is_shut(); });
  }

  void wait_for_items(std::int64_t limit_ns) noexcept final {
    if (self().is_ended()) [[unlikely]]
      return rest_.wait(
          items(), [this] { return !may_come_again(); }, limit_ns);
    self().wait_for_front(limit_ns);
  }

  void shut_down(bool immediate) noexcept final {
    (void)self().close_rings(immediate);
    wake_everybody();
  }
  // While another participant has the upkeep lock, slots cannot be read: then it returns true, since items may be out.
  [[nodiscard]] bool may_come_again() noexcept final {
    bool is_out = !rest_.has_this_thread_any();                                                    // O3
    if (is_out) (void)self().try_with_upkeep_lock([&] { is_out = recovery_.count_out(1) != 0; });  // O1
    return is_out;
  }

  // A `try_` that met a slot in mid-copy, or found nothing, runs a recovery, but not each time: that is a pass over the
  // table. This clock declares no participant dead; it only says when to ask.
  [[nodiscard]] bool recovery_is_due(Outcome outcome) noexcept final {
    if (recovers_at_once_) return true;
    const std::int64_t now = monotonic_ns();
    const std::int64_t interval = outcome == Outcome::busy ? 200'000 : 10'000'000;
    if (now - last_recovery_ns_.load(std::memory_order_relaxed) < interval && !recovery_.has_more()) return false;
    last_recovery_ns_.store(now, std::memory_order_relaxed);
    return true;
  }
  // For tests whose steps may not depend on a clock: a recovery is always due.
  void recover_at_once() noexcept { recovers_at_once_ = true; }
  [[nodiscard]] bool has_more_to_recover() const noexcept final { return recovery_.has_more(); }

  [[nodiscard]] std::uint64_t count_items() noexcept final {
    std::uint64_t items = 0;
    if (may_hold_gaps())
      self().with_upkeep_lock([&] { items = self().count_in_rings(true); });
    else
      items = self().count_in_rings(false);
    return items;
  }
  // Reads the lines first: they say whether slots must be read.
  [[nodiscard]] std::uint64_t count_left() noexcept final {
    std::uint64_t left = 0;
    if (!self().is_discarded() && recovery_.may_have_left())
      self().with_upkeep_lock([&] { left = recovery_.count_left(); });
    return left;
  }
  [[nodiscard]] std::uint64_t count_leased() noexcept final {
    std::uint64_t out = 0;
    std::uint64_t left = 0;
    self().with_upkeep_lock([&] { out = recovery_.count_out(~std::uint64_t{0}), left = recovery_.count_left(); });
    return out - std::min(out, left);
  }
  [[nodiscard]] bool seems_settled(std::uint32_t line) const noexcept final { return recovery_.is_settled(line); }
  [[nodiscard]] bool is_all_done(Participant me) noexcept final {
    if (self().is_discarded()) return true;
    if (recovery_is_due(Outcome::empty) && make_room(me)) room().notify();  // Q4
    bool is_done = false;
    self().with_upkeep_lock([&] { is_done = recovery_.is_all_released(); });
    return is_done;
  }
  [[nodiscard]] bool is_unreleased(std::uint64_t position) noexcept final {
    bool is_held = false;
    self().with_upkeep_lock([&] { is_held = recovery_.is_unreleased(position); });
    return is_held;
  }

 protected:
  RingOperations(Words words, std::byte* base, const auto& at, std::uint64_t slot_bytes, Tables tables, int lock_fd,
                 Identity identity, Rings rings) noexcept
      : RingHandle(words, base, at, slot_bytes, tables, lock_fd, identity),
        recovery_(rings, participant_table_, producers_, counters()) {}

 private:
  static constexpr int join_tries = 500;
  static constexpr int settle_tries = 50;

  [[nodiscard]] Queue& self() noexcept { return static_cast<Queue&>(*this); }

  [[nodiscard, gnu::always_inline]] inline Outcome put(Participant me, std::uint64_t slots, Aside aside,
                                                       auto attempt) noexcept {
    for (;;) {
      Outcome outcome = self().put_into_ring(me, slots, attempt);
      if (outcome == Outcome::done) [[likely]]
        return outcome;
      outcome = recover_for_put(me, outcome, aside);
      if (outcome != Outcome::moved) return outcome;
    }
  }

  // Returns moved if the caller should try again.
  [[nodiscard, gnu::noinline]] Outcome recover_for_put(Participant me, Outcome outcome, Aside aside) noexcept {
    if (outcome != Outcome::full && outcome != Outcome::busy) return outcome;
    if (outcome == Outcome::busy && self().is_lock_corrupt()) return Outcome::corrupt;
    if (!recovery_is_due(outcome)) return outcome;
    bool is_room = false;
    run_aside(aside, [&] { is_room = make_room(me); });
    return is_room ? Outcome::moved : outcome;
  }

  // Returns moved if the caller should try again, done if `found` is to be redelivered.
  [[nodiscard, gnu::noinline]] Outcome recover_for_get(Participant me, Outcome outcome, std::uint64_t skipped,
                                                       Aside aside, RecoveryScan& found) noexcept {
    if (skipped > 0) room().notify();  // Q4
    if (outcome == Outcome::corrupt || (outcome == Outcome::closed && self().is_discarded())) return outcome;
    if (outcome != Outcome::closed && !recovery_is_due(outcome)) return outcome;
    run_aside(aside, [&] {  // a dead batch may have claimed millions of slots
      self().upkeep_while_empty();
      found = self().recover();
      if (found.changed && !found.redeliverable) (void)skip_tombstones(me);
    });
    if (found.unclaimed) {
      self().drop_guard();
      return Outcome::corrupt;
    }
    if (found.changed) room().notify();  // Q4
    if (found.redeliverable) return Outcome::done;
    if (found.changed) return Outcome::moved;
    if (outcome != Outcome::closed) return outcome;
    return may_come_again() ? Outcome::empty : Outcome::closed;
  }

  [[nodiscard, gnu::noinline]] Outcome find_slowly(Participant me, Item& item, Outcome outcome, Aside aside) noexcept {
    return recover_and_find(
        me, outcome, item.skipped, aside,
        [&](std::uint64_t& skipped) {
          const Outcome again = self().peek(me, item);
          skipped = item.skipped;
          return again;
        },
        [&](const RecoveryScan& found) {
          static_cast<Peeked&>(item) = found.peeked;
          item.seen = found.seen;
          item.is_redelivered = true;
          item.found_by_ = this;
          self().remember(me, found);
          return true;
        });
  }

  [[nodiscard, gnu::noinline]] bool take_redelivered(Participant me, Item& item, void* to, auto copied) noexcept {
    item.found_by_ = nullptr;  // try_redeliver() ends the guard
    RecoveryScan found;
    found.peeked = item;
    found.seen = item.seen;
    found.ring = self().remembered_ring(me);
    if (!try_redeliver(me, found)) return false;  // Q1
    copy_out(found.ring, item.span.position, to, item.bytes);
    copied();
    release_redelivered(me, found);
    return true;
  }

  // A producer drops what recover() found, and wakes a consumer for it.
  void leave_to_consumers() noexcept {
    self().drop_guard();
    items().wake_one();
  }

  // Returns how many slots at the front were tombstones.
  std::uint64_t skip_tombstones(Participant me) noexcept {
    Item front;
    (void)self().peek(me, front);
    return front.skipped;
  }

  [[nodiscard]] ParticipantTable::Joined join_by(auto join) noexcept {
    for (int tries = 0;; ++tries) {
      ParticipantTable::Joined joined = ParticipantTable::Joined::table_full;
      self().as_joiner([&](bool may_read_slots) {
        joined = join([=, this](std::uint32_t line) {
          self().before_new_owner(line);
          return may_read_slots ? recovery_.hand_over_claims(line) : recovery_.names_nothing(line);
        });
      });
      if (joined != ParticipantTable::Joined::table_full || tries == join_tries ||
          participant_table_.is_full_for_good(tries))
        return joined;
      self().as_joiner([this](bool may_read_slots) {
        if (may_read_slots) (void)recovery_.run();
      });
      pause_between_attempts();
    }
  }

  Recovery recovery_;
  std::atomic<std::int64_t> last_recovery_ns_{0};
  bool recovers_at_once_ = false;
};

}  // namespace queueduct
