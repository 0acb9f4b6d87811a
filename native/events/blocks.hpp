// The arena's blocks: which are in use, and which of their pages have memory.
//
// Shape      a chunk takes one block, or several in a row if one item is that long. A block's address space is reserved
//            for good. It gets memory when a chunk needs it, from the block's begin on.
// Roles      the holder of the queue's lock.
// Invariants B1  a block in use belongs to exactly one kept chunk. After a kill the words may say more: repair rebuilds
//                them from the chunks, which are the truth.
//            B2  memory is asked of the file system before it is touched: a full one is an error, not a SIGBUS.
//            B3  spare_bytes is the memory of free blocks. Beyond `spares` chunks of it, a freed block's memory goes
//                back. If the file system refuses it, the memory is still there and counts as spare beyond the limit.
//            B4  no code relies on memory that comes back being zero.
//            B5  on a disk a freed block is left unchanged until the disk knows that it is free (settle_freed): else a
//                crash of the machine could leave the old chunk with new bytes, or with none.
// Progress   under the lock; a scan of blocks_used words a chunk.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "events/disk.hpp"
#include "events/layout.hpp"
#include "core/failpoint.hpp"
#include "segment/file_size.hpp"
#include "segment/hand_back.hpp"
#include "segment/lock_file.hpp"

namespace queueduct {

// Where memory comes from: a file, or the anonymous mapping itself if the queue lives in one process.
struct Backing {
  int fd = -1;  // -1: one process
  std::uint64_t arena_offset = 0;
  bool is_durable = false;         // on a disk, and meant to survive a crash of the machine
  const LockFile* file = nullptr;  // the descriptor's owner
  bool is_on_disk = false;

  // Returns true if the descriptor was closed by foreign code. Its number may belong to another file by now.
  [[nodiscard]] bool is_lost() const noexcept { return file != nullptr && file->descriptor() < 0; }

  // Under the lock, before freed memory is reused or given back: keeps B5. Returns 0, or the error number: then the
  // memory must stay.
  [[nodiscard]] int settle_freed(const EventsMap& map) const noexcept {
    EventsControl& control = *map.control;
    if (!is_on_disk || control.freed_unsynced.load(std::memory_order_relaxed) == 0) return 0;
    if (is_lost()) return EBADF;
    if (control.sync_failures.load(std::memory_order_relaxed) != 0) write_again(map);  // Y3
    if (const int error = write_out(control, fd); error != 0) return error;
    control.freed_unsynced.store(0, std::memory_order_relaxed);
    return 0;
  }

  // Returns 0, or the error number. Provides whole pages, since a file system may have smaller blocks.
  [[nodiscard]] int provide(std::uint64_t offset, std::uint64_t wanted) const noexcept {
    if (fd < 0) return 0;
    if (is_lost()) return EBADF;
    const std::uint64_t bytes = round_up(wanted, page_bytes);
    int failed = check_length(fd, arena_offset + offset + bytes);
    if (failed != 0) return failed;
    do {
      failed = posix_fallocate(fd, static_cast<off_t>(arena_offset + offset), static_cast<off_t>(bytes));
    } while (failed == EINTR);
    return failed;
  }

  // Returns false if the file system cannot take the memory back.
  [[nodiscard]] bool give_back(std::byte* arena, std::uint64_t offset, std::uint64_t bytes) const noexcept {
    if (is_lost()) return false;
    if (fd >= 0) return punch_hole(fd, arena_offset + offset, arena_offset + offset + bytes) == 0;
    (void)hand_back_private(arena + offset, arena + offset + bytes);
    return true;
  }
};

class Blocks {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  explicit Blocks(const EventsMap& map) noexcept : map_(map) {}

  [[nodiscard]] std::uint64_t blocks_for(std::uint64_t bytes) const noexcept {
    return (bytes + map_.block_bytes - 1) / map_.block_bytes;
  }

