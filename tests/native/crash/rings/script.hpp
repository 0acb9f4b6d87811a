// The bounded queue's operations, the states in which a case begins, and one process of a case.
#pragma once

#include "crash/rings/leasing.hpp"
#include "crash/rings/put_once.hpp"
#include "crash/harness/staging.hpp"

namespace queueduct::crash {

enum class Op : std::uint8_t {
  put_one,
  put_long,
  put_many,
  get,
  get_many,
  wait_put,
  wait_get,
  make_room,
  shutdown,
  shutdown_now,
  join,
  leave,
  put_once,
  forget,
  lease,
  lease_back,
  convert,
  convert_back,
  // not operations, but what happens to those who are stopped in one
  resume,   // goes on to its end
  advance,  // goes on for so many points
  slay,     // is killed
};

[[nodiscard]] inline const char* name_of(Op op) noexcept {
  constexpr const char* names[] = {"put_one",  "put_long",  "put_many", "get",          "get_many", "wait_put",
                                   "wait_get", "make_room", "shutdown", "shutdown_now", "join",     "leave",
                                   "put_once", "forget",    "lease",    "lease_back",   "convert",  "convert_back",
                                   "resume",   "advance",   "slay"};
  return names[static_cast<std::size_t>(op)];
}

inline const std::vector<Op> data_ops = {Op::put_one, Op::put_long, Op::put_many, Op::get, Op::get_many};

using Step = StepOf<Op>;

// How full the ring is, and where in its lap.
struct Occupancy {
  const char* name;
  std::uint64_t start;
  std::uint64_t slots;
};

[[nodiscard]] inline std::vector<Occupancy> occupancies(std::uint64_t capacity) {
  if (capacity == 1) return {{"empty", 0, 0}, {"full", 0, 1}, {"wrap", 1, 1}};
  return {{"empty", 0, 0},           {"one", 0, 1},
          {"but_one", 0, capacity - 1}, {"full", 0, capacity},
          {"wrap", capacity - 1, capacity / 2}, {"wrap_empty", capacity - 1, 0}};
}

// The state in which a case begins.
struct Scene {
  Shape shape;
  Occupancy occupancy;

  [[nodiscard]] std::string name() const {
    std::string name = shape.varying ? "bytes" : "records";
    name += std::to_string(shape.capacity);
    if (shape.participants < 4) name.append("x").append(std::to_string(shape.participants));
    return name + "/" + occupancy.name;
  }
  [[nodiscard]] std::uint64_t long_slots() const noexcept {
    return !shape.varying ? 1 : shape.capacity < 4 ? std::min<std::uint64_t>(2, shape.capacity) : 3;
  }
  [[nodiscard]] std::uint16_t short_length() const noexcept {
    return static_cast<std::uint16_t>(shape.varying ? shape.slot_bytes - 3 : shape.slot_bytes);
  }
  [[nodiscard]] std::uint16_t long_length() const noexcept {
    if (long_slots() == 1) return short_length();
    return static_cast<std::uint16_t>((long_slots() - 1) * shape.slot_bytes + 5);
  }
};

// Do the operation once, as a participant that has joined.
inline void perform(Context& context, const Scene& scene, Op op) {
  BoundedQueueHandle& queue = context.queue();
  const std::uint16_t one = scene.short_length();
  const std::uint16_t several = scene.long_length();
  switch (op) {
    case Op::put_one: (void)put_items(context, {one}); break;
    case Op::put_long: (void)put_items(context, {several}); break;
    case Op::put_many: (void)put_items(context, {one, several, one}); break;
    case Op::get: (void)get_items(context, 1); break;
    case Op::get_many: (void)get_items(context, 4); break;
    case Op::wait_put: (void)put_items(context, {one}, 1); break;
    case Op::wait_get: (void)get_items(context, 1, 1); break;
    case Op::make_room: (void)queue.make_room(context.attached.ledger()); break;
    case Op::shutdown: queue.shut_down(false); break;
    case Op::shutdown_now: queue.shut_down(true); break;
    case Op::join: break;  // done on the way here
    case Op::leave: queue.participant_table().leave(); break;
    case Op::put_once: (void)put_planned(context); break;
    case Op::forget: forget_another(context.attached.producers(), owner_word(context)); break;
    case Op::lease: (void)lease_items(context, 4, 4); break;
    case Op::lease_back: (void)lease_items(context, 4, 1); break;
    case Op::convert: (void)convert_items(context, 4, 4); break;
    case Op::convert_back: (void)convert_items(context, 4, 1); break;
    case Op::resume:
    case Op::advance:
    case Op::slay: break;  // the stage's, not ours
  }
}

// One process of a case: attach, join, do the operation. Only what is the operation counts for its failpoints.
inline void act(const Segment& segment, History& history, const Scene& scene, const Step& step, std::uint32_t number) {
  Probe& probe = history.probes[number];
  Attachment attached(segment);
  if (step.op == Op::join) arm(probe);
  join(attached, probe);
  lose_lock(attached, probe);
  if (step.op != Op::join) arm(probe);
  Context context{attached, history, probe, static_cast<std::uint8_t>(number + 1)};
  perform(context, scene, step.op);
  disarm();
  probe.has_returned = true;
  _exit(0);
}

}  // namespace queueduct::crash
