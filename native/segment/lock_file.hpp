// The descriptor through which a process holds its locks on a segment.
//
// Shape      an open file description of our own, with open-file-description (OFD) locks on bytes far beyond the data,
//            held by a descriptor, and by a mapping of one page that is not copied by a fork.
// Roles      one participant table a lock file; the caller prevents a fork during each call.
// Invariants F1  the description is ours alone from before its first lock on: it is opened and told to the fork
//                handlers in one step that no fork divides, and a child leaves it at once. A mapping would keep it for
//                the child, so the mapping is not copied.
//            F2  the locks last as long as the mapping, even if the descriptor is closed: the kernel drops them with
//                the last reference to the description. So a daemon that closes all its descriptors stays alive.
//            F3  only the descriptor that we opened is asked, locked or closed. The description's file offset is our
//                mark on it, which no other code moves. A number that was closed never becomes ours again: so a
//                descriptor that is ours after a call was so during it.
// Progress   a system call each.
// Source     OFD locks, fcntl(2). kill(pid, 0) calls a zombie alive and pids are reused; POSIX locks are
//            dropped by any close of the file; robust mutexes are honoured for 2,048 entries only.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "segment/event.hpp"

namespace queueduct {

namespace ofd {

inline struct flock request_of(std::uint32_t number, short type) noexcept {
  struct flock request {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = lock_byte(number);
  request.l_len = 1;
  return request;
}

inline bool lock(int fd, std::uint32_t number, short type) noexcept {
  struct flock request = request_of(number, type);
  return fcntl(fd, F_OFD_SETLK, &request) == 0;
}

// Returns true if another open file description owns one of `count` locks from `first` on, or the kernel cannot say. It
// asks for a read lock, so that a participant that only checks does not count.
inline bool is_any_owned_elsewhere(int fd, std::uint32_t count, std::uint32_t first = 0) noexcept {
  struct flock request = request_of(first, F_RDLCK);
  request.l_len = count;
  return fcntl(fd, F_OFD_GETLK, &request) != 0 || request.l_type != F_UNLCK;
}

[[nodiscard]] inline bool is_read_only(int fd) noexcept { return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY; }

// Opens the same file under a new open file description, even if it has no name any more. A watcher's, which is
// read-only, stays so: it asks who owns a lock, and owns none.
inline int reopen(int fd) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, (is_read_only(fd) ? O_RDONLY : O_RDWR) | O_CLOEXEC);
}

}  // namespace ofd

class LockFile {
 public:
  LockFile() noexcept = default;
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  // Opens the file of `like`. Returns false if it cannot, and stays closed. keeps F1
  bool open(int like) noexcept {
    const int fd = ofd::reopen(like);
    if (fd < 0) {
      error_ = errno;
      return false;
    }
    QUEUEDUCT_FAILPOINT("lock_file.opened");
    is_read_only_ = ofd::is_read_only(fd);
    mark_ = new_mark(fd);
    if (lseek(fd, mark_, SEEK_SET) != mark_) mark_ = unmarked;
    pin(fd);
    fd_.store(fd, std::memory_order_release);
    return true;
  }

  // keeps F3
  void close() noexcept {
    const int fd = fd_.exchange(closed, std::memory_order_relaxed);
    if (fd >= 0 && is_marked(fd)) ::close(fd);
    QUEUEDUCT_FAILPOINT("lock_file.closed");
    if (pin_ != nullptr) munmap(pin_, page_bytes);  // the last reference: every lock is dropped
    pin_ = nullptr;
  }

  // In a forked child: async-signal-safe calls only. The locks stay, since the parent has the description.
  void start_anew() noexcept {
    pin_ = nullptr;  // it was not copied
    const int fd = fd_.exchange(closed, std::memory_order_relaxed);
    if (fd < 0 || !is_marked(fd)) return;
    (void)open(fd);
    ::close(fd);
  }

  // -1: it was closed, by us or by other code.
  [[nodiscard]] int descriptor() const noexcept {
    const int fd = fd_.load(std::memory_order_acquire);
    if (fd < 0 || is_marked(fd)) return fd;
    fd_.store(closed, std::memory_order_relaxed);
    return closed;
  }

  // Returns true if it is a watcher's: nothing of the segment may be written.
  [[nodiscard]] bool is_read_only() const noexcept { return is_read_only_; }

  // Why open() could not.
  [[nodiscard]] int error() const noexcept { return error_; }

  // The same unchecked: call descriptor() before it is used.
  [[nodiscard]] int number() const noexcept { return fd_.load(std::memory_order_relaxed); }

  // The caller has just called descriptor(). A close in between is noticed after the lock.
  [[nodiscard]] bool lock(std::uint32_t number, short type) const noexcept {
    const int fd = this->number();
    if (fd < 0 || !ofd::lock(fd, number, type)) return false;
    if (type == F_UNLCK || descriptor() == fd) return true;  // F3
    (void)ofd::lock(fd, number, F_UNLCK);
    return false;
  }

  // Returns true if another open file description owns it, or nothing can say.
  [[nodiscard]] bool is_owned_elsewhere(std::uint32_t number) const noexcept {
    const int fd = fd_.load(std::memory_order_acquire);
    if (fd < 0) return true;
    const bool is_owned = ofd::is_any_owned_elsewhere(fd, 1, number);
    return descriptor() != fd || is_owned;  // F3
  }

 private:
  static constexpr int closed = -1;
  static constexpr off_t unmarked = -1;

  // Beyond any offset that other code seeks to by chance, and within what every file system allows.
  [[nodiscard]] off_t new_mark(int fd) const noexcept {
    std::uint64_t mixed = static_cast<std::uint64_t>(monotonic_ns()) ^ static_cast<std::uint64_t>(getpid()) << 44 ^
                          reinterpret_cast<std::uintptr_t>(this) ^ static_cast<std::uint64_t>(fd) << 54;
    mixed = (mixed ^ mixed >> 30) * 0xbf58'476d'1ce4'e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d0'49bb'1331'11ebu;
    return (off_t{1} << 30) + static_cast<off_t>((mixed ^ mixed >> 31) & 0x7fff'ffff);
  }

  [[nodiscard]] bool is_marked(int fd) const noexcept { return mark_ == unmarked || lseek(fd, 0, SEEK_CUR) == mark_; }

  // keeps F1, F2. If memory is short there is no pin, and the locks last as long as the descriptor.
  void pin(int fd) noexcept {
    void* const page = mmap(nullptr, page_bytes, PROT_NONE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, page_bytes, MADV_DONTFORK) == 0)
      pin_ = page;
    else
      munmap(page, page_bytes);
  }

  mutable std::atomic<int> fd_{closed};
  off_t mark_ = unmarked;
  int error_ = 0;
  bool is_read_only_ = false;
  void* pin_ = nullptr;
};

}  // namespace queueduct
