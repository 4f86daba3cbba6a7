#include "placement/strategies/by_flow.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace kwatt::placement::strategies {
namespace {

// After so many rounds the few that are left go one by one.
constexpr int kRounds = 6;
// A cost of 1.0 in the solver's unit; differences below a millionth do not count.
constexpr double kScale = 1e6;
// More than any way of placing a job costs.
constexpr flow::Cost kUnplacedCost = flow::Cost{1} << 45;
// Units that one node offers in a round; more would only make the problem larger.
constexpr std::int64_t kMostUnits = 32;

flow::Cost scaled(double cost) {
  return static_cast<flow::Cost>(std::llround(std::clamp(cost, -1e6, 1e6) * kScale));
}

struct Kind {
  const Job* like = nullptr;
  std::vector<std::uint32_t> jobs;
  std::vector<std::pair<double, NodeIndex>> nodes;  // cost and node, cheapest first
};

// So many more of them fit on the node now. GPUs are not divisible: one at a time.
std::int64_t units_of(const Cluster& cluster, NodeIndex i, const Request& largest) {
  if (largest.gpu_milli > 0) return 1;
  std::int64_t units = kMostUnits;
  if (largest.cpu.count() > 0) {
    units = std::min(units, cluster.free_cpu(i) / largest.cpu.count());
  }
  if (largest.memory.count() > 0) {
    units = std::min(units, cluster.free_memory(i) / largest.memory.count());
  }
  return units;
}

std::vector<Kind> kinds_of(const Batch& batch, const std::vector<std::uint32_t>& jobs) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, BitSet, BitSet>, std::size_t> at;
  std::vector<Kind> kinds;
  for (const std::uint32_t i : jobs) {
    const Job& job = batch.jobs[i];
    const auto [where, added] =
        at.try_emplace(std::tuple(job.request.cpu.count(), job.request.memory.count(),
                                  job.request.gpu_milli, job.zones, job.gpu_models),
                       kinds.size());
    if (added) kinds.push_back({&job, {}, {}});
    kinds[where->second].jobs.push_back(i);
  }
  return kinds;
}

}  // namespace

bool ByFlow::round(const Batch& batch, Cluster& cluster, Placer& placer,
                   std::vector<std::uint32_t>& pending) {
  std::vector<Kind> kinds = kinds_of(batch, pending);
  const std::size_t arcs = std::max<std::size_t>(1, settings_.arcs_per_job);
  std::vector<Request> largest(cluster.size());
  std::vector<std::int64_t> wanted(cluster.size()), wanted_cpu(cluster.size());
  for (Kind& kind : kinds) {
    const Request& request = kind.like->request;
    cluster.each_fitting(request, kind.like->zones, kind.like->gpu_models, [&](NodeIndex i) {
      kind.nodes.emplace_back(cost(request, i, cluster), i);
      return true;
    });
    // The cheapest with room for all jobs of the kind, were they alone; and arcs to choose from.
    std::sort(kind.nodes.begin(), kind.nodes.end());
    std::size_t enough = 0;
    for (std::size_t room = 0; enough < kind.nodes.size() && room < kind.jobs.size(); ++enough) {
      room += static_cast<std::size_t>(units_of(cluster, kind.nodes[enough].second, request));
    }
    kind.nodes.resize(std::min(kind.nodes.size(), enough + arcs));
    for (const auto& [value, i] : kind.nodes) {
      largest[i].cpu = std::max(largest[i].cpu, request.cpu);
      largest[i].memory = std::max(largest[i].memory, request.memory);
      largest[i].gpu_milli = std::max(largest[i].gpu_milli, request.gpu_milli);
      ++wanted[i], wanted_cpu[i] += request.cpu.count();
    }
  }

  flow::Problem problem;
  std::vector<std::uint32_t> job_of;
  for (const Kind& kind : kinds) {
    const std::size_t count = std::min(arcs, kind.nodes.size());
    for (std::size_t k = 0; k < kind.jobs.size(); ++k) {
      // Each job of the kind sees another stretch of its nodes.
      const std::size_t spread = kind.nodes.size() - count;
      const std::size_t first = kind.jobs.size() > 1 ? spread * k / (kind.jobs.size() - 1) : 0;
      for (std::size_t a = first; a < first + count; ++a) {
        problem.arcs.push_back({kind.nodes[a].second, scaled(kind.nodes[a].first)});
      }
      problem.first.push_back(static_cast<std::uint32_t>(problem.arcs.size()));
      problem.unplaced.push_back(kUnplacedCost);
      job_of.push_back(kind.jobs[k]);
    }
  }
  for (NodeIndex i = 0; i < cluster.size(); ++i) {
    if (wanted[i] > 0) {
      const auto units =
          static_cast<std::uint32_t>(std::max<std::int64_t>(1, units_of(cluster, i, largest[i])));
      flow::Cost last = std::numeric_limits<flow::Cost>::min();
      for (std::uint32_t k = 0; k < units; ++k) {
        last = std::max(last, scaled(price(i, cluster, wanted_cpu[i] / wanted[i], k, units)));
        problem.unit.push_back(last);
      }
    }
    problem.unit_first.push_back(static_cast<std::uint32_t>(problem.unit.size()));
  }
  const auto solved = flow::assign(problem);
  if (!solved) return false;  // cannot be: the problem is well formed
  pending.clear();
  bool any = false;
  for (std::size_t k = 0; k < job_of.size(); ++k) {
    const std::uint32_t node = solved->node[k];
    const Job& job = batch.jobs[job_of[k]];
    // A single unit may be offered to jobs of which some do not fit beside nothing at all.
    if (node == flow::kUnplaced || !cluster.fits(node, job.request)) {
      pending.push_back(job_of[k]);
    } else {
      placer.place_on(job_of[k], {node, cluster.gpus_for(node, job.request)});
      any = true;
    }
  }
  std::sort(pending.begin(), pending.end());
  return any;
}

void ByFlow::decide(const Batch& batch, Cluster& cluster, Decision& out) {
  out.clear();
  begin(cluster);
  std::vector<std::uint32_t> tried, pending;
  worth_trying(batch, cluster, mark_, tried);
  Placer placer(batch, cluster, out);
  const auto one_by_one = [&](std::uint32_t i) {
    placer.place(i, [&](const Job& job) -> std::optional<Choice> {
      const auto node = least(job, cluster, [&](NodeIndex j) {
        return cost(job.request, j, cluster) + price(j, cluster, job.request.cpu.count(), 0, 1);
      });
      if (!node) return std::nullopt;
      return Choice{*node, cluster.gpus_for(*node, job.request)};
    });
  };
  for (const std::uint32_t i : tried) {
    if (batch.jobs[i].members > 1)
      one_by_one(i);
    else
      pending.push_back(i);
  }
  for (int k = 0; k < kRounds && pending.size() > 1; ++k) {
    if (!round(batch, cluster, placer, pending)) break;
  }
  for (const std::uint32_t i : pending) one_by_one(i);
  placer.finish();
  mark_ = cluster.freed_mark();
}

}  // namespace kwatt::placement::strategies
