// The overwriting queue's part of a stage: how a case begins, who comes afterwards, and what is right then.
#pragma once

#include <random>

#include "crash/overwriting/script.hpp"

namespace queueduct::crash {

class OverwritingPlay {
 public:
  using Shape = OverwritingShape;
  using Scene = OverwritingScene;
  using Op = OverwritingOp;

  explicit OverwritingPlay(const Shape& shape) : segment_(shape), history_(OverwritingHistory::create()) {}
  ~OverwritingPlay() { munmap(history_, sizeof(OverwritingHistory)); }
  OverwritingPlay(const OverwritingPlay&) = delete;
  OverwritingPlay& operator=(const OverwritingPlay&) = delete;

  [[nodiscard]] static std::string key(const Shape& shape) { return std::to_string(shape.capacity); }
  [[nodiscard]] const OverwritingSegment& segment() const noexcept { return segment_; }
  [[nodiscard]] OverwritingHistory& history() noexcept { return *history_; }

  void prepare(const Scene& scene) {
    const RingState state = scene.occupancy.state;
    history_->reset();
    segment_.reset(state);
    for (std::uint32_t i = 0; i < state.length; ++i) {
      const std::uint32_t id = history_->new_item(scene.length(), 0);
      unsigned char bytes[256];
      write_item(id, scene.length(), bytes);
      std::memcpy(segment_.base() + segment_.message_at((state.start + i) % scene.shape.capacity) + 8, bytes,
                  scene.length());
      history_->items[id].is_committed = history_->items[id].is_whole = true;
    }
    // as if somebody slept everywhere, so that wake-ups are places to die, too
    for (EventWord* event : {&segment_.control().items, &segment_.control().room, &segment_.control().copied,
                             &segment_.control().cell_freed})
      event->word.store(1);
  }

  void act(const Scene& scene, const OverwritingStep& step, std::uint32_t number) {
    OverwritingProbe& probe = history_->probes[number];
    OverwritingAttachment attached(segment_);
    if (step.op == Op::join) arm(probe);
    join(attached, *history_, probe, segment_);
    lose_lock(attached, probe);
    if (step.op != Op::join) arm(probe);
    OverwritingContext context{attached, *history_, probe, static_cast<std::uint8_t>(number + 1)};
    perform(context, scene, step.op);
    disarm();
    probe.has_returned = true;
    _exit(0);
  }

  // The end of every case: the queue must be as good as new.
  void close(const Scene& scene, Closing closing) {
    Survivors survivors(*this, scene);
    if (closing.attached_before) raise(SIGSTOP);  // until the case has happened
    const std::int64_t start = monotonic_ns();
    const bool is_shut = segment_.control().closed.load() != 0;
    const bool is_discarded = segment_.control().closed.load() & closed_to_gets;
    // in half of the cases: in the others the gets must find what the dead have left by themselves
    if (!is_discarded && !closing.producer_first) survivors.lease_left();
    if (closing.producer_first && survivors.put(true) != (is_shut ? Claim::closed : Claim::done))
      survivors.complain("a producer cannot go on");
    (void)survivors.drain();
    if (monotonic_ns() - start > recovery_limit_ns) survivors.complain("slow");
    if (!is_discarded && segment_.read<std::uint32_t>(28) != 0) survivors.complain("it cannot be drained");
    for (std::uint64_t i = 0; !is_shut && i < scene.shape.capacity; ++i)
      if (survivors.put(false) != Claim::done) survivors.complain("messages have leaked: there is not room for all");
    if (!is_shut && survivors.drain() != scene.shape.capacity) survivors.complain("it does not give what it was given");
    if (segment_.read<std::uint64_t>(16) != 0) survivors.complain("the header stays locked");
    for (std::uint64_t i = 0; !is_shut && i < scene.shape.capacity; ++i)
      if (segment_.read<std::uint64_t>(segment_.message_at(i)) != 0) survivors.complain("a message stays locked");
    survivors.clear_leases(is_discarded);
    OverwritingAttachment others(segment_);
    std::uint32_t joined = 0;
    while (others.queue().join() == ParticipantTable::Joined::yes) ++joined;
    if (joined + 2 != scene.shape.participants) survivors.complain("lines of the dead cannot be used again");
  }