  // Returns the first of `wanted` free blocks in a row, with memory for `bytes`; prefers a block that has it. Returns
  // none if memory cannot be had (`error`), or if there is no such row (`error` is 0).
  [[nodiscard]] std::uint64_t take(const Backing& backing, std::uint64_t wanted, std::uint64_t bytes,
                                   int& error) noexcept {
    error = 0;
    const std::uint32_t pages = pages_for(bytes);
    std::uint64_t first = wanted == 1 ? find_spare(pages) : none;
    if (first == none) first = find_row(wanted);
    if (first == none) return none;
    raise_used(first + wanted);  // before it has memory, so that a repair finds it
    QUEUEDUCT_FAILPOINT("blocks.before_provide");
    if (wanted != 1 || (load(first) & ~block_in_use) < pages) {
      error = backing.provide(first * map_.block_bytes, bytes);
      if (error != 0) {
        forget_memory(backing, first, wanted);
        return none;
      }
    }
    QUEUEDUCT_FAILPOINT("blocks.provided");
    mark_used(first, wanted, bytes);
    QUEUEDUCT_FAILPOINT("blocks.taken");
    return first;
  }

  void give(const Backing& backing, std::uint64_t first, std::uint64_t count, std::uint64_t bytes) noexcept {
    const std::uint64_t memory = std::uint64_t{load(first) & ~block_in_use} * page_bytes;
    const bool keep = backing.is_on_disk || (count == 1 && spare_bytes() + memory <= spare_limit(bytes));  // B5
    for (std::uint64_t i = first; i < first + count; ++i) {
      QUEUEDUCT_FAILPOINT("blocks.before_give");
      const std::uint32_t pages = load(i) & ~block_in_use;
      const bool is_gone = !keep && (pages == 0 || give_back(backing, i, pages));
      if (!is_gone) add_spare(pages);  // keeps B3
      store(i, is_gone ? 0 : pages);
      QUEUEDUCT_FAILPOINT("blocks.given");
    }
    if (!keep && backing.fd < 0) drop_around(backing, first, count);
  }

  // Gives back the memory of free blocks beyond the spares of a chunk of that size. After settle_freed() (B5).
  void trim(const Backing& backing, std::uint64_t bytes) noexcept {
    for (std::uint64_t i = scanned(); i-- > 0 && spare_bytes() > spare_limit(bytes);) {
      const std::uint32_t pages = load(i);
      if (pages == 0 || (pages & block_in_use)) continue;
      take_spare(pages);
      store(i, 0);  // first: after a kill a word must not claim memory that is gone. keeps B2
      QUEUEDUCT_FAILPOINT("blocks.before_trim");
      if (give_back(backing, i, pages)) continue;
      add_spare(pages);  // keeps B3
      store(i, pages);
      return;
    }
  }

  // After a kill: forget() marks all blocks free, then claim() each kept chunk's, then drop_rest(). The page count of a
  // kept chunk's block is trusted: it was stored before the chunk was made, and may exceed what the chunk needs.
  void forget() noexcept {
    const std::uint64_t used = scanned();
    for (std::uint64_t i = 0; i < used; ++i) store(i, load(i) & ~block_in_use);
    map_.control->spare_bytes.store(0, std::memory_order_relaxed);
  }

  // Returns false if a block is another chunk's already, or lies outside the arena.
  [[nodiscard]] bool claim(std::uint64_t first, std::uint64_t count, std::uint64_t bytes) noexcept {
    if (count == 0 || first >= map_.block_count || count > map_.block_count - first) return false;
    for (std::uint64_t i = first; i < first + count; ++i)
      if (load(i) & block_in_use) return false;
    mark_used(first, count, bytes);
    return true;
  }

  // Gives back the memory of all free blocks or, if they are not settled (B5), counts it as spare.
  void drop_rest(const Backing& backing, bool is_settled = true) noexcept {
    const std::uint64_t used = scanned();
    for (std::uint64_t i = 0; i < used;) {
      std::uint64_t j = i;
      while (j < used && !(load(j) & block_in_use)) ++j;
      const bool is_gone =
          j == i || (is_settled && backing.give_back(map_.arena, i * map_.block_bytes, (j - i) * map_.block_bytes));
      for (; i < j; ++i) {
        if (is_gone)
          store(i, 0);
        else
          add_spare(load(i));  // keeps B3
      }
      i = j + 1;
    }
  }

 private:
  static constexpr std::uint64_t spares = 2;  // chunks of the last freed size

