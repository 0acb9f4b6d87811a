// A growing queue as its users hold it: its levels, who sleeps on it, who is dead, when to look for them.
#pragma once

#include "ring/recovery.hpp"
#include "growing/operations.hpp"
#include "growing/upkeep_lock.hpp"
#include "growing/outside_guard.hpp"
#include "segment/idle.hpp"
#include "segment/rest.hpp"

namespace queueduct {

// For a recovery: every ring that may hold what the dead have claimed. Under the lock of upkeep (M5).
class GrowingRings {
 public:
  using Ring = GrowingRing;
  explicit GrowingRings(const Levels& levels) noexcept : levels_(&levels) {}

  template <class Use>
  void each(Use use) const noexcept {
    const LevelRange now = levels_->stage();
    for (std::uint32_t i = 0; i < levels_->steps(); ++i) {
      const bool is_in_use = i >= now.read_level() && i <= now.written_level();
      if (is_in_use || !levels_->is_clean(i)) use(levels_->ring(i, now));
    }
  }
  [[nodiscard]] std::uint64_t claim_limit() const noexcept { return Intent::count_limit; }
  [[nodiscard]] std::uint64_t near(Side side) const noexcept {
    const LevelRange now = levels_->stage();
    const LevelControl& level = *(*levels_)[side == Side::push ? now.written_level() : now.read_level()].control;
    return LevelNumbering::position_of(
        (side == Side::push ? level.push_position : level.pop_position).load(std::memory_order_acquire));
  }

 private:
  const Levels* levels_;
};
using GrowingRecovery = BasicRecovery<GrowingRings>;

// Items in all rings that are in use: exact when nobody is at work. To walk is to look at all of them.
[[nodiscard]] inline std::uint64_t count_items(const Levels& levels, bool walk) noexcept {
  const LevelRange now = levels.stage();
  std::uint64_t items = 0;
  for (std::uint32_t i = now.read_level(); i <= now.written_level(); ++i) items += count_items(levels.ring(i, now), walk);
  return items;
}

// In shared memory, as one process has it.
class GrowingQueue {
 public:
  using Ring = GrowingRing;
  using Recovery = GrowingRecovery;

  // `last`: zeroed memory for as many as there are participants.
  GrowingQueue(std::byte* base, const GrowingOffsets& at, std::uint64_t first_bytes, std::uint32_t steps,
               std::uint64_t slot_bytes, bool varying, std::uint64_t max_bytes, std::uint32_t participants,
               std::uint32_t producers, int lock_fd, Identity identity, LastRings* last) noexcept
      : levels_(base, at, first_bytes, steps, slot_bytes, varying, false),
        upkeep_(levels_, ReadGuards(&participant_table_), base, at.regions, max_bytes),
        participant_table_(lock_fd, reinterpret_cast<ParticipantLine*>(base + at.participants), participants,
                &control().participants_used, identity),
        producers_(at.producers == 0 ? nullptr : reinterpret_cast<ProducersHead*>(base + at.producers), producers, participant_table_),
        recovery_(GrowingRings(levels_), participant_table_, producers_, {&control().tombstones, &control().redelivered}),
        keeper_(participant_table_, upkeep_, &control().upkeep),
        flow_(keeper_, levels_, upkeep_),
        last_(last) {}

  [[nodiscard]] const Levels& levels() const noexcept { return levels_; }
  [[nodiscard]] const Upkeep& upkeep() const noexcept { return upkeep_; }
  [[nodiscard]] GrowingControl& control() const noexcept { return levels_.control(); }
  [[nodiscard]] ParticipantTable& participant_table() noexcept { return participant_table_; }
  [[nodiscard]] Producers& producers() noexcept { return producers_; }
  [[nodiscard]] GrowingRecovery& recovery() noexcept { return recovery_; }
  [[nodiscard]] GrowingFlow<GrowingKeeper>& flow() noexcept { return flow_; }
  [[nodiscard]] Event items() const noexcept { return Event(&control().items.word); }
  [[nodiscard]] Event room() const noexcept { return Event(&control().room.word); }