  // While others are stopped, and nobody has died: what can go on goes on, and the living are left alone.
  void go_on(const Scene& scene) {
    Survivors survivors(*this, scene);
    const bool is_locked = segment_.read<std::uint64_t>(16) != 0;
    const OverwritingRing& ring = survivors.ring();
    for (std::uint64_t i = 0; i <= 2 * scene.shape.capacity; ++i) {
      const bool is_shut = segment_.control().closed.load() != 0;
      const bool is_written = ring.is_being_written(ring.index_of_next_put());
      const Claim should = is_locked ? Claim::locked : is_shut ? Claim::closed : is_written ? Claim::busy : Claim::done;
      if (survivors.put(true) != should) survivors.complain("beside a stopped process puts did not go on");
    }
    for (std::uint64_t i = 0; i <= scene.shape.capacity; ++i) {
      const std::uint32_t closed = segment_.control().closed.load();
      const RingState at = ring.state();
      const bool is_ended = closed & closed_to_gets || (closed != 0 && at.length == 0);
      const bool is_free = closed == 0 && at.length == 0;
      const Claim should = is_free                             ? Claim::empty
                           : is_locked                         ? Claim::locked
                           : is_ended                          ? Claim::closed
                           : ring.is_being_written(at.start) ? Claim::busy
                                                               : Claim::done;
      if (survivors.get() != should) survivors.complain("beside a stopped process gets did not go on");
    }
    const OverwritingRing::Fates fates = ring.fates();
    if (fates.torn != 0 || fates.lost_with_consumer != 0) survivors.complain("a living process was abandoned");
  }

  void abandon(std::uint32_t number) {
    const OverwritingProbe& probe = history_->probes[number];
    const auto* words =
        reinterpret_cast<std::atomic<std::uint64_t>*>(segment_.base() + segment_.offsets().leased_words);
    for (std::uint64_t cell = 0; cell < leased_cells(segment_.shape().capacity, segment_.shape().words); ++cell) {
      const std::uint64_t holder = lock_word::with_redeliveries(words[cell].load(), 0);
      if (holder == 0 || (holder != probe.holder_words[0] && holder != probe.holder_words[1])) continue;
      const auto* data = reinterpret_cast<const unsigned char*>(segment_.base() + segment_.offsets().leased_data);
      history_->hand_late(probe, read_item(*history_, data + cell * probe.length, probe.length));
    }
    settle(number);
  }
  void settle(std::uint32_t lane) { history_->settle(history_->probes[lane]); }

  // One of a soak: it puts and gets until the case is over.
  void work(const Scene& scene, std::uint32_t lane, std::uint64_t seed, std::uint8_t me) {
    constexpr Op ops[] = {Op::put, Op::put, Op::put_kept, Op::put_many, Op::get, Op::get, Op::get_many,
                          Op::lease, Op::lease_back};
    OverwritingProbe& probe = history_->probes[lane];
    OverwritingAttachment attached(segment_);
    history_->is_soak = true;
    join(attached, *history_, probe, segment_);
    lose_lock(attached, probe);
    arm(probe);
    OverwritingContext context{attached, *history_, probe, me};
    std::mt19937_64 random(seed);
    while (!history_->is_over.load()) {
      probe.reached = 0;
      perform(context, scene, ops[random() % std::size(ops)]);
    }
    disarm();
    _exit(0);
  }
  [[nodiscard]] const char* judge_soak() { return judge(); }

