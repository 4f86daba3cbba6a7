#include "placement/batch.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "placement/batch_state.hpp"

namespace kwatt::placement {
namespace {

using filters::Amounts;
using filters::ResourceNames;
using Plan = std::vector<std::optional<std::size_t>>;

struct Problem {
  std::vector<Shape> shapes;
  std::vector<Machine> machines;
  std::vector<std::size_t> shape_of;  // by pod
};

Machine machine_of(const NodeInfo& node, ResourceNames& names, const EnergySettings& settings) {
  Machine machine;
  machine.free = filters::amounts_of(node.allocatable, names);
  machine.free -= filters::amounts_of(node.requested, names);
  for (std::size_t i = 0; i < machine.watts.size(); ++i) {
    machine.watts[i] = static_cast<double>(node.model.curve.points[i].count());
  }
  machine.wake = static_cast<double>(wake_cost(node, settings).count());
  machine.base = used_now(node).count();
  machine.full = node.full_load().count();
  return machine;
}

// What the filters say apart from room, which is counted while pods come.
Result<std::vector<std::uint8_t>> open_nodes(const PodInfo& pod, NodeTargets nodes,
                                             const NodeFramework* filters) {
  std::vector<std::uint8_t> open(nodes.size(), filters == nullptr ? 1 : 0);
  if (filters == nullptr) return open;
  auto filtered = filters->filter(pod, nodes);
  if (!filtered) return filtered.error();
  for (const std::size_t n : filtered->feasible) open[n] = 1;
  return open;
}

Result<Problem> problem_of(std::span<const PodInfo> pods, NodeTargets nodes,
                           const BatchSettings& settings) {
  Problem problem;
  ResourceNames names;
  for (const NodeInfo* node : nodes) {
    problem.machines.push_back(machine_of(*node, names, settings.energy));
  }
  // What the filters may look at.
  using Kind =
      std::tuple<const api::PodTemplate*, std::string_view, std::string_view, std::int64_t>;
  std::map<Kind, std::size_t> kinds;
  for (std::size_t p = 0; p < pods.size(); ++p) {
    const PodInfo& pod = pods[p];
    const Kind kind{pod.spec.get(), pod.namespace_name, pod.owner_uid, pod.expected.count()};
    auto at = kinds.find(kind);
    if (at == kinds.end()) {
      Shape shape;
      shape.need = filters::amounts_of(pod.spec->requests, names);
      shape.need.pods = 1;
      shape.use = std::max<std::int64_t>(0, pod.expected.count());
      auto open = open_nodes(pod, nodes, settings.filters);
      if (!open) return open.error();
      shape.open = std::move(*open);
      // Different templates may be alike to every node.
      const auto twin =
          std::find_if(problem.shapes.begin(), problem.shapes.end(), [&shape](const Shape& other) {
            return std::tie(other.need.cpu, other.need.memory, other.need.ephemeral,
                            other.need.extended, other.use, other.open) ==
                   std::tie(shape.need.cpu, shape.need.memory, shape.need.ephemeral,
                            shape.need.extended, shape.use, shape.open);
          });
      at = kinds.emplace(kind, static_cast<std::size_t>(twin - problem.shapes.begin())).first;
      if (twin == problem.shapes.end()) problem.shapes.push_back(std::move(shape));
    }
    problem.shapes[at->second].pods.push_back(p);
    problem.shape_of.push_back(at->second);
  }
  return problem;
}

BatchPlan plan_of(const Problem& problem, const BatchState& state, std::span<const PodInfo> pods,
                  NodeTargets nodes, const EnergySettings& settings) {
  BatchPlan plan;
  plan.node.resize(pods.size());
  for (std::size_t s = 0; s < problem.shapes.size(); ++s) {
    auto pod = problem.shapes[s].pods.begin();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (std::int64_t k = 0; k < state.count(s, n); ++k) plan.node[*pod++] = n;
    }
  }
  plan.increase = increase_of(pods, nodes, plan.node, settings);
  return plan;
}

// In kube-scheduler's way: the mean share of cpu and memory requested once the pod is there.
double allocation(const BatchState& state, const Problem& problem, NodeTargets nodes,
                  std::size_t pod, std::size_t n) {
  const Amounts& need = problem.shapes[problem.shape_of[pod]].need;
  const auto share = [](std::int64_t all, std::int64_t free) {
    if (all <= 0) return 0.0;
    return std::clamp(static_cast<double>(all - free) / static_cast<double>(all), 0.0, 1.0);
  };
  const Amounts& free = state.free(n);
  return share(nodes[n]->allocatable.cpu.count(), free.cpu - need.cpu) +
         share(nodes[n]->allocatable.memory.count(), free.memory - need.memory);
}

// One pod after another; `score(pod, node)`: the least is taken, ties by position.
template <class Score>
BatchState in_order(const Problem& problem, const Score& score) {
  BatchState state(problem.shapes, problem.machines);
  for (std::size_t p = 0; p < problem.shape_of.size(); ++p) {
    const std::size_t s = problem.shape_of[p];
    std::optional<std::size_t> best;
    double least = 0;
    for (std::size_t n = 0; n < state.nodes(); ++n) {
      if (!state.takes(s, n)) continue;
      const double value = score(state, p, n);
      if (!best || value < least) {
        best = n;
        least = value;
      }
    }
    if (best) state.put(s, *best, 1);
  }
  return state;
}

BatchState by_allocation(const Problem& problem, NodeTargets nodes, Allocated strategy) {
  const double sign = strategy == Allocated::most ? -1 : 1;
  return in_order(problem, [&](const BatchState& state, std::size_t p, std::size_t n) {
    return sign * allocation(state, problem, nodes, p, n);
  });
}

BatchState one_by_one(const Problem& problem) {
  return in_order(problem, [&](const BatchState& state, std::size_t p, std::size_t n) {
    const std::int64_t use = problem.shapes[problem.shape_of[p]].use;
    return state.cost(n, state.load(n) + use, state.pods_on(n) + 1) - state.cost(n);
  });
}

}  // namespace

