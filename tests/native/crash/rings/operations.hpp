// The operations whose every step is a place to die: those of ring/operations.hpp, as BoundedQueue has them for Python.
//
// One thing differs: they look for the dead at once instead of after a while, so that which failpoints an operation
// reaches depends on the queue alone and not on a clock.
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
  if (sabotage == Sabotage::forgetful)
    (void)attached.queue().participant_table().join([](std::uint32_t) { return true; });
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

// As the queue itself does it, recovery and all.
[[nodiscard]] inline Outcome put_by_queue(Context& context, const std::vector<Buffer>& items, std::uint64_t& put) {
  BoundedQueueHandle& queue = context.queue();
  const Participant me = context.attached.ledger();
  put = 1;
  if (items.size() == 1) return queue.put_bytes(me, items[0].data, items[0].bytes, run_here);
  if (context.ring().lengths != nullptr) return queue.put_buffers(me, items.data(), items.size(), put, run_here);
  Span span;
  const Outcome outcome = queue.put_records(me, items[0].data, items.size(), span, run_here);
  put = span.slots;
  return outcome;
}

[[nodiscard]] inline Outcome put_broken(Context& context, const std::vector<Buffer>& items, std::uint64_t& put) {
  const Participant me = context.attached.ledger();
  for (;;) {
    const Outcome outcome = sabotage == Sabotage::silent_producer ? try_put(context.ring(), NoLedger{}, items, put)
                                                                  : try_put(context.ring(), me, items, put);
    if (outcome != Outcome::full || sabotage == Sabotage::helpless || !context.queue().make_room(me)) return outcome;
  }
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
  const bool is_broken = sabotage == Sabotage::silent_producer || sabotage == Sabotage::head_first ||
                         sabotage == Sabotage::helpless;
  context.queue().recover_at_once();
  Outcome outcome = Outcome::full;
  for (int tries = 0; tries < 16; ++tries) {
    std::uint64_t put = 0;
    outcome = is_broken ? put_broken(context, items, put) : put_by_queue(context, items, put);
    if (outcome == Outcome::done) {
      context.queue().after_put(false);
      for (std::uint64_t i = 0; i < put; ++i) context.history.items[probe.put_ids[i]].is_in.store(true);
      break;
    }
    if (outcome == Outcome::corrupt) probe.complain("put found the queue corrupt");
    if (outcome != Outcome::full || waits-- <= 0) break;
    context.queue().wait_for_room(outcome, probe.put_slots[0], 300'000);
  }
  probe.has_returned = true;
  return outcome;
}

// Get.

// What was taken, before it is given back: from it follows what became of it if the consumer is killed.
inline void note_taken(Context& context, const Target* targets, std::uint64_t count) {
  Probe& probe = context.probe;
  probe.released = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    probe.taken_ids[i] = read_item(context.history, static_cast<const unsigned char*>(targets[i].to), targets[i].bytes);
    probe.taken_slots[i] = static_cast<std::uint32_t>(context.ring().slots_for(targets[i].bytes));
  }
  probe.taken_count = static_cast<std::uint32_t>(count);
}

inline void note_delivered(Context& context, std::uint64_t count, bool from_front) {
  context.probe.has_returned = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t id = context.probe.taken_ids[i];
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

[[nodiscard]] inline Outcome find_item(Context& context, queueduct::Item& item) {
  BoundedQueueHandle& queue = context.queue();
  const Participant me = context.attached.ledger();
  if (sabotage != Sabotage::helpless && sabotage != Sabotage::impatient) return queue.find(me, item, run_here);
  for (;;) {
    const Outcome outcome = queue.peek(me, item);
    if (sabotage == Sabotage::helpless || outcome != Outcome::busy) return outcome;
    const std::uint64_t front = context.ring().pop_position->load();
    std::uint64_t expected = generation::free(front);
    if (!context.ring().generation_of(front).compare_exchange_strong(expected, generation::tombstone(front)))
      return outcome;
  }
}

template <class Copied>
[[nodiscard]] bool take_silently(Context& context, const queueduct::Item& item, const Target* targets,
                                 std::uint64_t count, Copied copied) {
  if (!claim_pop(context.ring(), NoLedger{}, item.span)) return false;
  std::uint64_t position = item.span.position;
  for (std::uint64_t i = 0; i < count; ++i) {
    copy_out(context.ring(), position, targets[i].to, targets[i].bytes);
    position += context.ring().slots_for(targets[i].bytes);
  }
  copied();
  release_copied(context.ring(), NoLedger{}, item.span);
  context.queue().room().notify();
  return true;
}

// What was found, and what follows it, up to `limit` items. False: another consumer was faster.
[[nodiscard]] inline bool take_items(Context& context, queueduct::Item& item, std::uint64_t limit) {
  static unsigned char bytes[operation_items][4096];
  BoundedQueueHandle& queue = context.queue();
  const Participant me = context.attached.ledger();
  const bool from_front = !item.is_redelivered;
  Target targets[operation_items];
  std::uint64_t count = queue.widen(me, item, limit, targets);
  if (context.ring().lengths == nullptr) {  // one target for each record, so that each is told apart
    count = item.span.slots;
    for (std::uint64_t i = 0; i < count; ++i) targets[i].bytes = context.ring().slot_bytes;
  }
  for (std::uint64_t i = 0; i < count; ++i) targets[i].to = bytes[i];
  const auto copied = [&] { note_taken(context, targets, count); };
  const bool is_silent = sabotage == Sabotage::silent_consumer && from_front;
  if (!(is_silent ? take_silently(context, item, targets, count, copied)
                  : queue.take(me, item, targets, count, copied)))
    return false;
  note_delivered(context, count, from_front);
  return true;
}

// At least one item, at most `limit`. `waits`: how often it sleeps a moment before it gives up.
inline Outcome get_items(Context& context, std::uint64_t limit, int waits = 0) {
  Probe& probe = context.probe;
  probe.begin_operation();
  context.queue().recover_at_once();
  Outcome outcome = Outcome::empty;
  for (int tries = 0; tries < 64; ++tries) {
    queueduct::Item item;
    outcome = find_item(context, item);
    if (outcome == Outcome::done) {
      if (take_items(context, item, limit)) return outcome;
      continue;
    }
    if (outcome == Outcome::corrupt) probe.complain("get found the queue corrupt");
    if (outcome == Outcome::corrupt || outcome == Outcome::closed || waits-- <= 0) break;
    context.queue().wait_for_items(300'000);
  }
  probe.has_returned = true;
  return outcome;
}

}  // namespace queueduct::crash
