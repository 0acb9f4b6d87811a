// The crash campaign of named producers: kill put_once at every step, and whoever recovers from it, start it again,
// and see whether each of its items came out exactly once.
//
//   crash_once [--long] [--filter TEXT] [--list] [--seed N] [--json] [--sabotage NAME]
//
// The options are those of crash_bounded.
#include "crash/once_groups.hpp"
#include "crash/report.hpp"

namespace penstock::crash {

static const Program program = {"crash_once",
                                {{"late_confirm", Sabotage::late_confirm},
                                 {"early_complete", Sabotage::early_complete},
                                 {"uncut", Sabotage::uncut},
                                 {"hasty", Sabotage::hasty},
                                 {"fresh", Sabotage::fresh}}};

static int run(const Options& options) {
  expect_children();
  testing::hides_producers = sabotage == Sabotage::uncut;
  Totals& totals = *Totals::create();
  Report report(program, options, totals);
  const std::int64_t limit = (options.is_long ? 1'500'000 : 240'000) * millisecond;
  if (!play_units(OnceGroups(options).units(), options, totals, options.workers, limit,
                  [&](const std::string& line) { report.hear(line); }))
    report.fail("a worker did not end in time");
  return report.finish();
}

}  // namespace penstock::crash

int main(int argc, char** argv) {
  penstock::crash::Options options;
  if (!penstock::crash::parse(penstock::crash::program, argc, argv, options))
    return penstock::crash::usage(penstock::crash::program);
  return penstock::crash::run(options);
}
