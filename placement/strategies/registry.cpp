#include "placement/strategies/registry.hpp"

#include <array>
#include <cctype>
#include <string>

#include <fmt/format.h>

#include "placement/strategies/all.hpp"

namespace kwatt::placement::strategies {
namespace {

using Maker = std::unique_ptr<Strategy> (*)(const Settings&);

struct Entry {
  Listed listed;
  Maker make;
};

constexpr Entry kEntries[] = {
    {{"Default", "nothing: a random node among those that fit; jobs that do not fit are overtaken",
      "kube-scheduler, schedule_one.go"},
     make_default},
    {{"DefaultRoundRobin", "nothing: the next node that fits; jobs that do not fit are overtaken",
      "kube-scheduler, schedule_one.go"},
     make_default_round_robin},
    {{"FCFS", "fairness: strictly the order of arrival, the first node that fits",
      "Feitelson, Rudolph, Schwiegelshohn, JSSPP 2004"},
     make_fcfs},
    {{"RoundRobin", "fairness: strictly the order of arrival, node after node",
      "Casavant, Kuhl, IEEE TSE 14(2), 1988"},
     make_round_robin},
    {{"MinMin", "mean completion: the job that can complete first goes first",
      "Ibarra, Kim, JACM 24(2), 1977; Braun et al., JPDC 61(6), 2001"},
     make_min_min},
    {{"MaxMin", "makespan: the job that completes last goes first",
      "Ibarra, Kim, JACM 24(2), 1977; Braun et al., JPDC 61(6), 2001"},
     make_max_min},
    {{"EnergyAware", "energy: the least increase of power by the node's curve, waking included",
      "Beloglazov, Abawajy, Buyya, FGCS 28(5), 2012"},
     make_energy_aware},
    {{"ECSched", "resource efficiency: all jobs at once, min-cost flow on dot products",
      "Hu, Zhou, de Laat, Zhao, Euro-Par 2018; FGCS 102, 2020"},
     make_ecsched},
    {{"ECSched-energy", "energy: all jobs at once, min-cost flow along the power curves",
      "Hu, Zhou, de Laat, Zhao, FGCS 102, 2020; the curves are kwatt's"},
     make_ecsched_energy},
    {{"CarbonAware", "carbon: when within the deadline, and in which zone, the grams are least",
      "Wiesner et al., Middleware 2021; Radovanovic et al., IEEE TPS 38(2), 2023"},
     make_carbon_aware},
    {{"LeastAllocated", "even load: the emptiest node", "kube-scheduler, NodeResourcesFit"},
     make_least_allocated},
    {{"MostAllocated", "full nodes: the fullest node", "kube-scheduler, NodeResourcesFit"},
     make_most_allocated},
    {{"BestFit", "full nodes: the node that is left with the least room",
      "Panigrahy et al., Heuristics for vector bin packing, 2011"},
     make_best_fit},
    {{"GpuFill", "GPU allocation: the node whose use for the jobs seen so far it spoils least",
      "after Weng et al. (FGD), USENIX ATC 2023"},
     make_gpu_fill},
};

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

constexpr auto kListed = [] {
  std::array<Listed, std::size(kEntries)> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kEntries[i].listed;
  return all;
}();

}  // namespace

std::span<const Listed> listed() {
  return kListed;
}

Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name, const Settings& settings) {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (folded(entry.listed.name) == folded(name)) return entry.make(settings);
    names += (names.empty() ? "" : ", ") + std::string(entry.listed.name);
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is no strategy; there are {}", name, names));
}

Result<Decision> decide_once(std::string_view strategy, const Batch& batch, Cluster cluster,
                             const Settings& settings) {
  auto made = make_strategy(strategy, settings);
  if (!made) return made.error();
  Decision decision;
  (*made)->decide(batch, cluster, decision);
  return decision;
}

}  // namespace kwatt::placement::strategies
