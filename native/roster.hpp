// The roster: which line of the participant table is whose, and who is dead.
//
// Shape      a line a thread, or for what outlives a call, such as a lease. Its process holds an open-file-description
//            (OFD) lock on the line's byte.
// Roles      a process joins lines for its threads through one roster a handle; anybody asks is_alive().
// Invariants R1  a line is written only under its lock: by its owner, who holds the write lock for life, or, to
//                clear it after its owner's death, under a read lock, which keeps the next owner out and does
//                not look like life.
//            R2  a line is taken over only when nothing that its dead owner declared is outstanding, or what
//                is has been inherited by the line's next owner.
//            R3  the kernel drops the lock when the process dies, however it dies, and not before.
// Progress   joining takes a mutex of this process; a queue operation takes none.
// Source     OFD locks, fcntl(2). kill(pid, 0) calls a zombie alive and pids are reused; POSIX locks are
//            dropped by any close of the file; robust mutexes are honoured for 2,048 entries only.
//
// fork: parent and child share the open file description, and with it the locks. So the child opens the
// file anew in a pthread_atfork handler and starts with no lines: what it inherited stays its parent's.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "failpoint.hpp"
#include "layout.hpp"

namespace penstock {

// Small numbers for threads, given back at a thread's end, so that a queue's lines can be found by index.
//
// One thread has one number, whichever of our extension modules asks: else one of them would take another thread's line
// for its own. Each module has its own copy of what an inline variable is in a header, unless the loader is told that
// there is one in the process: that is what g++ does with those that are visible (STB_GNU_UNIQUE).
namespace thread_number {

#if !defined(__GNUC__) || defined(__clang__)
#error "thread numbers must be one table in the process (STB_GNU_UNIQUE): build with g++"
#endif

struct Taken {
  pthread_t thread;     // the same before and after a fork
  std::uint32_t users;  // modules that have asked; 0: free
};

inline constexpr std::uint32_t limit = 1024;
[[gnu::visibility("default")]] inline std::mutex mutex;
[[gnu::visibility("default")]] inline Taken taken[limit];

// What a module holds of the number of a thread.
struct Holder {
  std::uint32_t number = limit;
  Holder() noexcept {
    const std::lock_guard lock(mutex);
    for (std::uint32_t i = limit; i-- > 0;) {
      if (taken[i].users == 0) {
        number = i;  // the lowest one that is free, if the thread has none
      } else if (pthread_equal(taken[i].thread, pthread_self())) {
        number = i;
        break;
      }
    }
    if (number != limit) taken[number] = {pthread_self(), taken[number].users + 1};
  }
  ~Holder() {
    if (number == limit) return;
    const std::lock_guard lock(mutex);
    --taken[number].users;
  }
};

[[gnu::tls_model("initial-exec")]] inline thread_local std::uint32_t cached_plus_one = 0;

[[gnu::noinline]] inline std::uint32_t take() noexcept {
  static thread_local Holder holder;
  cached_plus_one = holder.number + 1;
  return holder.number;
}

// `limit` when the process has more threads than that.
[[nodiscard]] inline std::uint32_t mine() noexcept {
  const std::uint32_t cached = cached_plus_one;
  return cached != 0 ? cached - 1 : take();
}

}  // namespace thread_number

namespace ofd {

inline bool lock(int fd, std::uint32_t line, short type) noexcept {
  struct flock request {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = lock_byte(line);
  request.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &request) == 0;
}

// Does another open file description own it? Asked for a read lock, so that others who only look do not count.
// When the kernel cannot say: yes, to be safe.
inline bool is_owned_elsewhere(int fd, std::uint32_t line) noexcept {
  struct flock request {};
  request.l_type = F_RDLCK;
  request.l_whence = SEEK_SET;
  request.l_start = lock_byte(line);
  request.l_len = 1;
  return fcntl(fd, F_OFD_GETLK, &request) != 0 || request.l_type != F_UNLCK;
}

// The same file under a new open file description, even when it has no name any more.
inline int reopen(int fd) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, O_RDWR | O_CLOEXEC);
}

}  // namespace ofd

struct Identity {
  std::uint64_t boot_id[2] = {};
  std::uint64_t start_ticks = 0;
};

class Roster {
 public:
  enum class Joined : std::uint8_t { yes, table_full, too_many_threads, lost_by_fork };

  // Where a file's descriptor would be: the queue lives in one process, and nobody else can hold anything.
  static constexpr int one_process = -2;

  // The descriptor must be the only one of its open file description; the roster closes it.
  Roster(int fd, ParticipantLine* lines, std::uint32_t count, std::atomic<std::uint32_t>* used,
         Identity identity) noexcept
      : fd_(fd), lines_(lines), count_(count), used_(used), identity_(identity) {
    enlist();
  }

  ~Roster() {
    delist();
    leave();
  }

  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;

