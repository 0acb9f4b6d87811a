// A bounded queue in a stress run: as its bindings use it, and what position each operation had.
#pragma once

#include "bounded/queue.hpp"
#include "verification/worker.hpp"

namespace queueduct {

class StressedBounded {
 public:
  static constexpr bool has_batches = true;

  StressedBounded(BoundedQueueHandle& queue, Participant ledger) noexcept : queue_(queue), ring_(queue.ring()), ledger_(ledger) {}

  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t count, Seen& seen) noexcept {
    for (;;) {
      Span span;
      const Outcome outcome = try_put_records(ring_, ledger_, items, count, span);
      if (outcome == Outcome::done) {
        seen = {span.position, span.slots};
        queue_.items().notify();
        if (has_waited() && looks_pushable(ring_, 1)) queue_.room().notify();
        return Answer::done;
      }
      if (outcome != Outcome::full) return outcome == Outcome::closed ? Answer::closed : Answer::corrupt;
      seen = judge_full(span.position);
      if (!queue_.recovery_is_due(outcome) || !queue_.make_room(ledger_)) return Answer::refused;
    }
  }

  template <class Notes>
  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t limit, Seen& seen, Notes& notes) noexcept {
    for (;;) {
      Peeked peeked;
      const Outcome outcome = peek(ring_, ledger_, peeked);
      if (outcome == Outcome::done) {
        widen_records(ring_, limit, peeked);
        if (!claim_pop(ring_, ledger_, peeked.span)) continue;
        copy_out(ring_, peeked.span.position, to, peeked.bytes);
        seen = {peeked.span.position, peeked.span.slots};
        notes.copied(to, seen);
        give_back(ring_, ledger_, peeked.span);
        after_get(has_waited());
        return Answer::done;
      }
      if (peeked.skipped > 0) queue_.room().notify();
      if (outcome == Outcome::corrupt) return Answer::corrupt;
      if (outcome == Outcome::closed && is_discarded(ring_)) return Answer::closed;
      // busy: its put has not returned, so this is an answer, but others behind it may have
      seen = {peeked.span.position, 0, outcome == Outcome::busy};
      if (outcome != Outcome::closed && !queue_.recovery_is_due(outcome)) return Answer::refused;
      const Recovery::RecoveryScan found = queue_.recovery().run();
      if (found.unclaimed) return Answer::corrupt;
      if (found.redeliverable) {
        if (redeliver(found, to, seen, notes)) return Answer::done;
      } else if (found.changed) {
        queue_.room().notify();
      } else {
        return outcome == Outcome::closed && !queue_.may_come_again() ? Answer::closed : Answer::refused;
      }
    }
  }

  void wait_for_room(std::int64_t limit_ns) noexcept {
    queue_.wait_for_room(1, limit_ns);
    waited_ = true;
  }
  void wait_for_items(std::int64_t limit_ns) noexcept {
    queue_.wait_for_items(limit_ns);
    waited_ = true;
  }

 private:
  // The slot of `position` was not free, and `position` was the next to be pushed. Was the queue full, or was it only
  // that a consumer which had claimed the slot's item had not yet given it back? Full it was if at one instant the
  // positions were a capacity apart. push_position stands still while it is read twice, so an instant between the two,
  // at which pop_position is read, will do.
  [[nodiscard]] Seen judge_full(std::uint64_t position) const noexcept {
    const std::uint64_t oldest = position - ring_.capacity;
    const bool was_there = ring_.pop_position->load(std::memory_order_acquire) == oldest;
    const bool stands_still = ring_.push_position->load(std::memory_order_acquire) == position;
    return {oldest, 0, !(was_there && stands_still)};
  }

  template <class Notes>
  [[nodiscard]] bool redeliver(const Recovery::RecoveryScan& found, std::byte* to, Seen& seen, Notes& notes) noexcept {
    if (!queue_.recovery().try_redeliver(ledger_, found)) return false;
    const Span span = found.peeked.span;
    copy_out(ring_, span.position, to, found.peeked.bytes);
    seen = {span.position, 1, false, true};
    notes.copied(to, seen);
    Recovery::release_redelivered(ring_, ledger_, span);
    after_get(true);
    return true;
  }

  void after_get(bool waited) noexcept {
    queue_.room().notify();
    if (waited && looks_poppable(ring_)) queue_.items().notify();
  }
  [[nodiscard]] bool has_waited() noexcept { return std::exchange(waited_, false); }

  BoundedQueueHandle& queue_;
  const Ring& ring_;
  Participant ledger_;
  bool waited_ = false;
};

}  // namespace queueduct
