// Is a segment's file as long as it was? Asked before memory is asked for, which would make a truncated one long again:
// then its zeros would be read for items, and no page of it would be missing.
#pragma once

#include <errno.h>
#include <sys/stat.h>

#include <cstdint>

namespace queueduct {

// 0, or the error number for memory that is to be had up to `end` of this file.
[[nodiscard]] inline int check_length(int fd, std::uint64_t end) noexcept {
  struct stat status {};
  if (fstat(fd, &status) != 0) return errno;
  return static_cast<std::uint64_t>(status.st_size) < end ? EFAULT : 0;
}

}  // namespace queueduct