  // The calling thread's line. False: it has none yet, call join(); after a fork it must join again.
  [[nodiscard]] bool find_participant(Participant& ledger) const noexcept { return keeper_.find_participant(ledger); }
  [[nodiscard]] std::uint64_t owner_word(Participant ledger) const noexcept {
    return owner::word_of(participant_table_, ledger.number());
  }
  [[nodiscard]] ParticipantTable::Joined join() noexcept {
    return join_by([this](auto is_settled) { return participant_table_.join(is_settled); });
  }
  // A line that is no thread's: see BasicLease. The thread has one too, to look for the dead with.
  [[nodiscard]] ParticipantTable::Joined join_apart(Participant& ledger) noexcept {
    std::uint32_t line = 0;
    ParticipantTable::Joined joined = find_participant(ledger) ? ParticipantTable::Joined::yes : join();
    if (joined == ParticipantTable::Joined::yes)
      joined = join_by([this, &line](auto is_settled) { return participant_table_.join_apart(is_settled, line); });
    if (joined == ParticipantTable::Joined::yes) ledger = {participant_table_.lines() + line, line};
    return joined;
  }

  // Puts: see bounded_items.hpp and bounded_producers.hpp. The length of every item was checked.
  [[nodiscard]] Outcome try_put_bytes(Participant ledger, const void* data, std::uint64_t bytes) noexcept {
    return flow_.put(last_of(ledger), look_of(ledger), slots_for(bytes), [=](const GrowingRing& ring) {
      return queueduct::try_put_bytes(ring, ledger, data, bytes);
    });
  }
  [[nodiscard]] Outcome try_put_bytes_many(Participant ledger, const Buffer* items, std::uint64_t count,
                                           std::uint64_t& put) noexcept {
    return flow_.put(last_of(ledger), look_of(ledger), slots_for(items[0].bytes), [&](const GrowingRing& ring) {
      return queueduct::try_put_bytes_many(ring, ledger, items, count, put);
    });
  }
  [[nodiscard]] Outcome try_put_records(Participant ledger, const void* data, std::uint64_t count,
                                        std::uint64_t& put) noexcept {
    return flow_.put(last_of(ledger), look_of(ledger), 1, [&](const GrowingRing& ring) {
      return queueduct::try_put_records(ring, ledger, data, count, put);
    });
  }
  [[nodiscard]] Outcome try_put_bytes_once(Participant ledger, ProducerLine& line, const Buffer* items,
                                           std::uint64_t count, std::uint64_t& put) noexcept {
    return flow_.put(last_of(ledger), look_of(ledger), slots_for(items[0].bytes), [&](const GrowingRing& ring) {
      return queueduct::try_put_bytes_once(ring, ledger, line, items, count, put);
    });
  }
  [[nodiscard]] Outcome try_put_records_once(Participant ledger, ProducerLine& line, const void* data,
                                             std::uint64_t count, std::uint64_t& put) noexcept {
    return flow_.put(last_of(ledger), look_of(ledger), 1, [&](const GrowingRing& ring) {
      return queueduct::try_put_records_once(ring, ledger, line, data, count, put);
    });
  }
  [[nodiscard]] Outcome peek(Participant ledger, Peeked& peeked, GrowingRing& ring) noexcept {
    return flow_.peek(last_of(ledger), look_of(ledger), ledger, peeked, ring);
  }
  // The same without a copy of the ring, which is where the line looks next: if its thread gets from this queue before
  // the claim, as a finalizer may, then it is another if its stage is.
  [[nodiscard]] Outcome peek_in_place(Participant ledger, Peeked& peeked) noexcept {
    return flow_.peek(last_of(ledger), look_of(ledger), ledger, peeked);
  }
  [[nodiscard]] const GrowingRing* ring_in_place(Participant ledger) const noexcept { return &last_[ledger.number()].get; }

  // After peek(): look at what follows in its ring. False: it is not the one any more, and nothing was looked at.
  template <class Use>
  [[nodiscard]] bool with_guard(Participant ledger, const GrowingRing& ring, Use use) noexcept {
    return flow_.with_guard(look_of(ledger), ring, use);
  }
  void widen_records(Participant ledger, const GrowingRing& ring, std::uint64_t limit, Peeked& peeked) noexcept {
    (void)with_guard(ledger, ring, [&] { queueduct::widen_records(ring, limit, peeked); });
  }
  [[nodiscard]] std::uint64_t widen_bytes(Participant ledger, const GrowingRing& ring, std::uint64_t limit,
                                          std::uint64_t* lengths, Peeked& peeked) noexcept {
    std::uint64_t items = 1;
    lengths[0] = peeked.bytes;
    (void)with_guard(ledger, ring, [&] { items = queueduct::widen_bytes(ring, limit, lengths, peeked); });
    return items;
  }
  [[nodiscard]] std::uint64_t slots_for(std::uint64_t bytes) const noexcept {
    return bytes <= levels_.slot_bytes() ? 1 : (bytes + levels_.slot_bytes() - 1) / levels_.slot_bytes();
  }
  // Of one item: what the largest ring takes that this queue can ever have.
  [[nodiscard]] std::uint64_t item_slots_limit() const noexcept {
    const std::uint64_t capacity = upkeep_.largest_capacity();
    return capacity < Intent::count_limit ? capacity : Intent::count_limit;
  }

