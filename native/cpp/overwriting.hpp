// An overwriting queue in a C++ program. It converts, waits and throws; the algorithm is in overwriting/queue.hpp.
//
// A file that another program made in the published format has no participants yet: Python adopts it first, or a
// program uses overwriting/published.h.
#pragma once

#include "cpp/handle.hpp"
#include "overwriting/queue.hpp"
#include "segment/hand_back.hpp"

namespace queueduct::facade {

class Overwriting final : public Handle {
 public:
  explicit Overwriting(Segment segment)
      : Handle(std::move(segment), Kind::overwriting),
        item_bytes_(segment_.varies() ? segment_.header.slot_bytes : segment_.item.bytes()),
        queue_(new OverwritingShared(memory_.base(), offsets(), segment_.header.capacity,
                                     segment_.header.slot_bytes / 8, segment_.header.participants, segment_.file.take(),
                                     own_identity())) {
    check_attached(queue_->participant_table());
    std::uint64_t id;
    std::memcpy(&id, segment_.header.segment_id, sizeof id);
    queue_->rest().identify(id);
  }

  // Overwrites the oldest if the queue is full. Returns how many are in: fewer only if the time is up while another
  // participant was at work there.
  std::uint64_t put_records(const void* records, std::uint64_t count, const Deadline& deadline) {
    const auto* from = static_cast<const char*>(records);
    return put(count, deadline, [&](std::uint32_t line, std::uint64_t done, std::int64_t limit_ns, std::uint64_t& put) {
      return queue_->try_put_records(line, from + done * item_bytes_, item_bytes_, count - done, true, limit_ns, put);
    });
  }
  std::uint64_t put_items(const Buffer* items, std::uint64_t count, const Deadline& deadline) {
    for (std::uint64_t i = 0; i < count; ++i)
      if (items[i].bytes != item_bytes_)
        throw std::invalid_argument("a message of " + label() + " must have exactly " + std::to_string(item_bytes_) +
                                    " bytes: got " + std::to_string(items[i].bytes) +
                                    "; fill it up, or create the queue with another message_bytes");
    return put(count, deadline, [&](std::uint32_t line, std::uint64_t done, std::int64_t limit_ns, std::uint64_t& put) {
      return queue_->try_put_many(line, items + done, count - done, true, limit_ns, put);
    });
  }

  // Waits for the first one only. Each is copied to its place while it is taken, so room_for() comes before.
  template <class RoomFor>
  std::uint64_t get(std::uint64_t limit, const Deadline& deadline, RoomFor room_for) {
    if (deadline.never_waits() && queue_->may_be_empty()) {
      check_held(queue_->participant_table());
      return 0;
    }
    const std::uint64_t length = queue_->ring().state().length;
    const std::uint64_t most = std::min({limit, std::max<std::uint64_t>(length, 1), capacity(), batch_limit});
    Target one{nullptr, item_bytes_ * most};  // of records
    std::vector<Target> many;
    if (segment_.varies()) many.assign(most, {nullptr, item_bytes_});
    Target* const targets = many.empty() ? &one : many.data();
    room_for(targets, std::max<std::uint64_t>(many.size(), 1));
    const auto place = [&](std::uint64_t i) {
      return many.empty() ? static_cast<char*>(one.to) + i * item_bytes_ : static_cast<char*>(many[i].to);
    };
    if (!get_one(place(0), deadline)) return 0;
    std::uint64_t got = 1;
    const std::uint32_t mine = line();
    while (got < most && queue_->try_get(mine, place(got), item_bytes_, 0) == Claim::done) ++got;
    check_sound();
    return got;
  }

  // Copies the newest message, and leaves it in the queue. Returns false if there is none when the time is up.
  bool peek(void* to, const Deadline& deadline) {
    std::optional<Deadline> until;
    for (;;) {
      std::uint64_t position = 0;
      const Claim claim = queue_->try_read_newest(line(), 0, to, item_bytes_, 0, position);
      check_sound();
      if (claim == Claim::done) return true;
      if (claim == Claim::corrupt) raise_corrupt();
      if (claim == Claim::closed) raise_shut_down();
      if (deadline.never_waits() && claim == Claim::empty) return false;
      if (!until) until = deadline.never_waits() ? Deadline(briefly) : deadline;
      const std::int64_t left = until->left_ns();
      if (left <= 0) return false;
      if (claim == Claim::empty)
        queue_->wait_for_newer(0, left);
      else
        pause_between_attempts();
      check_held(queue_->participant_table());
    }
  }

