// The crash campaign of the bounded queue. Its options are those of every campaign: crash/harness/program.hpp.
#include "crash/rings/asleep.hpp"
#include "crash/harness/program.hpp"
#include "crash/harness/soak.hpp"

namespace queueduct::crash {

static const Program program = {
    "crash_bounded",
    {{"silent_producer", static_cast<int>(Sabotage::silent_producer)},
     {"silent_consumer", static_cast<int>(Sabotage::silent_consumer)},
     {"unlocked", static_cast<int>(Sabotage::unlocked)},
     {"head_first", static_cast<int>(Sabotage::head_first)},
     {"impatient", static_cast<int>(Sabotage::impatient)},
     {"forgetful", static_cast<int>(Sabotage::forgetful)},
     {"helpless", static_cast<int>(Sabotage::helpless)},
     {"early_end", static_cast<int>(Sabotage::early_end)}},
    [](int way) { sabotage = static_cast<Sabotage>(way); }};

static std::vector<Shift<BoundedPlay>> shifts(const Options& options) {
  std::vector<Scene> empty;
  for (const Shape& shape : shapes(true)) empty.push_back({shape, {"empty", 0, 0}});
  // the longest first, so that the workers end together
  const auto pass_units = [empty](Turns& turns) {
    pass_soak(turns, empty, RingGroups::names(), turns.options().is_long ? 400 : 20);
    RingGroups(turns).pass_units();
  };
  return {{pass_units, options.workers}, {pass_asleep, 12}};  // the last mostly sleep: many at a time
}

}  // namespace queueduct::crash

int main(int argc, char** argv) {
  return queueduct::crash::run_program<queueduct::crash::BoundedPlay>(queueduct::crash::program, argc, argv,
                                                                    queueduct::crash::shifts);
}
