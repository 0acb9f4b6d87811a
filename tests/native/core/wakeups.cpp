// Lost wake-ups, counted: sleeps that end by their bound although something was published for them.
//
// A round: one thread announces itself, looks, and sleeps; the other publishes and notifies at the same moment, on
// another core, after a delay of some cycles that is drawn anew each time. Nobody spins before a sleep. A wake-up is
// lost if neither sees the other; the fences of event.hpp (W1, W2) forbid just that.
//   test_wakeups [name] [--rounds=N]   all of it, N rounds each
// Built without the fence of notify() (QUEUEDUCT_WITHOUT_NOTIFY_FENCE) it must find some, which shows that it can.
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "support/check.hpp"
#include "support/events_for_tests.hpp"
#include "support/growing_segment.hpp"
#include "support/items_for_tests.hpp"
#include "support/overwriting_segment.hpp"
#include "support/slots_segment.hpp"

namespace queueduct::testing {

#ifdef QUEUEDUCT_WITHOUT_NOTIFY_FENCE
constexpr bool is_fenced = false;
#else
constexpr bool is_fenced = true;
#endif

std::uint64_t rounds_asked = 10'000;

struct alignas(128) Number {
  std::atomic<std::uint64_t> value{0};
};

struct Counted {
  std::uint64_t rounds = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t lost = 0;
};

// What two threads do in a round. Each names its own end of the queue.
struct Sides {
  std::function<Event()> sleepers_event;
  std::function<void(std::uint64_t)> publish;          // round's item, and whoever sleeps is woken
  std::function<bool(std::uint64_t)> is_there;         // look for it; take it, where it can be taken
  std::function<void(Event, std::uint32_t)> sleep;     // as long as anybody sleeps at a time
  std::function<void()> clear_mark = [] {};            // that somebody may sleep, left by the last round
};

std::vector<int> usable_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cores.push_back(i);
  return cores;
}

void stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void await(const Number& number, std::uint64_t wanted) {
  for (int spins = 0; number.value.load(std::memory_order_acquire) < wanted; ++spins) {
    cpu_pause();
    if (spins > 2'000) sched_yield();
  }
}

void dawdle(std::uint64_t& seed, std::uint64_t most) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  for (std::uint64_t i = (seed >> 33) % most; i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Until so many rounds are over, or so many wake-ups were lost.
Counted race(const Sides& sides, std::uint64_t rounds, std::uint64_t enough) {
  Number ready, go, done;
  std::atomic<bool> is_over{false};
  Counted counted;
  const std::vector<int> cores = usable_cores();
  std::thread sleeper([&] {
    if (cores.size() > 1) stay_on(cores[0]);
    std::uint64_t seed = 1;
    for (std::uint64_t round = 1; round <= rounds && !is_over.load(); ++round) {
      const Event event = sides.sleepers_event();
      ready.value.store(round, std::memory_order_release);
      await(go, round);
      dawdle(seed, 200);
      for (;;) {
        const std::uint32_t ticket = Event(event).announce();
        if (sides.is_there(round)) break;
        errno = 0;
        sides.sleep(event, ticket);
        const bool has_timed_out = errno == ETIMEDOUT;
        ++counted.sleeps;
        if (!sides.is_there(round)) continue;
        counted.lost += has_timed_out;
        break;
      }
      counted.rounds = round;
      if (counted.lost >= enough) is_over.store(true);
      done.value.store(round, std::memory_order_release);
    }
  });
  std::thread waker([&] {
    if (cores.size() > 1) stay_on(cores[1]);
    std::uint64_t seed = 7;
    for (std::uint64_t round = 1; round <= rounds && !is_over.load(); ++round) {
      await(ready, round);
      sides.clear_mark();
      go.value.store(round, std::memory_order_release);
      dawdle(seed, 400);
      sides.publish(round);
      await(done, round);
    }
  });
  sleeper.join();
  waker.join();
  return counted;
}

// With the fence none may be lost. Without it some must be, or this would notice nothing.
void check_race(const char* what, const Sides& sides) {
  if (is_fenced) {
    const Counted counted = race(sides, rounds_asked, 10);
    std::printf("       %s: %llu rounds, %llu sleeps, %llu lost wake-ups\n", what,
                static_cast<unsigned long long>(counted.rounds), static_cast<unsigned long long>(counted.sleeps),
                static_cast<unsigned long long>(counted.lost));
    CHECK_EQUAL(counted.lost, 0u);
    CHECK_EQUAL(counted.rounds, rounds_asked);
  } else {
    const Counted counted = race(sides, 100 * rounds_asked, 1);
    std::printf("       %s, without the fence: lost one after %llu rounds\n", what,
                static_cast<unsigned long long>(counted.rounds));
    CHECK(counted.lost > 0);
  }
}

// The word alone, and one number that is published.
struct WordAlone {
  alignas(128) std::atomic<std::uint32_t> word{0};
  Number published;

  [[nodiscard]] Event event() noexcept { return Event(&word); }

  [[nodiscard]] Sides sides(void (*notify)(Event), void (*sleep)(Event, std::uint32_t)) {
    return {[this] { return event(); },
            [this, notify](std::uint64_t round) {
              published.value.store(round, std::memory_order_release);
              notify(event());
            },
            [this](std::uint64_t round) { return published.value.load(std::memory_order_relaxed) >= round; }, sleep,
            [this] { word.fetch_and(~std::uint32_t{1}, std::memory_order_relaxed); }};
  }
};

void park(Event event, std::uint32_t ticket) { event.park(ticket, park_limit_ns); }
void park_for_all(Event event, std::uint32_t ticket) { (void)event.park_for_all(ticket, park_limit_ns); }
void park_and_relay(Event event, std::uint32_t ticket) { event.park_and_relay(ticket, park_limit_ns); }

TEST(notify_and_park_lose_no_wake_up) {
  WordAlone alone;
  check_race("notify, park", alone.sides([](Event event) { event.notify(); }, park));
}

TEST(notify_all_and_park_for_all_lose_no_wake_up) {
  WordAlone alone;
  check_race("notify_all, park_for_all", alone.sides([](Event event) { event.notify_all(); }, park_for_all));
}

TEST(notify_and_park_and_relay_lose_no_wake_up) {
  WordAlone alone;
  check_race("notify, park_and_relay", alone.sides([](Event event) { event.notify(); }, park_and_relay));
}

#ifndef QUEUEDUCT_WITHOUT_NOTIFY_FENCE  // a queue's own compare-and-swaps order much of this on some machines

// Whoever waits in a queue looks at it as its bindings do: by a get.

TEST(a_put_into_a_bounded_queue_wakes_who_waits_for_an_item) {
  Segment segment({});
  Attachment getter(segment);
  Attachment putter(segment);
  std::uint64_t number = 0;
  check_race("bounded", {[&] { return getter.queue().items(); },
                         [&](std::uint64_t round) {
                           CHECK(put_number(putter, round) == Outcome::done);
                           putter.queue().items().notify();
                         },
                         [&](std::uint64_t) { return get_number(getter, number) == Outcome::done; }, park,
                         [&] { putter.queue().items().wake_one(); }});
}

TEST(a_get_from_a_full_bounded_queue_wakes_who_waits_for_room) {
  Segment segment({});
  Attachment putter(segment);
  Attachment getter(segment);
  for (std::uint64_t i = 0; i < segment.shape().capacity; ++i) REQUIRE(put_number(putter, i) == Outcome::done);
  std::uint64_t number = 0;
  check_race("bounded, room", {[&] { return putter.queue().room(); },
                               [&](std::uint64_t) {
                                 CHECK(get_number(getter, number) == Outcome::done);
                                 getter.queue().room().notify();
                               },
                               [&](std::uint64_t round) { return put_number(putter, round) == Outcome::done; }, park,
                               [&] { getter.queue().room().wake_one(); }});
}

TEST(a_put_into_a_growing_queue_wakes_who_waits_for_an_item) {
  GrowingSegment segment({});
  GrowingAttachment getter(segment);
  GrowingAttachment putter(segment);
  std::uint64_t number = 0;
  check_race("growing", {[&] { return getter.queue().items(); },
                         [&](std::uint64_t round) {
                           CHECK(putter.put_number(round) == Outcome::done);
                           putter.queue().items().notify();
                         },
                         [&](std::uint64_t) { return getter.get_number(number) == Outcome::done; }, park,
                         [&] { putter.queue().items().wake_one(); }});
}

TEST(a_put_into_slots_wakes_who_waits_for_an_item) {
  SlotsSegment segment({});
  SlotsAttachment getter(segment);
  SlotsAttachment putter(segment);
  std::uint64_t number = 0;
  check_race("slots", {[&] { return getter.queue().items(); },
                       [&](std::uint64_t round) {
                         CHECK(putter.put(round) == SlotOutcome::done);
                         putter.queue().items().notify();
                       },
                       [&](std::uint64_t) { return getter.get(number) == SlotOutcome::done; }, park,
                       [&] { putter.queue().items().wake_one(); }});
}

TEST(a_put_into_an_overwriting_queue_wakes_who_waits_for_an_item) {
  OverwritingSegment segment({});
  OverwritingAttachment getter(segment);
  OverwritingAttachment putter(segment);
  std::uint64_t number = 0;
  check_race("overwriting", {[&] { return getter.queue().items(); },
                             [&](std::uint64_t round) {
                               CHECK(putter.put(round, true, park_limit_ns) == Claim::done);
                             },
                             [&](std::uint64_t) { return getter.get(number) == Claim::done; }, park,
                             [&] { putter.queue().items().wake_one(); }});
}

TEST(an_append_to_a_log_wakes_who_waits_for_an_item) {
  EventsSegment segment({});
  EventsAttachment getter(segment);
  EventsAttachment putter(segment);
  EventsReader reader(getter);
  check_race("events", {[&] { return getter.queue().items(); },
                        [&](std::uint64_t round) {
                          CHECK_EQUAL(put_each(putter, round, 1), 1u);
                          putter.queue().items().notify();
                        },
                        [&](std::uint64_t) { return !reader.read().empty(); }, park_and_relay,
                        [&] { putter.queue().items().wake_one(); }});
}

#endif

}  // namespace queueduct::testing

int main(int argc, char** argv) {
  using namespace queueduct::testing;
  constexpr std::string_view option = "--rounds=";
  if (argc > 1 && std::string_view(argv[argc - 1]).starts_with(option)) {
    rounds_asked = std::strtoull(argv[--argc] + option.size(), nullptr, 10);
  }
  if (!is_fenced && usable_cores().size() < 2) {
    std::printf("skipped: on one core nothing is lost, with or without the fence\n");
    return 77;
  }
  return run_tests(argc, argv);
}
