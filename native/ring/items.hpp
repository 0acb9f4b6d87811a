// Items on a ring: bytes of any length, fixed records, and words that hold a reference.
//
// Each put and get is the ring's three steps: claim, copy, publish or release. The copies and the batches are here.
#pragma once

#include <cstring>
#include <utility>

#include "ring/ring.hpp"
#include "core/platform.hpp"

namespace queueduct {

// The payload is one circle of capacity * slot_bytes bytes: a copy is one memcpy, or two across the end.
template <class R>
[[gnu::always_inline]] inline void copy_in(const R& ring, std::uint64_t position, const void* from,
                                           std::uint64_t bytes) noexcept {
  const std::uint64_t at = ring.index(position) * ring.slot_bytes;
  const std::uint64_t to_the_end = ring.capacity * ring.slot_bytes - at;
  if (bytes <= to_the_end) [[likely]] {
    std::memcpy(ring.payload + at, from, bytes);
    return;
  }
  std::memcpy(ring.payload + at, from, to_the_end);
  std::memcpy(ring.payload, static_cast<const std::byte*>(from) + to_the_end, bytes - to_the_end);
}

template <class R>
[[gnu::always_inline]] inline void copy_out(const R& ring, std::uint64_t position, void* to,
                                            std::uint64_t bytes) noexcept {
  const std::uint64_t at = ring.index(position) * ring.slot_bytes;
  const std::uint64_t to_the_end = ring.capacity * ring.slot_bytes - at;
  if (bytes <= to_the_end) [[likely]] {
    std::memcpy(to, ring.payload + at, bytes);
    return;
  }
  std::memcpy(to, ring.payload + at, to_the_end);
  std::memcpy(static_cast<std::byte*>(to) + to_the_end, ring.payload, bytes - to_the_end);
}

// relaxed: the release P1 of the following publish() publishes the lengths
template <class R>
[[gnu::always_inline]] inline void write_lengths(const R& ring, Span span, std::uint64_t bytes) noexcept {
  ring.length_of(span.position).store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
  for (std::uint64_t i = 1; i < span.slots; ++i)
    ring.length_of(span.position + i)
        .store(Length::continuation_bit | static_cast<std::uint32_t>(i), std::memory_order_relaxed);
}

// Puts one item of one slot or several. The caller has checked that it can ever fit.
template <class R, class Ledger>
[[nodiscard]] Outcome try_put_bytes(const R& ring, Ledger ledger, const void* data, std::uint64_t bytes) noexcept {
  const std::uint64_t slots = ring.slots_for(bytes);
  Span span;
  const Outcome outcome = claim_push(
      ring, ledger, slots, [slots](std::uint64_t ready) { return ready == slots ? slots : 0; }, span);
  if (outcome != Outcome::done) return outcome;
  look_ahead_to_push(ring, span.position + span.slots - 1);
  copy_in(ring, span.position, data, bytes);
  QUEUEDUCT_FAILPOINT("push.copied");
  if (ring.lengths != nullptr) write_lengths(ring, span, bytes);
  publish(ring, span);
  ledger.count_put(1, bytes);
  ledger.clear();
  return Outcome::done;
}

// Puts as many of `count` items as fit now, in order, by one claim.
template <class R, class Ledger>
[[nodiscard]] Outcome try_put_bytes_many(const R& ring, Ledger ledger, const Buffer* items, std::uint64_t count,
                                         std::uint64_t& put) noexcept {
  std::uint64_t wanted = 0;
  std::uint64_t considered = 0;
  while (considered < count) {
    const std::uint64_t slots = ring.slots_for(items[considered].bytes);
    if (wanted + slots > ring.claim_limit()) break;
    wanted += slots;
    ++considered;
  }
  const auto whole_items = [&](std::uint64_t ready) {
    std::uint64_t taken = 0;
    for (put = 0; put < considered; ++put) {
      const std::uint64_t slots = ring.slots_for(items[put].bytes);
      if (taken + slots > ready) break;
      taken += slots;
    }
    return taken;
  };
  Span span;
  const Outcome outcome = claim_push(ring, ledger, wanted, whole_items, span);
  if (outcome != Outcome::done) {
    put = 0;
    return outcome;
  }
  std::uint64_t position = span.position;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < put; ++i) {
    const Span item{position, ring.slots_for(items[i].bytes)};
    copy_in(ring, position, items[i].data, items[i].bytes);
    QUEUEDUCT_FAILPOINT("push.copied");
    write_lengths(ring, item, items[i].bytes);
    publish(ring, item);
    position += item.slots;
    bytes += items[i].bytes;
  }
  ledger.count_put(put, bytes);
  ledger.clear();
  return Outcome::done;
}

