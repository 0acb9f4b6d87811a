// A pointer that is replaced while others take references to it: nobody gets what is gone, and what is old goes.
#include <barrier>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "core/handover.hpp"

namespace queueduct::testing {

// Freed by whoever drops the last reference, as an object of Python's is.
struct Counted {
  std::atomic<int> references{1};
  std::atomic<int>* freed;
  std::uint64_t value = 7;

  explicit Counted(std::atomic<int>* counter) : freed(counter) {}
};

struct Count {
  static void keep(Counted* counted) noexcept { counted->references.fetch_add(1, std::memory_order_relaxed); }
  static void drop(Counted* counted) noexcept {
    if (counted->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    counted->freed->fetch_add(1, std::memory_order_relaxed);
    counted->value = 0;
    delete counted;
  }
};

struct Handle {
  std::atomic<int> freed{0};
  Counted* place = new Counted(&freed);
  Handover<Counted, Count> handover;
  ~Handle() { Count::drop(place); }
};

TEST(what_is_taken_is_a_reference_of_ones_own) {
  Handle handle;
  Counted* const taken = handle.handover.take(handle.place);
  CHECK_EQUAL(taken->references.load(), 2);
  Count::drop(taken);
  CHECK_EQUAL(handle.freed.load(), 0);
}

TEST(what_is_replaced_goes_at_once_where_nobody_uses_it) {
  Handle handle;
  CHECK(handle.handover.replace(handle.place, handle.place, new Counted(&handle.freed)));
  CHECK_EQUAL(handle.freed.load(), 1);
}

TEST(what_is_replaced_goes_with_the_last_who_uses_it) {
  Handle handle;
  Counted* const taken = handle.handover.take(handle.place);
  CHECK(handle.handover.replace(handle.place, taken, new Counted(&handle.freed)));
  CHECK_EQUAL(handle.freed.load(), 0);
  Count::drop(taken);
  CHECK_EQUAL(handle.freed.load(), 1);
}

TEST(only_one_replaces_it) {
  Handle handle;
  Counted* const before = handle.place;
  Counted second(&handle.freed);
  CHECK(handle.handover.replace(handle.place, before, new Counted(&handle.freed)));
  CHECK(!handle.handover.replace(handle.place, before, &second));
}

TEST(nobody_gets_what_is_gone_and_what_is_old_goes) {
  constexpr int rounds = 300;
  constexpr int takers = 3;
  for (int round = 0; round < rounds; ++round) {
    Handle handle;
    Counted* const before = handle.place;
    std::barrier ready(takers + 2);
    std::atomic<int> replaced{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < takers; ++i) {
      threads.emplace_back([&] {
        ready.arrive_and_wait();
        for (int k = 0; k < 20; ++k) {
          Counted* const taken = handle.handover.take(handle.place);
          CHECK_EQUAL(taken->value, std::uint64_t{7});
          Count::drop(taken);
        }
      });
    }
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        auto* const after = new Counted(&handle.freed);
        ready.arrive_and_wait();
        if (handle.handover.replace(handle.place, before, after))
          replaced.fetch_add(1);
        else
          Count::drop(after);
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQUAL(replaced.load(), 1);
    CHECK_EQUAL(handle.freed.load(), 2);  // the old one, and that of who came second
  }
}

}  // namespace queueduct::testing
