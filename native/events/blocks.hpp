// The arena's blocks: which are in use, and which of their pages have memory.
//
// Shape      a chunk takes one block, or several in a row if one item is that long. A block's address space is
//            reserved for good; its memory comes when a chunk needs it, from the block's begin on.
// Roles      whoever holds the queue's lock.
// Invariants B1  a block in use belongs to exactly one kept chunk. After a kill the words may say more: they are
//                made anew from the chunks (rebuild), which are the truth.
//            B2  memory is asked of the file system before it is touched: a full one is an error, not a SIGBUS.
//            B3  spare_bytes is what free blocks still have; beyond spare_limit a freed block's memory goes back. Where the
//                file system does not take it, it is still there, so it is spare, whatever the limit.
//            B4  nothing relies on memory that comes back being zero.
//            B5  on a disk, what was freed stays as it is until the disk knows that it is free (settle_freed): else a crash
//                of the machine could find the old chunk with new bytes, or with none.
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

// Where memory comes from: a file, or within a process the anonymous mapping itself.
struct Backing {
  int fd = -1;  // -1: within a process
  std::uint64_t arena_offset = 0;
  bool is_durable = false;  // on a disk, and asked to outlive the machine
  const LockFile* file = nullptr;  // whose descriptor it is
  bool is_on_disk = false;

  // Was the descriptor closed behind our back? Its number may be another file's by now.
  [[nodiscard]] bool is_lost() const noexcept { return file != nullptr && file->descriptor() < 0; }

  // Under the lock, before freed memory is used again or given back: keeps B5. 0, or the error number: then it must not be.
  [[nodiscard]] int settle_freed(const EventsMap& map) const noexcept {
    EventsControl& control = *map.control;
    if (!is_on_disk || control.freed_unsynced.load(std::memory_order_relaxed) == 0) return 0;
    if (is_lost()) return EBADF;
    if (control.sync_failures.load(std::memory_order_relaxed) != 0) write_again(map);  // Y3
    if (const int error = write_out(control, fd); error != 0) return error;
    control.freed_unsynced.store(0, std::memory_order_relaxed);
    return 0;
  }

  // 0, or the error number. Whole pages: a file system may have smaller blocks, and a touched page needs all of its.
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

  // False: a file system that cannot do it keeps the memory.
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

  Blocks(EventsControl* control, std::atomic<std::uint32_t>* words, std::byte* arena, std::uint64_t count,
         std::uint64_t block_bytes) noexcept
      : control_(control), words_(words), arena_(arena), count_(count), block_bytes_(block_bytes) {}

  [[nodiscard]] std::uint64_t blocks_for(std::uint64_t bytes) const noexcept {
    return (bytes + block_bytes_ - 1) / block_bytes_;
  }

