// A bounded segment in a file, as these tests make it: no header, just what the queue itself uses.
#pragma once

#include "bounded/queue.hpp"
#include "support/mapping.hpp"
#include "support/ring_steps.hpp"

namespace queueduct::testing {

struct Shape {
  std::uint64_t capacity = 8;
  std::uint64_t slot_bytes = 16;
  std::uint32_t participants = 8;
  bool varying = true;  // bytes; else records
  std::uint32_t producers = 0;

  [[nodiscard]] BoundedOffsets offsets() const noexcept {
    return bounded_offsets(capacity, slot_bytes, participants, producers, 0, varying);
  }
};

// The file, and a view of it that belongs to no participant: for raw looks, and to start afresh.
class Segment {
 public:
  explicit Segment(const Shape& shape) : shape_(shape), at_(shape.offsets()), fd_(open_nameless_file(at_.total)) {
    base_ = map_file(fd_, at_.total);
    reset(0);
  }
  ~Segment() {
    munmap(base_, at_.total);
    close(fd_);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // As created, except that both positions start at `start`: as if so many slots had come and gone.
  void reset(std::uint64_t start) noexcept {
    std::memset(base_, 0, at_.total);
    control().push_position.store(start, std::memory_order_relaxed);
    control().pop_position.store(start, std::memory_order_relaxed);
    for (std::uint64_t p = start; p != start + shape_.capacity; ++p)
      generations()[p % shape_.capacity].store(p, std::memory_order_release);
  }

  // The ring as nobody's: for preparing and looking, not for taking part.
  [[nodiscard]] Ring ring() const noexcept {
    Ring ring;
    ring.push_position = &control().push_position;
    ring.pop_position = &control().pop_position;
    ring.generations = generations();
    ring.lengths = lengths();
    ring.payload = base_ + at_.payload;
    ring.set_capacity(shape_.capacity);
    ring.slot_bytes = shape_.slot_bytes;
    return ring;
  }

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] const BoundedOffsets& offsets() const noexcept { return at_; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] BoundedControl& control() const noexcept {
    return *reinterpret_cast<BoundedControl*>(base_ + at_.control);
  }
  [[nodiscard]] std::atomic<std::uint64_t>* generations() const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + at_.generations);
  }
  [[nodiscard]] std::atomic<std::uint32_t>* lengths() const noexcept {
    return at_.lengths == 0 ? nullptr : reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + at_.lengths);
  }
  [[nodiscard]] ParticipantLine* lines() const noexcept {
    return reinterpret_cast<ParticipantLine*>(base_ + at_.participants);
  }
  [[nodiscard]] ProducersHead* producers() const noexcept {
    return at_.producers == 0 ? nullptr : reinterpret_cast<ProducersHead*>(base_ + at_.producers);
  }

 private:
  Shape shape_;
  BoundedOffsets at_;
  int fd_;
  std::byte* base_ = nullptr;
};

// A mapping of one's own and an open file description of one's own, as another process has them.
class Attachment {
 public:
  explicit Attachment(const Segment& segment)
      : mapping_(segment.fd(), segment.base(), segment.offsets().total),
        queue_(mapping_.base(), offsets_to_use(segment), segment.shape().capacity, segment.shape().slot_bytes,
               segment.shape().participants, segment.shape().producers, open_again(segment.fd()), Identity{}),
        producers_(segment.offsets().producers == 0
                       ? nullptr
                       : reinterpret_cast<ProducersHead*>(mapping_.base() + segment.offsets().producers),
                   segment.shape().producers, queue_.participant_table()) {}
  ~Attachment() { queue_.participant_table().leave(); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  [[nodiscard]] BoundedQueueHandle& queue() noexcept { return queue_; }
  [[nodiscard]] const Ring& ring() const noexcept { return queue_.ring(); }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }
  [[nodiscard]] int lock_fd() const noexcept { return queue_.participant_table().descriptor(); }

  // The calling thread's line, joined at the first call.
  [[nodiscard]] Participant ledger() {
    Participant ledger;
    if (queue_.find_participant(ledger)) return ledger;
    if (queue_.join() != ParticipantTable::Joined::yes || !queue_.find_participant(ledger))
      throw std::runtime_error("cannot join: the participant table is full");
    return ledger;
  }

  // To others this looks like a process that was killed: the kernel has dropped its locks.
  void die() noexcept { queue_.participant_table().leave(); }

 private:
  static BoundedOffsets offsets_to_use(const Segment& segment) noexcept {
    BoundedOffsets at = segment.offsets();
    if (hides_producers) at.producers = 0;
    return at;
  }

  OwnMapping mapping_;
  BoundedQueueHandle queue_;
  Producers producers_;  // as the queue has them, unless they are hidden from it
};

}  // namespace queueduct::testing
