// Memory handed back to the system, and what is zeroed where the system does not take it.
//
// A file: a hole may be refused, by a file system that knows none (EOPNOTSUPP), or that needs room to make one (ENOSPC).
// Then the memory is still there, with what was in it, and the caller must count it as there.
// Private memory: the kernel hands back whole pages only, and takes a length that ends within one for all of it. So units
// are handed back that are pages of any kernel: of 4, 16 or 64 kB.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/platform.hpp"

namespace queueduct {

// Not the layout's page_bytes, which are the same wherever a segment is.
[[nodiscard]] inline std::uint64_t kernel_page_bytes() noexcept {
  static const long page = sysconf(_SC_PAGESIZE);
  return page > 0 ? static_cast<std::uint64_t>(page) : page_bytes;
}

// No page is larger, on x86-64 or arm64; where the kernel says that one is, it is believed.
[[nodiscard]] inline std::uint64_t hand_back_unit() noexcept {
  constexpr std::uint64_t largest_page = 64 << 10;
  return kernel_page_bytes() > largest_page ? kernel_page_bytes() : largest_page;
}

// Of a file: what lies within reads as zeros afterwards, and whole pages of it have no memory. 0, or why not.
[[nodiscard]] inline int punch_hole(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
  if (begin >= end) return 0;
  while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                   static_cast<off_t>(end - begin)) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

// Words of memory that is mapped; those that are 0 are not written to, so that pages of zeros stay unreal.
inline void zero_words(std::byte* begin, const std::byte* end) noexcept {
  for (; begin < end; begin += sizeof(std::uint64_t)) {
    auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(begin);
    if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_relaxed);
  }
}

// Words of a file that `base` maps. To look through the mapping would give memory to a hole, or a SIGBUS where there is
// none left: so it is read, and only what is there and not zero is written to.
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

// Of private memory: what of it was handed back, and reads as zeros now.
struct HandedBack {
  std::byte* begin;
  std::byte* end;
};
inline HandedBack hand_back_private(std::byte* begin, std::byte* end) noexcept {
  const std::uint64_t unit = hand_back_unit();
  const auto first = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(begin), unit));
  const auto last = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(end) / unit * unit);
  if (first >= last || madvise(first, static_cast<std::size_t>(last - first), MADV_DONTNEED) != 0) return {begin, begin};
  return {first, last};
}

// The same for words that must read as zeros, whether or not their memory goes.
inline void hand_back_zeroed(std::byte* begin, std::byte* end) noexcept {
  const HandedBack gone = hand_back_private(begin, end);
  zero_words(begin, gone.begin);
  zero_words(gone.end, end);
}

}  // namespace queueduct