  [[nodiscard]] std::uint64_t item_bytes() const noexcept { return item_bytes_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return segment_.header.capacity; }
  [[nodiscard]] std::uint64_t size() {
    const std::uint64_t left = queue_->ring().is_discarded() ? 0 : queue_->leased_messages().count_orphans();
    const std::uint64_t items = queue_->ring().length() + left;
    check_sound();
    return items;
  }
  [[nodiscard]] bool is_shut_down() const noexcept {
    return queue_->control().closed.load(std::memory_order_relaxed) != 0;
  }
  void shut_down(bool immediate) {
    queue_->shut_down(immediate);
    check_sound();
  }

 private:
  static constexpr Timeout briefly = std::chrono::milliseconds(100);  // how long a call waits that never waits
  static constexpr std::uint64_t batch_limit = 4096;

  [[nodiscard]] OverwritingOffsets offsets() const noexcept {
    const SegmentHeader& header = segment_.header;
    return overwriting_offsets(header.capacity, header.slot_bytes / 8, header.participants, header.item_text_bytes);
  }

  [[nodiscard]] std::uint32_t line() {
    std::uint32_t line = 0;
    if (queue_->find_line(line)) [[likely]]
      return line;
    check_joined(queue_->join());
    if (!queue_->find_line(line)) raise_lost();
    return line;
  }

  template <class Attempt>
  std::uint64_t put(std::uint64_t count, const Deadline& deadline, Attempt attempt) {
    std::int64_t limit_ns = 0;
    std::optional<Deadline> until;
    bool is_first = true;
    for (std::uint64_t total = 0; total < count;) {
      std::uint64_t put = 0;
      const Claim claim = attempt(line(), total, limit_ns, put);
      total += put;
      check_sound();
      if (total == count || (total > 0 && claim == Claim::closed)) return total;
      if (put != 0) until.reset();  // each message may wait briefly
      limit_ns = retry_ns(claim, false, deadline, until, is_first);
      if (limit_ns < 0) return total;
      is_first = false;
    }
    return count;
  }

  bool get_one(void* to, const Deadline& deadline) {
    std::int64_t limit_ns = 0;
    std::optional<Deadline> until;
    bool is_first = true;
    for (;;) {
      const Claim claim = queue_->try_get(line(), to, item_bytes_, limit_ns);
      check_sound();
      if (claim == Claim::done) {
        if (!is_first && queue_->ring().may_be_gettable()) queue_->items().notify();
        return true;
      }
      limit_ns = retry_ns(claim, true, deadline, until, is_first);
      if (limit_ns < 0) return false;
      is_first = false;
    }
  }

  // Waits after a failed attempt. Returns how long the next one may wait for the header, or -1 if the time is up. A
  // call that never waits still waits briefly for the header, or for a copy.
  std::int64_t retry_ns(Claim claim, bool for_items, const Deadline& deadline, std::optional<Deadline>& until,
                        bool is_first) {
    if (claim == Claim::closed && !(for_items && queue_->may_come_again())) raise_shut_down();
    if (claim == Claim::corrupt) raise_corrupt();
    if (deadline.never_waits() && (claim == Claim::full || (for_items && claim != Claim::locked))) return -1;
    if (!until) until = deadline.never_waits() ? Deadline(briefly) : deadline;
    const std::int64_t left = until->left_ns();
    if (left <= 0) return -1;
    if (claim == Claim::locked) {  // the next attempt waits
      check_held(queue_->participant_table());
      return std::min(left, briefly.count());
    }
    const std::int64_t began = monotonic_ns();
    if (for_items)
      queue_->wait_for_items(left);
    else
      queue_->wait_for_copy(left);
    count_wait(queue_->counters(line()), for_items, is_first, began);
    check_held(queue_->participant_table());
    return 0;
  }

  std::uint64_t item_bytes_;
  std::unique_ptr<OverwritingShared> queue_;
};

}  // namespace queueduct::facade
