// Why a node may not lose its machine or its pods, whatever the lever.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "planner/candidates.hpp"
#include "planner/destinations.hpp"
#include "planner/filters/node_face.hpp"
#include "planner/levers.hpp"
#include "planner/propose.hpp"

namespace kwatt::planner {
namespace {

// Other controllers announce with these that the node is theirs now.
constexpr std::array<std::string_view, 5> kForeignTaints = {
    "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted", "karpenter.sh/disruption", "medik8s.io/drain"};

// A node owned by Karpenter is replaced as soon as it is off.
constexpr std::string_view kKarpenterPool = "karpenter.sh/nodepool";
constexpr std::string_view kScaleDownDisabled =
    "cluster-autoscaler.kubernetes.io/scale-down-disabled";

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
        fmt::format("{}={} is not understood (on|off[,until=RFC 3339]): held on", names::kOverride,
                    node.node->meta.annotations.get(names::kOverride))};
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
  const bool expected = !node.samples.empty() ||
                        (node.machine != nullptr && node.machine->status.report.time.has_value());
  if (!expected) return std::nullopt;
  if (node.samples.empty()) {
    return Verdict{Reason::StaleTelemetry, "the agent has reported before, but sends no samples"};
  }
  const Duration age = pass.snapshot.now - node.samples.back().at;
  if (age <= stale_after(node)) return std::nullopt;
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
  if (node.node->meta.labels.contains(kKarpenterPool)) {
    return Verdict{Reason::ForeignOwner, fmt::format("the node belongs to Karpenter's pool {}",
                                                     node.node->meta.labels.get(kKarpenterPool))};
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
  if (!node.has_driver) {
    return Verdict{Reason::NoDriver, "no power driver: spec.bmc.address of its NodePower is empty"};
  }
  if (auto verdict = resting(pass, node)) return verdict;
  return stale(pass, node);
}

}  // namespace kwatt::planner
