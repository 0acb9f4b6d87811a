// The crash campaign of the bounded queue: kill at every step, and see whether everything is in order afterwards.
//
//   crash_bounded [--long] [--filter TEXT] [--list] [--seed N] [--json] [--sabotage NAME]
//
// --long      all pairs, all occupancies, more sizes (minutes); else a selection (a minute at most)
// --filter    only cases whose name contains TEXT: a failed case is played again by its name
// --list      the cases' names only
// --seed      for what is drawn: who closes a case, the random scripts, the soak
// --json      the totals as one JSON object
// --sabotage  break the queue's users in the named way: then failures are what should happen
#include "crash/asleep.hpp"
#include "crash/groups.hpp"
#include "crash/report.hpp"
#include "crash/soak.hpp"

namespace penstock::crash {

static const Program program = {"crash_bounded",
                                {{"silent_producer", Sabotage::silent_producer},
                                 {"silent_consumer", Sabotage::silent_consumer},
                                 {"unlocked", Sabotage::unlocked},
                                 {"head_first", Sabotage::head_first},
                                 {"impatient", Sabotage::impatient},
                                 {"forgetful", Sabotage::forgetful},
                                 {"helpless", Sabotage::helpless}}};

static int run(const Options& options) {
  expect_children();
  Totals& totals = *Totals::create();
  Report report(program, options, totals);
  const auto hear = [&](const std::string& line) { report.hear(line); };
  std::vector<Unit> units = soak_units(options);  // the longest first, so that the workers end together
  std::vector<Unit> others = Groups(options).units();
  units.insert(units.end(), others.begin(), others.end());
  const std::int64_t limit = (options.is_long ? 1'500'000 : 240'000) * millisecond;
  if (!play_units(units, options, totals, options.workers, limit, hear)) report.fail("a worker did not end in time");
  // these mostly sleep: many at a time
  if (!play_units(asleep_units(options), options, totals, 12, limit, hear)) report.fail("a sleeper did not end in time");
  return report.finish();
}

}  // namespace penstock::crash

int main(int argc, char** argv) {
  penstock::crash::Options options;
  if (!penstock::crash::parse(penstock::crash::program, argc, argv, options))
    return penstock::crash::usage(penstock::crash::program);
  return penstock::crash::run(options);
}
