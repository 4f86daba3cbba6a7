// Why a node may not lose its machine or its pods, whatever the lever.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "planner/candidates.hpp"
#include "planner/destinations.hpp"
#include "planner/filters/node_face.hpp"
#include "planner/levers.hpp"
#include "planner/propose.hpp"
#include "planner/verdicts.hpp"

namespace kwatt::planner {
namespace {

// Other controllers announce with these that the node is theirs now.
constexpr std::array<std::string_view, 5> kForeignTaints = {
    "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted", "karpenter.sh/disruption", "medik8s.io/drain"};

// Controllers that own a node for good, by the label or annotation by which it is known: they would
// replace or fence a machine that is off. People say with kwatt.dev/released-by, by these words,
// that one of them was told to leave it alone (docs/how-to/live-with-other-controllers.md).
struct Owner {
  std::string_view word, mark, name;
  bool annotation = false;
};
constexpr std::array<Owner, 6> kOwners = {{
    {"karpenter", "karpenter.sh/nodepool", "Karpenter's pool"},
    {"cluster-autoscaler", "eks.amazonaws.com/nodegroup", "the autoscaled node group"},
    {"cluster-autoscaler", "cloud.google.com/gke-nodepool", "the autoscaled node pool"},
    {"cluster-autoscaler", "kubernetes.azure.com/agentpool", "the autoscaled agent pool"},
    {"cluster-api", "cluster.x-k8s.io/machine", "Cluster API's machine", true},
    {"cluster-api", "machine.openshift.io/machine", "the Machine API's machine", true},
}};
// Planned maintenance of the host, as Metal3's tools mark it.
constexpr std::string_view kMaintenance = "lifecycle.metal3.io/maintenance";
// medik8s' own way to keep its remediation away from a node.
constexpr std::string_view kNoRemediation = "remediation.medik8s.io/exclude-from-remediation";
constexpr std::string_view kScaleDownDisabled =
    "cluster-autoscaler.kubernetes.io/scale-down-disabled";

// "karpenter,cluster-api" names the word?
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view entry = list.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry == word) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

std::optional<Verdict> owned_by_others(const NodeView& node) {
  const api::ObjectMeta& meta = node.node->meta;
  const std::string_view released = meta.annotations.get(names::kReleasedBy);
  for (const Owner& owner : kOwners) {
    const std::string* mark = (owner.annotation ? meta.annotations : meta.labels).find(owner.mark);
    if (mark == nullptr || lists(released, owner.word)) continue;
    return Verdict{Reason::ForeignOwner,
                   fmt::format("the node belongs to {} {}, which would replace it; if it was told "
                               "not to, annotate {}={}",
                               owner.name, *mark, names::kReleasedBy, owner.word)};
  }
  if (!node.health_check.empty() && meta.labels.get(kNoRemediation) != "true") {
    return Verdict{Reason::ForeignOwner,
                   fmt::format("NodeHealthCheck {} would fence it; label it {}=true",
                               node.health_check, kNoRemediation)};
  }
  return std::nullopt;
}

// What people have said about the node.
std::optional<Verdict> held(const Pass& pass, const NodeView& node) {
  const Override override = override_of(node, pass.snapshot.now);
  if (override.kind == Override::Kind::on) {
    return Verdict{Reason::Manual, override.until
                                       ? fmt::format("held on by {} until {}", names::kOverride,
                                                     format_rfc3339(*override.until))
                                       : fmt::format("held on by {}", names::kOverride)};
  }
  if (override.kind == Override::Kind::not_understood) {
    return Verdict{
        Reason::Manual,
        override_problem(node.node->meta.annotations.get(names::kOverride)) + ": held on"};
  }
  if (pass.spec.disruption.respect_do_not_disrupt) {
    if (const std::string_view key = do_not_disrupt(node.node->meta.annotations); !key.empty()) {
      return Verdict{Reason::DoNotDisrupt, fmt::format("the node is annotated {}", key)};
    }
  }
  return std::nullopt;
}

// What the node's past forbids.
std::optional<Verdict> resting(const Pass& pass, const NodeView& node) {
  const TimePoint now = pass.snapshot.now;
  const api::NodeMemory& memory = node.memory();
  const api::PowerOffSpec& off = pass.spec.power_off;
  for (const auto& until : {memory.cool_down_until, memory.next_attempt}) {
    if (until && *until > now) {
      return Verdict{Reason::CoolDown, fmt::format("left alone until {}", format_rfc3339(*until))};
    }
  }
  if (memory.last_on && now - *memory.last_on < off.min_on_duration) {
    return Verdict{Reason::MinOnTime, fmt::format("on for {} of at least {}",
                                                  format_go_duration(now - *memory.last_on),
                                                  format_go_duration(off.min_on_duration))};
  }
  if (memory.cycles_day == day_of(now) && memory.cycles_today >= off.max_cycles_per_day) {
    return Verdict{Reason::CycleLimit, fmt::format("switched {} times today, at most {} allowed",
                                                   memory.cycles_today, off.max_cycles_per_day)};
  }
  return std::nullopt;
}

// Readings that used to come and no longer do: nothing is known about the node's load.
std::optional<Verdict> stale(const Pass& pass, const NodeView& node) {
  const bool reported = node.machine != nullptr && node.machine->status.report.time.has_value();
  if (node.samples.empty() && !reported) return std::nullopt;
  // A meter elsewhere says nothing of the load that the agent used to tell.
  const bool loads = std::any_of(node.samples.begin(), node.samples.end(),
                                 [](const TelemetrySample& s) { return s.has_utilization; });
  if (reported && !loads) {
    return Verdict{Reason::StaleTelemetry, "the agent has reported before, but sends no samples"};
  }
  // A BMC that gives no readings is left alone for longer and longer; of the load it knows nothing.
  if (!loads && node.newest.meter == kBmcMeter) return std::nullopt;
  if (samples_believed(node, pass.snapshot.now)) return std::nullopt;
  const Duration age = pass.snapshot.now - node.samples.back().at;
  return Verdict{Reason::StaleTelemetry,
                 fmt::format("the newest sample is {} old", format_go_duration(age))};
}

}  // namespace

