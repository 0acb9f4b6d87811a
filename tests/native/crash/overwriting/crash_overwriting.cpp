// The crash campaign of the overwriting queue. Its options are those of every campaign: crash/harness/program.hpp.
#include "crash/overwriting/groups.hpp"
#include "crash/harness/program.hpp"
#include "crash/harness/soak.hpp"

namespace queueduct::crash {

static void choose(int way) { overwriting_sabotage = static_cast<OverwritingSabotage>(way); }

static const Program program = {"crash_overwriting",
                                {{"unlocked", static_cast<int>(OverwritingSabotage::unlocked)},
                                 {"unmade", static_cast<int>(OverwritingSabotage::unmade)},
                                 {"early", static_cast<int>(OverwritingSabotage::early)},
                                 {"trusting", static_cast<int>(OverwritingSabotage::trusting)},
                                 {"early_end", static_cast<int>(OverwritingSabotage::early_end)}},
                                choose};

static std::vector<Shift<OverwritingPlay>> shifts(const Options& options) {
  const auto pass_units = [](OverwritingTurns& turns) {
    pass_soak(turns, overwriting_scenes(), OverwritingGroups::names(), turns.options().is_long ? 200 : 8);
    OverwritingGroups(turns).pass_units();
  };
  return {{pass_units, options.workers}};
}

}  // namespace queueduct::crash

int main(int argc, char** argv) {
  return queueduct::crash::run_program<queueduct::crash::OverwritingPlay>(queueduct::crash::program, argc, argv,
                                                                        queueduct::crash::shifts);
}