  // Of the lock of upkeep, for those who look at its memory: see GrowingKeeper.
  [[nodiscard]] int file() const noexcept { return keeper_.file(); }
  [[nodiscard]] bool lock_names_a_bystander() const noexcept { return keeper_.names_a_bystander(); }
  template <class Use>
  void with_upkeep_lock(Use use) noexcept {
    keeper_.with_upkeep_lock(use);
  }

  // When to look for the dead: see BoundedQueueHandle.
  [[nodiscard]] bool recovery_is_due(Outcome outcome) noexcept {
    const std::int64_t now = monotonic_ns();
    const std::int64_t interval = outcome == Outcome::busy ? 200'000 : 10'000'000;
    if (now - last_recovery_ns_.load(std::memory_order_relaxed) < interval && !recovery_.has_more()) return false;
    last_recovery_ns_.store(now, std::memory_order_relaxed);
    return true;
  }

  // One pass; somebody else may be at it, then nothing is found, unless it is nobody: unclaimed. What is redeliverable is looked at until it is redelivered.
  [[nodiscard]] GrowingRecovery::RecoveryScan recover() noexcept {
    GrowingRecovery::RecoveryScan found;
    if (!keeper_.enter(false)) {
      found.unclaimed = lock_names_a_bystander();
      return found;
    }
    found = recovery_.run();
    Participant mine;
    if (found.redeliverable && find_participant(mine)) look_of(mine).announce_everything();  // V3
    keeper_.leave();
    return found;
  }
  // Of what recover() found in this thread. False: somebody else was faster, or this thread has looked elsewhere since.
  [[nodiscard]] bool try_redeliver(Participant ledger, const GrowingRecovery::RecoveryScan& found) noexcept {
    const bool is_redelivered = is_still_looking() && recovery_.try_redeliver(ledger, found);
    drop_guard();
    return is_redelivered;
  }
  [[nodiscard]] std::uint64_t try_redeliver_many(Participant ledger, const GrowingRecovery::RecoveryScan& found, Redelivered* items,
                                             std::uint64_t limit) noexcept {
    const std::uint64_t count = is_still_looking() ? recovery_.try_redeliver_many(ledger, found, items, limit) : 0;
    drop_guard();
    return count;
  }
  // Who does not redeliver what was found says so.
  void drop_guard() noexcept {
    Participant mine;
    if (find_participant(mine)) look_of(mine).over();
  }
  void after_release(const GrowingRing& ring) noexcept { flow_.after_release(ring); }
  void finish_redelivered(Participant ledger, const GrowingRecovery::RecoveryScan& found, void* to) noexcept {
    copy_out(found.ring, found.peeked.span.position, to, found.peeked.bytes);
    QUEUEDUCT_FAILPOINT("recover.copied");
    with_full_guard(ledger, [&] { GrowingRecovery::release_redelivered(found.ring, ledger, found.peeked.span); });
    wake_the_rest();
  }

  // As of a bounded queue. Who cannot look, since somebody has the lock, does not know that it is over.
  [[nodiscard]] bool may_come_again() noexcept {
    if (rest_.has_this_thread_any()) return false;  // O3
    if (!keeper_.enter_within(GrowingKeeper::moment_ns)) return true;
    const bool is_out = recovery_.count_out(1) != 0;  // O1
    keeper_.leave();
    return is_out;
  }
  [[nodiscard]] std::uint64_t count_leased() noexcept {
    std::uint64_t count = 0;
    with_upkeep_lock([&] { count = recovery_.count_out(~std::uint64_t{0}); });
    return count;
  }
  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  void wake_the_rest() noexcept {
    Rest::wake(items(), [this] { return levels_.stage().is_shut(); });
  }
  // What is left of a long item that was redelivered may be freed by others as soon as its head is. keeps V3
  template <class Use>
  void with_full_guard(Participant ledger, Use use) noexcept {
    ReadGuard look = look_of(ledger);
    look.announce_everything();
    use();
    look.over();
  }

