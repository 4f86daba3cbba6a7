// The last look before an operation is committed, on the newest snapshot: everything that made the
// decision right is checked again, without planning again.
#include <algorithm>

#include <fmt/format.h>

#include "planner/candidates.hpp"
#include "planner/cap_budget.hpp"
#include "planner/destinations.hpp"
#include "planner/guards.hpp"
#include "planner/levers.hpp"
#include "planner/recall.hpp"
#include "planner/request.hpp"
#include "planner/verdicts.hpp"

namespace kwatt::planner {
namespace {

class Admission {
 public:
  Admission(const Snapshot& snapshot, const Action& action, const std::string& policy_name,
            const api::EnergyPolicySpec& spec, const std::vector<NodeName>& selected,
            const NodeView& node)
      : snapshot_(snapshot),
        action_(action),
        policy_name_(policy_name),
        spec_(spec),
        selected_(selected),
        node_(node) {}

  std::optional<Verdict> operator()(const Release&) const { return busy(); }

  std::optional<Verdict> operator()(const PowerOn&) const {
    if (auto verdict = common()) return verdict;
    if (!can_be_called_off(node_.operation())) {
      if (auto verdict = busy()) return verdict;
    }
    if (!node_.has_driver && node_.power_state() != api::PowerState::On) {
      return no_driver(node_);
    }
    if (override_of(node_, snapshot_.now).kind == Override::Kind::off) {
      return Verdict{Reason::Manual, fmt::format("held off by {}", names::kOverride)};
    }
    // A machine that runs draws what it draws; it only comes back into service.
    const bool runs = node_.power_state() == api::PowerState::On || node_.ready;
    return runs ? std::nullopt : within_power(std::nullopt);
  }

  std::optional<Verdict> operator()(const PowerOff& off) const {
    if (auto verdict = takes_capacity()) return verdict;
    if (node_.power_state() != api::PowerState::On) {
      return Verdict{Reason::InProgress, "the machine is not on any more"};
    }
    if (auto verdict = protection()) return verdict;
    if (auto verdict = pods_as_planned(off.moves, true)) return verdict;
    if (node_.volume_attached && off.moves.empty()) {
      return Verdict{Reason::InUse, "a VolumeAttachment names the node"};
    }
    const AwakeFloor floor{snapshot_, spec_.power_off, selected_};
    if (auto verdict = floor.refuse(node_)) return verdict;
    return within_disruption();
  }

  std::optional<Verdict> operator()(const Migrate& migrate) const {
    if (auto verdict = takes_capacity()) return verdict;
    if (auto verdict = busy()) return verdict;
    if (node_.control_plane || node_.own_node) {
      return Verdict{Reason::ControlPlane, "not emptied: control plane or this controller"};
    }
    if (auto verdict = pods_as_planned(migrate.moves, false)) return verdict;
    return within_disruption();
  }

  std::optional<Verdict> operator()(const SetFrequency& frequency) const {
    if (auto verdict = frequency.low ? takes_capacity() : common()) return verdict;
    return settings(frequency_keys());
  }

  std::optional<Verdict> operator()(const SetCap& cap) const {
    const bool by_bmc = cap.by == api::CapBy::BMC;
    const CapFacts facts = cap_facts(node_, by_bmc ? api::CapMethod::BMC : api::CapMethod::RAPL);
    const bool lowers = cap.watts && *cap.watts < facts.requested.value_or(facts.maximum);
    if (auto verdict = lowers ? takes_capacity() : common()) return verdict;
    if (auto verdict = settings({std::string(names::kPowerCap)})) return verdict;
    if (by_bmc && !node_.has_driver) return no_driver(node_);
    if (cap.watts && (*cap.watts < facts.cap_min || *cap.watts > facts.cap_max)) {
      return Verdict{Reason::OutOfRange, fmt::format("a cap of {} W is not within {}..{} W",
                                                     *cap.watts, facts.cap_min, facts.cap_max)};
    }
    return lowers ? std::nullopt : within_power(cap.watts);
  }

 private:
  std::optional<Verdict> busy() const {
    if (node_.operation().id.empty()) return std::nullopt;
    return Verdict{Reason::InProgress,
                   fmt::format("operation {} is in progress", node_.operation().id)};
  }

