// The overwriting queue's operations, the states in which a case begins, and one process of a case.
#pragma once

#include <map>

#include "crash/overwriting/history.hpp"

namespace queueduct::crash {

enum class OverwritingOp : std::uint8_t {
  put,
  put_kept,  // overwrites nothing
  put_many,  // once round and one more
  get,
  get_many,
  wait_put,
  wait_copy,
  wait_get,
  shutdown,
  shutdown_now,
  join,
  leave,
  lease,
  lease_back,  // of what it holds, one is released
  lease_late,  // once round while it copies
  convert,     // a get whose messages somebody else's code converts
  resume,
  advance,
  slay,
};

[[nodiscard]] inline const char* name_of(OverwritingOp op) noexcept {
  constexpr const char* names[] = {"put",      "put_kept",  "put_many", "get",        "get_many",
                                   "wait_put", "wait_copy", "wait_get", "shutdown",   "shutdown_now",
                                   "join",     "leave",     "lease",    "lease_back", "lease_late",
                                   "convert",  "resume",    "advance",  "slay"};
  return names[static_cast<std::size_t>(op)];
}

using OverwritingStep = StepOf<OverwritingOp>;

// Ways to be wrong that the campaign has to notice; used by its own test only.
enum class OverwritingSabotage : std::uint8_t {
  none,
  unlocked,   // lives without the lock that says so
  unmade,     // takes the header over and forgets what its dead owner had committed
  early,      // unlocks a message before its data is in
  trusting,   // believes what it has read without a look whether it was overwritten meanwhile
  early_end,  // ends a lease before it releases it
};
inline OverwritingSabotage overwriting_sabotage = OverwritingSabotage::none;

struct OverwritingOccupancy {
  const char* name;
  RingState state;
};

[[nodiscard]] inline std::vector<OverwritingOccupancy> overwriting_occupancies(std::uint32_t capacity) {
  std::vector<OverwritingOccupancy> all = {{"empty", {0, 0}}, {"full", {0, capacity}}};
  if (capacity == 1) return all;
  all.push_back({"one", {0, 1}});
  all.push_back({"but_one", {0, capacity - 1}});
  all.push_back({"wrap", {capacity - 1, 2}});
  all.push_back({"wrap_full", {capacity - 1, capacity}});
  all.push_back({"wrap_empty", {capacity - 1, 0}});
  return all;
}

struct OverwritingScene {
  OverwritingShape shape;
  OverwritingOccupancy occupancy;

  [[nodiscard]] std::string name() const {
    return "of" + std::to_string(shape.capacity) + "/" + occupancy.name;
  }
  [[nodiscard]] std::uint16_t length() const noexcept { return static_cast<std::uint16_t>(8 * shape.words); }
};

struct OverwritingContext {
  OverwritingAttachment& attached;
  OverwritingHistory& history;
  OverwritingProbe& probe;
  std::uint8_t me;
  std::map<std::uint8_t, std::uint32_t> last_from = {};  // per putter: what comes must rise