  // What the queue has counted is what the notes say, to the unit.
  [[nodiscard]] const char* judge() {
    if (history_->torn.load() != 0) return "an item is torn";
    if (history_->disordered.load() != 0) return "items came out of order";
    if (history_->next_id.load() >= item_limit) return "the history is full";
    if (history_->count([](const OverwritingItem& item) { return item.delivered.load() > 1; }) != 0)
      return "an item came twice";
    if (history_->count(
            [](const OverwritingItem& item) { return item.delivered.load() != 0 && !item.is_whole.load(); }))
      return "an item came that was never whole";
    OverwritingAttachment attached(segment_);
    if (!attached.ring().is_discarded() &&
        history_->count([](const OverwritingItem& item) { return item.is_kept.load() && item.delivered.load() == 0; }))
      return "an item is lost that a lease had";
    const OverwritingRing::Fates fates = attached.ring().fates();
    const std::uint64_t length = attached.ring().state().length;
    const std::uint64_t puts = history_->count([](const OverwritingItem& item) { return item.is_committed.load(); });
    const std::uint64_t whole = history_->count([](const OverwritingItem& item) { return item.is_whole.load(); });
    const std::uint64_t overwritten = history_->dropped.load() + history_->ended_overwritten.load();
    if (fates.puts != puts) return "puts are miscounted";
    if (fates.delivered != history_->ended_whole.load()) return "gets are miscounted";
    if (fates.overwritten != overwritten) return "what was overwritten is miscounted";
    if (fates.lost_with_consumer != history_->lost.load()) return "what was lost with a consumer is miscounted";
    if (length == 0 && fates.torn != puts - whole) return "torn messages are miscounted";
    if (length == 0 && whole != fates.delivered + fates.overwritten + fates.lost_with_consumer)
      return "an item is lost";
    if (fates.puts != fates.delivered + fates.overwritten + fates.torn + fates.lost_with_consumer + length)
      return "the sum is wrong";
    return nullptr;
  }

 private:
  // Two of them, who live: one puts, the other gets.
  class Survivors {
   public:
    Survivors(OverwritingPlay& play, const Scene& scene)
        : probes_(play.history_->probes + survivor_probe - 1),
          producer_(play.segment_),
          consumer_(play.segment_),
          puts_{producer_, *play.history_, probes_[0], 254},
          gets_{consumer_, *play.history_, probes_[1], 255},
          length_(scene.length()) {
      join(producer_, *play.history_, probes_[0], play.segment_);
      join(consumer_, *play.history_, probes_[1], play.segment_);
    }

    [[nodiscard]] Claim put(bool may_overwrite) {
      arm(probes_[0]);
      const Claim claim = put_item(puts_, length_, may_overwrite);
      disarm();
      return claim;
    }
    [[nodiscard]] Claim get() {
      arm(probes_[1]);
      const Claim claim = get_item(gets_, length_);
      disarm();
      return claim;
    }
    std::uint64_t drain() {
      std::uint64_t items = 0;
      while (get() == Claim::done) ++items;
      return items;
    }
    // First of all: leases say how often the dead have had what they left.
    void lease_left() {
      arm(probes_[1]);
      crash::lease_left(gets_);
      disarm();
    }
    // What the gets have left there is what somebody was copying when it died, unless a shutdown has ended the gets.
    void clear_leases(bool is_discarded) {
      LeasedMessages& leased_messages = consumer_.queue().leased_messages();
      OverwritingLease lease(consumer_.queue());
      LeasedMessage left[kept_limit];
      if (lease.join() != ParticipantTable::Joined::yes) return complain("no line for a lease");
      const std::uint64_t count = lease.take_over(left, kept_limit);
      if (count != 0 && !is_discarded) complain("what a lease left was not delivered");
      lease.release(left, count);
      for (std::uint64_t cell = 0; cell < leased_messages.cells(); ++cell)
        if (leased_messages.word(cell) != 0) complain("the cell of a leased message has leaked");
    }
    void complain(const char* what) { probes_[1].complain(what); }
    [[nodiscard]] const OverwritingRing& ring() { return consumer_.ring(); }

   private:
    OverwritingProbe* probes_;
    OverwritingAttachment producer_;
    OverwritingAttachment consumer_;
    OverwritingContext puts_;
    OverwritingContext gets_;
    std::uint16_t length_;
  };

  OverwritingSegment segment_;
  OverwritingHistory* history_;
};

}  // namespace queueduct::crash
