// Events as the native tests put and read them: bytes that say which number they are, and whether they are whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/events_segment.hpp"

namespace queueduct::testing {

using Bytes = std::vector<unsigned char>;
using Numbers = std::vector<std::uint64_t>;

inline constexpr std::uint64_t torn = ~std::uint64_t{0};

[[nodiscard]] inline Bytes make_event(std::uint64_t number, std::uint64_t length) {
  Bytes bytes(length);
  std::memcpy(bytes.data(), &number, sizeof number);
  for (std::uint64_t i = sizeof number; i < length; ++i) bytes[i] = static_cast<unsigned char>(number * 31 + i * 7);
  return bytes;
}

[[nodiscard]] inline std::uint64_t number_of(const std::byte* data, std::uint64_t length) {
  std::uint64_t number = 0;
  if (length < sizeof number) return torn;
  std::memcpy(&number, data, sizeof number);
  return std::memcmp(make_event(number, length).data(), data, length) == 0 ? number : torn;
}

[[nodiscard]] inline Numbers counted(std::uint64_t first, std::uint64_t count) {
  Numbers numbers;
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(first + i);
  return numbers;
}

// By one append, under the lock. `length`: of each; 0 for records, which have theirs.
[[nodiscard]] inline Appended put_events(EventsAttachment& attached, std::uint64_t first, std::uint64_t count,
                                         std::uint64_t& put, std::uint64_t length = 0) {
  const bool varies = attached.map().varies;
  std::vector<Bytes> items;
  std::vector<Buffer> views;
  Bytes flat;
  for (std::uint64_t i = 0; i < count; ++i) {
    items.push_back(make_event(first + i, varies && length != 0 ? length : attached.map().item_bytes));
    if (!varies) flat.insert(flat.end(), items.back().begin(), items.back().end());
  }
  for (const Bytes& item : items) views.push_back({item.data(), item.size()});
  const Inside inside(attached);
  return varies ? attached.queue().append_bytes(views.data(), count, put)
                : attached.queue().append_records(flat.data(), count, put);
}

// One at a time; how many went in.
inline std::uint64_t put_each(EventsAttachment& attached, std::uint64_t first, std::uint64_t count,
                              std::uint64_t length = 0) {
  std::uint64_t put = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    if (put_events(attached, first + i, 1, put, length) != Appended::done) return i;
  return count;
}

inline void read_run(const EventsMap& map, const Run& run, Numbers& numbers) {
  for (std::uint64_t i = run.at; i < run.at + run.items; ++i) {
    if (!map.varies) {
      numbers.push_back(number_of(run.chunk.data + i * map.item_bytes, map.item_bytes));
      continue;
    }
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    const bool is_sound = item_bounds(map, run.chunk, i, begin, end);
    numbers.push_back(is_sound ? number_of(items_of(map, run.chunk) + begin, end - begin) : torn);
  }
}

// A reader of one attachment: ephemeral without a name, durable with one.
class EventsReader {
 public:
  explicit EventsReader(EventsAttachment& attached, std::optional<std::uint64_t> start = {}, std::string name = "")
      : attached_(attached), follows_(name.empty()) {
    const Inside inside(attached);
    const std::uint64_t from = start.value_or(earliest_position(attached.map()));
    outcome_ = attached.queue().subscribe(name.data(), static_cast<std::uint32_t>(name.size()), !follows_, from, line_,
                                          cursor_);
  }

  [[nodiscard]] Subscribed outcome() const noexcept { return outcome_; }
  [[nodiscard]] Cursor& cursor() noexcept { return cursor_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return line_; }
  [[nodiscard]] ReaderLine& line() noexcept { return attached_.map().readers[line_]; }
  [[nodiscard]] std::uint64_t place() noexcept { return line().place.load(); }

  // One session, at most `limit` items of it; why it ended.
  ReadResult read(Numbers& numbers, std::uint64_t limit = ~std::uint64_t{0}) {
    const EventsMap& map = attached_.map();
    std::uint64_t end = 0;
    ReadResult found = begin_session(map, line(), cursor_, end);
    while (found == ReadResult::items && cursor_.position < end && limit > 0) {
      Run run;
      Numbers copied;
      found = next_run(map, line(), follows_, cursor_, end, limit, run);
      if (found != ReadResult::items) return found;
      read_run(map, run, copied);
      if (!still_holds(map, line())) return ReadResult::lost;
      numbers.insert(numbers.end(), copied.begin(), copied.end());
      cursor_.position += run.items;
      limit -= run.items;
    }
    return found;
  }

  [[nodiscard]] Numbers read(std::uint64_t limit = ~std::uint64_t{0}) {
    Numbers numbers;
    (void)read(numbers, limit);
    return numbers;
  }

  [[nodiscard]] bool commit() { return move_to(attached_.map(), line(), cursor_.position); }

  void unsubscribe() {
    const Inside inside(attached_);
    attached_.queue().unsubscribe(line_);
  }

 private:
  EventsAttachment& attached_;
  bool follows_;
  Subscribed outcome_ = Subscribed::yes;
  std::uint32_t line_ = 0;
  Cursor cursor_;
};

[[nodiscard]] inline Numbers chunk_sizes(const EventsSegment& segment) {
  Numbers sizes;
  for (std::uint64_t n = segment.control().head_chunk; n < segment.control().chunks_made; ++n)
    sizes.push_back(segment.map().chunk(n).items);
  return sizes;
}

}  // namespace queueduct::testing
