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

// Asks for a cache line that this thread will write soon. Without it the store waits until another core gives the line
// up, and the next compare-and-swap waits for the store.
inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(address)));  // the builtin would ask for it to read
#else
  __builtin_prefetch(address, 1);
#endif
}

inline void prefetch_to_read(const void* address) noexcept { __builtin_prefetch(address); }

// A position counts slots since the queue was created and never falls. Its index is the slot it maps to: the position
// modulo the capacity C, which is from 1 to 2^32. A power of two needs a mask. For another C, with 2^s < C < 2^(s+1),
// a multiplication replaces the division: m = floor(2^(64+s) / C) + 1, and the quotient is floor(p * m / 2^(64+s)).
//   It is exact for every p below 2^63. m * C = 2^(64+s) + e with 0 < e <= C, so p * m / 2^(64+s) = p / C + d with
//   d = p * e / (C * 2^(64+s)). As e <= C < 2^(s+1) and p < 2^63, p * e < 2^(64+s), so 0 <= d < 1 / C: too little to
//   reach the next whole number, since p / C is at least 1 / C below it.
//   m fits in 64 bits: C >= 2^s + 1, and s <= 31, so 2^(64+s) / C <= 2^64 - 2^64 / (2^s + 1) < 2^64 - 1.
// A damaged position has an index within the ring, too: bit 63 is left out.
struct Modulus {
  std::uint64_t mask = 0;
  std::uint64_t multiplier = 0;  // 0: a power of two
  std::uint64_t divisor = 0;
  std::uint32_t shift = 0;

  [[nodiscard]] static constexpr Modulus of(std::uint64_t capacity) noexcept {
    if (std::has_single_bit(capacity)) return {capacity - 1, 0, capacity, 0};
    const auto shift = static_cast<std::uint32_t>(std::bit_width(capacity)) - 1;
    const Wide power = Wide{1} << (64 + shift);
    return {0, static_cast<std::uint64_t>(power / capacity) + 1, capacity, shift};
  }
  [[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t position) const noexcept {
    if (multiplier == 0) [[likely]] return position & mask;
    const std::uint64_t p = position & ~(std::uint64_t{1} << 63);
    const auto high = static_cast<std::uint64_t>(Wide{p} * multiplier >> 64);
    return p - (high >> shift) * divisor;
  }

 private:
  __extension__ using Wide = unsigned __int128;
};

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace queueduct
