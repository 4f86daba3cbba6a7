#include "simulator/consolidation/lower_bound.hpp"

#include <algorithm>
#include <vector>

#include "planner/consolidation/steady.hpp"

namespace kwatt::simulator::consolidation {
namespace {

using planner::consolidation::Fleet;
using planner::consolidation::HostKind;

// A supply of one resource at a price, in watts for a unit.
struct Supply {
  double amount = 0, price = 0;
};

// Watts for so much, cheapest first. What exceeds all supplies costs as the last, which is less
// than it can.
double cheapest(const std::vector<Supply>& supplies, double wanted) {
  double watts = 0;
  for (std::size_t i = 0; i < supplies.size() && wanted > 0; ++i) {
    const bool last = i + 1 == supplies.size();
    const double taken = last ? wanted : std::min(wanted, supplies[i].amount);
    watts += taken * supplies[i].price;
    wanted -= taken;
  }
  return watts;
}

struct Supplies {
  std::vector<Supply> cpu, memory;
};

Supplies supplies_of(const Fleet& fleet) {
  Supplies supplies;
  for (std::size_t k = 0; k < fleet.kinds.size(); ++k) {
    const HostKind& kind = fleet.kinds[k];
    const auto hosts = static_cast<double>(std::count_if(
        fleet.hosts.begin(), fleet.hosts.end(), [&](const auto& host) { return host.kind == k; }));
    const planner::consolidation::BestLoad best = planner::consolidation::best_load(kind);
    supplies.cpu.push_back({hosts * kind.cpu() * best.load, best.watts_per_cpu});
    supplies.memory.push_back({hosts * kind.memory, kind.watts.idle() / kind.memory});
  }
  for (std::vector<Supply>* each : {&supplies.cpu, &supplies.memory}) {
    std::stable_sort(each->begin(), each->end(),
                     [](const Supply& a, const Supply& b) { return a.price < b.price; });
  }
  return supplies;
}

}  // namespace

double lower_bound_joules(const Fleet& fleet, const traces::Series& cpu,
                          const traces::Series* memory) {
  const Supplies supplies = supplies_of(fleet);
  std::vector<bool> ended(fleet.vms.size());
  double joules = 0;
  for (std::size_t k = 1; k + 1 < cpu.samples; ++k) {
    double cpu_wanted = 0, memory_wanted = 0;
    for (std::size_t v = 0; v < fleet.vms.size(); ++v) {
      const double first = cpu.at(k, v), last = cpu.at(k + 1, v);
      if (first == 0 && last == 0) ended[v] = true;
      if (ended[v]) continue;
      cpu_wanted += (first + last) / 2 * fleet.vms[v].cpu;
      if (memory == nullptr) continue;
      memory_wanted += (memory->at(k, v) + memory->at(k + 1, v)) / 2 * fleet.vms[v].memory;
    }
    joules += fleet.step_seconds * std::max(cheapest(supplies.cpu, cpu_wanted),
                                            cheapest(supplies.memory, memory_wanted));
  }
  return joules;
}

}  // namespace kwatt::simulator::consolidation
