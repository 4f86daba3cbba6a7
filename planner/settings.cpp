#include "planner/settings.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "planner/destinations.hpp"
#include "planner/request.hpp"
#include "planner/requested_cpu.hpp"

namespace kwatt::planner {
namespace {

using PodPtr = std::shared_ptr<const api::Pod>;

bool smaller(const PodPtr& a, const PodPtr& b) {
  const auto x = a->spec->requests.cpu, y = b->spec->requests.cpu;
  return x != y ? x < y : a->key() < b->key();
}

}  // namespace

bool is_running(const NodeView& node) {
  return node.power_state() == api::PowerState::On && node.ready;
}

std::optional<Verdict> settings_refused(const Pass& pass, const NodeView& node,
                                        const std::set<std::string>& keys, bool agent_needed) {
  if (node.node->meta.annotations.get(names::kExclude) == "true") {
    return Verdict{Reason::Excluded, fmt::format("annotated {}=true", names::kExclude)};
  }
  if ((node.control_plane || node.own_node) && !pass.spec.include_control_plane) {
    return Verdict{Reason::ControlPlane,
                   node.control_plane ? "a control-plane node" : "this controller runs here"};
  }
  if (!node.operation().id.empty()) {
    return Verdict{Reason::InProgress,
                   fmt::format("operation {} is in progress", node.operation().id)};
  }
  if (!node.ready) return Verdict{Reason::NodeNotReady, "the node is not Ready"};
  if (const auto key = set_by_hand(*node.node, keys)) {
    return Verdict{Reason::Manual, fmt::format("{} was set by hand", *key)};
  }
  const bool reported = node.machine != nullptr && !node.machine->status.report.boot_id.empty();
  if (agent_needed && !reported)
    return Verdict{Reason::AgentStale, "no agent has reported from this node"};
  return std::nullopt;
}

std::vector<Destination> destinations_below(const Pass& pass, Permille below, Duration window) {
  std::vector<Destination> all;
  for (const NodeName& name : pass.selected) {
    const auto found = pass.snapshot.nodes.find(name);
    if (found == pass.snapshot.nodes.end() || !pass.what_if.is_destination(name)) continue;
    const auto mean = window_mean(found->second, window, pass.snapshot.now);
    if (mean && mean->utilization < below) all.push_back({&found->second, mean->utilization});
  }
  std::stable_sort(all.begin(), all.end(), [](const Destination& a, const Destination& b) {
    return a.utilization > b.utilization;
  });
  return all;
}

Relief relieve(Pass& pass, const Candidates& candidates, const NodeView& node, Permille utilization,
               Permille excess, std::size_t max_pods, std::vector<Destination>& destinations,
               Permille limit) {
  Relief relief;
  const std::int64_t requested = requested_cpu(node).count();
  const std::int64_t capacity = node.node->allocatable.cpu.count();
  std::vector<PodPtr> movable;
  for (const PodPtr& pod : node.pods) {
    if (!pod->workload() || pod->deletion_timestamp) continue;
    if (auto verdict = candidates.immovable(*pod)) {
      relief.refusal = std::move(verdict);
    } else if (pod->spec->requests.cpu.count() > 0) {
      movable.push_back(pod);
    }
  }
  std::sort(movable.begin(), movable.end(), smaller);
  const auto share = [&](const PodPtr& pod) {
    return Permille{utilization.count() * pod->spec->requests.cpu.count() /
                    std::max<std::int64_t>(1, requested)};
  };
  const auto place = [&](const PodPtr& pod) -> bool {
    // In millicores that are busy, so that it can be counted on a machine of another size.
    const std::int64_t busy = share(pod).count() * capacity;
    for (Destination& destination : destinations) {
      if (destination.node == &node) continue;
      const std::int64_t theirs =
          std::max<std::int64_t>(1, destination.node->node->allocatable.cpu.count());
      const Permille after = destination.utilization + Permille{busy / theirs};
      if (after >= limit) continue;
      if (pass.what_if.place_on(pod, destination.node->name())) continue;
      destination.utilization = after;
      relief.moves.push_back(
          {pod->namespace_name, pod->name, pod->uid, destination.node->name(), "", std::nullopt});
      relief.moved += share(pod);
      return true;
    }
    return false;
  };
  while (relief.moved < excess && relief.moves.size() < max_pods && !movable.empty()) {
    auto pick = std::find_if(movable.begin(), movable.end(), [&](const PodPtr& pod) {
      return relief.moved + share(pod) >= excess;
    });
    if (pick == movable.end()) --pick;
    const PodPtr pod = *pick;
    movable.erase(pick);
    if (!place(pod)) {
      relief.refusal = Verdict{Reason::NoDestination,
                               fmt::format("pod {} fits on no node with little load", pod->key())};
    }
  }
  return relief;
}

bool just_relieved(const NodeView& node, Duration window, TimePoint now) {
  const auto& until = node.memory().cool_down_until;
  if (!until || *until > now) return false;
  return now - *until <= std::max<Duration>(2 * window, std::chrono::minutes{1});
}

}  // namespace kwatt::planner
