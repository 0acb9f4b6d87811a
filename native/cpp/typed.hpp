// The calls of a queue for items of one type: a record, or strings of bytes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/deadline.hpp"
#include "cpp/segment.hpp"

namespace queueduct {

// In place of a record: items are strings of bytes.
struct Bytes {};

namespace facade {

template <class Item>
[[nodiscard]] Segment open_for(std::string_view name, const Options& options) {
  Segment segment = open_segment(name, options);
  if constexpr (std::is_same_v<Item, Bytes>)
    check_bytes(segment);
  else
    check_record(segment, dtype_of<Item>());
  return segment;
}

[[nodiscard]] inline Buffer buffer_of(std::string_view item) noexcept { return {item.data(), item.size()}; }
[[nodiscard]] inline Buffer buffer_of(std::span<const std::byte> item) noexcept { return {item.data(), item.size()}; }

// `Self` has native(), which has put_records() or put_items().
template <class Self, class Item>
class Puts {
 public:
  // Waits while the queue is full. Returns false if the time is up.
  bool put(const Item& item, Timeout timeout = forever) { return self().put_records(&item, 1, Deadline(timeout)) == 1; }
  // Puts all, in order. Returns how many are in when the time is up.
  std::size_t put_many(std::span<const Item> items, Timeout timeout = forever) {
    return self().put_records(items.data(), items.size(), Deadline(timeout));
  }

 private:
  [[nodiscard]] auto& self() noexcept { return static_cast<Self&>(*this).native(); }
};

template <class Self>
class Puts<Self, Bytes> {
 public:
  bool put(std::string_view item, Timeout timeout = forever) { return put_one(buffer_of(item), timeout); }
  bool put(std::span<const std::byte> item, Timeout timeout = forever) { return put_one(buffer_of(item), timeout); }

  // Items are std::string, std::string_view or std::span<const std::byte>.
  template <class Items>
  std::size_t put_many(const Items& items, Timeout timeout = forever) {
    std::vector<Buffer> buffers;
    for (const auto& item : items) buffers.push_back(buffer_of(item));
    return static_cast<Self&>(*this).native().put_items(buffers.data(), buffers.size(), Deadline(timeout));
  }

 private:
  bool put_one(Buffer item, Timeout timeout) {
    return static_cast<Self&>(*this).native().put_items(&item, 1, Deadline(timeout)) == 1;
  }
};

template <class Self, class Item>
class Gets {
  static_assert(std::is_default_constructible_v<Item>, "get makes an item, and then fills it");

 public:
  // Waits for an item. Returns nothing if the time is up; throws ShutDown if none will come any more.
  [[nodiscard]] std::optional<Item> get(Timeout timeout = forever) {
    Item item;
    const auto here = [&](Target* target, std::uint64_t) { target->to = &item; };
    if (static_cast<Self&>(*this).native().get(1, Deadline(timeout), here) == 0) return std::nullopt;
    return item;
  }
  // Waits for the first one only. Returns what is there, at most `limit`.
  [[nodiscard]] std::vector<Item> get_many(std::size_t limit, Timeout timeout = forever) {
    std::vector<Item> items;
    if (limit == 0) return items;
    const auto here = [&](Target* target, std::uint64_t) {
      items.resize(target->bytes / sizeof(Item));
      target->to = items.data();
    };
    items.resize(static_cast<Self&>(*this).native().get(limit, Deadline(timeout), here));
    return items;
  }
};

template <class Self>
class Gets<Self, Bytes> {
 public:
  [[nodiscard]] std::optional<std::string> get(Timeout timeout = forever) {
    std::vector<std::string> found = get_many(1, timeout);
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }
  [[nodiscard]] std::vector<std::string> get_many(std::size_t limit, Timeout timeout = forever) {
    std::vector<std::string> items;
    if (limit == 0) return items;
    const auto here = [&](Target* targets, std::uint64_t count) {
      items.resize(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        items[i].resize(targets[i].bytes);
        targets[i].to = items[i].data();
      }
    };
    items.resize(static_cast<Self&>(*this).native().get(limit, Deadline(timeout), here));
    return items;
  }
};

}  // namespace facade
}  // namespace queueduct
