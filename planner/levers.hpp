#pragma once
// The levers: each looks at one pass and proposes actions or says why not. plan() calls them in a
// fixed order and combines the proposals (one action per node, budgets, minAwake).
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/plan.hpp"
#include "planner/what_if.hpp"

namespace kwatt::planner {

// Pods without a node, as one pass sees them; see settle() in planner/pending.hpp.
struct Demand {
  // Unschedulable for lack of resources: they fit no awake node but an off one (or one that is
  // coming up). In the order in which kube-scheduler would take them.
  std::vector<std::shared_ptr<const api::Pod>> waiting;
  // Awake nodes on which a CapacityBuffer has its room, with its name.
  std::map<NodeName, std::string> kept_for;
};

// What all levers of one pass share.
struct Pass {
  const Snapshot& snapshot;
  const std::string& policy_name;
  const api::EnergyPolicySpec& spec;
  const std::vector<NodeName>& selected;  // sorted
  WhatIf& what_if;                        // room on awake nodes, with everything reserved so far
  std::optional<Demand> demand = std::nullopt;  // filled by the first lever that asks (settle())
  std::set<NodeName> idle_pool = {};  // nodes that dvfs.idleNodes keeps awake (idle_pool())
  Milliwatts power_wanted{};          // under budgetWatts: of nodes to be woken once there is room
};

// Proposals in order of preference, and for every selected node the lever looked at and refused,
// why.
struct Proposal {
  std::vector<Action> actions;
  std::map<NodeName, Verdict> refusals;
  std::optional<Duration> next_wake = std::nullopt;  // when a refusal ends by time alone
};

// Pods that are unschedulable for lack of resources and fit an off node (api.md), and the cheapest
// set of off nodes that takes them; plus high load and headroom.
Proposal power_on(Pass& pass, const api::PolicyMemory& memory, api::PolicyMemory& next_memory,
                  std::vector<std::string>& pending);
// Nodes without workload pods for idleFor (memory.idleSince). `next_memory` gets changed idleSince.
Proposal power_off(Pass& pass, std::map<NodeName, api::NodeMemory>& next_memory);
// Empties nodes by FewestPods or BestSaving; every pod with a reserved destination in what_if.
Proposal migrate(Pass& pass);
// Governor and frequency by frequency-invariant utilization; dvfs.migration and idleNodes too.
Proposal dvfs(Pass& pass);
// Caps above abovePercentOfMax, release below releasePercentOfMax; budgetWatts; migrate first.
Proposal capping(Pass& pass);

// The nodes that dvfs.idleNodes keeps: idle, awake, at low frequency where possible; ties by name.
// They may receive pods, and are never switched off.
std::set<NodeName> idle_pool(const Pass& pass);

// The mean over the newest `window` of a node's samples; nullopt if they do not cover it, or are
// older than `stale_after` (three sample periods, at least 30 s).
struct WindowMean {
  Permille utilization, busy;
  Milliwatts power;
  bool has_power = false;
  bool has_utilization = true;
};
std::optional<WindowMean> window_mean(const NodeView& node, Duration window, TimePoint now);
// The same for power: nullopt if the watts are not known. Without a known utilization (a meter, but
// no agent) has_utilization is false.
std::optional<WindowMean> power_window_mean(const NodeView& node, Duration window, TimePoint now);

// How old a node's newest sample may be where its source's own period is not known: three times
// the distance of the samples, at least 30 s.
Duration stale_after(const NodeView& node);
// The newest sample with a load, or with power, if it may be believed now; nullptr: there is none.
const TelemetrySample* believed_load(const NodeView& node, TimePoint now);
const TelemetrySample* believed_power(const NodeView& node, TimePoint now);
// May what the samples say of the node's load be believed now? Where no source measures load, what
// they say of its power. False without samples.
bool samples_believed(const NodeView& node, TimePoint now);

// Another controller, or a person's cordon, has the node: ForeignOwner. nullopt: it is ours to use.
std::optional<Verdict> foreign_owner(const NodeView& node);

// Why this node may not lose its machine or its pods, whatever the lever (control plane, excluded,
// foreign owner, cool-down, cycle limit, no driver, …); nullopt: nothing speaks against it.
std::optional<Verdict> protected_from_off(const Pass& pass, const NodeView& node);

}  // namespace kwatt::planner
