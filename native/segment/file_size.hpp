// Checks that a segment's file is as long as it was, before memory is allocated. Allocating would make a truncated file
// long again: then its zeros would be read as items, and no page would be missing.
#pragma once

#include <errno.h>
#include <sys/stat.h>

#include <cstdint>

namespace queueduct {

// Returns 0, or EFAULT if the file is shorter than `end`, or the error of fstat.
[[nodiscard]] inline int check_length(int fd, std::uint64_t end) noexcept {
  struct stat status {};
  if (fstat(fd, &status) != 0) return errno;
  return static_cast<std::uint64_t>(status.st_size) < end ? EFAULT : 0;
}

// Returns how many bytes of memory or disk a file takes, as the kernel counts them, or -1.
[[nodiscard]] inline std::int64_t allocated_bytes(int fd) noexcept {
  struct stat status {};
  return fstat(fd, &status) != 0 ? -1 : static_cast<std::int64_t>(status.st_blocks) * 512;
}

}  // namespace queueduct
