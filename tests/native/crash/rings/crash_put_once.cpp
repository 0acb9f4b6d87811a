// The crash campaign of named producers: kill put_once at every step, and whoever recovers from it, start it again,
// and see whether each of its items came out exactly once. Its options: crash/harness/program.hpp.
#include "crash/rings/put_once_groups.hpp"
#include "crash/harness/program.hpp"

namespace queueduct::crash {

static void choose(int way) {
  sabotage = static_cast<Sabotage>(way);
  testing::hides_producers = sabotage == Sabotage::uncut;
}

static const Program program = {"crash_once",
                                {{"late_confirm", static_cast<int>(Sabotage::late_confirm)},
                                 {"early_complete", static_cast<int>(Sabotage::early_complete)},
                                 {"uncut", static_cast<int>(Sabotage::uncut)},
                                 {"hasty", static_cast<int>(Sabotage::hasty)},
                                 {"fresh", static_cast<int>(Sabotage::fresh)}},
                                choose};

static std::vector<Shift<BoundedPlay>> shifts(const Options& options) {
  return {{[](Turns& turns) { PutOnceGroups(turns).pass_units(); }, options.workers}};
}

}  // namespace queueduct::crash

int main(int argc, char** argv) {
  return queueduct::crash::run_program<queueduct::crash::BoundedPlay>(queueduct::crash::program, argc, argv,
                                                                    queueduct::crash::shifts);
}
