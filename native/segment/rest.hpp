// What is out of a queue that was shut down and is empty: items that somebody has on lease, or is just getting.
//
// Shape      shut down and empty ─► is anything out? ─┬─ no ─► it is over
//                                                     └─ yes ─► sleep on the items' event ─► look for the dead, try again
// Roles      consumers wait; who ends a lease, or gets what a dead one had, wakes them all.
// Invariants O1  what is out is told by the same words that a recovery goes by, never by a count: a kill leaves none wrong.
//            O2  in such a queue nothing new is claimed, so what is out only becomes less, and what was seen to be in is
//                over for good. An item that is taken over is out all the time: its words say so before they say less.
//            O3  who has a lease itself does not wait for others': they might wait for each other. It is told that there
//                is nothing for it now, and may ask again when it has released what it has.
// Progress   a sleep ends after park_limit: the dead wake nobody. Nor does a get when its copy is done, so that it costs
//            nothing: the first looks come soon after each other.
#pragma once

#include <iterator>

#include "core/thread_slots.hpp"
#include "segment/event.hpp"

namespace queueduct {

// Who has a lease, of all queues of this process: a thread may have it by one handle and ask by another. One table for
// all modules, as that of thread_number.hpp. Only its own thread reads what it has written, and others write 0: relaxed.
struct RestHolder {
  std::atomic<std::uint64_t> who;  // | forks + 1 : 32 | the thread's serial : 32 |, 0: free
  std::atomic<std::uint64_t> queue;
};
inline constexpr std::uint32_t rest_places = 1024;  // leases that are remembered at a time
[[gnu::visibility("default")]] inline RestHolder rest_holders[rest_places];

class Rest {
 public:
  static constexpr std::uint32_t no_place = rest_places;

  // The same for all handles of a queue in this process. Without it a handle stands for itself.
  void identify(std::uint64_t queue) noexcept { queue_ = queue; }

  // The calling thread has a lease.
  [[nodiscard]] std::uint32_t note() noexcept {
    const std::uint64_t me = word_of_this_thread();
    for (std::uint32_t place = 0; place < rest_places; ++place) {
      RestHolder& holder = rest_holders[place];
      std::uint64_t seen = holder.who.load(std::memory_order_relaxed);
      // what was held before a fork is the parent's
      if ((seen == 0 || seen >> 32 != me >> 32) &&
          holder.who.compare_exchange_strong(seen, me, std::memory_order_relaxed)) {
        holder.queue.store(queue_, std::memory_order_relaxed);
        return place;
      }
    }
    return no_place;
  }
  static void forget(std::uint32_t place) noexcept {
    if (place < rest_places) rest_holders[place].who.store(0, std::memory_order_relaxed);
  }
  // keeps O3
  [[nodiscard]] bool has_this_thread_any() const noexcept {
    const std::uint64_t me = word_of_this_thread();
    for (const RestHolder& holder : rest_holders)
      if (holder.who.load(std::memory_order_relaxed) == me && holder.queue.load(std::memory_order_relaxed) == queue_)
        return true;
    return false;
  }

  // Until something may have come back, or nothing is out any more, or limit_ns has passed; the caller tries again.
  template <class IsOver>
  void wait(Event items, IsOver is_over, std::int64_t limit_ns) noexcept {
    const std::uint32_t look = looks_.fetch_add(1, std::memory_order_relaxed);  // a hint
    const std::int64_t longest = look < std::size(first_looks_ns) ? first_looks_ns[look] : park_limit_ns;
    const std::uint32_t ticket = items.announce();
    if (is_over()) return;  // W1
    items.park(ticket, limit_ns < longest ? limit_ns : longest);
  }

  // After something was given back for good, or was left to others.
  template <class IsShut>
  static void wake(Event items, IsShut is_shut) noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2: what is out no more, before the look whether it is shut
    QUEUEDUCT_FAILPOINT("rest.before_wake");
    if (is_shut()) [[unlikely]] items.wake_all();
    QUEUEDUCT_FAILPOINT("rest.woken");
  }

 private:
  static constexpr std::int64_t first_looks_ns[] = {100'000, 1'000'000, 10'000'000};

  [[nodiscard]] static std::uint64_t word_of_this_thread() noexcept {
    const std::uint32_t forks = thread_number::forks.load(std::memory_order_relaxed);
    return (std::uint64_t{forks} + 1) << 32 | thread_number::my_serial();
  }

  std::uint64_t queue_ = reinterpret_cast<std::uintptr_t>(this);
  std::atomic<std::uint32_t> looks_{0};
};

}  // namespace queueduct
