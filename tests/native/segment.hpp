// A bounded segment in a file, as these tests make it: no header, just what the queue itself uses.
//
// The file has no name once it is open: whoever attaches opens /proc/self/fd/<n>, which is a new open file
// description each time, and nothing is left behind however a test ends.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "bounded_queue.hpp"

namespace penstock::testing {

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

inline int open_nameless_file() {
  for (std::string path : {"/dev/shm/penstock-test-XXXXXX", "/tmp/penstock-test-XXXXXX"}) {
    const int fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd < 0) continue;
    unlink(path.c_str());
    return fd;
  }
  throw std::runtime_error("no directory for a test segment: neither /dev/shm nor /tmp can be written");
}

// The file, and a view of it that belongs to no participant: for raw looks, and to start afresh.
class Segment {
 public:
  explicit Segment(const Shape& shape) : shape_(shape), at_(shape.offsets()), fd_(open_nameless_file()) {
    if (ftruncate(fd_, static_cast<off_t>(at_.total)) != 0) throw std::runtime_error("ftruncate failed");
    base_ = map(fd_, at_.total);
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
      generations()[p & (shape_.capacity - 1)].store(p, std::memory_order_release);
  }

  [[nodiscard]] static std::byte* map(int fd, std::uint64_t bytes) {
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) throw std::runtime_error("mmap failed");
    return static_cast<std::byte*>(base);
  }

  // The ring as nobody's: for preparing and looking, not for taking part.
  [[nodiscard]] Ring ring() const noexcept {
    Ring ring;
    ring.push_position = &control().push_position;
    ring.pop_position = &control().pop_position;
    ring.generations = generations();
    ring.lengths = lengths();
    ring.payload = base_ + at_.payload;
    ring.capacity = shape_.capacity;
    ring.mask = shape_.capacity - 1;
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
//
// Under ThreadSanitizer the mapping is shared: it knows memory by address, so what one mapping synchronises it
// would not believe of the other, and a race between the two it would not see.
#ifdef __SANITIZE_THREAD__
inline constexpr bool has_own_mapping = false;
#else
inline constexpr bool has_own_mapping = true;
#endif

class Attachment {
 public:
  explicit Attachment(const Segment& segment)
      : bytes_(segment.offsets().total),
        base_(map_anew(segment)),
        lock_fd_(ofd::reopen(segment.fd())),
        queue_(base_, segment.offsets(), segment.shape().capacity, segment.shape().slot_bytes,
               segment.shape().participants, lock_fd_, Identity{}) {
    if (lock_fd_ < 0) throw std::runtime_error("cannot open the segment again");
  }
  ~Attachment() {
    queue_.roster().leave();
    if (has_own_mapping) munmap(base_, bytes_);
  }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  [[nodiscard]] SharedQueue& queue() noexcept { return queue_; }
  [[nodiscard]] const Ring& ring() const noexcept { return queue_.ring(); }
  [[nodiscard]] int lock_fd() const noexcept { return lock_fd_; }

  // The calling thread's line, joined at the first call.
  [[nodiscard]] SharedLedger ledger() {
    SharedLedger ledger;
    if (queue_.find_ledger(ledger)) return ledger;
    if (queue_.join() != Roster::Joined::yes || !queue_.find_ledger(ledger))
      throw std::runtime_error("cannot join: the participant table is full");
    return ledger;
  }

  // To others this looks like a process that was killed: the kernel has dropped its locks.
  void die() noexcept { queue_.roster().leave(); }

 private:
  static std::byte* map_anew(const Segment& segment) {
    if (!has_own_mapping) return segment.base();
    const int fd = ofd::reopen(segment.fd());
    if (fd < 0) throw std::runtime_error("cannot open the segment again");
    std::byte* base = Segment::map(fd, segment.offsets().total);
    close(fd);
    return base;
  }

  std::uint64_t bytes_;
  std::byte* base_;
  int lock_fd_;
  SharedQueue queue_;
};

}  // namespace penstock::testing