  // `wanted` free blocks in a row, with memory for `bytes`; first those that have it. none: `error` says why,
  // 0 for no such row.
  [[nodiscard]] std::uint64_t take(const Backing& backing, std::uint64_t wanted, std::uint64_t bytes,
                                   int& error) noexcept {
    error = 0;
    const auto pages = static_cast<std::uint32_t>((bytes + page_bytes - 1) / page_bytes);
    std::uint64_t first = wanted == 1 ? find_spare(pages) : none;
    if (first == none) first = find_row(wanted);
    if (first == none) return none;
    raise_used(first + wanted);  // before it has memory, so that a repair finds it
    QUEUEDUCT_FAILPOINT("blocks.before_provide");
    if (!has_memory(first, wanted, pages)) {
      error = backing.provide(first * block_bytes_, bytes);
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
    const std::uint64_t spare = control_->spare_bytes.load(std::memory_order_relaxed);
    const bool keep =
        backing.is_on_disk || (count == 1 && spare + memory_of(first) <= spares * round_up(bytes, page_bytes));  // B5
    for (std::uint64_t i = first; i < first + count; ++i) {
      QUEUEDUCT_FAILPOINT("blocks.before_give");
      const std::uint32_t pages = load(i) & ~block_in_use;
      if (keep) {
        add_spare(pages);
        store(i, pages);
      } else {
        drop(backing, i, pages);
      }
      QUEUEDUCT_FAILPOINT("blocks.given");
    }
    if (!keep && backing.fd < 0) drop_around(backing, first, count);
  }

  // What free blocks have beyond the spares of a chunk of that size goes back. By who has settled that they are free (B5).
  void trim(const Backing& backing, std::uint64_t bytes) noexcept {
    const std::uint64_t limit = spares * round_up(bytes, page_bytes);
    for (std::uint64_t i = scanned(); i > 0 && control_->spare_bytes.load(std::memory_order_relaxed) > limit; --i) {
      const std::uint32_t pages = load(i - 1);
      if (pages == 0 || (pages & block_in_use)) continue;
      take_spare(pages);
      store(i - 1, 0);  // first: after a kill a word must not tell of memory that is gone. keeps B2
      QUEUEDUCT_FAILPOINT("blocks.before_trim");
      if (backing.give_back(arena_, (i - 1) * block_bytes_, std::uint64_t{pages} * page_bytes)) continue;
      add_spare(pages);  // keeps B3
      store(i - 1, pages);
      return;
    }
  }

  // After a kill: forget whose they are, then claim() for each kept chunk, then drop_rest(). What memory a block of
  // a kept chunk has is believed: it was written before the chunk was made, and may be more than the chunk needs.
  void forget() noexcept {
    const std::uint64_t used = scanned();
    for (std::uint64_t i = 0; i < used; ++i) store(i, load(i) & ~block_in_use);
    control_->spare_bytes.store(0, std::memory_order_relaxed);
  }

  // False: it is another chunk's already, or lies outside.
  [[nodiscard]] bool claim(std::uint64_t first, std::uint64_t count, std::uint64_t bytes) noexcept {
    if (count == 0 || first >= count_ || count > count_ - first) return false;
    for (std::uint64_t i = first; i < first + count; ++i)
      if (load(i) & block_in_use) return false;
    mark_used(first, count, bytes);
    return true;
  }

  // `is_settled`: see B5; else all that they have is spare.
  void drop_rest(const Backing& backing, bool is_settled = true) noexcept {
    const std::uint64_t used = scanned();
    for (std::uint64_t i = 0; i < used;) {
      std::uint64_t j = i;
      while (j < used && !(load(j) & block_in_use)) ++j;
      const bool is_gone = j == i || (is_settled && backing.give_back(arena_, i * block_bytes_, (j - i) * block_bytes_));
      for (; i < j; ++i) {
        if (is_gone) store(i, 0);
        else add_spare(load(i));  // keeps B3
      }
      i = j + 1;
    }
  }

 private:
  static constexpr std::uint64_t spares = 2;  // chunks of the last freed size

  void add_spare(std::uint32_t pages) noexcept {
    control_->spare_bytes.store(control_->spare_bytes.load(std::memory_order_relaxed) + std::uint64_t{pages} * page_bytes,
                                std::memory_order_relaxed);
  }

  void take_spare(std::uint32_t pages) noexcept {
    const std::uint64_t spare = control_->spare_bytes.load(std::memory_order_relaxed);
    const std::uint64_t had = std::uint64_t{pages} * page_bytes;
    control_->spare_bytes.store(spare > had ? spare - had : 0, std::memory_order_relaxed);
  }

  // A block that is free from now on. keeps B3
  void drop(const Backing& backing, std::uint64_t i, std::uint32_t pages) noexcept {
    const bool is_gone = pages == 0 || backing.give_back(arena_, i * block_bytes_, std::uint64_t{pages} * page_bytes);
    if (!is_gone) add_spare(pages);
    store(i, is_gone ? 0 : pages);
  }

  // Private memory goes in units that may be larger than a block: so with its neighbours, as far as they have none.
  void drop_around(const Backing& backing, std::uint64_t first, std::uint64_t count) noexcept {
    const std::uint64_t most = hand_back_unit() / block_bytes_ + 1;
    const std::uint64_t used = scanned();
    std::uint64_t begin = first;
    std::uint64_t end = first + count;
    while (begin > 0 && first - begin < most && load(begin - 1) == 0) --begin;
    while (end < used && end - first - count < most && load(end) == 0) ++end;
    (void)backing.give_back(arena_, begin * block_bytes_, (end - begin) * block_bytes_);
  }

  // tmpfs that refuses a part of what it is asked for takes back what nobody has touched, also what it gave before: so
  // what these free blocks had is not believed any more. keeps B2
  void forget_memory(const Backing& backing, std::uint64_t first, std::uint64_t count) noexcept {
    for (std::uint64_t i = first; i < first + count; ++i) {
      const std::uint32_t pages = load(i);
      if (pages == 0 || !backing.give_back(arena_, i * block_bytes_, std::uint64_t{pages} * page_bytes)) continue;
      take_spare(pages);
      store(i, 0);
    }
  }

  // A page count is only believed within its block: what it says is given back.
  [[nodiscard]] std::uint32_t load(std::uint64_t i) const noexcept {
    const std::uint32_t word = words_[i].load(std::memory_order_relaxed);
    const std::uint64_t most = block_bytes_ / page_bytes;
    return (word & ~block_in_use) <= most ? word : static_cast<std::uint32_t>((word & block_in_use) | most);
  }
  // relaxed: only holders of the lock look
  void store(std::uint64_t i, std::uint32_t word) noexcept { words_[i].store(word, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t memory_of(std::uint64_t i) const noexcept {
    return std::uint64_t{load(i) & ~block_in_use} * page_bytes;
  }
  [[nodiscard]] std::uint64_t scanned() const noexcept {
    const std::uint64_t used = control_->blocks_used.load(std::memory_order_relaxed);
    return used < count_ ? used : count_;
  }

  [[nodiscard]] std::uint64_t find_spare(std::uint32_t pages) const noexcept {
    if (control_->spare_bytes.load(std::memory_order_relaxed) == 0) return none;
    const std::uint64_t used = scanned();
    for (std::uint64_t i = 0; i < used; ++i)
      if (!(load(i) & block_in_use) && load(i) >= pages) return i;
    return none;
  }

  [[nodiscard]] std::uint64_t find_row(std::uint64_t wanted) const noexcept {
    std::uint64_t row = 0;
    for (std::uint64_t i = 0; i < count_; ++i) {
      row = load(i) & block_in_use ? 0 : row + 1;
      if (row == wanted) return i + 1 - wanted;
    }
    return none;
  }

  [[nodiscard]] bool has_memory(std::uint64_t first, std::uint64_t count, std::uint32_t pages) const noexcept {
    return count == 1 && (load(first) & ~block_in_use) >= pages;
  }

  void mark_used(std::uint64_t first, std::uint64_t count, std::uint64_t bytes) noexcept {
    for (std::uint64_t i = first; i < first + count; ++i) {
      const std::uint64_t here = bytes < block_bytes_ ? bytes : block_bytes_;
      bytes -= here;
      const auto needed = static_cast<std::uint32_t>((here + page_bytes - 1) / page_bytes);
      const std::uint32_t before = load(i);
      take_spare(before);  // of a free block: no other bit is set
      store(i, block_in_use | (before > needed ? before : needed));
    }
    raise_used(first + count);
  }

  void raise_used(std::uint64_t least) noexcept {
    if (control_->blocks_used.load(std::memory_order_relaxed) < least)
      control_->blocks_used.store(least, std::memory_order_relaxed);
  }

  EventsControl* control_;
  std::atomic<std::uint32_t>* words_;
  std::byte* arena_;
  std::uint64_t count_;
  std::uint64_t block_bytes_;
};

}  // namespace queueduct
