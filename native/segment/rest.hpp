// What is out of a queue that was shut down and is empty: items on lease, or in a get that is not finished.
//
// Shape      shut down and empty -> is anything out? ─┬─ no -> it is over
//                                                     └─ yes -> sleep on the items' event -> recover, try again
// Roles      consumers wait; a consumer that ends a lease, or gets a dead one's item, wakes them all.
// Invariants O1  whether an item is out is read from the words that recovery uses, never from a count: a kill leaves
//                none of them wrong.
//            O2  in such a queue nothing new is claimed, so items that are out only become fewer, and an item seen not
//                to be out is over for good. An item that is taken over is out all the time: its words say so first.
//            O3  a thread that has a lease does not wait for others' leases: they might wait for each other. It is told
//                that there is nothing now, and may ask again when it has released its own.
// Progress   a sleep ends after park_limit: a dead consumer wakes nobody. A get does not wake when its copy is done,
//            to cost nothing: so the first sleeps are short.
#pragma once

#include <iterator>

#include "core/thread_slots.hpp"
#include "segment/event.hpp"

namespace queueduct {

// Which threads have leases, on all queues of this process: a thread may lease by one handle and ask by another. One
// table for all modules, as in core/thread_slots.hpp. A thread reads only its own entries, others write 0: relaxed.
struct RestHolder {
  std::atomic<std::uint64_t> thread;  // | forks + 1 : 32 | the thread's serial : 32 |, 0: free
  std::atomic<std::uint64_t> queue;
};
inline constexpr std::uint32_t rest_holders_limit = 1024;  // leases remembered at a time
[[gnu::visibility("default")]] inline RestHolder rest_holders[rest_holders_limit];

class Rest {
 public:
  static constexpr std::uint32_t not_noted = rest_holders_limit;

  // `queue` is the same for all handles of a queue in this process. Without it a handle stands for itself.
  void identify(std::uint64_t queue) noexcept { queue_ = queue; }

  // Notes that the calling thread has a lease. Returns where, for forget().
  [[nodiscard]] std::uint32_t note() noexcept {
    const std::uint64_t me = word_of_this_thread();
    for (std::uint32_t i = 0; i < rest_holders_limit; ++i) {
      RestHolder& holder = rest_holders[i];
      std::uint64_t seen = holder.thread.load(std::memory_order_relaxed);
      // an entry from before a fork is the parent's
      if ((seen == 0 || seen >> 32 != me >> 32) &&
          holder.thread.compare_exchange_strong(seen, me, std::memory_order_relaxed)) {
        holder.queue.store(queue_, std::memory_order_relaxed);
        return i;
      }
    }
    return not_noted;
  }
  static void forget(std::uint32_t noted_at) noexcept {
    if (noted_at < rest_holders_limit) rest_holders[noted_at].thread.store(0, std::memory_order_relaxed);
  }
  // keeps O3
  [[nodiscard]] bool has_this_thread_any() const noexcept {
    const std::uint64_t me = word_of_this_thread();
    for (const RestHolder& holder : rest_holders)
      if (holder.thread.load(std::memory_order_relaxed) == me && holder.queue.load(std::memory_order_relaxed) == queue_)
        return true;
    return false;
  }

  // Sleeps until an item may be back, or nothing is out any more, or limit_ns has passed; the caller tries again.
  template <class IsOver>
  void wait(Event items, IsOver is_over, std::int64_t limit_ns) noexcept {
    const std::uint32_t sleep = sleeps_.fetch_add(1, std::memory_order_relaxed);  // a hint
    const std::int64_t longest = sleep < std::size(first_sleeps_ns) ? first_sleeps_ns[sleep] : park_limit_ns;
    const std::uint32_t ticket = items.announce();
    if (is_over()) return;  // W1
    items.park(ticket, limit_ns < longest ? limit_ns : longest);
  }

  // After an item was released, or given back.
  template <class IsShut>
  static void wake(Event items, IsShut is_shut) noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2: the release, before is_shut() is read
    QUEUEDUCT_FAILPOINT("rest.before_wake");
    if (is_shut()) [[unlikely]]
      items.wake_all();
    QUEUEDUCT_FAILPOINT("rest.woken");
  }

 private:
  static constexpr std::int64_t first_sleeps_ns[] = {100'000, 1'000'000, 10'000'000};

  [[nodiscard]] static std::uint64_t word_of_this_thread() noexcept {
    const std::uint32_t forks = thread_number::forks.load(std::memory_order_relaxed);
    return (std::uint64_t{forks} + 1) << 32 | thread_number::my_serial();
  }

  std::uint64_t queue_ = reinterpret_cast<std::uintptr_t>(this);
  std::atomic<std::uint32_t> sleeps_{0};
};

}  // namespace queueduct
