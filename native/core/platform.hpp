// Facts about the machine, the arithmetic of positions, and the view of an item's bytes. Includes std only.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace queueduct {

static_assert(std::endian::native == std::endian::little, "segments are little-endian");
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared words must be address-free");
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared words must be address-free");
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && sizeof(std::atomic<std::uint32_t>) == 4);

// Groups of fields with different writers are this far apart.
// 128, not 64: x86 prefetches lines in pairs, and some arm64 cores have lines of 128 bytes.
// It is part of the shared layout, so it must not follow the compiler's target.
inline constexpr std::size_t line_bytes = 128;
inline constexpr std::size_t page_bytes = 4096;

// An item's bytes in its owner's memory.
struct Buffer {
  const void* data;
  std::uint64_t bytes;
};

inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` is a no-op on most cores; isb waits a few tens of cycles
#endif
}

// A position counts slots since the queue was created and never falls. Its index is the slot it maps to.
[[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t position, std::uint64_t mask) noexcept {
  return position & mask;
}

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace queueduct
