// The crash campaign of the growing queue. Its options are those of every campaign: crash/harness/program.hpp.
//
//   single   a user is killed at every step of every scene
//   stop     it is stopped instead, somebody works beside it, and it goes on
//   pair     it is killed, and so is whoever finds what it has left, at some steps or at all
//   join     it is killed, and so is whoever gets its line
//   again    a named producer is killed, and again when it was started again
#include <cstring>

#include "crash/rings/growing_stage.hpp"
#include "crash/harness/program.hpp"

namespace queueduct::crash {

using GrowingWorker = WorkerOf<GrowingPlay>;
using GrowingTurns = TurnsOf<GrowingPlay>;

static const Program program = {"crash_growing",
                                {{"silent", static_cast<int>(Sabotage::silent)},
                                 {"blind", static_cast<int>(Sabotage::blind)},
                                 {"early_end", static_cast<int>(Sabotage::early_end)},
                                 {"fresh", static_cast<int>(Sabotage::fresh)}},
                                [](int way) { sabotage = static_cast<Sabotage>(way); }};

static const std::vector<std::string> groups = {"single", "stop", "pair", "join", "again"};
static const GrowingSizes shape{.producers = 2};

static void play(GrowingWorker& worker, const std::string& unit, const std::vector<Victim>& victims) {
  std::string name = unit;
  for (const Victim& victim : victims) name.append("/").append(std::to_string(victim.step));
  worker.run(name, [&] {
    return worker.stage(shape).run(victims, [&](const char* point) { worker.note_point(point); });
  });
}

// Each step of the scene in turn, with the failpoint that it is.
template <class Use>
static void pass_unit(GrowingTurns& turns, const std::string& name, const Scene& scene, Use use) {
  turns.pass(name, groups, [&](GrowingWorker& worker) {
    const std::vector<const char*> points = worker.stage(shape).record(scene);
    if (points.empty()) worker.run(name, [] { return Result{.problem = "the scene itself fails"}; });
    for (std::uint32_t step = 1; step <= points.size(); ++step) use(worker, name, step, points[step - 1]);
  });
}

// At which steps the helper dies: in the short form at some that differ from case to case, and at all when the one
// before had claimed an item and not released it.
static std::vector<std::uint32_t> seconds(bool is_long, std::uint32_t first, const char* point) {
  std::vector<std::uint32_t> all;
  if (is_long || std::strcmp(point, "pop.claimed") == 0)
    for (std::uint32_t step = 1; step <= (is_long ? 160 : 60); ++step) all.push_back(step);
  else
    for (const std::uint32_t step : {1 + first % 12, 41 + first * 11 % 60}) all.push_back(step);
  // the owner of the upkeep lock is dead: an earlier waiter has asked a hundred times before it takes the lock over
  if (!is_long && std::strncmp(point, "memory.", 7) == 0) all.push_back(101 + first % 12);
  return all;
}

static void pass_units(GrowingTurns& turns, const Scene& scene) {
  const bool is_long = turns.options().is_long;
  const auto add = [&](const std::string& group, auto use) { pass_unit(turns, group + "/" + scene.name, scene, use); };
  const Scene& heal = scenes().back();
  add("pair",
      [=, &scene, &heal](GrowingWorker& worker, const std::string& unit, std::uint32_t step, const char* point) {
        for (const std::uint32_t second : seconds(is_long, step, point))
          play(worker, unit, {{&scene, Fire::kill, step}, {&heal, Fire::kill, second}});
      });
  add("join", [=, &scene](GrowingWorker& worker, const std::string& unit, std::uint32_t step, const char*) {
    for (std::uint32_t second = is_long ? 1 : 1 + step % 12; second <= 12; second += is_long ? 1 : 12)
      play(worker, unit, {{&scene, Fire::kill, step}, {&joining, Fire::kill, second}});
  });
  add("single", [&scene](GrowingWorker& worker, const std::string& unit, std::uint32_t step, const char*) {
    play(worker, unit, {{&scene, Fire::kill, step}});
  });
  add("stop", [&scene](GrowingWorker& worker, const std::string& unit, std::uint32_t step, const char*) {
    play(worker, unit, {{&scene, Fire::stop, step}});
  });
  if (std::strcmp(scene.name, "put once") != 0) return;
  add("again", [=, &scene](GrowingWorker& worker, const std::string& unit, std::uint32_t step, const char*) {
    for (std::uint32_t second = is_long ? 1 : 1 + step % 7; second <= 200; second += is_long ? 1 : 29)
      play(worker, unit, {{&scene, Fire::kill, step}, {&scene, Fire::kill, second}});
  });
}

static std::vector<Shift<GrowingPlay>> shifts(const Options& options) {
  const auto pass_all = [](GrowingTurns& turns) {
    for (const Scene& scene : scenes()) pass_units(turns, scene);
  };
  return {{pass_all, options.workers}};
}

}  // namespace queueduct::crash

int main(int argc, char** argv) {
  return queueduct::crash::run_program<queueduct::crash::GrowingPlay>(queueduct::crash::program, argc, argv,
                                                                    queueduct::crash::shifts);
}
