// Somebody dies while the others are asleep on the queue: nobody wakes them, and yet they must go on in time.
//
// The survivors wait as BoundedQueue does for Python, clocks and all: this is the one group where time is the point.
#pragma once

#include "crash/rings/groups.hpp"

namespace queueduct::crash {

// get() for ever, until the case is over.
inline void keep_getting(Context& context) {
  BoundedQueueHandle& queue = context.queue();
  bool has_waited = false;
  while (!context.history.is_over.load()) {
    context.probe.begin_operation();
    queueduct::Item item;
    item.has_waited = has_waited;
    if (find_item(context, item) == Outcome::done) {
      (void)take_items(context, item, 1);
      continue;
    }
    queue.wait_for_items(park_limit_ns);
    has_waited = true;
  }
}

// put() of so many one-slot items, each until it is in.
inline void put_all(Context& context, const Scene& scene, std::uint64_t count) {
  BoundedQueueHandle& queue = context.queue();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint16_t length = scene.short_length();
    const std::uint32_t id = context.history.new_item(length, context.me);
    unsigned char bytes[4096];
    write_item(id, length, bytes);
    const std::vector<Buffer> one{{bytes, length}};
    for (bool has_waited = false;; has_waited = true) {
      std::uint64_t put = 0;
      const Outcome outcome = sabotage == Sabotage::helpless
                                  ? put_broken(context, one, put)
                                  : queue.put_bytes(context.attached.ledger(), bytes, length, run_here);
      if (outcome == Outcome::done) {
        queue.after_put(has_waited);
        break;
      }
      queue.wait_for_room(outcome, 1, park_limit_ns);
    }
    context.history.items[id].is_in.store(true);
  }
}

class Asleep {
 public:
  Asleep(Stage& stage, const Scene& scene) : stage_(stage), scene_(scene) {}

  // The victim is stopped at its point, the others fall asleep over it, then it is killed.
  [[nodiscard]] Result run(const Step& victim) {
    Result result;
    stage_.prepare(scene_);
    if (!stage_.play(scene_, victim, result)) return result;
    control().items.word.store(0);
    control().room.word.store(0);
    const pid_t consumer = start([&] { survive([&](Context& context) { keep_getting(context); }, 200); });
    producer_ =
        start([&] { survive([&](Context& context) { put_all(context, scene_, scene_.shape.capacity); }, 201); });
    if (!until([&] { return are_asleep(); })) result.fail("nobody fell asleep");
    const std::int64_t start_ns = monotonic_ns();
    stage_.kill_stopped(result);
    if (!until([&] { return has_producer_ended() && is_all_delivered(); })) {
      result.fail("asleep for ever");
    } else if (monotonic_ns() - start_ns > recovery_limit_ns) {
      result.fail("slow");
    }
    end_all(consumer);
    if (result.problem.empty()) {
      const pid_t closing = start([&] { close_case(stage_.segment(), stage_.history(), scene_, {}); });
      if (finish(closing) != Ended::exited) result.fail("survivors failed");
      stage_.judge(result);
    }
    return result;
  }

 private:
  template <class Work>
  void survive(Work work, std::uint8_t me) {
    Attachment attached(stage_.segment());
    Probe& probe = stage_.history().probes[probe_limit - 2 - (me - 200)];
    join(attached, probe);
    Context context{attached, stage_.history(), probe, me};
    work(context);
  }

  [[nodiscard]] BoundedControl& control() const noexcept { return stage_.segment().control(); }

  // The consumer has announced that it sleeps, and the producer too, unless it has put everything.
  [[nodiscard]] bool are_asleep() {
    return (control().items.word.load() & 1) && (has_producer_ended() || (control().room.word.load() & 1));
  }

  [[nodiscard]] bool has_producer_ended() {
    if (producer_ != 0 && waitpid(producer_, nullptr, WNOHANG) == producer_) producer_ = 0;
    return producer_ == 0;
  }

  [[nodiscard]] bool is_all_delivered() {
    const History& history = stage_.history();
    for (std::uint32_t id = 1; id < history.next_id.load() && id < item_limit; ++id) {
      const Item& item = history.items[id];
      if (item.is_in.load() && item.delivered.load() + item.gone.load() == 0) return false;
    }
    return true;
  }

  template <class Condition>
  [[nodiscard]] static bool until(Condition condition) {
    const std::int64_t end = monotonic_ns() + 3'000 * millisecond;
    while (!condition()) {
      if (monotonic_ns() > end) return false;
      const timespec moment{.tv_sec = 0, .tv_nsec = 300'000};
      nanosleep(&moment, nullptr);
    }
    return true;
  }

  void end_all(pid_t consumer) {
    stage_.history().is_over.store(true);
    Event(&control().items.word).wake_all();
    (void)finish(consumer, 1'000 * millisecond);
    if (producer_ != 0) put_down(producer_);
    producer_ = 0;
  }

  Stage& stage_;
  const Scene& scene_;
  pid_t producer_ = 0;
};

inline void pass_asleep(Turns& turns) {
  const Options& options = turns.options();
  for (const Shape& shape : shapes(options.is_long)) {
    for (const Scene& scene : scenes(shape)) {
      if (!options.is_long && std::string(scene.occupancy.name) != "wrap" && scene.occupancy.slots != 0) continue;
      for (const Op op : data_ops) {
        const std::string name = "asleep/" + scene.name() + "/" + name_of(op);
        turns.pass(name, RingGroups::names(), [&](Worker& worker) {
          for (const Point& point : worker.record(scene, {}, op)) {
            const Step victim{op, Fire::stop, point};
            worker.run("asleep/" + scene.name() + "/" + victim.name() + "/kill",
                       [&] { return Asleep(worker.stage(scene.shape), scene).run(victim); });
          }
        });
      }
    }
  }
}

}  // namespace queueduct::crash
