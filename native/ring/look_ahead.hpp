// The cache lines of the slots that are used next.
//
// Each side asks in time for the cache lines of the slot that it will use a few items later: they lie in another core's
// cache, and to wait for one of them can take several times as long as all the rest of a put or a get. A consumer asks
// for the generation to write, since it releases the slot there. These are hints, which read no memory: they need no
// guard. In a small ring the other side would still be at work there.
//
// `last`: the last position that the calling put or get uses.
#pragma once

#include "core/platform.hpp"

namespace queueduct {

inline constexpr std::uint64_t slots_ahead = 8;
inline constexpr std::uint64_t least_capacity_to_look_ahead = 8 * slots_ahead;

template <class R>
[[gnu::always_inline]] inline void look_ahead_to_push(const R& ring, std::uint64_t last) noexcept {
  if (ring.capacity < least_capacity_to_look_ahead) return;
  const std::uint64_t index = ring.index(last + slots_ahead);
  prefetch_to_write(&ring.generations[index]);
  if (ring.lengths != nullptr) prefetch_to_write(&ring.lengths[index]);
  const std::byte* const slot = ring.payload + index * ring.slot_bytes;
  prefetch_to_write(slot);
  if (ring.slot_bytes > 64) prefetch_to_write(slot + 64);
}

template <class R>
[[gnu::always_inline]] inline void look_ahead_to_pop(const R& ring, std::uint64_t last) noexcept {
  if (ring.capacity < least_capacity_to_look_ahead) return;
  const std::uint64_t index = ring.index(last + slots_ahead);
  prefetch_to_write(&ring.generations[index]);
  const std::byte* const slot = ring.payload + index * ring.slot_bytes;
  prefetch_to_read(slot);
  if (ring.slot_bytes > 64) prefetch_to_read(slot + 64);
}

}  // namespace queueduct
