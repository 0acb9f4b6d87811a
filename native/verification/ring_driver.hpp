// A queue of rings in a stress run: the calls that its bindings make, with each operation's position.
#pragma once

#include <utility>

#include "bounded/queue.hpp"
#include "growing/queue.hpp"
#include "verification/worker.hpp"

namespace queueduct {

template <class Queue>
class RingDriver {
 public:
  static constexpr bool has_batches = true;

  RingDriver(Queue& queue, Participant me) noexcept : queue_(queue), me_(me) {}

  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t count, Seen& seen) noexcept {
    Span put;
    outcome_ = queue_.put_records(me_, items, count, put, run_here);
    if (outcome_ == Outcome::done) {
      seen = {ticket_of(put), put.slots};
      queue_.after_put(std::exchange(has_waited_, false));
    } else if (outcome_ == Outcome::full) {
      seen = judge_full(put.position);
    }
    return answer_of(outcome_, [this] { return queue_.is_worth_a_try(outcome_); });
  }

  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t limit, Seen& seen, auto& notes) noexcept {
    for (;;) {
      Item item;
      item.has_waited = has_waited_;
      const Outcome outcome = queue_.find(me_, item, run_here);
      if (outcome != Outcome::done) {
        // busy: that put has not returned, so empty is a valid answer, but puts behind it may have returned
        seen = {ticket_of(item.span), 0, outcome == Outcome::busy};
        return answer_of(outcome, [] { return false; });
      }
      Target target{to, 0};
      const std::uint64_t targets = queue_.widen(me_, item, limit, &target);
      seen = {ticket_of(item.span), item.span.slots, false, item.is_redelivered};
      if (!queue_.take(me_, item, &target, targets, [&] { notes.copied(to, seen); })) continue;
      has_waited_ = false;
      return Answer::done;
    }
  }

  void wait_for_room(std::int64_t limit_ns) noexcept {
    queue_.wait_for_room(outcome_, 1, limit_ns);
    has_waited_ = true;
  }
  void wait_for_items(std::int64_t limit_ns) noexcept {
    queue_.wait_for_items(limit_ns);
    has_waited_ = true;
  }

 private:
  // Without tickets the times of operations alone decide.
  [[nodiscard]] static std::uint64_t ticket_of(Span span) noexcept {
    return Queue::has_tickets ? span.position : Seen::unknown;
  }

  [[nodiscard]] static Answer answer_of(Outcome outcome, auto is_worth_a_try) noexcept {
    switch (outcome) {
      case Outcome::done: return Answer::done;
      case Outcome::closed: return Answer::closed;
      case Outcome::unbacked: return Answer::no_memory;
      case Outcome::full:
      case Outcome::empty:
      case Outcome::busy: return is_worth_a_try() ? Answer::busy : Answer::refused;
      default: return Answer::corrupt;
    }
  }

  // The slot of `position`, the next to be pushed, was not free. Either the queue was full, or a consumer had claimed
  // the slot's item and not yet released it. It was full if at one instant the positions were a capacity apart:
  // push_position is read twice and has not moved, so the moment between, at which pop_position is read, is one.
  [[nodiscard]] Seen judge_full([[maybe_unused]] std::uint64_t position) const noexcept {
    if constexpr (Queue::has_tickets) {
      const std::uint64_t oldest = position - queue_.ring().capacity;
      const bool was_there = queue_.ring().pop_position->load(std::memory_order_acquire) == oldest;
      const bool stands_still = queue_.ring().push_position->load(std::memory_order_acquire) == position;
      return {oldest, 0, !(was_there && stands_still)};
    }
    return {};
  }

  Queue& queue_;
  Participant me_;
  Outcome outcome_ = Outcome::done;  // of the last put
  bool has_waited_ = false;
};

}  // namespace queueduct
