// Handing over: one thread replaces a counted pointer while others take references to what it points to.
//
// Shape      the pointer's place, which is the owner's, and one word | how many are just taking : 63 | replaced : 1 |
// Roles      any number of takers; one thread, whichever comes first, replaces the pointer, once.
// Invariants T1  a taker counts itself in before it reads the place, and out after it has its reference.
//            T2  who replaces the pointer does so before it sets bit 0. Both, and what T1 does, are seq_cst: a taker
//                that read the old pointer had counted itself in when bit 0 was set.
//            T3  the old pointer's reference is dropped when bit 0 is set and nobody is counted: by who set the bit,
//                or by the last taker who leaves after that. Who counts itself in later reads the new pointer, so
//                that nobody can be about to take a reference to the old one any more.
//            T4  the old pointer is taken out of its place by an exchange: it is dropped once, however many are last.
// Progress   nobody waits. A taker that is stopped between its two steps delays the drop, and nothing else.
// Source     the object's own count cannot do it: reading a pointer and counting a reference are two steps.
#pragma once

#include <atomic>
#include <cstdint>

namespace queueduct {

// Count::keep(pointer) takes a reference, Count::drop(pointer) gives one up.
template <class Pointed, class Count>
class Handover {
 public:
  // A reference to what `place` points to.
  template <class Place>
  [[nodiscard]] Place* take(Place*& place) noexcept {
    word_.fetch_add(one, std::memory_order_seq_cst);  // T1, before the load
    Place* const found = std::atomic_ref<Place*>(place).load(std::memory_order_seq_cst);
    Count::keep(found);
    // acq_rel: the reference is there before anybody can drop the old one, and we see what T3 is to drop
    if (word_.fetch_sub(one, std::memory_order_acq_rel) == (one | replaced)) drop_old();
    return found;
  }

  // The place's reference to `before` is given up, and `after`'s goes in, unless somebody was faster: then False.
  template <class Place>
  [[nodiscard]] bool replace(Place*& place, Place* before, Place* after) noexcept {
    Place* expected = before;
    if (!std::atomic_ref<Place*>(place).compare_exchange_strong(expected, after, std::memory_order_seq_cst))
      return false;
    old_.store(before, std::memory_order_relaxed);  // seen by who sees bit 0
    if (word_.fetch_or(replaced, std::memory_order_seq_cst) == 0) drop_old();  // T2, after the exchange
    return true;
  }

 private:
  static constexpr std::uint64_t replaced = 1;
  static constexpr std::uint64_t one = 2;

  void drop_old() noexcept {
    if (void* const old = old_.exchange(nullptr, std::memory_order_acq_rel)) Count::drop(static_cast<Pointed*>(old));  // T4
  }

  std::atomic<std::uint64_t> word_{0};
  std::atomic<void*> old_{nullptr};  // its place may know it by another type of the same address
};

}  // namespace queueduct
