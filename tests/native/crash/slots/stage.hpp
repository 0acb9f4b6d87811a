// The slot queue's part of a stage, and what live processes do after a case or while others are stopped in it.
#pragma once

#include <memory>
#include <random>

#include "crash/slots/put_once.hpp"

namespace queueduct::crash {

// Both survivors, in one process with two attachments: to the queue they are two.
class SlotsSurvivors {
 public:
  SlotsSurvivors(const SlotsSegment& segment, SlotsHistory& history)
      : segment_(segment), history_(history), reader_(segment), writer_(segment) {
    join(reader_, probe_);
    join(writer_, probe_);
  }

  // The end of every case: the queue must be as good as new.
  void close(Closing closing) {
    if (closing.attached_before) raise(SIGSTOP);  // until the case has happened
    const std::int64_t begin = monotonic_ns();
    if (history_.plan.exists() && closing.producer_first && !is_shut()) put_planned(writing_);
    if (closing.producer_first && !is_shut() && put_item(writing_) == SlotOutcome::full) {
      (void)writer_.queue().recover_if_due(writer_.me(), true);
      (void)put_item(writing_);  // as many items as slots: then it is rightly full
    }
    drain();
    if (!is_shut() && put_item(writing_) != SlotOutcome::done) probe_.complain("a put beside nobody did not go in");
    if (monotonic_ns() - begin > recovery_limit_ns) probe_.complain("slow");
    drain();
    if (is_shut() && !reader_.queue().is_drained()) probe_.complain("a queue that was shut down does not end");
    open_again();
    finish_plan();
    check_complete();
    check_lines();
  }

  // While others are stopped, and nobody has died: what they do not have goes round.
  void go_on() {
    const std::uint64_t recovered = segment_.control().recovered.load();
    std::uint64_t owned = 0;
    for (std::uint64_t slot = 0; slot < count(); ++slot)
      owned += slot_word::owner_of(reader_.slots().word_of(slot)) != 0;
    if (!is_over()) {
      while (get_item(reading_) == SlotOutcome::done || reader_.queue().recover_if_due(reader_.me(), true)) {
      }
    }
    for (int round = 0; round < 8 && !is_shut() && owned < writer_.slots().capacity(); ++round) {
      if (put_item(writing_) != SlotOutcome::done) probe_.complain("beside a stopped process a put did not go on");
      if (get_item(reading_) != SlotOutcome::done) probe_.complain("beside a stopped process a get did not go on");
    }
    if (reader_.queue().recovery().run() || segment_.control().recovered.load() != recovered)
      probe_.complain("a living process was taken for dead");
  }

 private:
  [[nodiscard]] std::uint64_t count() const noexcept { return segment_.sizes().count; }
  [[nodiscard]] bool is_shut() const noexcept { return segment_.control().closed.load() & Slots::puts_closed; }
  [[nodiscard]] bool is_over() const noexcept { return segment_.control().closed.load() & Slots::gets_closed; }

  void drain() {
    if (is_over()) segment_.control().closed.store(Slots::puts_closed);  // to see what is left
    for (;;) {
      const SlotOutcome outcome = get_item(reading_);
      if (outcome == SlotOutcome::done) continue;
      if (outcome == SlotOutcome::corrupt) return probe_.complain("the queue is called corrupt");
      if (!reader_.queue().recover_if_due(reader_.me(), true)) return;
    }
  }

  void open_again() {
    segment_.control().closed.store(0);
    writer_.queue().set_capacity(count());
  }

  // The producer is started again, as often as it takes: then each of its items was put once.
  void finish_plan() {
    if (!history_.plan.exists()) return;
    for (int round = 0; round < 16 && !is_plan_complete(writing_); ++round) {
      put_planned(writing_);
      drain();
    }
    if (!is_plan_complete(writing_)) probe_.complain("a producer that was started again did not come to its end");
    put_planned(writing_);  // once more: nothing is put twice
    drain();
    if (!every_line_is_usable(writer_.producers(), writer_.queue().owner_word()))
      probe_.complain("a line of the producers has leaked");
  }

  // Each slot can be lent, once; then each carries an item.
  void check_complete() {
    std::vector<Lease> leases;
    std::vector<bool> seen(count());
    for (Lease lease; leases.size() <= count() && writer_.hold(lease) == SlotOutcome::done; leases.push_back(lease)) {
      if (seen[lease.slot]) return probe_.complain("a slot was lent twice");
      seen[lease.slot] = true;
    }
    if (leases.size() != count()) return probe_.complain("a slot has leaked");
    for (Lease& lease : leases) (void)writer_.slots().leave(lease);
    for (std::uint64_t i = 0; i < count(); ++i)
      if (put_item(writing_) != SlotOutcome::done) return probe_.complain("a slot cannot be filled");
    drain();
    if (reader_.queue().count_in(slot_word::State::free) != count()) probe_.complain("a slot is not free");
    if (reader_.queue().size() != 0) probe_.complain("an empty queue has a size");
  }

  void check_lines() {
    std::vector<std::unique_ptr<SlotsAttachment>> others;
    for (std::uint32_t i = 2; i < segment_.sizes().participants; ++i) {
      others.push_back(std::make_unique<SlotsAttachment>(segment_));
      if (others.back()->queue().join() != ParticipantTable::Joined::yes)
        return probe_.complain("a line of the participant table has leaked");
    }
  }

