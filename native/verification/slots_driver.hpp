// A slot queue in a stress run: the calls that its bindings make, with each operation's position.
#pragma once

#include "slots/queue.hpp"
#include "verification/worker.hpp"

namespace queueduct {

class StressedSlots {
 public:
  static constexpr bool has_batches = false;

  StressedSlots(SlotsQueue& queue, std::uint64_t item_bytes) noexcept
      : queue_(queue), slots_(queue.slots()), me_(queue.me()), item_bytes_(item_bytes) {}

  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t, Seen& seen) noexcept {
    for (;;) {
      Lease lease;
      const SlotOutcome held = slots_.try_hold(me_, lease);
      if (held == SlotOutcome::done) {
        std::memcpy(lease.data, items, item_bytes_);
        const SlotOutcome outcome = slots_.publish(lease, item_bytes_);
        if (outcome != SlotOutcome::done) return ended(outcome);
        seen = {lease.position, 1};
        queue_.items().notify();
        if (std::exchange(waited_, false) && slots_.may_be_holdable()) queue_.room().notify();
        return Answer::done;
      }
      if (held != SlotOutcome::full) return ended(held);
      seen = judge_full();
      if (!queue_.recover_if_due(me_, false)) return Answer::refused;
    }
  }

  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t, Seen& seen, auto& notes) noexcept {
    if (++takes_ % takes_between_recoveries == 0) (void)queue_.recover_if_due(me_, false);
    for (;;) {
      Lease lease;
      const SlotOutcome taken = slots_.try_take(me_, lease);
      if (taken == SlotOutcome::done) {
        std::memcpy(to, lease.data, item_bytes_);
        seen = {lease.position, 1, false, lease.redelivered};
        notes.copied(to, seen);
        if (!slots_.leave(lease)) return Answer::corrupt;
        queue_.room().notify();
        if (std::exchange(waited_, false) && slots_.may_be_takeable()) queue_.items().notify();
        return Answer::done;
      }
      if (taken != SlotOutcome::empty) return ended(taken);
      // the cell of this position was not pushed while it was the next: the queue was empty
      seen = {lease.position};
      const bool is_closed = slots_.closed() != 0;
      if (queue_.recover_if_due(me_, is_closed)) continue;
      return is_closed && queue_.is_drained() ? Answer::closed : Answer::refused;
    }
  }

  void wait_for_room(std::int64_t limit_ns) noexcept {
    queue_.wait_for_room(limit_ns);
    waited_ = true;
  }
  void wait_for_items(std::int64_t limit_ns) noexcept {
    waited_ = true;
    if (slots_.closed() == 0) return queue_.wait_for_items(limit_ns);
    pause_between_attempts();  // a producer is publishing, or was stopped while it published
  }

 private:
  static constexpr std::uint32_t takes_between_recoveries = 1024;

  [[nodiscard]] static Answer ended(SlotOutcome outcome) noexcept {
    return outcome == SlotOutcome::closed ? Answer::closed : Answer::corrupt;
  }

  // No slot was free: all have an item, or a participant fills or reads one. The queue was full if at one instant all
  // slots were in it: head is read twice and has not moved, and tail is read in between.
  [[nodiscard]] Seen judge_full() noexcept {
    IndexQueue& used = slots_.used();
    const std::uint64_t head = used.head();
    const std::int64_t size = used.cyclic().distance(head, used.tail());
    if (used.head() == head && size == static_cast<std::int64_t>(slots_.count()))
      return {used.cyclic().ordinal(head)};
    return {Seen::unknown, 0, true};
  }

  SlotsQueue& queue_;
  Slots& slots_;
  std::uint32_t me_;
  std::uint64_t item_bytes_;
  std::uint32_t takes_ = 0;
  bool waited_ = false;
};

}  // namespace queueduct
