// Checks that a segment's file is as long as it was, before memory is allocated. Allocating would make a truncated file
// long again: then its zeros would be read as items, and no page would be missing.
#pragma once

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace queueduct {

// fstat() as the system call: the C library's is a symbol that glibc has from 2.33 on, and the wheels run on 2.28.
[[nodiscard]] inline int file_status(int fd, struct stat& status) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, &status));
}

// Returns 0, or EFAULT if the file is shorter than `end`, or the error of fstat.
[[nodiscard]] inline int check_length(int fd, std::uint64_t end) noexcept {
  struct stat status {};
  if (file_status(fd, status) != 0) return errno;
  return static_cast<std::uint64_t>(status.st_size) < end ? EFAULT : 0;
}

// Returns how many bytes of memory or disk a file takes, as the kernel counts them, or -1.
[[nodiscard]] inline std::int64_t allocated_bytes(int fd) noexcept {
  struct stat status {};
  return file_status(fd, status) != 0 ? -1 : static_cast<std::int64_t>(status.st_blocks) * 512;
}

}  // namespace queueduct