  [[nodiscard]] OverwritingShared& queue() const noexcept { return attached.queue(); }
  [[nodiscard]] OverwritingRing& ring() const noexcept { return attached.ring(); }
};

inline constexpr std::int64_t lock_limit_ns = 200'000;

inline void join(OverwritingAttachment& attached, OverwritingHistory& history, OverwritingProbe& probe,
                 const OverwritingSegment& segment) {
  probe.history = &history;
  probe.control = &segment.control();
  probe.line = attached.line();
  probe.reading = reinterpret_cast<const ReadingLine*>(segment.base() + segment.offsets().readings) + probe.line;
  probe.leased_messages = reinterpret_cast<const unsigned char*>(segment.base() + segment.offsets().leased_data);
  probe.participants = segment.shape().participants;
  probe.length = 8 * segment.shape().words;
  probe.holder_words[0] = lock_word::of(attached.queue().participant_table(), probe.line, LockRole::holder);
}

inline void lose_lock(OverwritingAttachment& attached, const OverwritingProbe& probe) noexcept {
  if (overwriting_sabotage == OverwritingSabotage::unlocked)
    ofd::lock(attached.queue().participant_table().descriptor(), probe.line, F_UNLCK);
}

[[nodiscard]] inline Claim enter(OverwritingContext& context) noexcept {
  if (overwriting_sabotage == OverwritingSabotage::unmade) {
    HeaderLock lock(&context.ring().header_lock());
    OverwritingShared& queue = context.queue();
    const std::uint64_t me = lock_word::of(queue.participant_table(), context.probe.line, LockRole::header);
    if (lock.lock(me, queue.participant_table(), lock_limit_ns) != HeaderLock::Locked::yes) return Claim::locked;
    queue.control().journal.is_committed.store(0);
    return Claim::done;
  }
  return context.queue().enter(context.probe.line, lock_limit_ns);
}

// As OverwritingShared::try_put, step by step, for those who are wrong in one of the steps.
[[nodiscard]] inline Claim put_wrongly(OverwritingContext& context, const void* data, std::uint64_t bytes, bool may) {
  Claimed claimed;
  if (const Claim entered = enter(context); entered != Claim::done) return entered;
  const Claim claim = context.ring().claim_put(context.probe.line, may, claimed);
  context.queue().leave();
  if (claim != Claim::done) return claim;
  const bool is_early = overwriting_sabotage == OverwritingSabotage::early;
  if (is_early) context.ring().publish(claimed);
  context.ring().copy_in(claimed, data, bytes);
  if (!is_early) context.ring().publish(claimed);
  return claim;
}

[[nodiscard]] inline Claim get_wrongly(OverwritingContext& context, void* to, std::uint64_t bytes) {
  for (;;) {
    if (context.ring().may_be_empty()) return Claim::empty;
    Claimed claimed;
    if (const Claim entered = enter(context); entered != Claim::done) return entered;
    const Claim claim = context.ring().claim_get(context.probe.line, claimed);
    context.queue().leave();
    if (claim != Claim::done) return claim;
    context.ring().copy_out(claimed, to, bytes);
    if (context.ring().finish_get(context.probe.line, claimed)) return claim;
    if (overwriting_sabotage == OverwritingSabotage::trusting) return claim;
  }
}

// One message. `waits`: how often it sleeps a moment before it gives up.
inline Claim put_item(OverwritingContext& context, std::uint16_t length, bool may_overwrite, int waits = 0) {
  OverwritingProbe& probe = context.probe;
  const std::uint32_t id = context.history.new_item(length, context.me);
  if (id == 0) return Claim::full;
  unsigned char bytes[256];
  write_item(id, length, bytes);
  probe.put_id = id;
  Claim claim;
  for (;;) {
    claim = overwriting_sabotage == OverwritingSabotage::none
                ? context.queue().try_put(probe.line, bytes, length, may_overwrite, lock_limit_ns)
                : put_wrongly(context, bytes, length, may_overwrite);
    if (claim == Claim::done) context.history.items[id].is_committed = context.history.items[id].is_whole = true;
    if (claim == Claim::corrupt) probe.complain("put found the queue corrupt");
    if ((claim != Claim::full && claim != Claim::busy) || waits-- <= 0) break;
    if (claim == Claim::full)
      context.queue().wait_for_room(300'000);
    else
      context.queue().wait_for_copy(300'000);
  }
  probe.put_id = 0;
  return claim;
}

inline Claim get_item(OverwritingContext& context, std::uint16_t length, int waits = 0) {
  OverwritingProbe& probe = context.probe;
  unsigned char bytes[256];
  Claim claim;
  probe.getting = bytes;
  probe.has_counted = false;
  for (;;) {
    claim = overwriting_sabotage == OverwritingSabotage::none
                ? context.queue().try_get(probe.line, bytes, length, lock_limit_ns)
                : get_wrongly(context, bytes, length);
    if (claim == Claim::corrupt) probe.complain("get found the queue corrupt");
    if ((claim != Claim::empty && claim != Claim::busy) || waits-- <= 0) break;
    context.queue().wait_for_items(300'000);
  }
  probe.getting = nullptr;
  if (claim != Claim::done || probe.has_counted) return claim;
  const std::uint32_t id = read_item(context.history, bytes, length);
  if (id == 0) {
    context.history.torn.fetch_add(1);
    return claim;
  }
  context.history.items[id].delivered.fetch_add(1);
  std::uint32_t& last = context.last_from[context.history.items[id].putter];
  if (id <= last) context.history.disordered.fetch_add(1);
  last = id;
  return claim;
}

inline void name_holder(OverwritingContext& context, const OverwritingLease& lease) {
  const ParticipantTable& table = context.queue().participant_table();
  context.probe.holder_words[1] = lock_word::of(table, lease.line(), LockRole::holder);
  context.probe.handed = 0;
}

inline void count_handed(OverwritingContext& context, const LeasedMessage* kept, std::uint64_t count) {
  const OverwritingProbe& probe = context.probe;
  for (std::uint64_t i = 0; i < count; ++i)
    context.history.hand(
        context.probe, kept[i],
        read_item(context.history, probe.leased_messages + kept[i].cell * probe.length, probe.length));
}

// Up to three messages, what others have left first.
[[nodiscard]] inline std::uint64_t hold(OverwritingContext& context, OverwritingLease& lease, LeasedMessage* kept) {
  std::uint64_t count = lease.take_over(kept, 3);
  const bool is_closed = context.queue().control().closed.load() & closed_to_gets;
  if (count == 0 && !is_closed) {
    const Claim claim = lease.try_claim(kept, 3, lock_limit_ns, count);
    if (claim == Claim::corrupt) context.probe.complain("a lease found the queue corrupt");
  }
  count_handed(context, kept, count);
  return count;
}

inline void note_held(OverwritingContext& context, const LeasedMessage* kept, std::uint64_t count) {
  OverwritingProbe& probe = context.probe;
  probe.kept = static_cast<std::uint32_t>(count);
  probe.released = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    probe.kept_ids[i] = read_item(context.history, probe.leased_messages + kept[i].cell * probe.length, probe.length);
  QUEUEDUCT_FAILPOINT("lease.held");
  for (std::uint64_t i = 1; i < count; ++i)
    if (kept[i].position <= kept[i - 1].position) context.history.disordered.fetch_add(1);
}

// So many are released, the rest is given back.
inline void lease_items(OverwritingContext& context, std::uint64_t released) {
  OverwritingLease lease(context.queue());
  if (lease.join() != ParticipantTable::Joined::yes) return context.probe.complain("no line for a lease");
  name_holder(context, lease);
  LeasedMessage kept[3];
  const std::uint64_t count = hold(context, lease, kept);
  note_held(context, kept, count);
  if (overwriting_sabotage == OverwritingSabotage::early_end) lease.let_go();
  lease.release(kept, released < count ? released : count);
  lease.let_go();
  context.queue().items().notify();
}

// What others have left, all of it.
inline void lease_left(OverwritingContext& context) {
  OverwritingLease lease(context.queue());
  if (lease.join() != ParticipantTable::Joined::yes) return context.probe.complain("no line for a lease");
  name_holder(context, lease);
  LeasedMessage kept[kept_limit];
  const std::uint64_t count = lease.take_over(kept, kept_limit);
  count_handed(context, kept, count);
  note_held(context, kept, count);
  lease.release(kept, count);
}

// As a get of objects: with the thread's line, which is set apart while they are converted.
inline void convert_items(OverwritingContext& context) {
  OverwritingLease lease(context.queue());
  lease.borrow(context.probe.line);
  name_holder(context, lease);
  LeasedMessage kept[3];
  const std::uint64_t count = hold(context, lease, kept);
  if (count == 0) return;
  lease.set_apart();
  note_held(context, kept, count);
  lease.finish(kept, count);
  context.queue().items().notify();
}

// As OverwritingLease::try_claim of one message, step by step, which is overwritten before it is copied.
inline void lease_late(OverwritingContext& context, const OverwritingScene& scene) {
  OverwritingLease lease(context.queue());
  if (lease.join() != ParticipantTable::Joined::yes) return context.probe.complain("no line for a lease");
  LeasedMessage kept{};
  Claimed claimed;
  if (!context.queue().leased_messages().find_free(kept.cell)) return;
  if (context.queue().enter(lease.line(), lock_limit_ns) != Claim::done) return;
  const Claim claim = context.ring().claim_to_lease(lease.line(), kept, claimed);
  context.queue().leave();
  if (claim != Claim::done) return;
  for (std::uint64_t i = 0; i < scene.shape.capacity; ++i)
    if (put_item(context, scene.length(), true) != Claim::done) return;
  context.ring().copy_out(claimed, context.queue().leased_messages().data(kept.cell), context.probe.length);
  if (context.ring().finish_lease_copy(lease.line(), claimed, kept)) context.probe.complain("it was not overtaken");
  if (lease.take_over(&kept, 1) != 0) context.probe.complain("what was overtaken is delivered");
}

// Do the operation once, as a participant that has joined.
inline void perform(OverwritingContext& context, const OverwritingScene& scene, OverwritingOp op) {
  const std::uint16_t length = scene.length();
  switch (op) {
    case OverwritingOp::put: (void)put_item(context, length, true); break;
    case OverwritingOp::put_kept: (void)put_item(context, length, false); break;
    case OverwritingOp::put_many:
      for (std::uint64_t i = 0; i <= scene.shape.capacity; ++i)
        if (put_item(context, length, true) != Claim::done) break;
      break;
    case OverwritingOp::get: (void)get_item(context, length); break;
    case OverwritingOp::get_many:
      for (int i = 0; i < 3; ++i)
        if (get_item(context, length) != Claim::done) break;
      break;
    case OverwritingOp::wait_put: (void)put_item(context, length, false, 1); break;
    case OverwritingOp::wait_copy: (void)put_item(context, length, true, 1); break;
    case OverwritingOp::wait_get: (void)get_item(context, length, 1); break;
    case OverwritingOp::shutdown: context.queue().shut_down(false); break;
    case OverwritingOp::shutdown_now: context.queue().shut_down(true); break;
    case OverwritingOp::join: break;  // done on the way here
    case OverwritingOp::leave: context.queue().participant_table().leave(); break;
    case OverwritingOp::lease: lease_items(context, 3); break;
    case OverwritingOp::lease_back: lease_items(context, 1); break;
    case OverwritingOp::lease_late: lease_late(context, scene); break;
    case OverwritingOp::convert: convert_items(context); break;
    case OverwritingOp::resume:
    case OverwritingOp::advance:
    case OverwritingOp::slay: break;  // the stage's, not ours
  }
}

}  // namespace queueduct::crash
