#include "planner/steps.hpp"

#include <fmt/format.h>

#include "planner/steps_common.hpp"

namespace kwatt::planner {
namespace {

using api::OperationKind;

// Marks on the node that a PowerOn takes away before anything else may be given back.
bool is_asleep(const NodeView& node) {
  switch (node.power_state()) {
    case api::PowerState::Off:
    case api::PowerState::PoweringOff:
    case api::PowerState::PoweringOn:
    case api::PowerState::WakeFailed:
      return true;
    case api::PowerState::On:
    case api::PowerState::Draining:
    case api::PowerState::Unknown:
      break;
  }
  return node.memory().powered_off_by_us && !node.ready;
}

struct Start {
  api::NodePowerStatus& status;
  const NodeView& node;
  const api::EnergyPolicySpec& spec;
  TimePoint now;
  api::Operation& operation;

  void wake() const {
    operation.kind = OperationKind::PowerOn;
    operation.step = steps::kWake;
    operation.deadline = now + spec.power_on.boot_timeout;
    operation.cordoned_by_us = node.memory().cordoned_by_us;
    // One that runs already only loses our marks.
    const bool runs = node.power_state() == api::PowerState::On && node.ready;
    status.power_state = runs ? api::PowerState::On : api::PowerState::PoweringOn;
    status.decision.desired = api::Desired::On;
  }
  void operator()(const PowerOn&) const { wake(); }
  void operator()(const PowerOff& off) const {
    operation.kind = OperationKind::PowerOff;
    operation.step = steps::kCordon;
    operation.deadline = now + spec.migration.drain_timeout;
    // A cordon that stands already is somebody else's, unless it is recorded as ours.
    operation.cordoned_by_us = !node.node->unschedulable || node.memory().cordoned_by_us;
    operation.then_wake = off.wake_test;
    operation.moves = off.moves;
    status.power_state = api::PowerState::Draining;
    status.decision.desired = api::Desired::Off;
  }
  void operator()(const Migrate& migrate) const {
    operation.kind = OperationKind::Migrate;
    operation.step = steps::kTaint;
    operation.deadline = now + spec.migration.drain_timeout;
    operation.moves = migrate.moves;
  }
  void operator()(const SetFrequency& frequency) const {
    operation.kind = OperationKind::SetFrequency;
    operation.step = steps::kAnnotate;
    operation.request = request_of(frequency.level);
  }
  void operator()(const SetCap& cap) const {
    operation.kind = OperationKind::SetCap;
    operation.step = cap.by == api::CapBy::BMC ? steps::kSetLimit : steps::kAnnotate;
    operation.request.power_cap_watts = cap.watts;
    operation.cap_by = cap.by;
  }
  void operator()(const Release&) const {
    // First awake, then the rest: the next pass asks for the release again.
    if (node.memory().powered_off_by_us && is_asleep(node)) return wake();
    operation.kind = OperationKind::Release;
    operation.step = steps::kRestore;
    operation.cordoned_by_us = node.memory().cordoned_by_us;
  }
};

}  // namespace

api::NodePowerStatus begin(const NodeView& node, const Action& action,
                           const std::string& policy_name, const api::EnergyPolicySpec& spec,
                           const std::string& id, TimePoint now) {
  api::NodePowerStatus status =
      node.machine != nullptr ? node.machine->status : api::NodePowerStatus{};
  const api::NodeDecision before = status.decision;
  status.operation = {};
  api::Operation& operation = status.operation;
  operation.id = id;
  operation.policy = policy_name;
  operation.reason = std::string(api::to_string(action.reason));
  operation.started_at = operation.step_started_at = now;
  status.memory.owner_policy = policy_name;
  status.decision.desired = api::Desired::None;
  status.decision.reason = operation.reason;
  status.decision.message = action.message;
  status.decision.policy = policy_name;
  std::visit(Start{status, node, spec, now, operation}, action.what);
  if (before.desired != status.decision.desired || before.reason != status.decision.reason ||
      !status.decision.since) {
    status.decision.since = now;
  }
  if (status.power_state !=
      (node.machine ? node.machine->status.power_state : api::PowerState::Unknown)) {
    status.power_state_since = now;
  }
  return status;
}

Step next_step(const api::NodePowerStatus& status, const Observation& observation,
               const api::EnergyPolicySpec& spec) {
  const steps::Context context{status, observation, spec};
  Step step;
  switch (status.operation.kind) {
    case OperationKind::PowerOff:
      step = steps::power_off_step(context);
      break;
    case OperationKind::PowerOn:
      step = steps::power_on_step(context);
      break;
    case OperationKind::Migrate:
      step = steps::migrate_step(context);
      break;
    case OperationKind::SetFrequency:
    case OperationKind::SetCap:
      step = steps::settings_step(context);
      break;
    case OperationKind::Release:
      step = steps::release_step(context);
      break;
    case OperationKind::None:
      // A record without a kind cannot be carried on; nothing was started under it.
      step = steps::finish(status, *observation.node, Reason::InProgress,
                           "the recorded operation has no kind", true);
      break;
  }
  if (step.next.power_state != status.power_state) step.next.power_state_since = observation.now;
  return step;
}

}  // namespace kwatt::planner
