#include "simulator/outcome.hpp"

namespace kwatt::simulator {
namespace {

constexpr double kMillisecondsPerSecond = 1000;

double seconds(double milliseconds) {
  return milliseconds / kMillisecondsPerSecond;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

}  // namespace

const std::vector<Figure>& figures() {
  using O = const Outcome&;
  static const std::vector<Figure> all = {
      {"energyKWh", "Energy", "kWh", "less", [](O o) { return o.energy_kwh; }},
      {"energyPerJobWh", "Energy per completed job", "Wh", "less",
       [](O o) { return o.wh_per_job(); }},
      {"co2Kg", "CO2", "kg", "less", [](O o) { return o.grams_co2 / 1000; }},
      {"meanIntensity", "Mean carbon intensity", "g/kWh", "less",
       [](O o) { return o.mean_intensity(); }},
      {"ciAdjustedCost", "CI-adjusted cost", "", "less", [](O o) { return o.cost; }},
      {"turnaroundSeconds", "Turnaround, mean", "s", "less",
       [](O o) { return seconds(o.turnaround.mean()); }},
      {"turnaroundP95Seconds", "Turnaround, 95th percentile", "s", "less",
       [](O o) { return seconds(o.turnaround.quantile(0.95)); }},
      {"waitingSeconds", "Waiting, mean", "s", "less",
       [](O o) { return seconds(o.waiting.mean()); }},
      {"waitingP95Seconds", "Waiting, 95th percentile", "s", "less",
       [](O o) { return seconds(o.waiting.quantile(0.95)); }},
      {"makespanSeconds", "Makespan", "s", "less",
       [](O o) { return seconds(static_cast<double>(o.makespan.count())); }},
      {"jobsSubmitted", "Jobs submitted", "", "", [](O o) { return number(o.submitted); }},
      {"jobsCompleted", "Jobs completed", "", "more", [](O o) { return number(o.completed); }},
      {"jobsRejected", "Jobs rejected", "", "less", [](O o) { return number(o.rejected); }},
      {"jobsUnfinished", "Jobs unfinished", "", "less", [](O o) { return number(o.unfinished); }},
      {"deadlineMisses", "Deadline misses", "", "less",
       [](O o) { return number(o.deadline_misses); }},
      {"deadlineMissShare", "Deadline misses, share", "", "less",
       [](O o) { return share(o.deadline_misses, o.with_deadline); }},
      {"lostCoreHours", "Work lost to evictions", "core-h", "less",
       [](O o) { return o.lost_core_hours; }},
      {"servicesWaiting", "Services without a machine", "", "less",
       [](O o) { return number(o.services_waiting); }},
      {"slatah", "SLATAH", "", "less", [](O o) { return o.slatah; }},
      {"pdm", "PDM", "", "less", [](O o) { return o.pdm; }},
      {"slav", "SLAV", "", "less", [](O o) { return o.slav(); }},
      {"esv", "ESV", "kWh", "less", [](O o) { return o.esv(); }},
      {"migrations", "Migrations", "", "less", [](O o) { return number(o.migrations); }},
      {"boots", "Boots", "", "less", [](O o) { return number(o.boots); }},
      {"powerCycles", "Power cycles (shutdowns)", "", "less",
       [](O o) { return number(o.shutdowns); }},
      {"machineHoursOn", "Machine hours on", "h", "less", [](O o) { return o.on_hours; }},
      {"utilization", "CPU utilization while on", "", "more", [](O o) { return o.utilization; }},
  };
  return all;
}

}  // namespace kwatt::simulator
