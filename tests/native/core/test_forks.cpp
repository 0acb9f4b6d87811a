// A fork at every step of a participant's life: the child, which lives on and does nothing, keeps nobody alive.
//
// The fork is made by another thread while the participant stands at the step. Where it has a mutex that a fork waits
// for, the fork comes as soon as it goes on.
#define QUEUEDUCT_FAILPOINTS

#include <signal.h>
#include <sys/wait.h>

#include <condition_variable>
#include <memory>
#include <thread>

#include "bounded/queue.hpp"
#include "support/check.hpp"
#include "support/items_for_tests.hpp"

namespace queueduct::testing {

// Forks in a thread of its own.
class Forker {
 public:
  Forker() : thread_([this] { run(); }) {}
  ~Forker() {
    wait();
    thread_.join();
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  Forker(const Forker&) = delete;
  Forker& operator=(const Forker&) = delete;

  // Begins to fork, and gives it some time.
  void ask() {
    std::unique_lock lock(mutex_);
    is_asked_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(20), [this] { return child_ != 0; });
  }
  void wait() {
    std::unique_lock lock(mutex_);
    is_asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return child_ != 0; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_asked_; });
    lock.unlock();
    const pid_t child = fork();
    if (child == 0)
      for (;;) pause();
    lock.lock();
    child_ = child;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_asked_ = false;
  pid_t child_ = 0;
  std::thread thread_;
};

static std::uint64_t steps = 0;
static std::uint64_t chosen = 0;  // at which of them to fork
static Forker* forker = nullptr;
static std::thread::id participant;

static void at_step(const char*) {
  if (std::this_thread::get_id() != participant) return;
  if (++steps == chosen && forker != nullptr) forker->ask();
}

// Opens, joins, puts, leases, gives back, leases again, closes with the lease in hand.
static void live(const Segment& segment) {
  participant = std::this_thread::get_id();
  steps = 0;
  failpoint::armed = at_step;
  {
    Attachment attached(segment);
    REQUIRE(put_number(attached, 1) == Outcome::done);
    std::uint64_t count = 0;
    std::uint64_t skipped = 0;
    Redelivered item;
    BoundedLease first(attached.queue());
    REQUIRE(first.join() == ParticipantTable::Joined::yes);
    REQUIRE(first.try_claim(&item, 1, count, skipped) == Outcome::done);
    first.let_go();
    BoundedLease second(attached.queue());
    REQUIRE(second.join() == ParticipantTable::Joined::yes);
    while (count == 0) count = second.try_inherit(&item, 1).count;
    attached.die();
  }
  failpoint::disarm();
}

TEST(a_child_forked_at_any_step_keeps_nobody_alive_and_nothing_back) {
  std::uint64_t all = 0;
  {
    Segment segment({});
    live(segment);
    all = steps;
  }
  REQUIRE(all > 30);
  for (chosen = 1; chosen <= all; ++chosen) {
    Segment segment({});
    Forker beside;
    forker = &beside;
    live(segment);
    beside.wait();
    forker = nullptr;
    Attachment observer(segment);
    // fork() may return before the child has run at all, and so before it has let go of what it inherited
    for (int attempt = 0; attempt < 10'000 && observer.queue().count_alive() != 0; ++attempt)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_EQUAL(observer.queue().count_alive(), 0u);
    const Recovery::RecoveryScan found = observer.queue().recovery().run();
    CHECK(found.redeliverable);  // what the dead one had on lease
  }
}

TEST(a_child_forked_beside_the_end_of_threads_can_join) {
  Segment segment({});
  Attachment attached(segment);
  for (int i = 0; i < 50; ++i) {
    std::thread short_lived([&] { (void)attached.ledger(); });
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(put_number(attached, 1) == Outcome::done ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQUAL(status, 0);
    short_lived.join();
    std::uint64_t number = 0;
    CHECK(get_number(attached, number) == Outcome::done);
  }
}

}  // namespace queueduct::testing

#ifdef __SANITIZE_THREAD__
// A child exits while threads of its parent had ended and were not joined yet: ThreadSanitizer takes that for a leak.
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }
#endif
