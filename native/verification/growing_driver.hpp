// A growing queue in a stress run: as its bindings use it.
//
// Its operations have no tickets: a ring that closes takes a position too (G3), so positions are not without gaps. Of a
// queue without a capacity the times alone decide.
#pragma once

#include "growing/queue.hpp"
#include "verification/worker.hpp"

namespace queueduct {

class StressedGrowing {
 public:
  static constexpr bool has_batches = true;

  StressedGrowing(GrowingQueue& queue, Participant ledger) noexcept : queue_(queue), ledger_(ledger) {}

  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t count, Seen& seen) noexcept {
    for (;;) {
      std::uint64_t put = 0;
      resets_ = resets();
      const Outcome outcome = queue_.try_put_records(ledger_, items, count, put);
      if (outcome == Outcome::done) {
        seen = {Seen::unknown, put};
        queue_.items().notify();
        if (has_waited() && queue_.looks_puttable(1, resets())) queue_.room().notify();
        return Answer::done;
      }
      if (outcome == Outcome::closed) return Answer::closed;
      if (outcome == Outcome::unbacked) return Answer::no_memory;
      if (outcome != Outcome::full && outcome != Outcome::busy) return Answer::corrupt;
      seen = {};
      if (!queue_.recovery_is_due(outcome) || !queue_.make_room(ledger_)) return Answer::refused;
    }
  }

  template <class Notes>
  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t limit, Seen& seen, Notes& notes) noexcept {
    for (;;) {
      Peeked peeked;
      GrowingRing ring;
      const Outcome outcome = queue_.peek(ledger_, peeked, ring);
      if (outcome == Outcome::done) {
        queue_.widen_records(ledger_, ring, limit, peeked);
        if (!claim_pop(ring, ledger_, peeked.span)) continue;
        copy_out(ring, peeked.span.position, to, peeked.bytes);
        seen = {Seen::unknown, peeked.span.slots};
        notes.copied(to, seen);
        give_back(ring, ledger_, peeked.span);
        queue_.flow().after_get(ring);
        after_get(has_waited());
        return Answer::done;
      }
      if (peeked.skipped > 0) queue_.room().notify();
      if (outcome == Outcome::corrupt) return Answer::corrupt;
      if (outcome == Outcome::closed && queue_.levels().stage().is_discarded()) return Answer::closed;
      // busy: its put has not returned, so this is an answer, but others behind it may have
      seen = {Seen::unknown, 0, outcome == Outcome::busy};
      if (outcome != Outcome::closed && !queue_.recovery_is_due(outcome)) return Answer::refused;
      queue_.flow().rest();
      const GrowingRecovery::RecoveryScan found = queue_.recover();
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
    queue_.wait_for_room(1, resets_, limit_ns);
    waited_ = true;
  }
  void wait_for_items(std::int64_t limit_ns) noexcept {
    queue_.wait_for_items(limit_ns);
    waited_ = true;
  }

 private:
  template <class Notes>
  [[nodiscard]] bool redeliver(const GrowingRecovery::RecoveryScan& found, std::byte* to, Seen& seen, Notes& notes) noexcept {
    if (!queue_.try_redeliver(ledger_, found)) return false;
    const Span span = found.peeked.span;
    copy_out(found.ring, span.position, to, found.peeked.bytes);
    seen = {Seen::unknown, 1, false, true};
    notes.copied(to, seen);
    queue_.with_full_guard(ledger_, [&] { GrowingRecovery::release_redelivered(found.ring, ledger_, span); });
    queue_.after_release(found.ring);
    after_get(true);
    return true;
  }

  void after_get(bool waited) noexcept {
    queue_.room().notify();
    if (waited && queue_.looks_gettable()) queue_.items().notify();
  }
  [[nodiscard]] std::uint64_t resets() const noexcept {
    return queue_.control().resets.load(std::memory_order_relaxed);  // a hint: a wait looks again
  }
  [[nodiscard]] bool has_waited() noexcept { return std::exchange(waited_, false); }

  GrowingQueue& queue_;
  Participant ledger_;
  std::uint64_t resets_ = 0;  // as it was when there was no room
  bool waited_ = false;
};

}  // namespace queueduct
