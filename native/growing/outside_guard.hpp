// Hints about a growing queue for a thread that has no line in it, such as the one that waits for an event loop.
//
// It cannot announce a guard (V1 in read_guard.hpp), so it reads generations from the file: that gives no memory to a
// hole. The result is a hint, also because a word that is being written may be read half.
#pragma once

#include <unistd.h>

#include "growing/memory.hpp"

namespace queueduct {

class OutsideGuard {
 public:
  OutsideGuard(const Levels& levels, int fd) noexcept : levels_(levels), fd_(fd) {}

  [[nodiscard]] bool may_be_poppable(LevelRange now, const GrowingRing& ring, std::uint64_t position) const noexcept {
    std::uint64_t seen = 0;
    return read(now.read_level(), ring.index(position), 1, &seen) &&
           (seen == generation::published(position) || seen == generation::tombstone(position));
  }
  // Reads the last slots first: they are released last.
  [[nodiscard]] bool may_be_pushable(LevelRange now, const GrowingRing& ring, std::uint64_t position,
                                    std::uint64_t slots) const noexcept {
    std::uint64_t seen[piece_slots];
    while (slots > 0) {
      const std::uint64_t behind = ring.index(position + slots - 1) + 1;  // slots up to it are contiguous
      std::uint64_t count = slots < piece_slots ? slots : piece_slots;
      if (count > behind) count = behind;
      if (!read(now.written_level(), behind - count, count, seen)) return false;
      for (std::uint64_t i = 0; i < count; ++i)
        if (seen[i] != ring.free(position + slots - count + i)) return false;
      slots -= count;
    }
    return true;
  }

 private:
  static constexpr std::uint64_t piece_slots = 64;

  // Returns false if the file cannot be read: then the caller sleeps.
  [[nodiscard]] bool read(std::uint32_t level, std::uint64_t index, std::uint64_t count,
                          std::uint64_t* to) const noexcept {
    const std::uint64_t bytes = count * sizeof(std::uint64_t);
    const std::uint64_t at = levels_[level].at.generations + index * sizeof(std::uint64_t);
    return pread(fd_, to, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
  }

  const Levels& levels_;
  int fd_;
};

}  // namespace queueduct
