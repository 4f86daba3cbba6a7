#pragma once
// A small cluster at 2026-11-21T15:00:00Z.
#include "cli/explain.hpp"

namespace kwatt::cli {

inline const TimePoint kNow = *parse_rfc3339("2026-11-21T15:00:00Z");
inline TimePoint ago(Duration duration) {
  return kNow - duration;
}
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

inline api::EnergyPolicy default_policy() {
  api::EnergyPolicy policy;
  policy.meta.name = "default";
  policy.meta.generation = 3;
  policy.spec.mode = api::Mode::Enforce;
  api::EnergyPolicyStatus& status = policy.status;
  status.observed_generation = 3;
  status.nodes.selected = 3;
  status.nodes.on = 2;
  status.nodes.off = 1;
  status.power.watts = 240;
  status.power.baseline_milliwatts = 362'000;
  status.power.saved_watt_hours = 12'345;
  status.last_pass.time = ago(seconds{4});
  status.last_pass.duration_milliseconds = 3;
  status.budgets = {{"", 1, 0, true, std::nullopt}};
  api::Condition ready;
  ready.type = "Ready";
  ready.status = "True";
  ready.reason = "Reconciled";
  status.conditions = {ready};
  return policy;
}

inline api::NodePower machine(std::string name, api::PowerState state, std::string reason) {
  api::NodePower machine;
  machine.meta.name = std::move(name);
  machine.spec.bmc.address = "lab+http://127.0.0.1:1/x";
  machine.status.power_state = state;
  machine.status.decision.reason = std::move(reason);
  machine.status.decision.policy = "default";
  machine.status.decision.since = ago(minutes{5});
  machine.status.watts = state == api::PowerState::Off ? 0 : 120;
  return machine;
}

inline api::Node node(std::string name) {
  api::Node node;
  node.meta.name = std::move(name);
  api::Condition ready;
  ready.type = "Ready";
  ready.status = "True";
  node.conditions = {ready};
  return node;
}

inline api::Pod pod(std::string name, std::string on) {
  api::Pod pod;
  pod.namespace_name = "shop";
  pod.name = std::move(name);
  pod.uid = "uid-" + pod.name;
  pod.node_name = std::move(on);
  pod.phase = api::PodPhase::running;
  pod.spec = std::make_shared<api::PodTemplate>();
  pod.owner =
      std::make_shared<api::OwnerReference>(api::OwnerReference{"ReplicaSet", "web", "rs", true});
  return pod;
}

inline NodeFacts facts_of(api::NodePower machine) {
  NodeFacts facts;
  facts.name = machine.meta.name;
  facts.node = node(machine.meta.name);
  facts.machine = std::move(machine);
  facts.policy = default_policy();
  return facts;
}

}  // namespace kwatt::cli