// Puts as many of `count` records as fit now. `span`: where they are, or where there was no room.
template <class R, class Ledger>
[[nodiscard]] Outcome try_put_records(const R& ring, Ledger ledger, const void* data, std::uint64_t count,
                                      Span& span) noexcept {
  const std::uint64_t wanted = count < ring.claim_limit() ? count : ring.claim_limit();
  const Outcome outcome = claim_push(ring, ledger, wanted, [](std::uint64_t ready) { return ready; }, span);
  if (outcome != Outcome::done) return outcome;
  look_ahead_to_push(ring, span.position + span.slots - 1);
  copy_in(ring, span.position, data, span.slots * ring.slot_bytes);
  QUEUEDUCT_FAILPOINT("push.copied");
  publish_each(ring, span);
  ledger.count_put(span.slots, span.slots * ring.slot_bytes);
  ledger.clear();
  return Outcome::done;
}
template <class R, class Ledger>
[[nodiscard]] Outcome try_put_records(const R& ring, Ledger ledger, const void* data, std::uint64_t count,
                                      std::uint64_t& put) noexcept {
  Span span;
  const Outcome outcome = try_put_records(ring, ledger, data, count, span);
  put = span.slots;
  return outcome;
}

// Puts one reference into a ring of words: the queue then owns the caller's count of it.
template <class R, class Ledger>
[[nodiscard]] Outcome try_put_reference(const R& ring, Ledger ledger, void* reference) noexcept {
  Span span;
  const Outcome outcome = claim_push(ring, ledger, 1, [](std::uint64_t ready) { return ready; }, span);
  if (outcome != Outcome::done) return outcome;
  const std::uint64_t index = ring.index(span.position);
  reinterpret_cast<void**>(ring.payload)[index] = reference;
  ring.generations[index].store(generation::published(span.position), std::memory_order_release);  // P1
  return Outcome::done;
}

// Puts as many of `count` references as fit now, by one claim; the queue then owns the caller's counts of those `put`.
template <class R, class Ledger>
[[nodiscard]] Outcome try_put_references(const R& ring, Ledger ledger, void* const* references, std::uint64_t count,
                                         std::uint64_t& put) noexcept {
  const std::uint64_t wanted = count < ring.claim_limit() ? count : ring.claim_limit();
  Span span;
  const Outcome outcome = claim_push(ring, ledger, wanted, [](std::uint64_t ready) { return ready; }, span);
  put = span.slots;
  if (outcome != Outcome::done) return outcome;
  copy_in(ring, span.position, references, span.slots * sizeof(void*));
  publish_each(ring, span);
  return Outcome::done;
}

// After peek() and widen_records(): takes them all, and clears the slots.
template <class R, class Ledger>
[[nodiscard]] bool try_take_references(const R& ring, Ledger ledger, Span span, void** references) noexcept {
  if (!claim_pop(ring, ledger, span)) return false;
  auto** slots = reinterpret_cast<void**>(ring.payload);
  if (span.slots == 1) [[likely]] {
    const std::uint64_t index = ring.index(span.position);
    *references = std::exchange(slots[index], nullptr);
    ring.generations[index].store(ring.free(span.position + ring.capacity), std::memory_order_release);  // P2
    return true;
  }
  for (std::uint64_t i = 0; i < span.slots; ++i) {
    void*& slot = slots[ring.index(span.position + i)];
    references[i] = slot;
    slot = nullptr;
  }
  release(ring, span);
  return true;
}

// After peek(): widens the peeked item to as many records as are published, at most `limit`.
template <class R>
void widen_records(const R& ring, std::uint64_t limit, Peeked& peeked) noexcept {
  const std::uint64_t most = limit < ring.claim_limit() ? limit : ring.claim_limit();
  peeked.span.slots = 1 + count_ready(ring, peeked.span.position + 1, most - 1);
  peeked.bytes = peeked.span.slots * ring.slot_bytes;
}

// After peek(): widens to as many whole items as are published, at most `limit`, and calls note(i, item) for each.
// Returns their number; `peeked` has all their slots and bytes. Like the peek, this holds only if claim_pop of the span
// succeeds.
template <class R, class Note>
std::uint64_t widen_items(const R& ring, std::uint64_t limit, Peeked& peeked, Note note) noexcept {
  note(0, peeked);
  std::uint64_t items = 1;
  const std::uint64_t first = peeked.span.position;
  while (items < limit) {
    const std::uint64_t position = first + peeked.span.slots;
    if (ring.generation_of(position).load(std::memory_order_acquire) != generation::published(position)) break;  // P1
    Peeked next;
    bool orphan = false;
    if (!read_length(ring, position, next, orphan) || orphan) break;
    if (peeked.span.slots + next.span.slots > ring.claim_limit()) break;
    note(items++, next);
    peeked.span.slots += next.span.slots;
    peeked.bytes += next.bytes;
  }
  return items;
}

// Takes the next reference, for the owner that drops a local queue, or has closed both its ends.
template <class R>
[[nodiscard]] bool try_drain_reference(const R& ring, void*& reference) noexcept {
  const std::uint64_t word = ring.pop_position->load(std::memory_order_relaxed);
  const std::uint64_t position = word & ~closed_bit;
  if (ring.generation_of(position).load(std::memory_order_acquire) != generation::published(position)) return false;
  void*& slot = reinterpret_cast<void**>(ring.payload)[ring.index(position)];
  reference = slot;
  slot = nullptr;
  release(ring, {position, 1});
  ring.pop_position->store(word + 1, std::memory_order_relaxed);  // no other thread moves it any more
  return true;
}

// After the copies of a batch.
template <class R, class Ledger>
void release_copied(const R& ring, Ledger ledger, Span span) noexcept {
  QUEUEDUCT_FAILPOINT("pop.copied");
  release(ring, span);
  ledger.clear();
}

}  // namespace queueduct
