// Writes a log to its disk at intervals, by a thread of the handle's own.
//
// Roles      the owner starts it, and stops it before it goes. Any thread starts it again in a forked child, which has
//            none. The program's signals go to the program's threads.
// Progress   one sync an interval, only if there is something new. An error is left to the next put or sync, which
//            meets it again and throws.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace queueduct::facade {

class SyncThread {
 public:
  SyncThread(std::chrono::nanoseconds interval, std::function<void()> sync)
      : interval_(interval), sync_(std::move(sync)) {}
  ~SyncThread() { stop(); }
  SyncThread(const SyncThread&) = delete;
  SyncThread& operator=(const SyncThread&) = delete;

  // Does nothing if this process has the thread already.
  void start() {
    const pid_t here = getpid();
    if (process_.exchange(here) == here) return;
    (void)running_.release();  // the parent's: neither its thread nor its mutex may be touched here
    try {
      running_ = std::make_unique<Running>();
      const WithoutSignals blocked;
      running_->thread = std::thread([this, running = running_.get()] { run(*running); });
    } catch (...) {
      running_.reset();
      process_ = 0;  // the next call tries again
      throw;
    }
  }
  void stop() noexcept {
    if (process_.exchange(0) != getpid()) {
      (void)running_.release();
      return;
    }
    {
      const std::lock_guard lock(running_->mutex);
      running_->is_stopping = true;
    }
    running_->changed.notify_all();
    running_->thread.join();
    running_.reset();
  }

 private:
  struct Running {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_stopping = false;
    std::thread thread;
  };

  // A thread inherits the mask. Faults stay unblocked: segment/fault_guard.hpp handles SIGBUS.
  struct WithoutSignals {
    WithoutSignals() noexcept {
      sigset_t all;
      sigfillset(&all);
      for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, fault);
      pthread_sigmask(SIG_BLOCK, &all, &before);
    }
    ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };

  void run(Running& running) {
    std::unique_lock lock(running.mutex);
    while (!running.changed.wait_for(lock, interval_, [&] { return running.is_stopping; })) {
      lock.unlock();
      try {
        sync_();
      } catch (const std::exception&) {
        // the next put or sync meets it again
      }
      lock.lock();
    }
  }

  std::chrono::nanoseconds interval_;
  std::function<void()> sync_;
  std::atomic<pid_t> process_{0};  // which has the thread
  std::unique_ptr<Running> running_;
};

}  // namespace queueduct::facade
