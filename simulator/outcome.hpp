#pragma once
// What a run has cost and how its work has fared: the figures by which strategies are compared.
#include <cstdint>
#include <string>
#include <vector>

#include "simulator/distribution.hpp"
#include "simulator/machine.hpp"
#include "simulator/timeline.hpp"

namespace kwatt::simulator {

// What electricity and its carbon cost. Cost adjusted by carbon intensity = energy × price + CO2 ×
// price of CO2; the defaults are round figures of European industry, not of any one place.
struct Prices {
  double per_kwh = 0.15;
  double per_tonne_co2 = 80;
};

// A job that no machine could ever take, or that was not taken before the end.
struct Refused {
  std::string name;
  std::string reason;  // a sentence without a final period
};

struct Outcome {
  static constexpr std::size_t kNamed = 20;  // refused jobs named; all are counted

  TimePoint start;
  Duration length{0};    // of what was accounted
  Duration makespan{0};  // from the start to the end of the last job

  // Jobs. submitted = completed + rejected + unfinished.
  std::uint64_t submitted = 0, completed = 0, rejected = 0, unfinished = 0;
  std::vector<Refused> refused;      // the first kNamed of those rejected
  Distribution waiting, turnaround;  // ms, of completed jobs; waiting: until it ran
  std::uint64_t with_deadline = 0, deadline_misses = 0;  // unfinished and rejected ones are misses
  double lost_core_hours = 0;  // done, then done again because the job was evicted

  // Services (virtual machines). Fractions: see docs/reference/traces.md.
  std::uint64_t services = 0, services_waiting = 0;  // waiting: without a machine at the end
  double slatah = 0, pdm = 0;  // time hosts were overloaded; work lost to migrations
  double slav() const { return slatah * pdm; }
  double esv() const { return energy_kwh * slav(); }
  std::uint64_t migrations = 0;

  // Machines.
  double energy_kwh = 0, grams_co2 = 0, cost = 0;
  std::uint64_t boots = 0, shutdowns = 0;
  double on_hours = 0;     // of all machines together
  double utilization = 0;  // CPU kept busy over CPU that was on, 0…1
  double mean_intensity() const { return energy_kwh > 0 ? grams_co2 / energy_kwh : 0; }
  // Energy over completed jobs, in watt-hours; 0 without any.
  double wh_per_job() const {
    return completed > 0 ? energy_kwh * 1000 / static_cast<double>(completed) : 0;
  }

  struct Node {
    std::string name, zone;
    std::int64_t cpu_millicores = 0;
    MachineAccount account;
  };
  std::vector<Node> nodes;  // in the order of the cluster
  Timeline timeline;
  std::uint64_t decisions = 0;  // how often the strategy was asked
  std::uint64_t events = 0;
};

// One figure as tables, JSON, CSV and plots show it. `better` is "less" or "more", "" for neither.
struct Figure {
  std::string_view key, title, unit, better;
  double (*value)(const Outcome&);
};
// All of them, in the order in which they are shown.
const std::vector<Figure>& figures();

}  // namespace kwatt::simulator
