// A lease on a growing queue: that of every queue of rings (bounded_lease.hpp), and what its levels mean for it.
//
// Positions  one item's for good: they run through all levels, and no position ever comes back (G6). So what comes again
//            does so at its position, in whatever level it lies, and order of positions is order of puts.
// Levels     a level in which something is held is drained but not released: it is not given back (M3), and until then
//            not opened again. So what is held stays where it is, and the ring that a lease remembers stays true. A
//            queue that would have to grow into that level waits for the release.
#pragma once

#include "ring/lease.hpp"
#include "growing/queue.hpp"

namespace queueduct {

using GrowingLease = BasicLease<GrowingQueue>;

// As of one ring. A level that was given back holds nothing of that position: everything in it was released.
[[nodiscard]] inline bool is_unreleased(GrowingQueue& queue, std::uint64_t position) noexcept {
  bool is_held = false;
  queue.with_upkeep_lock([&] {
    GrowingRings(queue.levels()).each([&](const GrowingRing& ring) { is_held = is_held || is_unreleased(ring, position); });
  });
  return is_held;
}

}  // namespace queueduct
