// The descriptor through which a process holds its locks on a segment.
//
// Shape      an open file description of our own, with open-file-description (OFD) locks on bytes far beyond the data,
//            held by a descriptor, and by a mapping of one page that is not copied by a fork.
// Roles      one participant table a lock file; who calls sees to it that no fork comes between.
// Invariants F1  the description is ours alone from before its first lock on: it is opened, and told to the fork handlers,
//                in one step that no fork divides, and a child leaves it at once. A mapping of it would be a child's as
//                well, so that one is not copied.
//            F2  the locks last as long as the mapping, whatever becomes of the descriptor: the kernel drops them with
//                the last reference to the description. So a daemon that closes all its descriptors goes on living.
//            F3  nothing is asked of, locked by or closed through a descriptor that is not the one we opened. The
//                description's file offset is our mark on it, which nobody else moves. A number that was closed never
//                becomes ours again: so what was ours after a question was so during it.
// Progress   a system call each.
// Source     OFD locks, fcntl(2). kill(pid, 0) calls a zombie alive and pids are reused; POSIX locks are
//            dropped by any close of the file; robust mutexes are honoured for 2,048 entries only.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "core/failpoint.hpp"
#include "segment/layout.hpp"

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

// Does another open file description own any of `count` from the first on? When the kernel cannot say: yes, to be safe.
inline bool is_any_owned_elsewhere(int fd, std::uint32_t count) noexcept {
  struct flock request = request_of(0, F_RDLCK);
  request.l_len = count;
  return fcntl(fd, F_OFD_GETLK, &request) != 0 || request.l_type != F_UNLCK;
}

// The same file under a new open file description, even when it has no name any more.
inline int reopen(int fd) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, O_RDWR | O_CLOEXEC);
}

}  // namespace ofd

class LockFile {
 public:
  LockFile() noexcept = default;
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  // The file of `like`. False: it cannot be opened, and this stays closed. Nobody forks meanwhile: keeps F1
  bool open(int like) noexcept {
    const int fd = ofd::reopen(like);
    if (fd < 0) {
      error_ = errno;
      return false;
    }
    QUEUEDUCT_FAILPOINT("lock_file.opened");
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

  // In a forked child. Only async-signal-safe calls. What was locked stays so: the parent has the description.
  void start_anew() noexcept {
    pin_ = nullptr;  // it was not copied
    const int fd = fd_.exchange(closed, std::memory_order_relaxed);
    if (fd < 0 || !is_marked(fd)) return;
    (void)open(fd);
    ::close(fd);
  }

  // -1: it was closed, by us or behind our back.
  [[nodiscard]] int descriptor() const noexcept {
    const int fd = fd_.load(std::memory_order_acquire);
    if (fd < 0 || is_marked(fd)) return fd;
    fd_.store(closed, std::memory_order_relaxed);
    return closed;
  }

  // Why open() could not.
  [[nodiscard]] int error() const noexcept { return error_; }

  // The same without a look: whoever uses it for anything asks descriptor() first.
  [[nodiscard]] int number() const noexcept { return fd_.load(std::memory_order_relaxed); }

  // The caller has just asked for the descriptor(): what comes between is found out when a lock was got.
  [[nodiscard]] bool lock(std::uint32_t number, short type) const noexcept {
    const int fd = this->number();
    if (fd < 0 || !ofd::lock(fd, number, type)) return false;
    if (type == F_UNLCK || descriptor() == fd) return true;  // F3
    (void)ofd::lock(fd, number, F_UNLCK);
    return false;
  }

  // Does another open file description own it? Asked for a read lock, so that others who only look do not count.
  // When nobody can say: yes, to be safe.
  [[nodiscard]] bool is_owned_elsewhere(std::uint32_t number) const noexcept {
    const int fd = fd_.load(std::memory_order_acquire);
    if (fd < 0) return true;
    struct flock request = ofd::request_of(number, F_RDLCK);
    const bool is_free = fcntl(fd, F_OFD_GETLK, &request) == 0 && request.l_type == F_UNLCK;
    return descriptor() != fd || !is_free;  // F3
  }

 private:
  static constexpr int closed = -1;
  static constexpr off_t unmarked = -1;

  // Beyond what anybody seeks to by chance, and within what every file system allows.
  [[nodiscard]] off_t new_mark(int fd) const noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::uint64_t mixed = static_cast<std::uint64_t>(now.tv_nsec) ^ static_cast<std::uint64_t>(now.tv_sec) << 30 ^
                          static_cast<std::uint64_t>(getpid()) << 44 ^ reinterpret_cast<std::uintptr_t>(this) ^
                          static_cast<std::uint64_t>(fd) << 54;
    mixed = (mixed ^ mixed >> 30) * 0xbf58'476d'1ce4'e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d0'49bb'1331'11ebu;
    return (off_t{1} << 30) + static_cast<off_t>((mixed ^ mixed >> 31) & 0x7fff'ffff);
  }

  [[nodiscard]] bool is_marked(int fd) const noexcept { return mark_ == unmarked || lseek(fd, 0, SEEK_CUR) == mark_; }

  // keeps F1, F2. Without it, where memory is short, the locks last as long as the descriptor.
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
  void* pin_ = nullptr;
};

}  // namespace queueduct
