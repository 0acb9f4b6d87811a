// The crash campaign of named producers of a slot queue: kill put_once and its recoverers at every step, start it
// again, and see whether each of its items was put exactly once. Its options: crash/harness/program.hpp.
#include "crash/harness/program.hpp"
#include "crash/slots/put_once_groups.hpp"

namespace queueduct::crash {

static void choose(int way) {
  slots_sabotage = static_cast<SlotsSabotage>(way);
  testing::hides_producers = slots_sabotage == SlotsSabotage::uncut;
}

static const Program program = {"crash_slots_once",
                                {{"uncut", static_cast<int>(SlotsSabotage::uncut)},
                                 {"unintended", static_cast<int>(SlotsSabotage::unintended)},
                                 {"early_count", static_cast<int>(SlotsSabotage::early_count)},
                                 {"hasty", static_cast<int>(SlotsSabotage::hasty)},
                                 {"fresh", static_cast<int>(SlotsSabotage::fresh)}},
                                choose};

static std::vector<Shift<SlotsPlay>> shifts(const Options& options) {
  return {{[](SlotsTurns& turns) { SlotsPutOnceGroups(turns).pass_units(); }, options.workers}};
}

}  // namespace queueduct::crash

int main(int argc, char** argv) {
  return queueduct::crash::run_program<queueduct::crash::SlotsPlay>(queueduct::crash::program, argc, argv,
                                                                  queueduct::crash::shifts);
}
