// How a log is written to its disk, and which part of it is trusted after a crash of the machine.
//
// Shape      end ≥ synced ≥ confirmed.    items ─fdatasync─► synced ─fdatasync─► confirmed
// Roles      any process that has the log open.
// Invariants Y1  `synced` rises to a position only when all before it is on the disk: it is trusted after a crash.
//            Y2  `confirmed` rises only when such a `synced` is on the disk as well: nothing before it is ever cut.
//            Y3  after a failed sync the kernel marks pages clean that never reached the disk, and reports the error
//                once to each open file. So the log counts failures, and everything that is not confirmed is dirtied
//                again before the next sync. Only a sync that began after that, with no new failure, clears the count.
// Progress   blocks for as long as the disk does.
#pragma once

#include <errno.h>
#include <unistd.h>

#include "events/chunks.hpp"

namespace queueduct {

inline void raise_to(std::atomic<std::uint64_t>& word, std::uint64_t position) noexcept {
  std::uint64_t before = word.load(std::memory_order_relaxed);
  // relaxed: the syncs order the stores for the disk
  while (before < position && !word.compare_exchange_weak(before, position, std::memory_order_relaxed)) {
  }
}

// Returns 0, or the error number after counting the failure (Y3). A handle without a descriptor does not count one.
[[nodiscard]] inline int write_out(EventsControl& control, int fd) noexcept {
  if (fd < 0) return EBADF;
  if (fdatasync(fd) == 0) return 0;
  const int error = errno;
  control.sync_failures.fetch_add(1, std::memory_order_relaxed);
  return error;
}

// Writes everything up to now to the disk, so that it is trusted after a crash of the machine. Returns 0, or the error
// number. `failures` is the count of failed syncs before write_again(), or 0 if that was not needed.
[[nodiscard]] inline int sync_log(const EventsMap& map, int fd, std::uint64_t failures) noexcept {
  EventsControl& control = *map.control;
  const std::uint64_t position = map.end(std::memory_order_acquire).position();
  if (const int error = write_out(control, fd); error != 0) return error;
  QUEUEDUCT_FAILPOINT("sync.written");
  if (control.sync_failures.load(std::memory_order_relaxed) != failures) return EIO;  // another process's, meanwhile
  raise_to(control.synced, position);                                                 // keeps Y1
  QUEUEDUCT_FAILPOINT("sync.noted");
  if (const int error = write_out(control, fd); error != 0) return error;
  QUEUEDUCT_FAILPOINT("sync.confirmed");
  raise_to(control.confirmed, position);  // keeps Y2
  if (failures != 0) (void)control.sync_failures.compare_exchange_strong(failures, 0, std::memory_order_relaxed);
  return 0;
}

// Dirties the pages without changing them, even while another thread writes there.
inline void touch(std::byte* from, std::uint64_t bytes) noexcept {
  for (std::uint64_t at = 0; at < bytes; at += page_bytes) {
    auto* word = reinterpret_cast<std::uint64_t*>(from + at);
    std::uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
    (void)__atomic_compare_exchange_n(word, &value, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

// Dirties everything that is not confirmed (Y3). Under the lock, so that no chunk is freed meanwhile.
inline void write_again(const EventsMap& map) noexcept {
  auto* const tables = reinterpret_cast<std::byte*>(map.control);
  touch(tables, static_cast<std::uint64_t>(map.arena - tables));
  const std::uint64_t confirmed = map.control->confirmed.load(std::memory_order_relaxed);
  const std::uint64_t head = map.head();
  std::uint64_t number = map.made();
  for (std::uint64_t left = map.chunk_lines; left > 0 && number > head; --left) {
    Chunk chunk;
    if (!load_chunk(map, --number, chunk)) return;
    touch(chunk.data, chunk.bytes);
    if (chunk.first <= confirmed) return;
  }
}

}  // namespace queueduct