  const SlotsSegment& segment_;
  SlotsHistory& history_;
  SlotsAttachment reader_;
  SlotsAttachment writer_;
  SlotsProbe& probe_ = history_.probes[survivor_probe];
  SlotsContext reading_{reader_, history_, probe_};
  SlotsContext writing_{writer_, history_, probe_};
};

class SlotsPlay {
 public:
  using Shape = SlotsSizes;
  using Scene = SlotsScene;
  using Op = SlotsOp;

  explicit SlotsPlay(const Shape& shape) : segment_(shape), history_(SlotsHistory::create()) {}
  ~SlotsPlay() { munmap(history_, sizeof(SlotsHistory)); }
  SlotsPlay(const SlotsPlay&) = delete;
  SlotsPlay& operator=(const SlotsPlay&) = delete;

  [[nodiscard]] static std::string key(const Shape& shape) {
    return std::to_string(shape.count) + "/" + std::to_string(shape.producers);
  }
  [[nodiscard]] const SlotsSegment& segment() const noexcept { return segment_; }
  [[nodiscard]] SlotsHistory& history() noexcept { return *history_; }

  void prepare(const Scene& scene) {
    history_->reset();
    segment_.reset();
    if (scene.shape.producers != 0) make_plan(*history_, scene);
    {
      SlotsAttachment attached(segment_);
      SlotsProbe& probe = history_->probes[survivor_probe];
      probe.line = attached.me() - 1;
      SlotsContext context{attached, *history_, probe};
      arm(probe);  // its notes say what is in
      for (std::uint64_t i = 0; i < scene.rounds; ++i) {
        (void)put_item(context);
        (void)get_item(context);
      }
      for (std::uint64_t i = 0; i < scene.items; ++i) (void)put_item(context);
      disarm();
    }
    segment_.lines()->intent.store(0);
    // as if somebody slept on either side, so that wake-ups are places to die, too
    segment_.control().items.word.store(1);
    segment_.control().room.word.store(1);
    history_->probes[survivor_probe].restart();
  }

  void act(const Scene&, const SlotsStep& step, std::uint32_t number) {
    SlotsProbe& probe = history_->probes[number];
    SlotsAttachment attached(segment_);
    probe.op = static_cast<std::uint8_t>(step.op);
    if (step.op == SlotsOp::join) arm(probe);
    join(attached, probe);
    lose_lock(attached, probe);
    if (step.op != SlotsOp::join) arm(probe);
    SlotsContext context{attached, *history_, probe};
    perform(context, step.op);
    disarm();
    _exit(0);
  }

  void close(const Scene&, Closing closing) {
    with_notes([&](SlotsSurvivors& survivors) { survivors.close(closing); });
  }
  void go_on(const Scene&) { with_notes([](SlotsSurvivors& survivors) { survivors.go_on(); }); }

  // Whoever died between the claim of an eviction and its look at the item: it holds the slot with that item.
  void abandon(std::uint32_t number) {
    SlotsProbe& probe = history_->probes[number];
    if (probe.has_evicted && probe.evicted_id == 0) probe.evicted_id = evicted_by(probe.line + 1);
    for_each_slot_of(probe.line + 1, slot_word::State::taken,
                     [&](std::uint32_t id) { history_->hand_late(probe, id); });
    history_->settle(probe);
  }

  // One of a soak, until the case is over.
  void work(const Scene&, std::uint32_t lane, std::uint64_t seed, std::uint8_t) {
    constexpr SlotsOp ops[] = {SlotsOp::put, SlotsOp::put,      SlotsOp::get,    SlotsOp::get,
                               SlotsOp::put_back, SlotsOp::cancel, SlotsOp::recover, SlotsOp::lease};
    SlotsProbe& probe = history_->probes[lane];
    SlotsAttachment attached(segment_);
    history_->is_soak = true;
    join(attached, probe);
    lose_lock(attached, probe);
    SlotsContext context{attached, *history_, probe};
    std::mt19937_64 random(seed);
    arm(probe);
    while (!history_->is_over.load()) perform(context, ops[random() % std::size(ops)]);
    disarm();
    _exit(0);
  }
  void settle(std::uint32_t lane) { history_->settle(history_->probes[lane]); }

  [[nodiscard]] const char* judge() const { return history_->judge(); }
  [[nodiscard]] const char* judge_soak() const { return history_->judge(); }

 private:
  template <class Work>
  void with_notes(Work work) {
    SlotsSurvivors survivors(segment_, *history_);
    arm(history_->probes[survivor_probe]);
    work(survivors);
    disarm();
  }

  // The items in the slots that this participant owns.
  template <class Visit>
  void for_each_slot_of(std::uint32_t owner, slot_word::State state, Visit visit) {
    for (std::uint64_t slot = 0; slot < segment_.sizes().count; ++slot) {
      const SlotLine& line = reinterpret_cast<SlotLine*>(segment_.base() + segment_.offsets().lines)[slot];
      const std::uint64_t word = line.word.load();
      if (slot_word::owner_of(word) != owner || slot_word::state_of(word) != state) continue;
      Lease lease;
      lease.bytes = line.length.load();
      lease.data = segment_.base() + segment_.offsets().payload + slot * segment_.offsets().stride;
      visit(history_->see(lease));
    }
  }

  [[nodiscard]] std::uint32_t evicted_by(std::uint32_t owner) {
    std::uint32_t found = 0;
    for_each_slot_of(owner, slot_word::State::held, [&found](std::uint32_t id) { found = found == 0 ? id : found; });
    return found;
  }

  SlotsSegment segment_;
  SlotsHistory* history_;
};

}  // namespace queueduct::crash
