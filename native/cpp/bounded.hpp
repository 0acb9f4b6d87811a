// A bounded queue in a C++ program. It converts, waits and throws; the protocol is in ring/operations.hpp.
#pragma once

#include "bounded/queue.hpp"
#include "cpp/handle.hpp"

namespace queueduct::facade {

class Bounded final : public Handle {
 public:
  explicit Bounded(Segment segment)
      : Handle(std::move(segment), Kind::bounded),
        queue_(new BoundedQueueHandle(memory_.base(), offsets(), segment_.header.capacity, segment_.header.slot_bytes,
                                      segment_.header.participants, segment_.header.producers, segment_.file.take(),
                                      own_identity())) {
    check_attached(queue_->participant_table());
    std::uint64_t id;
    std::memcpy(&id, segment_.header.segment_id, sizeof id);
    queue_->rest().identify(id);
  }

  // Returns how many are in when the time is up, or the queue is shut down. Throws only if none is.
  std::uint64_t put_records(const void* records, std::uint64_t count, const Deadline& deadline) {
    const auto* from = static_cast<const std::byte*>(records);
    return put(
        count, deadline,
        [&](Participant me, std::uint64_t done, std::uint64_t& put) {
          Span span;
          const Outcome outcome =
              queue_->put_records(me, from + done * segment_.header.slot_bytes, count - done, span, run_here);
          put = span.slots;
          return outcome;
        },
        [](std::uint64_t) { return std::uint64_t{1}; });
  }
  std::uint64_t put_items(const Buffer* items, std::uint64_t count, const Deadline& deadline) {
    for (std::uint64_t i = 0; i < count; ++i) check_length(items[i].bytes);
    return put(
        count, deadline,
        [&](Participant me, std::uint64_t done, std::uint64_t& put) {
          if (count > 1) return queue_->put_buffers(me, items + done, count - done, put, run_here);
          const Outcome outcome = queue_->put_bytes(me, items->data, items->bytes, run_here);
          put = 1;
          return outcome;
        },
        [&](std::uint64_t done) { return queue_->slots_for(items[done].bytes); });
  }

  // Gets what is there, at most `limit` items. room_for(targets, count) is called before the items are claimed, with
  // the bytes of each; it sets where they go, and may throw: nothing is lost. Records have one target.
  // Returns how many items it got.
  template <class RoomFor>
  std::uint64_t get(std::uint64_t limit, const Deadline& deadline, RoomFor room_for) {
    Target one;
    std::vector<Target> many;
    if (segment_.varies() && limit > 1) many.resize(std::min(limit, batch_limit));
    Target* const targets = many.empty() ? &one : many.data();
    const std::uint64_t most = segment_.varies() ? std::max<std::uint64_t>(many.size(), 1) : limit;
    Participant me = participant();
    Item item;
    for (;;) {
      const Outcome outcome = queue_->find(me, item, run_here);
      if (outcome == Outcome::done) {
        const std::uint64_t count = queue_->widen(me, item, most, targets);
        room_for(targets, count);
        if (item.is_redelivered) check_held(queue_->participant_table());
        const bool is_taken = queue_->take(me, item, targets, count);
        check_sound();
        if (is_taken) return segment_.varies() ? count : targets[0].bytes / segment_.header.slot_bytes;
      } else if (!wait_for_items(outcome, deadline, me, !item.has_waited)) {
        return 0;
      } else {
        item.has_waited = true;
      }
    }
  }

  [[nodiscard]] std::uint64_t size() {
    const std::uint64_t items = queue_->count_items() + queue_->count_left();
    check_sound();
    return items;
  }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return segment_.header.capacity; }
  [[nodiscard]] bool is_shut_down() const noexcept { return queue_->is_shut(); }
  void shut_down(bool immediate) {
    queue_->shut_down(immediate);
    check_sound();
  }

 private:
  static constexpr std::uint64_t batch_limit = 4096;  // items of varying length that one claim takes

  [[nodiscard]] BoundedOffsets offsets() const noexcept {
    const SegmentHeader& header = segment_.header;
    return bounded_offsets(header.capacity, header.slot_bytes, header.participants, header.producers,
                           header.item_text_bytes, segment_.varies());
  }

  // This thread's line. A thread joins at its first operation, and again in a forked child.
  [[nodiscard]] Participant participant() {
    Participant me;
    if (queue_->find_participant(me)) [[likely]]
      return me;
    check_joined(queue_->join());
    if (!queue_->find_participant(me)) raise_lost();
    return me;
  }

  void check_length(std::uint64_t bytes) {
    const std::uint64_t slot_bytes = segment_.header.slot_bytes;
    if (bytes <= slot_bytes && bytes <= item_bytes_limit) [[likely]]
      return;
    const std::uint64_t slots = queue_->item_slots_limit();
    if (bytes > item_bytes_limit || queue_->slots_for(bytes) > slots)
      throw std::invalid_argument("an item of " + std::to_string(bytes) + " bytes can never fit into " + label() +
                                  ": the limit is " + std::to_string(std::min(slots * slot_bytes, item_bytes_limit)) +
                                  " bytes; create the queue with a larger capacity or slot_bytes");
    queue_->note_long_items();
  }

  template <class Attempt, class SlotsOf>
  std::uint64_t put(std::uint64_t count, const Deadline& deadline, Attempt attempt, SlotsOf slots_of) {
    if (count == 0) return 0;
    Participant me = participant();
    bool has_waited = false;
    for (std::uint64_t total = 0;;) {
      std::uint64_t put = 0;
      const Outcome outcome = attempt(me, total, put);
      check_sound();
      if (outcome == Outcome::done) [[likely]] {
        total += put;
        queue_->after_put(has_waited);
        if (total == count) return total;
        continue;
      }
      if (outcome == Outcome::closed && total > 0) return total;
      if (!wait_for_room(outcome, slots_of(total), deadline, me, !has_waited)) return total;
      has_waited = true;
    }
  }

  bool wait_for_room(Outcome outcome, std::uint64_t slots, const Deadline& deadline, Participant& me, bool is_first) {
    if (outcome == Outcome::closed) raise_shut_down();
    if (outcome == Outcome::corrupt) raise_corrupt();
    const std::int64_t left = deadline.left_ns();
    if (left <= 0 && !queue_->is_worth_a_try(outcome)) return false;
    const std::int64_t began = monotonic_ns();
    queue_->wait_for_room(outcome, slots, left);
    return after_wait(false, is_first, began, me);
  }
  bool wait_for_items(Outcome outcome, const Deadline& deadline, Participant& me, bool is_first) {
    if (outcome == Outcome::corrupt) raise_corrupt();
    check_sound();
    if (outcome == Outcome::closed) raise_shut_down();
    const std::int64_t left = deadline.left_ns();
    if (left <= 0) return false;
    const std::int64_t began = monotonic_ns();
    queue_->wait_for_items(left);
    return after_wait(true, is_first, began, me);
  }
  bool after_wait(bool for_items, bool is_first, std::int64_t began, Participant& me) {
    me.count_wait(for_items, is_first, began);
    check_held(queue_->participant_table());
    me = participant();  // a signal handler may have forked
    return true;
  }

  std::unique_ptr<BoundedQueueHandle> queue_;
};

}  // namespace queueduct::facade
