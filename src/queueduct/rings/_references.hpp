// Queues of references within a process, as the bindings have them.
#pragma once

#include "bounded/queue.hpp"
#include "growing/local.hpp"
#include "native/_python.hpp"

namespace queueduct {

// The GIL, where there is one, serialises every claim.
using LocalClaim = std::conditional_t<has_gil, Serialized, NoLedger>;
using BoundedReferences = BoundedLocal<LocalClaim>;
using GrowingReferences = GrowingLocal<LocalClaim>;

// For the cycle collector.
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