  std::optional<Verdict> common() const {
    if (!snapshot_.sync.synced) {
      return Verdict{Reason::NotSynced, "the cache has not seen everything yet"};
    }
    if (spec_.mode != api::Mode::Enforce) {
      return Verdict{Reason::RecommendOnly, "the policy only recommends"};
    }
    if (spec_.suspend) return Verdict{Reason::Suspended, "the policy is suspended"};
    if (std::find(selected_.begin(), selected_.end(), node_.name()) == selected_.end()) {
      return Verdict{Reason::NotSelected, "the policy does not have the node any more"};
    }
    if (node_.node->meta.annotations.get(names::kExclude) == "true") {
      return Verdict{Reason::Excluded, fmt::format("annotated {}=true", names::kExclude)};
    }
    return std::nullopt;
  }

  std::optional<Verdict> takes_capacity() const {
    if (auto verdict = common()) return verdict;
    const Health health = health_of(snapshot_, selected_);
    if (health.tripped() || health.all_unready()) return too_many_unready(health);
    return busy();
  }

  std::optional<Verdict> protection() const {
    // protected_from_off() looks at no room; an empty what-if costs nothing.
    const Snapshot empty;
    const Reserved nothing;
    WhatIf what_if{empty, nothing};
    Pass pass{snapshot_, policy_name_, spec_, selected_, what_if};
    pass.idle_pool = idle_pool(pass);
    return protected_from_off(pass, node_);
  }

  // Every pod to move is still here, may still be moved, and its destination still takes pods; for
  // a PowerOff (`all`), nobody else has come.
  std::optional<Verdict> pods_as_planned(const std::vector<api::PodMove>& moves, bool all) const {
    const Candidates candidates{snapshot_, spec_.disruption};
    const auto is_planned = [&](const api::Pod& pod) {
      return std::any_of(moves.begin(), moves.end(),
                         [&](const api::PodMove& move) { return move.uid == pod.uid; });
    };
    for (const auto& pod : node_.pods) {
      if (!pod->workload() || pod->deletion_timestamp) continue;
      if (!is_planned(*pod)) {
        if (all) return Verdict{Reason::InUse, fmt::format("pod {} has come", pod->key())};
        continue;
      }
      if (auto verdict = candidates.immovable(*pod)) return verdict;
    }
    for (const api::PodMove& move : moves) {
      const auto destination = snapshot_.nodes.find(move.node_name);
      if (destination == snapshot_.nodes.end() ||
          tier_of(destination->second, snapshot_.now) == Tier::none) {
        return Verdict{Reason::NoDestination,
                       fmt::format("node {} takes no pods any more", move.node_name)};
      }
    }
    return std::nullopt;
  }

  std::optional<Verdict> within_disruption() const {
    return DisruptionBudgets{snapshot_, spec_.disruption, selected_}.refuse(action_.reason);
  }

  std::optional<Verdict> within_power(std::optional<std::int64_t> watts) const {
    const std::int64_t budget = spec_.capping.enabled ? spec_.capping.budget_watts : 0;
    if (PowerLedger{snapshot_, selected_, budget}.fits(node_, watts)) return std::nullopt;
    return Verdict{Reason::OverBudget, fmt::format("does not fit budgetWatts {} any more", budget)};
  }

  std::optional<Verdict> settings(const std::set<std::string>& keys) const {
    if (auto verdict = busy()) return verdict;
    if (const auto key = set_by_hand(*node_.node, keys)) {
      return Verdict{Reason::Manual, fmt::format("{} was set by hand", *key)};
    }
    if ((node_.control_plane || node_.own_node) && !spec_.include_control_plane) {
      return Verdict{Reason::ControlPlane, "control plane, or this controller runs here"};
    }
    if (!node_.ready) return Verdict{Reason::NodeNotReady, "the node is not Ready"};
    return std::nullopt;
  }

  const Snapshot& snapshot_;
  const Action& action_;
  const std::string& policy_name_;
  const api::EnergyPolicySpec& spec_;
  const std::vector<NodeName>& selected_;
  const NodeView& node_;
};

}  // namespace

std::optional<Verdict> admit(const Snapshot& snapshot, const Action& action,
                             const std::string& policy_name, const api::EnergyPolicySpec& spec,
                             const std::vector<NodeName>& selected) {
  const auto found = snapshot.nodes.find(action.node);
  if (found == snapshot.nodes.end() || found->second.node->meta.uid != action.pre.node_uid) {
    return Verdict{Reason::NotSelected, "the Node is gone, or is another one of the same name"};
  }
  return std::visit(Admission{snapshot, action, policy_name, spec, selected, found->second},
                    action.what);
}

}  // namespace kwatt::planner
