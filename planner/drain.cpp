#include "planner/drain.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "planner/destinations.hpp"

namespace kwatt::planner {
namespace {

using PodPtr = std::shared_ptr<const api::Pod>;

std::vector<PodPtr> leaving_pods(const NodeView& node) {
  std::vector<PodPtr> pods;
  std::copy_if(node.pods.begin(), node.pods.end(), std::back_inserter(pods),
               [](const PodPtr& pod) { return pod->workload() && !pod->deletion_timestamp; });
  return pods;
}

// Big pods first: they are the hard ones, and a failure shows early.
bool bigger(const PodPtr& a, const PodPtr& b) {
  const api::Resources &x = a->spec->requests, &y = b->spec->requests;
  if (x.cpu != y.cpu) return x.cpu > y.cpu;
  return x.memory > y.memory;
}

}  // namespace

std::size_t workload_count(const NodeView& node) {
  return static_cast<std::size_t>(std::count_if(node.pods.begin(), node.pods.end(),
                                                [](const PodPtr& p) { return p->workload(); }));
}

std::variant<Drained, Verdict> drain(Pass& pass, const Candidates& candidates,
                                     DestinationChoice& choice, const NodeView& node) {
  std::vector<PodPtr> pods = leaving_pods(node);
  for (const PodPtr& pod : pods) {
    if (auto verdict = candidates.immovable(*pod)) return std::move(*verdict);
  }
  const std::size_t mark = pass.what_if.mark();
  pass.what_if.exclude(node.name());
  std::stable_sort(pods.begin(), pods.end(), bigger);
  Drained drained;
  for (const PodPtr& pod : pods) {
    const auto destination = choice.place(pass.what_if, pod);
    if (!destination) {
      const Unfit unfit = pass.what_if.why_nowhere(*pod);
      pass.what_if.rollback(mark);
      return Verdict{Reason::NoDestination,
                     fmt::format("pod {} fits nowhere else: {}", pod->key(), unfit.message)};
    }
    api::PodMove move;
    move.namespace_name = pod->namespace_name;
    move.pod_name = pod->name;
    move.uid = pod->uid;
    move.node_name = *destination;
    drained.moves.push_back(std::move(move));
    Drained::Requests& moved = drained.to[*destination];
    moved.cpu += pod->spec->requests.cpu;
    moved.memory += pod->spec->requests.memory;
  }
  std::sort(drained.moves.begin(), drained.moves.end(), [](const auto& a, const auto& b) {
    return std::tie(a.namespace_name, a.pod_name) < std::tie(b.namespace_name, b.pod_name);
  });
  return drained;
}

AwakeCount::AwakeCount(const Pass& pass) : pass_(pass) {
  for (const NodeName& name : pass.selected) {
    const auto node = pass.snapshot.nodes.find(name);
    if (node != pass.snapshot.nodes.end()) put_back(node->second);
  }
}

bool AwakeCount::counted(const NodeView& node) const {
  return counts_as_awake(node) && pass_.what_if.is_destination(node.name());
}

std::optional<Verdict> AwakeCount::take(const NodeView& node) {
  const api::PowerOffSpec& spec = pass_.spec.power_off;
  const std::int64_t less = counted(node) ? 1 : 0;
  if (awake_ - less < spec.min_awake) {
    return Verdict{Reason::MinAwake,
                   fmt::format("{} awake nodes would be left, powerOff.minAwake is {}",
                               awake_ - less, spec.min_awake)};
  }
  if (!node.zone.empty() && per_zone_[node.zone] - less < spec.min_awake_per_zone) {
    return Verdict{
        Reason::MinAwake,
        fmt::format("{} awake nodes would be left in zone {}, powerOff.minAwakePerZone is {}",
                    per_zone_[node.zone] - less, node.zone, spec.min_awake_per_zone)};
  }
  awake_ -= less;
  if (!node.zone.empty()) per_zone_[node.zone] -= less;
  return std::nullopt;
}

void AwakeCount::put_back(const NodeView& node) {
  if (!counted(node)) return;
  ++awake_;
  if (!node.zone.empty()) ++per_zone_[node.zone];
}

}  // namespace kwatt::planner
