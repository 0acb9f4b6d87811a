// A limit on the items of a growing queue, however long they are. For queues of a family of processes.
//
// Shape      one line behind the segment's header, before its control block: a mutex, the limit, a credit.
//            put: lock -> credit left? if not, count the items -> claim and publish -> unlock
// Roles      every producer of such a queue puts under the mutex; consumers do not know of it.
// Invariants N1  items are added only under the mutex, so between a count and the put that follows it the number of
//                items only falls: it never exceeds the limit. An item that comes back from a dead consumer is not
//                put, and may exceed it.
//            N2  credit <= limit - items at every moment. It falls by one before each put, so a producer that dies in
//                a put leaves it too small, and never too large. A credit of 0 means: count.
// Progress   blocking: a stopped producer stops the others, a dead one does not.
// Source     a robust mutex of the C library: the kernel releases it when its owner's thread ends. A thread holds one
//            of them at a time, in native code only.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <cstdint>

#include "segment/layout.hpp"

namespace queueduct {

class ItemLimit {
 public:
  // Once, on zeroed memory that no other process knows yet. Returns an errno, or 0.
  [[nodiscard]] int initialise(std::uint64_t limit) noexcept {
    pthread_mutexattr_t attributes;
    if (const int error = pthread_mutexattr_init(&attributes)) return error;
    int error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (error == 0) error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (error == 0) error = pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
    limit_ = limit;
    return error;
  }

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }

  [[nodiscard]] bool try_lock() noexcept { return is_locked(pthread_mutex_trylock(&mutex_)); }
  // Returns false when limit_ns, at most a second, has passed.
  [[nodiscard]] bool lock(std::int64_t limit_ns) noexcept {
    timespec end{};
    clock_gettime(CLOCK_REALTIME, &end);  // pthread_mutex_clocklock() needs a newer C library
    end.tv_nsec += limit_ns;
    end.tv_sec += end.tv_nsec / 1'000'000'000;
    end.tv_nsec %= 1'000'000'000;
    return is_locked(pthread_mutex_timedlock(&mutex_, &end));
  }
  void unlock() noexcept { (void)pthread_mutex_unlock(&mutex_); }

  // Under the mutex. count() returns how many items there are. keeps N1, N2
  [[nodiscard]] bool take_credit(auto count) noexcept {
    if (credit_ == 0) {
      const std::uint64_t items = count();
      credit_ = items < limit_ ? limit_ - items : 0;
    }
    if (credit_ == 0) return false;
    --credit_;
    return true;
  }

 private:
  [[nodiscard]] bool is_locked(int error) noexcept {
    if (error == EOWNERDEAD) {
      credit_ = 0;  // N2
      error = pthread_mutex_consistent(&mutex_);
    }
    return error == 0;
  }

  pthread_mutex_t mutex_;
  std::uint64_t limit_;
  std::uint64_t credit_;
};
static_assert(sizeof(ItemLimit) <= line_bytes);

}  // namespace queueduct
