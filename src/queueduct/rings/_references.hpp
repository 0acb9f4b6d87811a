// Queues of references within a process, and leases, for the bindings.
#pragma once

#include "bounded/queue.hpp"
#include "growing/local.hpp"
#include "native/_python.hpp"

namespace queueduct {

// The GIL, if there is one, serialises every claim.
using LocalClaim = std::conditional_t<has_gil, Serialized, NoLedger>;
using BoundedReferences = BoundedLocal<LocalClaim>;
using GrowingReferences = GrowingLocal<LocalClaim>;

// Returns nullptr if there is no memory. native/ itself allocates nothing.
template <class Local, class... Sizes>
[[nodiscard]] Local* new_local(Sizes... sizes) noexcept {
  PrivateMemory memory = Local::memory(sizes...);
  return memory.base() == nullptr ? nullptr : new (std::nothrow) Local(std::move(memory), sizes...);
}
[[nodiscard]] inline RingLease* new_lease(RingHandle& queue) noexcept {
  void* memory = ::operator new(queue.lease_bytes(), std::nothrow);
  return memory == nullptr ? nullptr : queue.lease_at(memory);
}

// For the garbage collector.
inline int visit_references(const LocalHandle& queue, visitproc visit, void* argument) noexcept {
  struct Visit {
    visitproc visit;
    void* argument;
  } each{visit, argument};
  return queue.each_reference(
      [](void* reference, void* given) {
        const Visit& to = *static_cast<Visit*>(given);
        return to.visit(static_cast<PyObject*>(reference), to.argument);
      },
      &each);
}

}  // namespace queueduct
