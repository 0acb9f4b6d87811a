// Handover: one thread replaces a reference-counted pointer while other threads take references through it.
//
// Shape      the pointer, in a field of its owner, and one word | active takers : 63 | replaced : 1 |
// Roles      any number of takers; one replacer, the first thread that tries, once.
// Invariants T1  a taker counts itself in before it reads the pointer, and out after it has its reference.
//            T2  the replacer exchanges the pointer before it sets bit 0. Both steps, and the first two of T1, are
//                seq_cst. So a taker that read the old pointer counted itself in before bit 0 was set.
//            T3  the old pointer's reference is dropped when bit 0 is set and no taker is counted: by the replacer, or
//                by the last taker that leaves after it. A taker that comes later reads the new pointer.
//            T4  drop_old() takes the old pointer by an exchange, so it is dropped once.
// Progress   wait-free. A taker that is stopped between its two steps delays only the drop.
// Source     ours. The object's own count is not enough: reading a pointer and counting a reference are two steps.
#pragma once

#include <atomic>
#include <cstdint>

namespace queueduct {

// Count::keep(pointer) takes a reference, Count::drop(pointer) releases one.
template <class Pointed, class Count>
class Handover {
 public:
  // Returns `place`'s pointer with a reference of the caller's own.
  template <class Place>
  [[nodiscard]] Place* take(Place*& place) noexcept {
    word_.fetch_add(one, std::memory_order_seq_cst);  // T1, before the load
    Place* const found = std::atomic_ref<Place*>(place).load(std::memory_order_seq_cst);
    Count::keep(found);
    // release: our reference is counted before another thread drops the old one; acquire: the `old_` that T3 drops
    if (word_.fetch_sub(one, std::memory_order_acq_rel) == (one | replaced)) drop_old();
    return found;
  }

  // Replaces `before` by `after` and releases the place's reference to `before`. Returns false if another thread has
  // already replaced it.
  template <class Place>
  [[nodiscard]] bool replace(Place*& place, Place* before, Place* after) noexcept {
    Place* expected = before;
    if (!std::atomic_ref<Place*>(place).compare_exchange_strong(expected, after, std::memory_order_seq_cst))
      return false;
    old_.store(before, std::memory_order_relaxed);                             // published by bit 0
    if (word_.fetch_or(replaced, std::memory_order_seq_cst) == 0) drop_old();  // T2, after the exchange
    return true;
  }

 private:
  static constexpr std::uint64_t replaced = 1;
  static constexpr std::uint64_t one = 2;

  void drop_old() noexcept {
    void* const old = old_.exchange(nullptr, std::memory_order_acq_rel);  // T4
    if (old != nullptr) Count::drop(static_cast<Pointed*>(old));
  }

  std::atomic<std::uint64_t> word_{0};
  std::atomic<void*> old_{nullptr};  // void: the place's type may be another one of the same address
};

}  // namespace queueduct
