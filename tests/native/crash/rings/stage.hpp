// The bounded queue's part of a stage.
#pragma once

#include <random>

#include "crash/rings/autopsy.hpp"

namespace queueduct::crash {

class BoundedPlay {
 public:
  using Shape = testing::Shape;
  using Scene = crash::Scene;
  using Op = crash::Op;

  explicit BoundedPlay(const Shape& shape) : segment_(shape), history_(History::create()) {}
  ~BoundedPlay() { munmap(history_, sizeof(History)); }
  BoundedPlay(const BoundedPlay&) = delete;
  BoundedPlay& operator=(const BoundedPlay&) = delete;

  [[nodiscard]] static std::string key(const Shape& shape) {
    return std::to_string(shape.capacity) + "/" + std::to_string(shape.participants) + "/" +
           std::to_string(shape.producers) + (shape.varying ? "v" : "r");
  }
  [[nodiscard]] const Segment& segment() const noexcept { return segment_; }
  [[nodiscard]] History& history() noexcept { return *history_; }

  void prepare(const Scene& scene) {
    segment_.reset(scene.occupancy.start);
    history_->reset();
    autopsy_.reset();
    std::uint64_t left = scene.occupancy.slots;
    for (bool is_long = true; left > 0; is_long = !is_long) {
      const bool take_long = is_long && scene.long_slots() <= left;
      const std::uint16_t length = take_long ? scene.long_length() : scene.short_length();
      const std::uint32_t id = history_->new_item(length, 0);
      unsigned char bytes[4096];
      write_item(id, length, bytes);
      (void)try_put_bytes(segment_.ring(), NoLedger{}, bytes, length);
      history_->items[id].is_in.store(true);
      left -= segment_.ring().slots_for(length);
    }
    if (scene.shape.producers != 0) make_plan(scene);
    // as if somebody slept on either side, so that wake-ups are places to die, too
    segment_.control().items.word.store(1);
    segment_.control().room.word.store(1);
  }

  void act(const Scene& scene, const Step& step, std::uint32_t number) {
    crash::act(segment_, *history_, scene, step, number);
  }
  void close(const Scene& scene, Closing closing) { close_case(segment_, *history_, scene, closing); }
  void go_on(const Scene& scene) { go_on_beside_the_stopped(segment_, *history_, scene); }

  // One of a soak: it puts and gets until the case is over.
  void work(const Scene& scene, std::uint32_t lane, std::uint64_t seed, std::uint8_t me) {
    Probe& probe = history_->probes[lane];
    Attachment attached(segment_);
    join(attached, probe);
    lose_lock(attached, probe);
    arm(probe);
    Context context{attached, *history_, probe, me};
    std::mt19937_64 random(seed);
    while (!history_->is_over.load()) {
      const bool puts = random() % 2 == 0;
      perform(context, scene, puts ? data_ops[random() % 3] : data_ops[3 + random() % 2]);
    }
    disarm();
    _exit(0);
  }
  void settle(std::uint32_t lane) { history_->settle(history_->probes[lane]); }
  [[nodiscard]] const char* judge_soak() const { return judge_items(segment_, *history_); }

  void abandon(std::uint32_t number) {
    settle(number);
    autopsy_.examine(segment_, history_->probes[number]);
  }

  [[nodiscard]] const char* judge() const {
    if (const char* problem = judge_items(segment_, *history_)) return problem;
    return autopsy_.judge(segment_);
  }

 private:
  void make_plan(const Scene& scene) {
    const std::uint16_t one = scene.short_length();
    const std::vector<std::uint16_t> lengths[Plan::sequences] = {{one, one}, {scene.long_length(), one, one}};
    for (std::uint32_t s = 0; s < Plan::sequences; ++s)
      for (const std::uint16_t length : lengths[s]) history_->plan.add(s, history_->new_item(length, planned_putter));
  }

  Segment segment_;
  History* history_;
  Autopsy autopsy_;
};

using Stage = StageOf<BoundedPlay>;
using Case = Stage::Case;

}  // namespace queueduct::crash
