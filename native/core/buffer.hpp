// An item's bytes where its owner has them.
#pragma once

#include <cstdint>

namespace queueduct {

struct Buffer {
  const void* data;
  std::uint64_t bytes;
};

}  // namespace queueduct