  // For a producer: abandon the dead, skip what is abandoned at the front, and send a consumer for the rest.
  [[nodiscard]] bool make_room(Participant ledger) noexcept {
    const GrowingRecovery::RecoveryScan found = recover();
    if (found.redeliverable) leave_to_others();
    Peeked front;
    GrowingRing ring;
    (void)peek(ledger, front, ring);
    const bool has_tidied = flow_.reclaim_some();
    return found.changed || front.skipped > 0 || has_tidied;
  }

  // For a named producer whose predecessor was killed: see BoundedQueueHandle. What was claimed in a level that has been
  // given back since is all published or abandoned.
  [[nodiscard]] Outcome settle_producer(ProducerLine& line) noexcept {
    for (int look = 0;; ++look) {
      const Outcome outcome = keeper_.enter_within(lock_limit_ns) ? settle_entered(line) : Outcome::busy;
      if (outcome != Outcome::busy || look == settle_looks) return outcome;
      if (lock_names_a_bystander()) return Outcome::corrupt;
      const GrowingRecovery::RecoveryScan found = recover();
      if (found.unclaimed) return Outcome::corrupt;
      if (found.redeliverable) leave_to_others();
      if (!found.changed) nap();
    }
  }

  // As shut_down() of a bounded queue.
  void shut_down(bool immediate) noexcept {
    (void)levels_.shut(immediate);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // W2
    items().wake_all();
    room().wake_all();
  }

  void note_long_items() noexcept {
    if (control().has_long_items.load(std::memory_order_relaxed) == 0)
      control().has_long_items.store(1, std::memory_order_relaxed);  // a hint for qsize
  }
  [[nodiscard]] std::uint64_t count_items() noexcept {
    std::uint64_t items = 0;
    if (may_hold_gaps())
      with_upkeep_lock([&] { items = queueduct::count_items(levels_, true); });
    else
      items = queueduct::count_items(levels_, false);
    return items;
  }
  // What of the dead's will be delivered again. A look at the lines says whether a look at the slots is needed.
  [[nodiscard]] std::uint64_t count_left() noexcept {
    std::uint64_t left = 0;
    if (recovery_.may_have_left()) with_upkeep_lock([&] { left = recovery_.count_left(); });
    return left;
  }
  [[nodiscard]] bool may_hold_gaps() const noexcept {
    return control().has_long_items.load(std::memory_order_relaxed) != 0 ||
           control().tombstones.load(std::memory_order_relaxed) != 0;
  }

  [[nodiscard]] std::uint32_t count_alive() const noexcept {
    std::uint32_t alive = 0;
    for (std::uint32_t line = 0; line < participant_table_.used(); ++line) alive += participant_table_.is_alive(line);
    return alive;
  }

  void wait_for_items(std::int64_t limit_ns) noexcept {
    if (is_ended()) [[unlikely]] return rest_.wait(items(), [this] { return !may_come_again(); }, limit_ns);
    flow_.calm_if_idle();
    while (!looks_gettable() && flow_.reclaim_some()) {
    }
    wait_until(
        items(), item_patience_, [this] { return looks_gettable(); }, [] { return true; }, limit_ns);
  }
  // After busy.
  void wait_a_moment() const noexcept { nap(); }
  void wait_for_room(std::uint64_t slots, std::uint64_t resets, std::int64_t limit_ns) noexcept {
    wait_until(
        room(), room_patience_, [=, this] { return looks_puttable(slots, resets); }, [] { return true; }, limit_ns);
  }
  // Is it worth another try? Who waits for somebody else's sake may have no line.
  [[nodiscard]] bool looks_gettable() const noexcept {
    Participant ledger;
    if (!find_participant(ledger)) return OutsideLook(levels_, file()).looks_gettable();
    return flow_.looks_gettable(look_of(ledger));
  }
  [[nodiscard]] bool looks_puttable(std::uint64_t slots, std::uint64_t resets) const noexcept {
    Participant ledger;
    if (!find_participant(ledger)) return OutsideLook(levels_, file()).looks_puttable(slots, resets);
    return flow_.looks_puttable(look_of(ledger), slots, resets);
  }

