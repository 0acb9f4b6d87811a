// The steps of a get one by one, as RingOperations takes them: for tests that stop between them.
#pragma once

#include "ring/operations.hpp"

namespace queueduct {

template <class R, class Ledger>
void finish_pop(const R& ring, Ledger ledger, const Peeked& peeked, void* to) noexcept {
  copy_out(ring, peeked.span.position, to, peeked.bytes);
  release_copied(ring, ledger, peeked.span);
}

template <class R>
std::uint64_t widen_bytes(const R& ring, std::uint64_t limit, std::uint64_t* lengths, Peeked& peeked) noexcept {
  return widen_items(ring, limit, peeked, [lengths](std::uint64_t i, const Peeked& each) { lengths[i] = each.bytes; });
}

// After try_redeliver().
template <class Queue>
void finish_redelivered(Queue& queue, Participant me, const typename Queue::RecoveryScan& found, void* to) noexcept {
  copy_out(found.ring, found.peeked.span.position, to, found.peeked.bytes);
  queue.release_redelivered(me, found);
}

}  // namespace queueduct
