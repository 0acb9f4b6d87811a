// The writing side of an event queue in a C++ program. It waits and throws; the log is in events/.
#pragma once

#include <atomic>

#include "cpp/handle.hpp"
#include "cpp/sync_thread.hpp"
#include "events/queue.hpp"

namespace queueduct::facade {

class Events final : public Handle {
 public:
  explicit Events(Segment segment)
      : Handle(std::move(segment), Kind::events),
        is_on_disk_(facade::is_on_disk(segment_.file.number())),
        queue_(new EventsQueue(memory_.base(), offsets(), shape(), segment_.header.participants,
                               segment_.header.producers, segment_.file.take(), own_identity(),
                               is_on_disk_ && sync_mode() != Sync::never, boot_witnesses(is_on_disk_))),
        syncing_(std::chrono::nanoseconds(segment_.events.sync_interval_ns), [this] { sync_if_needed(); }) {
    check_attached(queue_->participant_table());
    settle_boot();
    queue_->participant_table().leave_line();  // a thread that only opens a queue is no participant yet
    if (is_on_disk_ && sync_mode() == Sync::interval) syncing_.start();
  }
  // The queue stays. On a disk it is synced first, as well as the disk allows; call sync() to learn of an error.
  ~Events() {
    syncing_.stop();
    try {
      sync_if_needed();
    } catch (const std::exception&) {
      // a destructor cannot tell; what is not on the disk is synced by the next process that syncs the log
    }
  }

  // Returns how many are in when the time is up, or the queue is shut down. Throws only if none is.
  std::uint64_t put_records(const void* records, std::uint64_t count, const Deadline& deadline) {
    const std::uint64_t bytes = segment_.header.slot_bytes;
    const auto* from = static_cast<const std::byte*>(records);
    return append(
        count, deadline,
        [&](std::uint64_t done, std::uint64_t& put) {
          return queue_->append_records(from + done * bytes, count - done, put);
        },
        [&](std::uint64_t, std::uint64_t put) { return put * bytes; });
  }
  std::uint64_t put_items(const Buffer* items, std::uint64_t count, const Deadline& deadline) {
    for (std::uint64_t i = 0; i < count; ++i) check_length(items[i].bytes);
    return append(
        count, deadline,
        [&](std::uint64_t done, std::uint64_t& put) { return queue_->append_bytes(items + done, count - done, put); },
        [&](std::uint64_t done, std::uint64_t put) {
          std::uint64_t bytes = 0;
          for (std::uint64_t i = done; i < done + put; ++i) bytes += items[i].bytes;
          return bytes;
        });
  }

  // Writes everything to the disk now. In memory it does nothing.
  void sync() {
    if (is_on_disk_) write_to_disk();
    check_sound();
  }

  [[nodiscard]] std::uint64_t end() const {
    const std::uint64_t position = queue_->map().end(std::memory_order_acquire).position();
    check_sound();
    return position;
  }
  [[nodiscard]] std::uint64_t size() const {
    const std::uint64_t earliest = earliest_position(queue_->map());  // first: the end is never before it
    return end() - earliest;
  }
  [[nodiscard]] bool is_shut_down() const noexcept { return queue_->map().end(std::memory_order_relaxed).is_closed(); }
  void shut_down(bool immediate) {
    enter(Deadline(forever));
    queue_->log().shut_down();
    if (immediate) queue_->keep_last(0);
    queue_->leave();
    queue_->items().wake_all();
    queue_->room().wake_all();
    check_sound();
  }

 private:
  static constexpr std::int64_t briefly_ns = 100'000'000;  // how long even a call that never waits waits for the lock
  static constexpr Timeout settle_poll = std::chrono::milliseconds(1);

  [[nodiscard]] Sync sync_mode() const noexcept { return static_cast<Sync>(segment_.events.sync); }

  [[nodiscard]] EventsOffsets offsets() const noexcept {
    const SegmentHeader& header = segment_.header;
    const EventsShape& log = segment_.events;
    return events_offsets(header.capacity, log.block_bytes, log.chunk_lines, header.participants, log.readers,
                          header.producers, header.item_text_bytes);
  }
  [[nodiscard]] EventsMap shape() const noexcept {
    const EventsShape& log = segment_.events;
    EventsMap shape;
    shape.block_count = segment_.header.capacity;
    shape.block_bytes = log.block_bytes;
    shape.chunk_lines = log.chunk_lines;
    shape.max_bytes = log.max_bytes;
    shape.first_items = log.first_items;
    shape.item_bytes = segment_.header.slot_bytes;
    shape.reader_lines = log.readers;
    shape.varies = segment_.varies();
    shape.may_drop = static_cast<OnFull>(log.on_full) == OnFull::drop_slowest;
    return shape;
  }

  [[nodiscard]] std::uint32_t line() {
    std::uint32_t line = 0;
    if (queue_->find_line(line)) [[likely]]
      return line;
    check_joined(queue_->join());
    if (!queue_->find_line(line)) raise_lost();
    if (is_on_disk_ && sync_mode() == Sync::interval) syncing_.start();  // in a forked child it has to start again
    return line;
  }

