// What a C++ program uses: BoundedQueue, EventQueue and OverwritingQueue, of records or of bytes, and Writer, which
// puts into a queue of any of these kinds.
//
// Roles      any thread of the process may use a handle at any time, as a participant of its own; also a forked child.
//            A handle is closed by its destructor, when no thread is in a call; the queue stays.
#pragma once

#include <variant>

#include "cpp/bounded.hpp"
#include "cpp/events.hpp"
#include "cpp/overwriting.hpp"
#include "cpp/typed.hpp"

namespace queueduct {

namespace facade {

// What a queue of every kind has.
template <class Native>
class Opened {
 public:
  [[nodiscard]] const std::string& name() const noexcept { return native_->name(); }
  // How many items are in the queue at this moment.
  [[nodiscard]] std::uint64_t size() const { return native_->size(); }
  [[nodiscard]] bool is_shut_down() const noexcept { return native_->is_shut_down(); }
  // No item goes in from now on. What is in can be got; with `immediate` it is dropped.
  void shut_down(bool immediate = false) { native_->shut_down(immediate); }

  [[nodiscard]] Native& native() const noexcept { return *native_; }

 protected:
  explicit Opened(Segment segment) : native_(std::make_unique<Native>(std::move(segment))) {}

 private:
  std::unique_ptr<Native> native_;
};

}  // namespace facade

// Each item goes to one consumer, and a full queue makes producers wait. `Item` is a record, or Bytes.
template <class Item = Bytes>
class BoundedQueue : public facade::Opened<facade::Bounded>,
                     public facade::Puts<BoundedQueue<Item>, Item>,
                     public facade::Gets<BoundedQueue<Item>, Item> {
 public:
  explicit BoundedQueue(std::string_view name, const Options& options = {})
      : Opened(facade::open_for<Item>(name, options)) {}
  // In slots.
  [[nodiscard]] std::uint64_t capacity() const noexcept { return this->native().capacity(); }
};

// A log: every reader sees every item. A C++ program writes it; Python, Arrow and Spark read it.
template <class Item = Bytes>
class EventQueue : public facade::Opened<facade::Events>, public facade::Puts<EventQueue<Item>, Item> {
 public:
  explicit EventQueue(std::string_view name, const Options& options = {})
      : Opened(facade::open_for<Item>(name, options)) {}
  // The position of the next item.
  [[nodiscard]] std::uint64_t end() const { return this->native().end(); }
  // Writes everything to the disk now. In memory it does nothing.
  void sync() { this->native().sync(); }
};

// The newest item replaces the oldest. An item of Bytes has exactly message_bytes().
template <class Item = Bytes>
class OverwritingQueue : public facade::Opened<facade::Overwriting>,
                         public facade::Puts<OverwritingQueue<Item>, Item>,
                         public facade::Gets<OverwritingQueue<Item>, Item> {
  using Value = std::conditional_t<std::is_same_v<Item, Bytes>, std::string, Item>;

 public:
  explicit OverwritingQueue(std::string_view name, const Options& options = {})
      : Opened(facade::open_for<Item>(name, options)) {}
  [[nodiscard]] std::uint64_t capacity() const noexcept { return this->native().capacity(); }
  [[nodiscard]] std::uint64_t message_bytes() const noexcept { return this->native().item_bytes(); }

  // Returns the newest item, which stays in the queue, or nothing if there is none when the time is up.
  [[nodiscard]] std::optional<Value> peek(Timeout timeout = at_once) {
    Value value{};
    void* to = &value;
    if constexpr (std::is_same_v<Item, Bytes>) {
      value.resize(message_bytes());
      to = value.data();
    }
    if (!this->native().peek(to, facade::Deadline(timeout))) return std::nullopt;
    return value;
  }
};

// Puts records, or bytes, into a queue of whichever of these kinds has that name.
template <class Item = Bytes>
class Writer : public facade::Puts<Writer<Item>, Item> {
 public:
  explicit Writer(std::string_view name, const Options& options = {})
      : queue_(opened(facade::open_for<Item>(name, options))) {}

  [[nodiscard]] const std::string& name() const noexcept {
    return std::visit([](auto& queue) -> const std::string& { return queue->name(); }, queue_);
  }

 private:
  friend facade::Puts<Writer<Item>, Item>;
  using Native = std::variant<std::unique_ptr<facade::Bounded>, std::unique_ptr<facade::Events>,
                              std::unique_ptr<facade::Overwriting>>;

  [[nodiscard]] static Native opened(facade::Segment segment) {
    if (segment.kind() == Kind::bounded) return std::make_unique<facade::Bounded>(std::move(segment));
    if (segment.kind() == Kind::events) return std::make_unique<facade::Events>(std::move(segment));
    return std::make_unique<facade::Overwriting>(std::move(segment));
  }

  // What Puts needs.
  [[nodiscard]] Writer& native() noexcept { return *this; }
  std::uint64_t put_records(const void* records, std::uint64_t count, const facade::Deadline& deadline) {
    return std::visit([&](auto& queue) { return queue->put_records(records, count, deadline); }, queue_);
  }
  std::uint64_t put_items(const Buffer* items, std::uint64_t count, const facade::Deadline& deadline) {
    return std::visit([&](auto& queue) { return queue->put_items(items, count, deadline); }, queue_);
  }

  Native queue_;
};

}  // namespace queueduct
