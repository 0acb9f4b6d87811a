// The crash campaign of the slot queue. Its options are those of every campaign: crash/harness/program.hpp.
#include "crash/harness/program.hpp"
#include "crash/slots/groups.hpp"
#include "crash/harness/soak.hpp"

namespace queueduct::crash {

static void choose(int way) { slots_sabotage = static_cast<SlotsSabotage>(way); }

static const Program program = {"crash_slots",
                                {{"unlocked", static_cast<int>(SlotsSabotage::unlocked)},
                                 {"forgetful", static_cast<int>(SlotsSabotage::forgetful)},
                                 {"nameless", static_cast<int>(SlotsSabotage::nameless)},
                                 {"unwritten", static_cast<int>(SlotsSabotage::unwritten)}},
                                choose};

static std::vector<Shift<SlotsPlay>> shifts(const Options& options) {
  std::vector<SlotsScene> full;
  for (const SlotsScene& scene : slots_scenes())
    if (scene.items == scene.shape.count) full.push_back(scene);
  // the longest first, so that the workers end together
  const auto pass_units = [full](SlotsTurns& turns) {
    pass_soak(turns, full, SlotsGroups::names(), turns.options().is_long ? 400 : 9);
    SlotsGroups(turns).pass_units();
  };
  return {{pass_units, options.workers}};
}

}  // namespace queueduct::crash

int main(int argc, char** argv) {
  return queueduct::crash::run_program<queueduct::crash::SlotsPlay>(queueduct::crash::program, argc, argv,
                                                                  queueduct::crash::shifts);
}