  // Returns true if this thread has the lock, false if the time is up. Nothing may throw before leave().
  bool enter(const Deadline& deadline) {
    check_held(queue_->participant_table());
    std::uint32_t mine = line();
    Entered entered = queue_->try_enter(mine);
    while (entered == Entered::no) {
      const std::int64_t left = deadline.never_waits() ? briefly_ns : deadline.left_ns();
      if (left <= 0) return false;
      entered = queue_->enter(mine, std::min(left, briefly_ns));
      if (entered != Entered::no) break;
      check_held(queue_->participant_table());
      if (deadline.never_waits()) return false;
      mine = line();
    }
    if (entered == Entered::corrupt) raise_corrupt();
    return true;
  }

  void check_length(std::uint64_t bytes) const {
    const EventsMap& map = queue_->map();
    const std::uint64_t needed = queue_->log().chunk_bytes(map.first_items, bytes);
    const std::uint64_t limit = std::min(map.max_bytes, block_bytes_limit);
    if (needed > limit)
      throw std::invalid_argument("an item of " + std::to_string(bytes) + " bytes can never fit into " + label() +
                                  ": a chunk for it has " + std::to_string(needed) + " bytes, the limit is " +
                                  std::to_string(limit) + "; create the queue with a larger max_bytes");
  }

  template <class Attempt, class BytesOf>
  std::uint64_t append(std::uint64_t count, const Deadline& deadline, Attempt attempt, BytesOf bytes_of) {
    std::uint32_t ticket = 0;
    bool is_announced = false;
    bool is_first_wait = true;
    for (std::uint64_t total = 0; total < count;) {
      if (!enter(deadline)) return total;
      std::uint64_t put = 0;
      const Appended outcome = attempt(total, put);
      const int error = queue_->error();
      if (outcome == Appended::done) {
        queue_->leave_after_put(put, bytes_of(total, put));
        total += put;
        is_announced = false;
        after_put();
        if (total == count) return total;
        continue;
      }
      queue_->leave();
      if (total > 0 && (outcome == Appended::closed || outcome == Appended::no_memory)) return total;
      check_appended(outcome, error);
      if (deadline.never_waits() || static_cast<OnFull>(segment_.events.on_full) == OnFull::raise) return total;
      if (!is_announced) {
        ticket = queue_->room().announce();  // try again before the sleep
        is_announced = true;
        continue;
      }
      const std::int64_t left = deadline.left_ns();
      if (left <= 0) return total;
      const std::int64_t began = monotonic_ns();
      queue_->wait_for_room(ticket, left);
      count_wait(queue_->participant_table().lines()[line()].counters, false, is_first_wait, began);
      is_announced = is_first_wait = false;
      check_held(queue_->participant_table());
    }
    return count;
  }

  void after_put() {
    check_sound();
    queue_->items().notify();
    if (is_on_disk_ && sync_mode() == Sync::always) write_to_disk();
  }

  void check_appended(Appended outcome, int error) {
    if (outcome == Appended::closed) raise_shut_down();
    if (outcome == Appended::corrupt || outcome == Appended::too_long) raise_corrupt();
    check_sound();
    if (outcome == Appended::no_disk) {
      queue_->items().notify();
      raise_not_written(error);
    }
    if (outcome == Appended::no_memory)
      raise_system(error, "no memory for another chunk of " + label() +
                              "; nothing of this item was put. Free some, or let readers go on");
  }

  void write_to_disk() {
    const std::uint64_t failures = queue_->failures();
    if (failures != 0) {  // the kernel may take pages for clean that never reached the disk
      (void)enter(Deadline(forever));
      write_again(queue_->map());
      queue_->leave();
    }
    if (const int error = queue_->sync(failures); error != 0) {
      check_held(queue_->participant_table());
      raise_not_written(error);
    }
  }
  void sync_if_needed() {
    const EventsControl& control = queue_->control();
    if (is_on_disk_ && end() > control.confirmed.load(std::memory_order_relaxed)) write_to_disk();
  }
  [[noreturn]] void raise_not_written(int error) const {
    raise_system(error, "the queue " + label() + " could not be written to its disk; everything up to position " +
                            std::to_string(queue_->control().confirmed.load(std::memory_order_relaxed)) +
                            " is there, and the rest is written when the disk takes it again");
  }

  // After a crash of the machine it cuts the log to the items that were synced.
  void settle_boot() {
    Settling settling = queue_->begin_settling();
    while (settling == Settling::busy) {
      std::this_thread::sleep_for(settle_poll);
      settling = queue_->begin_settling();
    }
    if (settling == Settling::done) return;
    bool is_settled = false;
    const auto end = [&] { queue_->end_settling(is_settled); };
    try {
      if (queue_->must_settle()) settle_under_lock();
      is_settled = true;
    } catch (...) {
      end();
      throw;
    }
    end();
  }
  void settle_under_lock() {
    (void)enter(Deadline(forever));
    const bool is_settled = queue_->settle_boot();
    const int error = queue_->boot_error();
    queue_->leave();
    if (error != 0)
      raise_system(error, "the queue " + label() + " was cut back after a crash of the machine, and its disk did not " +
                              "take that; it is cut when it can be written");
    if (!is_settled) raise_corrupt();
  }

  bool is_on_disk_;
  std::unique_ptr<EventsQueue> queue_;
  SyncThread syncing_;  // last: its thread uses all the others
};

}  // namespace queueduct::facade
