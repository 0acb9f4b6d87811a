// The events queue's part of a stage.
#pragma once

#include <random>

#include "crash/events/survivors.hpp"

namespace queueduct::crash {

class EventsPlay {
 public:
  using Shape = EventsKind;
  using Scene = EventsScene;
  using Op = EventsOp;

  explicit EventsPlay(const Shape& shape) : segment_(shape.settings), history_(EventsHistory::create()) {}
  ~EventsPlay() { munmap(history_, sizeof(EventsHistory)); }
  EventsPlay(const EventsPlay&) = delete;
  EventsPlay& operator=(const EventsPlay&) = delete;

  [[nodiscard]] static std::string key(const Shape& shape) { return shape.name; }
  [[nodiscard]] const EventsSegment& segment() const noexcept { return segment_; }
  [[nodiscard]] EventsHistory& history() noexcept { return *history_; }

  void prepare(const Scene& scene) {
    history_->reset(segment_.end().position() + 1);
    segment_.reset();
    make_plan(scene);
    fill(scene);
    if (scene.occupancy.is_rebooted) crash_machine();
    // as if somebody slept on either side, so that wake-ups are places to die, too
    segment_.control().items.word.store(1);
    segment_.control().room.word.store(1);
    reinterpret_cast<ParticipantLine*>(segment_.base() + segment_.offsets().participants)->intent.store(0);
    history_->probes[survivor_probe].restart();
  }

  void act(const Scene& scene, const EventsStep& step, std::uint32_t number) {
    EventsProbe& probe = history_->probes[number];
    EventsAttachment attached(segment_, today);
    probe.op = static_cast<std::uint8_t>(step.op);
    probe.control = attached.map().control;
    if (step.op == EventsOp::join) arm(probe);
    join(attached, probe);
    lose_lock(attached, probe);
    EventsContext context{attached, *history_, probe};
    EventsSubscription subscription;
    get_ready(context, step.op, subscription);
    if (step.op != EventsOp::join) arm(probe);
    perform(context, scene, step.op, subscription);
    disarm();
    expect(*history_, probe, step.op);
    _exit(0);
  }

  void close(const Scene& scene, Closing closing) { EventsSurvivors(segment_, *history_, scene).close(closing); }
  void go_on(const Scene& scene) { EventsSurvivors(segment_, *history_, scene).go_on(); }

  void abandon(std::uint32_t number) {
    const EventsProbe& probe = history_->probes[number];
    expect(*history_, probe, static_cast<EventsOp>(probe.op));
  }

  // One of a soak: it puts, and reads as the witness, until the case is over.
  void work(const Scene& scene, std::uint32_t lane, std::uint64_t seed, std::uint8_t) {
    constexpr EventsOp ops[] = {EventsOp::put_one, EventsOp::put_many, EventsOp::put_many, EventsOp::put_long,
                                EventsOp::put_once, EventsOp::abandon,    EventsOp::witness,  EventsOp::witness};
    EventsProbe& probe = history_->probes[lane];
    EventsAttachment attached(segment_, today);
    join(attached, probe);
    lose_lock(attached, probe);
    EventsContext context{attached, *history_, probe, 20 * millisecond};
    std::mt19937_64 random(seed);
    arm(probe);
    while (!history_->is_over.load()) {
      const EventsOp op = ops[random() % std::size(ops)];
      probe.op = static_cast<std::uint8_t>(op);
      EventsSubscription subscription;
      perform(context, scene, op, subscription);
      settle(lane);
    }
    disarm();
    _exit(0);
  }
  void settle(std::uint32_t lane) { abandon(lane); }

  // Here somebody read every position: it was let go only afterwards.
  [[nodiscard]] const char* judge_soak() const {
    if (!segment_.settings().may_drop) history_->read_from = 0;
    return judge();
  }

  // Every item that is in was seen where it is, and nothing else was.
  [[nodiscard]] const char* judge() const {
    if (history_->torn.load() != 0) return "an item is torn";
    if (history_->confused.load() != 0) return "two readers saw different items at one position";
    if (history_->doubled.load() != 0) return "an item was put twice";
    if (history_->next_id.load() >= item_limit) return "the history is full";
    const std::uint64_t end = segment_.end().position();
    std::uint64_t in = 0;
    for (std::uint32_t id = 1; id < history_->next_id.load(); ++id) {
      const std::uint64_t position = history_->items[id].position;
      if (position == nowhere) continue;
      if (position >= end) return "an item is lost from the end";
      in += position >= history_->read_from;
      if (position >= history_->read_from && history_->seen[position].load() != id) return "an item is lost";
    }
    for (std::uint64_t position = 0; position < end; ++position) {
      const std::uint32_t id = history_->seen[position];
      if (id != 0 && history_->items[id].position != position) return "an item is where none was put";
    }
    const bool may_drop = segment_.settings().may_drop;
    return !may_drop && in != end - history_->read_from ? "there are positions that nobody put" : nullptr;
  }

 private:
  void fill(const Scene& scene) {
    EventsMap map = segment_.settings().map();
    map.may_drop &= scene.occupancy.has_dropped;
    EventsAttachment attached(segment_, scene.occupancy.is_rebooted ? Identity{{1, 2}, 0} : today, map);
    EventsProbe& probe = history_->probes[survivor_probe];
    join(attached, probe);
    EventsContext context{attached, *history_, probe};
    if (!enter(context)) throw std::runtime_error("a scene cannot be prepared");
    (void)attached.queue().settle_boot();
    EventsSubscription witness;
    EventsSubscription mover;
    (void)subscribe(context, "witness", 0, witness);
    (void)subscribe(context, "mover", 0, mover);
    attached.queue().leave();
    std::uint64_t put = 0;
    while (put < scene.occupancy.items && put_items(context, {scene.short_length()}) == 1) {
      if (++put != planned_before_boot || !scene.occupancy.is_rebooted) continue;
      if (put_sequence(context, 0) != Planned::done) throw std::runtime_error("a scene cannot be prepared");
      put += history_->plan.counts[0];
    }
    const std::uint64_t passed = std::min(put, scene.occupancy.passed);
    for (const std::uint32_t line : {witness.line, mover.line})
      (void)move_to(attached.map(), attached.map().readers[line], passed);
    if (scene.occupancy.is_rebooted)
      (void)move_to(attached.map(), attached.map().readers[mover.line], moved_before_boot);
    history_->base = passed;
    if (scene.occupancy.has_mover) {
      history_->mover.place = passed;
    } else if (enter(context)) {
      attached.queue().unsubscribe(mover.line);
      attached.queue().leave();
    }
  }

  void make_plan(const Scene& scene) {
    for (const std::uint16_t length : {scene.short_length(), scene.short_length()})
      history_->plan.add(0, history_->new_item(length));
    for (const std::uint16_t length : scene.several()) history_->plan.add(1, history_->new_item(length));
  }

  // Only what was synced is believed: the rest is lost as soon as anybody comes.
  void crash_machine() {
    segment_.control().synced.store(synced_before_boot);
    history_->mover.place = synced_before_boot;
    for (std::uint32_t id = 1; id < history_->next_id.load(); ++id)
      if (history_->items[id].position >= synced_before_boot) history_->items[id].position = nowhere;
  }

  EventsSegment segment_;
  EventsHistory* history_;
};

}  // namespace queueduct::crash