  // The calling thread's line number plus one; 0: it has none yet, call join().
  [[nodiscard]] std::uint32_t mine_plus_one() const noexcept {
    const std::uint32_t thread = thread_number::mine();
    return thread < thread_number::limit ? line_of_thread_[thread].load(std::memory_order_relaxed) : 0;
  }

  // is_settled(line): nothing that the line's dead owner declared is outstanding. Called with its lock held.
  template <class IsSettled>
  [[nodiscard]] Joined join(IsSettled is_settled) noexcept {
    const std::uint32_t thread = thread_number::mine();
    if (thread == thread_number::limit) return Joined::too_many_threads;
    std::uint32_t line = 0;
    const std::lock_guard lock(mutex_);
    const Joined joined = take_line(is_settled, line);
    if (joined == Joined::table_full && take_from_ended(thread)) return Joined::yes;
    if (joined == Joined::yes) line_of_thread_[thread].store(line + 1, std::memory_order_relaxed);
    return joined;
  }

  // The same for a line that is no thread's. let_go(line) ends it, and what it names is then a dead one's.
  template <class IsSettled>
  [[nodiscard]] Joined join_apart(IsSettled is_settled, std::uint32_t& line) noexcept {
    const std::lock_guard lock(mutex_);
    return take_line(is_settled, line);
  }

  [[nodiscard]] bool is_alive(std::uint32_t line) const noexcept {
    if (owned_[line].load(std::memory_order_acquire)) return true;  // the kernel hides our own locks from us
    if (fd_ == one_process) return false;
    return fd_ < 0 || ofd::is_owned_elsewhere(fd_, line);
  }

  // Clear a dead owner's line once nothing of it is outstanding, so that later scans are short.
  template <class IsSettled>
  void tidy(std::uint32_t line, IsSettled is_settled) noexcept {
    const std::lock_guard lock(mutex_);
    if (!is_lost() && look_if_settled(line, is_settled)) lock_byte_of(line, F_UNLCK);
  }

