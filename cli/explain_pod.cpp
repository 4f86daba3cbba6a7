#include <algorithm>

#include <fmt/format.h>

#include "api/state_words.hpp"
#include "cli/explain.hpp"
#include "cli/output.hpp"

namespace kwatt::cli {
namespace {

using api::OperationKind;
using api::PodPhase;
using api::PodScheduled;

std::string_view word(PodPhase phase) {
  switch (phase) {
    case PodPhase::pending:
      return "Pending";
    case PodPhase::running:
      return "Running";
    case PodPhase::succeeded:
      return "Succeeded";
    case PodPhase::failed:
      return "Failed";
    case PodPhase::unknown:
      break;
  }
  return "Unknown";
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Where kwatt is moving the pod, or plans to.
void add_moves(const PodFacts& facts, std::vector<std::string>& out) {
  const api::Pod& pod = facts.pod;
  for (const api::NodePower& machine : facts.machines) {
    for (const api::PodMove& move : machine.status.operation.moves) {
      if (move.uid != pod.uid) continue;
      out.push_back(fmt::format("It is being moved to node {} by a {} of {} ({}){}", move.node_name,
                                phrase(machine.status.operation.kind), machine.meta.name,
                                machine.status.operation.reason,
                                move.phase.empty() ? "" : ": " + move.phase));
    }
  }
  for (const api::EnergyPolicy& policy : facts.policies) {
    for (const api::MigrationStatus& move : policy.status.migrations) {
      if (move.pod_name != pod.name || move.namespace_name != pod.namespace_name) continue;
      out.push_back(fmt::format("Policy {} lists its move from {} to {}: {} ({})", policy.meta.name,
                                move.from_node, move.node_name, move.phase, move.reason));
    }
  }
}

// What is done for a pod that fits nowhere.
void add_waking(const PodFacts& facts, std::vector<std::string>& out) {
  std::vector<std::string> waking, off;
  for (const api::NodePower& machine : facts.machines) {
    if (machine.status.operation.kind == OperationKind::PowerOn) {
      waking.push_back(machine.meta.name);
    } else if (machine.status.power_state == api::PowerState::Off) {
      off.push_back(machine.meta.name);
    }
  }
  if (!waking.empty()) out.push_back("These nodes are being woken: " + join(waking));
  if (!off.empty()) {
    out.push_back(count(static_cast<std::int64_t>(off.size()), "machine") +
                  (off.size() == 1 ? " is" : " are") +
                  " off; one is woken if the pod fits on its node");
  }
  const bool woken = std::any_of(facts.policies.begin(), facts.policies.end(), [](const auto& p) {
    return p.spec.mode == api::Mode::Enforce && !p.spec.suspend && p.spec.power_on.enabled;
  });
  if (waking.empty() && !woken) {
    out.push_back("No policy that is enforced wakes nodes for pending pods");
  } else if (waking.empty() && off.empty()) {
    out.push_back("No machine is off, so kwatt cannot make room for it");
  }
}

std::string waiting_sentence(const api::Pod& pod, TimePoint now) {
  const std::string since =
      pod.scheduled_transition ? " for " + human(now - *pod.scheduled_transition) : std::string();
  if (pod.scheduled == PodScheduled::unschedulable) {
    return fmt::format("pod {} has been waiting{} because it fits on no node that is on", pod.key(),
                       since);
  }
  if (pod.scheduled == PodScheduled::gated) {
    return fmt::format("pod {} waits{} behind a scheduling gate; kwatt does nothing for it",
                       pod.key(), since);
  }
  return fmt::format("pod {} has not been placed by the scheduler yet", pod.key());
}

}  // namespace

Explanation explain_pod(const PodFacts& facts, TimePoint now) {
  const api::Pod& pod = facts.pod;
  Explanation out;
  out.kind = "pod";
  out.namespace_name = pod.namespace_name;
  out.name = pod.name;
  out.state = word(pod.phase);
  out.events = event_lines(facts.events);
  if (pod.terminal()) {
    out.sentence = fmt::format("pod {} has ended, so it keeps no node on", pod.key());
    return out;
  }
  if (pod.node_name.empty()) {
    out.sentence = waiting_sentence(pod, now);
    if (pod.scheduled == PodScheduled::unschedulable) add_waking(facts, out.facts);
    return out;
  }
  out.sentence = fmt::format("pod {} is on node {}", pod.key(), pod.node_name);
  if (!pod.workload()) {
    out.sentence += pod.daemon() ? " and, being of a DaemonSet, does not keep it on"
                                 : " and, being static, does not keep it on";
  }
  if (facts.node) {
    const Explanation node = explain_node(*facts.node, now);
    out.sentence += "; " + node.sentence;
    out.reason = node.reason;
    out.policy = node.policy;
    out.message = node.message;
    out.change = node.change;
    out.earliest = node.earliest;
  }
  add_moves(facts, out.facts);
  if (pod.owner == nullptr) {
    out.facts.push_back("It has no controller, so it is not moved: nothing would start it again");
  }
  if (pod.spec != nullptr && pod.spec->local_storage) {
    out.facts.push_back("It has local storage, which would be lost with its node");
  }
  for (const auto& [key, value] : pod.annotations) {
    out.facts.push_back(fmt::format("It is annotated {}={}", key, value));
  }
  return out;
}

}  // namespace kwatt::cli
