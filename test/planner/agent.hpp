#pragma once
// A node as its agent reports it, and settings as a finished operation of ours leaves them.
#include <functional>
#include <string>

#include "planner/request.hpp"
#include "test/planner/world.hpp"

namespace kwatt::test {

// acpi-cpufreq between 1200 and 3200 MHz, a cap from 60 to 140 W.
inline NodeBuilder& with_agent(NodeBuilder& node) {
  api::AgentReport& report = node.machine().status.report;
  report.boot_id = "boot-1";
  report.time = kNoon - seconds{10};
  report.governor = "schedutil";
  report.converged = true;
  report.available_governors = {"performance", "powersave", "schedutil"};
  report.hardware_min_mhz = 1200;
  report.hardware_max_mhz = 3200;
  report.cap_min_watts = 60;
  report.cap_max_watts = 140;
  return node;
}

inline void own_keys(NodeBuilder& node, const std::set<std::string>& keys,
                     const std::string& policy = "default") {
  planner::RequestNote note = planner::request_on(node.node());
  note.id = "done";
  note.policy = policy;
  note.keys.insert(keys.begin(), keys.end());
  node.node().meta.annotations.set(planner::names::kRequest, planner::format_request(note));
  node.machine().status.memory.owner_policy = policy;
  node.machine().status.report.applied_request = "done";
}

// Capped by us, confirmed by the agent.
inline NodeBuilder& capped(NodeBuilder& node, std::int64_t watts, bool confirmed = true) {
  node.annotation(std::string(planner::names::kPowerCap), std::to_string(watts));
  own_keys(node, {std::string(planner::names::kPowerCap)});
  node.machine().status.report.requested_cap_watts = watts;
  node.machine().status.report.effective_cap_watts = confirmed ? watts : 0;
  node.label(std::string(planner::names::kLabelCapped), "true");
  return node;
}

// The same under a budget: the request says that the cap outlives the controller.
inline NodeBuilder& budgeted(NodeBuilder& node, std::int64_t watts, bool confirmed = true) {
  capped(node, watts, confirmed);
  planner::RequestNote note = planner::request_on(node.node());
  note.keep_cap = true;
  node.node().meta.annotations.set(planner::names::kRequest, planner::format_request(note));
  return node;
}

inline NodeBuilder& slowed(NodeBuilder& node, const std::string& governor = "powersave") {
  node.annotation(std::string(planner::names::kGovernor), governor);
  own_keys(node, {std::string(planner::names::kGovernor)});
  node.label(std::string(planner::names::kLabelFrequency), "low");
  return node;
}

// ---- finding things in plans
template <class T>
const T* find_action(const std::vector<planner::Action>& actions, const std::string& node) {
  for (const planner::Action& action : actions) {
    if (action.node == node) {
      if (const T* what = std::get_if<T>(&action.what)) return what;
    }
  }
  return nullptr;
}
template <class T>
std::vector<std::string> nodes_of(const std::vector<planner::Action>& actions) {
  std::vector<std::string> nodes;
  for (const planner::Action& action : actions) {
    if (std::holds_alternative<T>(action.what)) nodes.push_back(action.node);
  }
  return nodes;
}
inline std::string reason_of(const std::map<planner::NodeName, planner::Verdict>& verdicts,
                             const std::string& node) {
  const auto found = verdicts.find(node);
  return found == verdicts.end() ? "none" : std::string(api::to_string(found->second.reason));
}

// One pass of a policy "default" over all nodes of the world.
inline planner::Plan plan_of(const World& world, const api::EnergyPolicySpec& spec,
                             const api::PolicyMemory& memory = {}) {
  const planner::Snapshot snapshot = world.snapshot();
  planner::Reserved reserved;
  return planner::plan(snapshot, "default", spec, memory, all_nodes(snapshot), reserved);
}

}  // namespace kwatt::test