  // Else a table in which nobody could join may have room in a moment.
  [[nodiscard]] bool is_full_of_the_living() const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i)
      if (!is_alive(i)) return false;
    return true;
  }

  // Lines in use, dead ones not yet recovered included. The shared word is only believed within the table.
  [[nodiscard]] std::uint32_t used() const noexcept {
    const std::uint32_t used = used_->load(std::memory_order_acquire);
    return used < count_ ? used : count_;
  }

  [[nodiscard]] ParticipantLine* lines() const noexcept { return lines_; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  // Locks beyond the participants', for whatever else of a queue lives as long as its process holds it.
  // False: somebody has it, perhaps we.
  [[nodiscard]] bool hold(std::uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    if (is_lost() || owned_[number].load(std::memory_order_relaxed) || !lock_byte_of(number, F_WRLCK)) return false;
    owned_[number].store(true, std::memory_order_release);
    return true;
  }
  [[nodiscard]] bool holds(std::uint32_t number) const noexcept {
    return owned_[number].load(std::memory_order_acquire);
  }
  void let_go(std::uint32_t number) noexcept {
    const std::lock_guard lock(mutex_);
    if (is_lost() || !owned_[number].load(std::memory_order_relaxed)) return;
    owned_[number].store(false, std::memory_order_relaxed);
    lock_byte_of(number, F_UNLCK);
  }

  // Counts forks: what was held before one is the parent's.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  [[nodiscard]] int descriptor() const noexcept { return fd_; }

  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    PENSTOCK_FAILPOINT("roster.before_leave");
    if (fd_ >= 0) close(fd_);  // drops every lock of this description
    PENSTOCK_FAILPOINT("roster.left");
    fd_ = -1;
    forget_lines();
  }

 private:
  [[nodiscard]] bool is_lost() const noexcept { return fd_ == -1; }

  bool lock_byte_of(std::uint32_t number, short type) const noexcept {
    return fd_ == one_process || ofd::lock(fd_, number, type);
  }

  template <class IsSettled>
  [[nodiscard]] Joined take_line(IsSettled is_settled, std::uint32_t& line) noexcept {
    if (is_lost()) return Joined::lost_by_fork;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!look_if_settled(i, is_settled)) continue;
      if (!lock_byte_of(i, F_WRLCK)) {  // somebody else looks as well
        lock_byte_of(i, F_UNLCK);
        continue;
      }
      PENSTOCK_FAILPOINT("roster.locked");
      write_identity(lines_[i]);
      PENSTOCK_FAILPOINT("roster.identified");
      raise_used(i + 1);
      PENSTOCK_FAILPOINT("roster.joined");
      owned_[i].store(true, std::memory_order_release);
      line = i;
      return Joined::yes;
    }
    return Joined::table_full;
  }

  // The line of a thread of ours that has ended, if nobody has its number by now: whoever gets that later finds no line.
  [[nodiscard]] bool take_from_ended(std::uint32_t thread) noexcept {
    const std::lock_guard lock(thread_number::mutex);
    for (std::uint32_t ended = 0; ended < thread_number::limit; ++ended) {
      if (thread_number::taken[ended].users != 0) continue;
      const std::uint32_t line_plus_one = line_of_thread_[ended].exchange(0, std::memory_order_relaxed);
      if (line_plus_one == 0) continue;
      // for people; to the others the line is still ours, and of the same tenure
      lines_[line_plus_one - 1].thread.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
      line_of_thread_[thread].store(line_plus_one, std::memory_order_relaxed);
      return true;
    }
    return false;
  }

  // R2: take the line's read lock, and keep it only if its last owner left nothing behind.
  template <class IsSettled>
  [[nodiscard]] bool look_if_settled(std::uint32_t i, IsSettled is_settled) noexcept {
    if (owned_[i].load(std::memory_order_relaxed) || !lock_byte_of(i, F_RDLCK)) return false;
    PENSTOCK_FAILPOINT("roster.looking");
    if (lines_[i].intent.load(std::memory_order_acquire) != 0) {
      if (!is_settled(i)) {
        lock_byte_of(i, F_UNLCK);
        return false;
      }
      PENSTOCK_FAILPOINT("roster.before_tidy");
      lines_[i].intent.store(0, std::memory_order_release);  // keeps R1
      PENSTOCK_FAILPOINT("roster.tidied");
    }
    return true;
  }

  void write_identity(ParticipantLine& line) noexcept {
    // release: who sees the new tenure knows that the last owner has ended, and all that it did
    line.tenure.fetch_add(1, std::memory_order_release);
    line.pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
    line.thread.store(static_cast<std::uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
    line.start_ticks.store(identity_.start_ticks, std::memory_order_relaxed);
    line.boot_id[0].store(identity_.boot_id[0], std::memory_order_relaxed);
    line.boot_id[1].store(identity_.boot_id[1], std::memory_order_relaxed);
    line.looking.store(0, std::memory_order_relaxed);  // its last owner may have died in a look
  }

  void raise_used(std::uint32_t least) noexcept {
    std::uint32_t used = used_->load(std::memory_order_relaxed);
    // release: a claim by this line comes later, and a scan that sees the claim must look this far
    while (used < least &&
           !used_->compare_exchange_weak(used, least, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
  }

  void forget_lines() noexcept {
    for (auto& line : line_of_thread_) line.store(0, std::memory_order_relaxed);
    for (auto& owned : owned_) owned.store(false, std::memory_order_relaxed);
  }

  // Every roster of this process, whichever module made it, for the fork handlers: see thread_number.
  [[gnu::visibility("default")]] static inline std::mutex registry_mutex_;
  [[gnu::visibility("default")]] static inline Roster* registry_ = nullptr;
  [[gnu::visibility("default")]] static inline bool has_fork_handlers_ = false;
  Roster* next_ = nullptr;

  void enlist() noexcept {
    const std::lock_guard lock(registry_mutex_);
    if (!has_fork_handlers_) has_fork_handlers_ = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
    next_ = registry_;
    registry_ = this;
  }

  void delist() noexcept {
    const std::lock_guard lock(registry_mutex_);
    for (Roster** at = &registry_; *at != nullptr; at = &(*at)->next_) {
      if (*at == this) {
        *at = next_;
        return;
      }
    }
  }

  static void before_fork() noexcept {
    registry_mutex_.lock();
    for (Roster* roster = registry_; roster != nullptr; roster = roster->next_) roster->mutex_.lock();
    thread_number::mutex.lock();
  }

  static void after_fork_in_parent() noexcept {
    thread_number::mutex.unlock();
    for (Roster* roster = registry_; roster != nullptr; roster = roster->next_) roster->mutex_.unlock();
    registry_mutex_.unlock();
  }

  // Only async-signal-safe calls: other threads of the parent may have held any lock of the C library.
  static void after_fork_in_child() noexcept {
    for (thread_number::Taken& taken : thread_number::taken)
      if (!pthread_equal(taken.thread, pthread_self())) taken.users = 0;
    new (&thread_number::mutex) std::mutex;
    for (Roster* roster = registry_; roster != nullptr; roster = roster->next_) {
      roster->start_anew();
      new (&roster->mutex_) std::mutex;
    }
    new (&registry_mutex_) std::mutex;
  }

  void start_anew() noexcept {
    forget_lines();
    generation_.fetch_add(1, std::memory_order_relaxed);
    if (fd_ < 0) return;
    const int fresh = ofd::reopen(fd_);
    close(fd_);  // the parent's locks stay: it still has the description
    fd_ = fresh;
  }

  int fd_;
  ParticipantLine* lines_;
  std::uint32_t count_;
  std::atomic<std::uint32_t>* used_;
  Identity identity_;
  std::mutex mutex_;
  std::atomic<std::uint32_t> line_of_thread_[thread_number::limit] = {};
  std::atomic<bool> owned_[lock_numbers] = {};
  std::atomic<std::uint32_t> generation_{0};
};

}  // namespace penstock