 private:
  static constexpr int join_looks = 500;
  static constexpr int settle_looks = 50;
  static constexpr std::int64_t lock_limit_ns = 100'000'000;

  [[nodiscard]] LastRings& last_of(Participant ledger) noexcept { return last_[ledger.number()]; }
  [[nodiscard]] ReadGuard look_of(Participant ledger) const noexcept { return ReadGuard(participant_table_.lines()[ledger.number()]); }
  [[nodiscard]] bool is_still_looking() const noexcept {
    Participant mine;
    return find_participant(mine) && look_of(mine).is_at_everything();
  }

  // Shut down and empty, and not at once.
  [[nodiscard]] bool is_ended() const noexcept {
    const LevelRange now = levels_.stage();
    if (!now.is_shut() || now.is_discarded() || now.read_level() != now.written_level()) return false;
    const GrowingRing ring = levels_.ring(now.read_level(), now);
    const std::uint64_t word = ring.push_position->load(std::memory_order_relaxed);
    return (word & closed_bit) && LevelNumbering::position_of(word) == ring.pop_position->load(std::memory_order_relaxed);
  }

  // A producer found what only a consumer may take.
  void leave_to_others() noexcept {
    drop_guard();
    items().wake_one();
  }

  [[nodiscard]] Outcome settle_entered(ProducerLine& line) noexcept {
    const LevelRange now = levels_.stage();
    const std::uint64_t position = line.position.load(std::memory_order_relaxed);
    Outcome outcome = Outcome::done;
    bool is_there = progress_of(line).phase != Phase::claimed;
    if (is_there) outcome = settle(levels_.ring(now.written_level(), now), line);  // nothing of it is in: any ring will do
    GrowingRings(levels_).each([&](const GrowingRing& ring) {
      const std::uint64_t end = LevelNumbering::position_of(ring.push_position->load(std::memory_order_acquire));
      if (is_there || position < ring.base || position >= end) return;
      // drained: what was claimed there was published or abandoned, and may be zeroed by now
      if (LevelNumbering::position_of(ring.pop_position->load(std::memory_order_acquire)) == end) return;
      is_there = true;
      outcome = settle(ring, line);
    });
    if (!is_there) outcome = position < GrowingRings(levels_).near(Side::push) ? settle_buried(line) : Outcome::corrupt;
    keeper_.leave();
    return outcome;
  }

  template <class Join>
  [[nodiscard]] ParticipantTable::Joined join_by(Join join) noexcept {
    fence_for_all::take_part();
    for (int look = 0;; ++look) {
      const ParticipantTable::Joined joined = join_once(join);
      if (joined != ParticipantTable::Joined::table_full || look == join_looks || participant_table_.is_full_for_good(look)) return joined;
      (void)keeper_.as_joiner(0, [this] { (void)recovery_.run(); });
      nap();
    }
  }

  // A line that the dead have left with something in it is had only with the lock, since slots are looked at for it.
  template <class Join>
  [[nodiscard]] ParticipantTable::Joined join_once(Join join) noexcept {
    ParticipantTable::Joined joined = ParticipantTable::Joined::table_full;
    const auto join_entered = [&](bool is_entered) {
      joined = join([=, this](std::uint32_t line) {
        keeper_.orphan(line);  // U3
        return is_entered ? recovery_.hand_over_claims(line) : recovery_.names_nothing(line);
      });
    };
    if (!keeper_.as_joiner(0, [&] { join_entered(true); })) join_entered(false);
    return joined;
  }

  static void nap() noexcept {
    const timespec moment{.tv_sec = 0, .tv_nsec = 200'000};
    nanosleep(&moment, nullptr);
  }

  Levels levels_;
  Upkeep upkeep_;
  ParticipantTable participant_table_;
  Producers producers_;
  GrowingRecovery recovery_;
  GrowingKeeper keeper_;
  GrowingFlow<GrowingKeeper> flow_;
  LastRings* last_;  // a participant's each
  IdleStrategy item_patience_;
  IdleStrategy room_patience_;
  Rest rest_;
  std::atomic<std::int64_t> last_recovery_ns_{0};
};

}  // namespace queueduct