  // All words here are relaxed: only the holder of the lock uses them.
  [[nodiscard]] std::uint64_t spare_bytes() const noexcept {
    return map_.control->spare_bytes.load(std::memory_order_relaxed);
  }
  [[nodiscard]] static std::uint64_t spare_limit(std::uint64_t bytes) noexcept {
    return spares * round_up(bytes, page_bytes);
  }
  void add_spare(std::uint32_t pages) noexcept {
    map_.control->spare_bytes.store(spare_bytes() + std::uint64_t{pages} * page_bytes, std::memory_order_relaxed);
  }
  void take_spare(std::uint32_t pages) noexcept {
    const std::uint64_t spare = spare_bytes();
    map_.control->spare_bytes.store(spare - std::min(spare, std::uint64_t{pages} * page_bytes),
                                    std::memory_order_relaxed);
  }

  [[nodiscard]] bool give_back(const Backing& backing, std::uint64_t i, std::uint32_t pages) noexcept {
    return backing.give_back(map_.arena, i * map_.block_bytes, std::uint64_t{pages} * page_bytes);
  }

  // Private memory goes back in units that may be larger than a block: so with those neighbours that have no memory.
  void drop_around(const Backing& backing, std::uint64_t first, std::uint64_t count) noexcept {
    const std::uint64_t most = hand_back_unit() / map_.block_bytes + 1;
    const std::uint64_t used = scanned();
    std::uint64_t begin = first;
    std::uint64_t end = first + count;
    while (begin > 0 && first - begin < most && load(begin - 1) == 0) --begin;
    while (end < used && end - first - count < most && load(end) == 0) ++end;
    (void)backing.give_back(map_.arena, begin * map_.block_bytes, (end - begin) * map_.block_bytes);
  }

  // A tmpfs that refuses part of a request also takes back untouched pages that it gave before. So the page counts of
  // these free blocks are not trusted any more. keeps B2
  void forget_memory(const Backing& backing, std::uint64_t first, std::uint64_t count) noexcept {
    for (std::uint64_t i = first; i < first + count; ++i) {
      const std::uint32_t pages = load(i);
      if (pages == 0 || !give_back(backing, i, pages)) continue;
      take_spare(pages);
      store(i, 0);
    }
  }

  // A page count beyond the block is cut: so many pages are given back.
  [[nodiscard]] std::uint32_t load(std::uint64_t i) const noexcept {
    const std::uint32_t word = map_.blocks[i].load(std::memory_order_relaxed);
    const std::uint64_t most = map_.block_bytes / page_bytes;
    return (word & ~block_in_use) <= most ? word : static_cast<std::uint32_t>((word & block_in_use) | most);
  }
  void store(std::uint64_t i, std::uint32_t word) noexcept { map_.blocks[i].store(word, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t scanned() const noexcept {
    return std::min(map_.control->blocks_used.load(std::memory_order_relaxed), map_.block_count);
  }
  [[nodiscard]] static std::uint32_t pages_for(std::uint64_t bytes) noexcept {
    return static_cast<std::uint32_t>((bytes + page_bytes - 1) / page_bytes);
  }

  [[nodiscard]] std::uint64_t find_spare(std::uint32_t pages) const noexcept {
    if (spare_bytes() == 0) return none;
    const std::uint64_t used = scanned();
    for (std::uint64_t i = 0; i < used; ++i)
      if (!(load(i) & block_in_use) && load(i) >= pages) return i;
    return none;
  }

  [[nodiscard]] std::uint64_t find_row(std::uint64_t wanted) const noexcept {
    std::uint64_t row = 0;
    for (std::uint64_t i = 0; i < map_.block_count; ++i) {
      row = load(i) & block_in_use ? 0 : row + 1;
      if (row == wanted) return i + 1 - wanted;
    }
    return none;
  }

  void mark_used(std::uint64_t first, std::uint64_t count, std::uint64_t bytes) noexcept {
    for (std::uint64_t i = first; i < first + count; ++i) {
      const std::uint64_t here = std::min(bytes, map_.block_bytes);
      bytes -= here;
      const std::uint32_t before = load(i);
      take_spare(before);  // a free block's word is its page count
      store(i, block_in_use | std::max(before, pages_for(here)));
    }
    raise_used(first + count);
  }

  void raise_used(std::uint64_t least) noexcept {
    if (map_.control->blocks_used.load(std::memory_order_relaxed) < least)
      map_.control->blocks_used.store(least, std::memory_order_relaxed);
  }

  const EventsMap& map_;
};

}  // namespace queueduct
