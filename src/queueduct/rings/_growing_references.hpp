// The references that a growing queue within a process holds, for the cycle collector.
#pragma once

#include <Python.h>

#include "growing/local.hpp"

namespace queueduct {

inline int visit_growing(const LocalGrowingQueue& queue, visitproc visit, void* arg) noexcept {
  return queue.each_reference([=](void* reference) { return visit(static_cast<PyObject*>(reference), arg); });
}

}  // namespace queueduct