std::optional<Verdict> foreign_owner(const NodeView& node) {
  for (const api::Taint& taint : node.node->taints) {
    if (std::find(kForeignTaints.begin(), kForeignTaints.end(), taint.key) !=
        kForeignTaints.end()) {
      return Verdict{Reason::ForeignOwner,
                     fmt::format("another controller has set the taint {}", taint.key)};
    }
  }
  if (auto verdict = owned_by_others(node)) return verdict;
  if (!node.maintenance.empty()) {
    return Verdict{Reason::ForeignOwner,
                   fmt::format("{} holds the node for maintenance", node.maintenance)};
  }
  if (node.node->meta.annotations.contains(kMaintenance)) {
    return Verdict{Reason::ForeignOwner, fmt::format("annotated {}", kMaintenance)};
  }
  if (node.node->meta.annotations.get(kScaleDownDisabled) == "true") {
    return Verdict{Reason::ForeignOwner, fmt::format("annotated {}=true", kScaleDownDisabled)};
  }
  if (node.node->meta.deletion_timestamp) {
    return Verdict{Reason::ForeignOwner, "the Node object is being deleted"};
  }
  if (filters::foreign_cordon(node)) {
    return Verdict{Reason::ForeignOwner, "somebody else has cordoned the node"};
  }
  return std::nullopt;
}

std::optional<Verdict> protected_from_off(const Pass& pass, const NodeView& node) {
  if (node.node->meta.annotations.get(names::kExclude) == "true") {
    return Verdict{Reason::Excluded, fmt::format("annotated {}=true", names::kExclude)};
  }
  if (node.control_plane) return Verdict{Reason::ControlPlane, "a control-plane node"};
  if (node.own_node) return Verdict{Reason::ControlPlane, "this controller runs here"};
  if (!node.operation().id.empty()) {
    return Verdict{Reason::InProgress,
                   fmt::format("operation {} is in progress", node.operation().id)};
  }
  if (auto verdict = held(pass, node)) return verdict;
  if (pass.idle_pool.count(node.name()) > 0) {
    return Verdict{Reason::Headroom, "kept awake as one of dvfs.idleNodes"};
  }
  if (auto verdict = foreign_owner(node)) return verdict;
  if (!node.ready) return Verdict{Reason::NodeNotReady, "the node is not Ready"};
  if (!node.has_driver) return no_driver(node);
  if (!node.can_go_off) {
    return Verdict{Reason::NoDriver,
                   "wake-on-LAN only wakes: the node's agent needs --power-off-command"};
  }
  if (auto verdict = resting(pass, node)) return verdict;
  return stale(pass, node);
}

}  // namespace kwatt::planner
