// A lease on a bounded queue: that of every queue of rings (ring/lease.hpp).
#pragma once

#include "bounded/queue.hpp"
#include "ring/lease.hpp"

namespace queueduct {

using BoundedLease = BasicLease<BoundedQueueHandle>;

}  // namespace queueduct
