// A file without a name, and mappings of it, for segments of every kind.
//
// The file has no name once it is open: whoever attaches opens /proc/self/fd/<n>, which is a new open file
// description each time, and nothing is left behind however a test ends.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "segment/participants.hpp"

namespace queueduct::testing {

inline int open_nameless_file(std::uint64_t bytes) {
  for (std::string path : {"/dev/shm/queueduct-test-XXXXXX", "/tmp/queueduct-test-XXXXXX"}) {
    const int fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd < 0) continue;
    unlink(path.c_str());
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) throw std::runtime_error("ftruncate failed");
    return fd;
  }
  throw std::runtime_error("no directory for a test segment: neither /dev/shm nor /tmp can be written");
}

[[nodiscard]] inline std::byte* map_file(int fd, std::uint64_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) throw std::runtime_error("mmap failed");
  return static_cast<std::byte*>(base);
}

[[nodiscard]] inline int open_again(int fd) {
  const int again = ofd::reopen(fd);
  if (again < 0) throw std::runtime_error("cannot open the segment again");
  return again;
}

// Under ThreadSanitizer a mapping is shared: it knows memory by address, so what one mapping synchronises it
// would not believe of the other, and a race between the two it would not see.
#ifdef __SANITIZE_THREAD__
inline constexpr bool has_own_mapping = false;
#else
inline constexpr bool has_own_mapping = true;
#endif

// A way to be wrong, for the crash campaigns: recoveries that know nothing of producers.
inline bool hides_producers = false;

// A mapping of one's own, as another process has it.
class OwnMapping {
 public:
  OwnMapping(int fd, std::byte* shared, std::uint64_t bytes) : base_(shared), bytes_(bytes) {
    if (!has_own_mapping) return;
    const int again = open_again(fd);
    base_ = map_file(again, bytes);
    close(again);
  }
  ~OwnMapping() {
    if (has_own_mapping) munmap(base_, bytes_);
  }
  OwnMapping(const OwnMapping&) = delete;
  OwnMapping& operator=(const OwnMapping&) = delete;

  [[nodiscard]] std::byte* base() const noexcept { return base_; }

 private:
  std::byte* base_;
  std::uint64_t bytes_;
};

}  // namespace queueduct::testing
