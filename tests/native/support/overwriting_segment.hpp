// An overwriting segment in a file, as these tests make it: the published part and the queue's own, no segment header.
#pragma once

#include <cstring>
#include <vector>

#include "support/mapping.hpp"
#include "overwriting/lease.hpp"

namespace queueduct::testing {

struct OverwritingShape {
  std::uint64_t capacity = 5;
  std::uint64_t words = 3;
  std::uint32_t participants = 8;

  [[nodiscard]] OverwritingOffsets offsets() const noexcept {
    return overwriting_offsets(capacity, words, participants, 0);
  }
};

// The file, and a view of it that belongs to no participant: for raw looks, and to start afresh.
class OverwritingSegment {
 public:
  explicit OverwritingSegment(const OverwritingShape& shape)
      : shape_(shape), at_(shape.offsets()), fd_(open_nameless_file(at_.total)), base_(map_file(fd_, at_.total)) {
    reset({0, 0});
  }
  ~OverwritingSegment() {
    munmap(base_, at_.total);
    close(fd_);
  }
  OverwritingSegment(const OverwritingSegment&) = delete;
  OverwritingSegment& operator=(const OverwritingSegment&) = delete;

  void reset(RingState state) noexcept {
    std::memset(base_, 0, at_.total);
    std::memcpy(base_, published_magic, 8);
    write(8, static_cast<std::uint32_t>(shape_.capacity));
    write(12, static_cast<std::uint32_t>(shape_.words));
    write(24, state.packed());
    control().counters.puts.store(state.length);
  }

  // The bytes at an offset, as anybody finds them.
  template <class Number>
  [[nodiscard]] Number read(std::uint64_t offset) const noexcept {
    Number number;
    std::memcpy(&number, base_ + offset, sizeof number);
    return number;
  }
  template <class Number>
  void write(std::uint64_t offset, Number number) noexcept {
    std::memcpy(base_ + offset, &number, sizeof number);
  }
  [[nodiscard]] std::uint64_t message_at(std::uint64_t index) const noexcept {
    return 32 + index * (8 + 8 * shape_.words);
  }

  [[nodiscard]] const OverwritingShape& shape() const noexcept { return shape_; }
  [[nodiscard]] const OverwritingOffsets& offsets() const noexcept { return at_; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] OverwritingControl& control() const noexcept {
    return *reinterpret_cast<OverwritingControl*>(base_ + at_.control);
  }

 private:
  OverwritingShape shape_;
  OverwritingOffsets at_;
  int fd_;
  std::byte* base_;
};

// A mapping of one's own and an open file description of one's own, as another process has them.
class OverwritingAttachment {
 public:
  explicit OverwritingAttachment(const OverwritingSegment& segment)
      : mapping_(segment.fd(), segment.base(), segment.offsets().total),
        queue_(mapping_.base(), segment.offsets(), segment.shape().capacity, segment.shape().words,
               segment.shape().participants, open_again(segment.fd()), Identity{}) {}
  OverwritingAttachment(const OverwritingAttachment&) = delete;
  OverwritingAttachment& operator=(const OverwritingAttachment&) = delete;

  [[nodiscard]] OverwritingShared& queue() noexcept { return queue_; }
  [[nodiscard]] OverwritingRing& ring() noexcept { return queue_.ring(); }

  // The calling thread's line, joined at the first call.
  [[nodiscard]] std::uint32_t line() {
    std::uint32_t line;
    if (queue_.find_line(line)) return line;
    if (queue_.join() != ParticipantTable::Joined::yes || !queue_.find_line(line))
      throw std::runtime_error("cannot join: the participant table is full");
    return line;
  }

  // A message of one number again and again.
  [[nodiscard]] Claim put(std::uint64_t number, bool may_overwrite = true, std::int64_t limit_ns = 0) {
    const std::vector<std::uint64_t> message(ring().message_bytes() / 8, number);
    return queue_.try_put(line(), message.data(), ring().message_bytes(), may_overwrite, limit_ns);
  }
  [[nodiscard]] Claim get(std::uint64_t& number, std::int64_t limit_ns = 0) {
    std::vector<std::uint64_t> message(ring().message_bytes() / 8);
    const Claim claim = queue_.try_get(line(), message.data(), ring().message_bytes(), limit_ns);
    if (claim != Claim::done) return claim;
    number = message[0];
    for (const std::uint64_t word : message)
      if (word != number) number = torn;
    return claim;
  }
  static constexpr std::uint64_t torn = ~std::uint64_t{0};

  // To others this looks like a process that was killed: the kernel has dropped its locks.
  void die() noexcept { queue_.participant_table().leave(); }

 private:
  OwnMapping mapping_;
  OverwritingShared queue_;
};

}  // namespace queueduct::testing
