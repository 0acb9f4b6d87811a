// The same pages at a second address: a fault there, and the page that replaces it, do not affect the first mapping.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace queueduct {

[[nodiscard]] inline std::size_t page_size() noexcept { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Read-only. Returns nullptr if there is no address space for it, or the original is no shared mapping any more.
[[nodiscard]] inline void* map_again(const void* original, std::size_t bytes) noexcept {
  // An old size of 0 leaves a shared mapping where it is and makes another of the same pages, without a descriptor.
  void* memory = mremap(const_cast<void*>(original), 0, bytes, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) return nullptr;
  if (mprotect(memory, bytes, PROT_READ) != 0) {
    munmap(memory, bytes);
    return nullptr;
  }
#ifdef MADV_POPULATE_READ
  (void)madvise(memory, bytes, MADV_POPULATE_READ);  // all pages at once: single faults cost more
#endif
  return memory;
}

inline void unmap(void* memory, std::size_t bytes) noexcept { munmap(memory, bytes); }

}  // namespace queueduct