Milliwatts increase_of(std::span<const PodInfo> pods, NodeTargets nodes,
                       std::span<const std::optional<std::size_t>> plan,
                       const EnergySettings& settings) {
  std::vector<Millicores> load(nodes.size());
  std::vector<std::uint8_t> used(nodes.size());
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (!plan[p]) continue;
    load[*plan[p]] += std::max(Millicores{0}, pods[p].expected);
    used[*plan[p]] = 1;
  }
  Milliwatts sum;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (used[n] == 0) continue;
    const models::PowerCurve& curve = nodes[n]->model.curve;
    const Millicores before = used_now(*nodes[n]), full = nodes[n]->full_load();
    sum +=
        curve.at(before + load[n], full) - curve.at(before, full) + wake_cost(*nodes[n], settings);
  }
  return sum;
}

Result<BatchPlan> place_batch(std::span<const PodInfo> pods, NodeTargets nodes,
                              const BatchSettings& settings) {
  auto problem = problem_of(pods, nodes, settings);
  if (!problem) return problem.error();
  BatchState best(problem->shapes, problem->machines);
  fill(best, {});
  descend(best);
  const auto consider = [&best](BatchState start) {
    descend(start);
    if (start.better_than(best)) best = std::move(start);
  };
  BatchState aligned(problem->shapes, problem->machines);
  fill(aligned, {{}, {}, true});
  consider(std::move(aligned));
  consider(one_by_one(*problem));
  consider(by_allocation(*problem, nodes, Allocated::most));
  consider(by_allocation(*problem, nodes, Allocated::least));
  search(best, settings.rounds);
  return plan_of(*problem, best, pods, nodes, settings.energy);
}

Result<BatchPlan> place_by_allocation(std::span<const PodInfo> pods, NodeTargets nodes,
                                      Allocated strategy, const BatchSettings& settings) {
  auto problem = problem_of(pods, nodes, settings);
  if (!problem) return problem.error();
  return plan_of(*problem, by_allocation(*problem, nodes, strategy), pods, nodes, settings.energy);
}

Result<BatchPlan> place_one_by_one(std::span<const PodInfo> pods, NodeTargets nodes,
                                   const BatchSettings& settings) {
  auto problem = problem_of(pods, nodes, settings);
  if (!problem) return problem.error();
  return plan_of(*problem, one_by_one(*problem), pods, nodes, settings.energy);
}

}  // namespace kwatt::placement
