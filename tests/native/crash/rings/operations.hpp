// The operations whose every step is a place to die, as BoundedQueue does them for Python: try, recover, try again.
//
// They differ from it in one thing: they look for the dead at once instead of after a while, so that which
// failpoints an operation reaches depends on the queue alone and not on a clock.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "crash/rings/history.hpp"
#include "support/segment.hpp"

namespace queueduct::crash {

using testing::Attachment;
using testing::Segment;
using testing::Shape;

// Ways to be wrong that the campaign has to notice; used by its own test only.
enum class Sabotage : std::uint8_t {
  none,
  silent_producer,  // claims without a word in the ledger
  silent_consumer,
  unlocked,    // lives without the lock that says so
  head_first,  // publishes the head of a long item before the rest
  impatient,   // abandons what is in its way without asking who lives
  forgetful,   // takes over a dead one's line and forgets what it names
  helpless,    // never recovers anything
  early_end,   // ends a lease before it releases it
  // of named producers, see once.hpp
  late_confirm,   // publishes first, confirms then
  early_complete, // counts as done what it is about to publish
  uncut,          // abandons without a word to the producer
  hasty,          // goes on before what its predecessor claimed is abandoned
  fresh,          // takes what it finds claimed for never having happened
};
inline Sabotage sabotage = Sabotage::none;

struct Context {
  Attachment& attached;
  History& history;
  Probe& probe;
  std::uint8_t me;
  std::map<std::uint8_t, std::uint32_t> last_from = {};  // per putter: what came from the front must rise

