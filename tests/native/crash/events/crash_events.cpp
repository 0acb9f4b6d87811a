// The crash campaign of the events queue. Its options are those of every campaign: crash/harness/program.hpp.
#include "crash/events/groups.hpp"
#include "crash/harness/program.hpp"
#include "crash/harness/soak.hpp"

namespace queueduct::crash {

static void choose(int way) {
  events_sabotage = static_cast<EventsSabotage>(way);
  testing::hides_producers = events_sabotage == EventsSabotage::unsettled;
}

static const Program program = {"crash_events",
                                {{"unlocked", static_cast<int>(EventsSabotage::unlocked)},
                                 {"unrepaired", static_cast<int>(EventsSabotage::unrepaired)},
                                 {"forgetful", static_cast<int>(EventsSabotage::forgetful)},
                                 {"early", static_cast<int>(EventsSabotage::early)},
                                 {"unsettled", static_cast<int>(EventsSabotage::unsettled)},
                                 {"unintended", static_cast<int>(EventsSabotage::unintended)},
                                 {"early_count", static_cast<int>(EventsSabotage::early_count)}},
                                choose};

static std::vector<Shift<EventsPlay>> shifts(const Options& options) {
  std::vector<EventsScene> alone;
  for (const EventsScene& scene : events_scenes())
    if (scene.occupancy.items == 0) alone.push_back({scene.shape, events_alone});
  // the longest first, so that the workers end together
  const auto pass_units = [alone](EventsTurns& turns) {
    pass_soak(turns, alone, EventsGroups::names(), turns.options().is_long ? 400 : 8);
    EventsGroups(turns).pass_units();
  };
  return {{pass_units, options.workers}};
}

}  // namespace queueduct::crash

int main(int argc, char** argv) {
  return queueduct::crash::run_program<queueduct::crash::EventsPlay>(queueduct::crash::program, argc, argv,
                                                                   queueduct::crash::shifts);
}
