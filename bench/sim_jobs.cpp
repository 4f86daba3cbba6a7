// 1.8 million jobs on 2,500 machines over 48 hours: how long the simulator takes for that, and how
// much memory. Prints JSON; time is of the CPU. An argument names another strategy or number of
// jobs.
#include <cstdlib>
#include <string>
#include <sys/resource.h>

#include <fmt/format.h>

#include "placement/strategies/registry.hpp"
#include "simulator/simulation.hpp"
#include "simulator/synthetic.hpp"
#include "simulator/traces/machines_csv.hpp"

namespace {

using namespace kwatt;
using namespace kwatt::simulator;

constexpr std::int64_t kHours = 48;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "EnergyAware";
  const std::int64_t count = argc > 2 ? std::atoll(argv[2]) : 1'800'000;
  auto strategy = placement::strategies::make_strategy(name);
  auto machines = traces::parse_machines("1500x32x128@DE,1000x64x256@FR");
  if (!strategy || !machines) {
    fmt::print(stderr, "error: {}\n", (strategy ? machines.error() : strategy.error()).text());
    return 1;
  }
  Settings settings;
  settings.idle_off_after = std::chrono::minutes{10};
  Intensity intensity{settings.start, std::chrono::hours{1}, {}, 0};
  for (std::int64_t hour = 0; hour < kHours; ++hour) {
    intensity.grams_per_kwh.push_back(200 + 20 * static_cast<double>(hour * 7 % 13));
  }
  settings.intensities[""] = intensity;
  Synthetic spec;
  spec.jobs = count;
  spec.per_hour = static_cast<double>(count) / kHours;
  spec.mean_seconds = 4000;
  spec.gib_per_core = 3;
  SyntheticJobs jobs(spec, 1);
  auto simulation = Simulation::create(std::move(*machines), std::move(*strategy), settings);
  if (!simulation) {
    fmt::print(stderr, "error: {}\n", simulation.error().text());
    return 1;
  }
  if (auto done = (*simulation)->run(jobs); !done) {
    fmt::print(stderr, "error: {}\n", done.error().text());
    return 1;
  }
  const Outcome outcome = (*simulation)->outcome();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  fmt::print(
      R"({{"strategy":"{}","jobs":{},"completed":{},"rejected":{},"machines":{},"hours":{:.1f},)"
      R"("utilization":{:.3f},"energyKWh":{:.1f},"powerCycles":{},"waitingSeconds":{:.1f},)"
      R"("events":{},"seconds":{:.2f},"mebibytes":{:.1f}}})"
      "\n",
      name, outcome.submitted, outcome.completed, outcome.rejected, outcome.nodes.size(),
      static_cast<double>(outcome.length.count()) / 3.6e6, outcome.utilization, outcome.energy_kwh,
      outcome.shutdowns, outcome.waiting.mean() / 1000, outcome.events,
      seconds_of(used.ru_utime) + seconds_of(used.ru_stime),
      static_cast<double>(used.ru_maxrss) / 1024);
  return 0;
}
