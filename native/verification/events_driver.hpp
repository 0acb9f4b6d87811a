// An event queue in a stress run: the calls that its bindings make, with each operation's position.
#pragma once

#include "events/queue.hpp"
#include "verification/worker.hpp"

namespace queueduct {

class StressedEvents {
 public:
  static constexpr bool has_batches = true;

  // `reader` and `cursor`: a consumer's.
  StressedEvents(EventsQueue& queue, std::uint32_t line, ReaderLine* reader, Cursor* cursor) noexcept
      : queue_(queue), line_(line), reader_(reader), cursor_(cursor) {}

  // Positions are given under the lock.
  [[nodiscard]] Answer try_put(const std::byte* items, std::uint64_t count, Seen& seen) noexcept {
    Entered entered = queue_.try_enter(line_);
    if (entered == Entered::no) entered = queue_.enter(line_, park_limit_ns);
    if (entered == Entered::no) return Answer::busy;
    if (entered == Entered::corrupt) return Answer::corrupt;
    const std::uint64_t position = queue_.map().end(std::memory_order_relaxed).position();
    std::uint64_t put = 0;
    const Appended appended = queue_.append_records(items, count, put);
    queue_.leave();
    if (appended == Appended::done) {
      seen = {position, put};
      queue_.items().notify();
      has_announced_ = false;
      return Answer::done;
    }
    if (appended == Appended::full) return Answer::refused;  // the limit is in bytes: no position proves it
    if (appended == Appended::no_memory) return Answer::no_memory;
    return appended == Appended::closed ? Answer::closed : Answer::corrupt;
  }

  [[nodiscard]] Answer try_get(std::byte* to, std::uint64_t limit, Seen& seen, auto& notes) noexcept {
    const EventsMap& map = queue_.map();
    std::uint64_t end = 0;
    ReadResult found = begin_session(map, *reader_, *cursor_, end);
    if (found == ReadResult::nothing) {
      seen = {cursor_->position};  // which was the end
      return move_to(map, *reader_, cursor_->position) ? Answer::refused : Answer::corrupt;
    }
    Run run;
    if (found == ReadResult::items) found = next_run(map, *reader_, true, *cursor_, end, limit, run);
    if (found != ReadResult::items) return found == ReadResult::ended ? Answer::closed : Answer::corrupt;
    std::memcpy(to, run.chunk.data + run.at * map.item_bytes, run.items * map.item_bytes);
    if (!still_holds(map, *reader_)) return Answer::corrupt;  // writers wait in a stress run: no reader is dropped
    seen = {cursor_->position, run.items};
    cursor_->position += run.items;
    notes.copied(to, seen);
    return Answer::done;
  }

  // Announces first; the worker tries again; the next call sleeps.
  void wait_for_room(std::int64_t limit_ns) noexcept {
    if (!has_announced_) {
      announced_ = queue_.room().announce();
      has_announced_ = true;
      return;
    }
    queue_.wait_for_room(announced_, limit_ns);
    has_announced_ = false;
  }
  void wait_for_items(std::int64_t limit_ns) noexcept { queue_.wait_for_items(cursor_->position, limit_ns); }

 private:
  EventsQueue& queue_;
  std::uint32_t line_;
  ReaderLine* reader_;
  Cursor* cursor_;
  std::uint32_t announced_ = 0;
  bool has_announced_ = false;
};

}  // namespace queueduct
