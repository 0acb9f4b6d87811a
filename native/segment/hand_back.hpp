// Hands memory back to the system, and zeroes memory that the system does not take.
//
// A file: the system may refuse a hole, if the file system has none (EOPNOTSUPP) or needs room to make one (ENOSPC).
// Then the memory is still there, with its contents, and the caller must count it as there.
// Private memory: the kernel takes whole pages only, and rounds a length up to a page. So the unit is a multiple of the
// page of any kernel: of 4, 16 or 64 kB.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/platform.hpp"

namespace queueduct {

// Not the layout's page_bytes, which is the same on every machine.
[[nodiscard]] inline std::uint64_t kernel_page_bytes() noexcept {
  static const long page = sysconf(_SC_PAGESIZE);
  return page > 0 ? static_cast<std::uint64_t>(page) : page_bytes;
}

// No page on x86-64 or arm64 is larger, unless the kernel says so.
[[nodiscard]] inline std::uint64_t hand_back_unit() noexcept {
  constexpr std::uint64_t largest_page = 64 << 10;
  return kernel_page_bytes() > largest_page ? kernel_page_bytes() : largest_page;
}

// The range of the file reads as zeros afterwards, and its whole pages have no memory. Returns 0 or an error number.
[[nodiscard]] inline int punch_hole(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
  if (begin >= end) return 0;
  while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                   static_cast<off_t>(end - begin)) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

// Zeroes mapped words. Does not write to words that are 0, so pages of zeros get no memory.
inline void zero_words(std::byte* begin, const std::byte* end) noexcept {
  for (; begin < end; begin += sizeof(std::uint64_t)) {
    auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(begin);
    if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_relaxed);
  }
}

// Zeroes words of a file that `base` maps. Reading a hole through the mapping would allocate memory, or raise SIGBUS if
// there is none: so it reads the file, and writes only to pages that are not zero.
inline void zero_words(int fd, std::byte* base, std::uint64_t begin, std::uint64_t end) noexcept {
  std::uint64_t piece[page_bytes / sizeof(std::uint64_t)];
  while (begin < end) {
    const std::uint64_t page_end = round_up(begin + 1, page_bytes);
    const std::uint64_t bytes = (page_end < end ? page_end : end) - begin;
    const ssize_t got = pread(fd, piece, bytes, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    bool is_zero = got == static_cast<ssize_t>(bytes);
    for (std::uint64_t i = 0; is_zero && i < bytes / sizeof(std::uint64_t); ++i) is_zero = piece[i] == 0;
    if (!is_zero) zero_words(base + begin, base + begin + bytes);
    begin += bytes;
  }
}

// The part of private memory that was handed back, and reads as zeros now.
struct HandedBack {
  std::byte* begin;
  std::byte* end;
};
inline HandedBack hand_back_private(std::byte* begin, std::byte* end) noexcept {
  const std::uint64_t unit = hand_back_unit();
  const auto first = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(begin), unit));
  const auto last = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(end) / unit * unit);
  if (first >= last || madvise(first, static_cast<std::size_t>(last - first), MADV_DONTNEED) != 0)
    return {begin, begin};
  return {first, last};
}

// The same; all of it reads as zeros afterwards, whether or not its memory was handed back.
inline void hand_back_zeroed(std::byte* begin, std::byte* end) noexcept {
  const HandedBack gone = hand_back_private(begin, end);
  zero_words(begin, gone.begin);
  zero_words(gone.end, end);
}

}  // namespace queueduct