  [[nodiscard]] BoundedQueueHandle& queue() const noexcept { return attached.queue(); }
  [[nodiscard]] const Ring& ring() const noexcept { return attached.ring(); }
};

// Joining, with what the broken modes do to it.
inline void join(Attachment& attached, Probe& probe) {
  if (sabotage == Sabotage::forgetful) (void)attached.queue().participant_table().join([](std::uint32_t) { return true; });
  probe.line = attached.ledger().number();
}

// Of those who will be killed or stopped; the survivors live with their locks.
inline void lose_lock(const Attachment& attached, const Probe& probe) noexcept {
  if (sabotage == Sabotage::unlocked) ofd::lock(attached.lock_fd(), probe.line, F_UNLCK);
}

// Put.

template <class Ledger>
[[nodiscard]] Outcome put_head_first(const Ring& ring, Ledger ledger, const Buffer& item) {
  Span span;
  const std::uint64_t slots = ring.slots_for(item.bytes);
  const Outcome outcome = claim_push(
      ring, ledger, slots, [slots](std::uint64_t ready) { return ready == slots ? slots : 0; }, span);
  if (outcome != Outcome::done) return outcome;
  copy_in(ring, span.position, item.data, item.bytes);
  write_lengths(ring, span, item.bytes);
  publish_each(ring, span);
  ledger.clear();
  return Outcome::done;
}

template <class Ledger>
[[nodiscard]] Outcome try_put(const Ring& ring, Ledger ledger, const std::vector<Buffer>& items, std::uint64_t& put) {
  put = 1;
  if (items.size() == 1) {
    if (sabotage == Sabotage::head_first && items[0].bytes > ring.slot_bytes)
      return put_head_first(ring, ledger, items[0]);
    return try_put_bytes(ring, ledger, items[0].data, items[0].bytes);
  }
  if (ring.lengths != nullptr) return try_put_bytes_many(ring, ledger, items.data(), items.size(), put);
  return try_put_records(ring, ledger, items[0].data, items.size(), put);  // they lie one after the other
}

// Items of these lengths, by one claim. `waits`: how often it sleeps a moment before it gives up.
inline Outcome put_items(Context& context, const std::vector<std::uint16_t>& lengths, int waits = 0) {
  Probe& probe = context.probe;
  probe.begin_operation();
  std::vector<unsigned char> bytes;
  bytes.reserve(operation_items * 4096);
  std::vector<Buffer> items;
  for (const std::uint16_t length : lengths) {
    const std::uint32_t id = context.history.new_item(length, context.me);
    if (id == 0) return Outcome::full;
    unsigned char* at = bytes.data() + bytes.size();
    bytes.resize(bytes.size() + length);
    write_item(id, length, at);
    items.push_back({at, length});
    probe.put_ids[probe.put_count] = id;
    probe.put_slots[probe.put_count] = static_cast<std::uint32_t>(context.ring().slots_for(length));
    ++probe.put_count;
    if (length > context.ring().slot_bytes) context.queue().note_long_items();
  }
  const Participant ledger = context.attached.ledger();
  Outcome outcome = Outcome::full;
  for (int tries = 0; tries < 16; ++tries) {
    std::uint64_t put = 0;
    outcome = sabotage == Sabotage::silent_producer ? try_put(context.ring(), NoLedger{}, items, put)
                                                    : try_put(context.ring(), ledger, items, put);
    if (outcome == Outcome::done) {
      context.queue().items().notify();
      for (std::uint64_t i = 0; i < put; ++i) context.history.items[probe.put_ids[i]].is_in.store(true);
      break;
    }
    if (outcome == Outcome::corrupt) {
      probe.complain("put found the queue corrupt");
      break;
    }
    if (outcome == Outcome::closed) break;
    if (sabotage != Sabotage::helpless && context.queue().make_room(ledger)) continue;
    if (waits-- <= 0) break;
    context.queue().wait_for_room(probe.put_slots[0], 300'000);
  }
  probe.has_returned = true;
  return outcome;
}

// Get.

// As BoundedQueueHandle::finish_redelivered after its copy.
inline void release_redelivered(Context& context, Span span) noexcept {
  QUEUEDUCT_FAILPOINT("recover.copied");
  Recovery::release_redelivered(context.queue().ring(), context.attached.ledger(), span);
}

inline void deliver(Context& context, Span span, const std::uint64_t* lengths, std::uint64_t count, bool from_front) {
  Probe& probe = context.probe;
  probe.released = 0;
  std::uint64_t position = span.position;
  for (std::uint64_t i = 0; i < count; ++i) {
    unsigned char bytes[4096];
    copy_out(context.ring(), position, bytes, lengths[i]);
    probe.taken_ids[i] = read_item(context.history, bytes, lengths[i]);
    probe.taken_slots[i] = static_cast<std::uint32_t>(context.ring().slots_for(lengths[i]));
    position += probe.taken_slots[i];
  }
  probe.taken_count = static_cast<std::uint32_t>(count);
  if (sabotage == Sabotage::silent_consumer)
    give_back(context.ring(), NoLedger{}, span);
  else if (from_front)
    give_back(context.ring(), context.attached.ledger(), span);
  else
    release_redelivered(context, span);
  context.queue().room().notify();
  probe.has_returned = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t id = probe.taken_ids[i];
    if (id == 0) {
      context.history.torn.fetch_add(1);
      continue;
    }
    context.history.items[id].delivered.fetch_add(1);
    context.history.delivered_in_all.fetch_add(1);
    if (!from_front) continue;
    std::uint32_t& last = context.last_from[context.history.items[id].putter.load()];
    if (id <= last) context.history.disordered.fetch_add(1);
    last = id;
  }
}

enum class Recovered : std::uint8_t { nothing, again, delivered };

inline Recovered recover(Context& context, Outcome outcome) {
  const Participant ledger = context.attached.ledger();
  if (sabotage == Sabotage::helpless) return Recovered::nothing;
  if (sabotage == Sabotage::impatient && outcome == Outcome::busy) {
    const std::uint64_t front = context.ring().pop_position->load();
    std::uint64_t expected = generation::free(front);
    return context.ring().generation_of(front).compare_exchange_strong(expected, generation::tombstone(front))
               ? Recovered::again
               : Recovered::nothing;
  }
  const Recovery::RecoveryScan found = context.queue().recovery().run();
  if (found.unclaimed) {
    context.probe.complain("the front is claimed and nobody says so");
    return Recovered::nothing;
  }
  if (found.redeliverable) {
    if (!context.queue().recovery().try_redeliver(ledger, found)) return Recovered::again;
    deliver(context, found.peeked.span, &found.peeked.bytes, 1, false);
    return Recovered::delivered;
  }
  if (found.changed) context.queue().room().notify();
  return found.changed ? Recovered::again : Recovered::nothing;
}

template <class Ledger>
[[nodiscard]] bool try_take(Context& context, Ledger ledger, std::uint64_t limit, Peeked peeked) {
  std::uint64_t lengths[operation_items] = {peeked.bytes};
  std::uint64_t count = 1;
  if (limit > 1 && context.ring().lengths != nullptr) {
    count = widen_bytes(context.ring(), limit, lengths, peeked);
  } else if (limit > 1) {
    widen_records(context.ring(), limit, peeked);
    count = peeked.span.slots;
    std::fill(lengths, lengths + count, context.ring().slot_bytes);
  }
  if (!claim_pop(context.ring(), ledger, peeked.span)) return false;
  deliver(context, peeked.span, lengths, count, true);
  return true;
}

// At least one item, at most `limit`. `waits`: how often it sleeps a moment before it gives up.
inline Outcome get_items(Context& context, std::uint64_t limit, int waits = 0) {
  Probe& probe = context.probe;
  probe.begin_operation();
  const Participant ledger = context.attached.ledger();
  Outcome outcome = Outcome::empty;
  for (int tries = 0; tries < 64; ++tries) {
    Peeked peeked;
    outcome = peek(context.ring(), ledger, peeked);
    if (outcome == Outcome::done) {
      const bool taken = sabotage == Sabotage::silent_consumer ? try_take(context, NoLedger{}, limit, peeked)
                                                               : try_take(context, ledger, limit, peeked);
      if (taken) return outcome;
      continue;
    }
    if (peeked.skipped > 0) context.queue().room().notify();
    if (outcome == Outcome::corrupt) probe.complain("get found the queue corrupt");
    if (outcome == Outcome::corrupt || (outcome == Outcome::closed && is_discarded(context.ring()))) break;
    const Recovered recovered = recover(context, outcome);
    if (recovered == Recovered::delivered) return Outcome::done;
    if (recovered == Recovered::again) continue;
    if (outcome == Outcome::closed || waits-- <= 0) break;
    context.queue().wait_for_items(300'000);
  }
  probe.has_returned = true;
  return outcome;
}

}  // namespace queueduct::crash
