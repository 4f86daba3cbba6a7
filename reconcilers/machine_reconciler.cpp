#include "reconcilers/machine_reconciler.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "api/patch.hpp"
#include "api/state_words.hpp"
#include "base/backoff.hpp"
#include "base/log.hpp"
#include "reconcilers/decisions.hpp"
#include "reconcilers/effects.hpp"
#include "reconcilers/identifiers.hpp"
#include "reconcilers/machine_power.hpp"
#include "reconcilers/relay.hpp"

namespace kwatt::reconcilers {
namespace {

using api::NodePower;
using api::NodePowerStatus;
using api::OperationKind;
using api::PowerState;
using kube::ReconcileResult;
using planner::NodeView;

// How often a machine that is not Ready and has no operation is asked for its power state.
constexpr Duration kPollInterval = std::chrono::seconds{30};
constexpr Duration kAnyWhile = std::chrono::hours{24};  // longer than anything is waited for

void merge_decision(const api::NodeDecision& wanted, TimePoint now, api::NodeDecision& decision) {
  if (says_the_same(decision, wanted)) return;
  const bool news = decision.desired != wanted.desired || decision.reason != wanted.reason ||
                    decision.policy != wanted.policy;
  const auto since = news ? std::optional{now} : decision.since;
  decision = wanted;
  decision.since = since;
}

std::optional<PowerState> polled_state(const NodePowerStatus& status,
                                       std::optional<PowerState> machine) {
  if (!machine || *machine == PowerState::Unknown) return std::nullopt;
  // The mark of a failed wake stays until the node is Ready again.
  if (status.power_state == PowerState::WakeFailed) return std::nullopt;
  return machine;
}

}  // namespace

MachineReconciler::MachineReconciler(kube::Client& client, ClusterView& view, Drivers& drivers,
                                     telemetry::SampleStore& samples, MeterOptions meter_options,
                                     kube::EventRecorder& events, Metrics& metrics, Fence fence,
                                     MachineEvents callbacks)
    : client_(client),
      view_(view),
      calls_(client, drivers, metrics, fence),
      meter_(drivers, samples, meter_options, metrics, view.clock()),
      events_(events),
      metrics_(metrics),
      fence_(std::move(fence)),
      callbacks_(std::move(callbacks)) {}

void MachineReconciler::Scratch::follow(const api::Operation& operation) {
  if (operation_id != operation.id) {
    *this = Scratch{};
    operation_id = operation.id;
  }
  if (step == operation.step) return;
  step = operation.step;
  bmc.reset_sent = false;
  lease_at_step.clear();
}

void MachineReconciler::submit(const std::string& node, Intent intent) {
  intents_[node] = std::move(intent);
}

bool MachineReconciler::commits_pending() const {
  for (const auto& [node, intent] : intents_) {
    if (intent.action) return true;
  }
  return false;
}

kube::Task<Result<ReconcileResult>> MachineReconciler::reconcile(std::string name) {
  if (!fence_() || !view_.stores().ready()) {
    intents_.erase(name);
    co_return ReconcileResult{};
  }
  auto node = view_.node_view(name);
  auto machine = view_.machine(name);
  if (machine == nullptr) {
    const bool agent = node != nullptr && std::any_of(node->samples.begin(), node->samples.end(),
                                                      [](const auto& s) { return s.from_agent; });
    const bool wanted = node != nullptr && (intents_.contains(name) || agent);
    if (!wanted) {
      intents_.erase(name);
      co_return ReconcileResult{};
    }
    if (auto created = co_await create(name); !created) co_return created.error();
    machine = view_.machine(name);
    node = view_.node_view(name);
    if (machine == nullptr || node == nullptr) co_return ReconcileResult{kPollInterval};
  }
  if (node == nullptr) {
    // The Node object is gone: nothing may be done to a machine without one.
    intents_.erase(name);
    scratch_.erase(name);
    meter_.forget(name);
    last_shown_.erase(name);
    if (!machine->status.operation.id.empty()) {
      NodePowerStatus status = machine->status;
      status.operation = {};
      status.power_state = PowerState::Unknown;
      auto written = co_await write(machine, std::move(status));
      if (!written) co_return written.error();
    }
    co_return ReconcileResult{};
  }
  if (auto tidied = co_await tidy_relay(*node); !tidied) co_return tidied.error();
  co_return co_await reconcile_known(std::move(machine), std::move(node));
}

kube::Task<Result<void>> MachineReconciler::tidy_relay(const NodeView& relay) {
  auto patch = outdated_notes(*relay.node, [this](const std::string& name) {
    const auto machine = view_.machine(name);
    return machine == nullptr ? api::Operation{} : machine->status.operation;
  });
  if (!patch) co_return Result<void>();
  auto node = relay.node;
  co_return co_await patch_node(client_, view_, std::move(node), std::move(*patch));
}

kube::Task<Result<ReconcileResult>> MachineReconciler::reconcile_known(
    std::shared_ptr<const NodePower> machine, std::unique_ptr<NodeView> node) {
  NodePowerStatus status = merged(*machine, *node);
  const bool begins = machine->status.operation.id.empty() && !status.operation.id.empty();
  if (status != machine->status) {
    auto written = co_await write(machine, status);
    if (!written) {
      // Somebody was faster: the action is dropped and decided again from the new state.
      if (callbacks_.pass_wanted) callbacks_.pass_wanted();
      co_return written.error();
    }
    machine = *written;
    node = view_.node_view(machine->meta.name);
    if (node == nullptr) co_return ReconcileResult{};
  }
  if (begins) {
    const api::Operation& operation = machine->status.operation;
    log::info("operation started", {{"node", machine->meta.name},
                                    {"operation", operation.id},
                                    {"kind", api::to_string(operation.kind)},
                                    {"reason", operation.reason},
                                    {"policy", operation.policy},
                                    {"pods", operation.moves.size()},
                                    {"message", machine->status.decision.message}});
    metrics_.add(
        "kwatt_operations_started_total", "Operations committed, by kind.",
        {{"kind", std::string(api::to_string(operation.kind))}, {"reason", operation.reason}});
    tell(*machine, false, operation.reason, operation.kind,
         fmt::format("{} ({}, policy {}): {}", api::to_string(operation.kind), operation.reason,
                     operation.policy, machine->status.decision.message));
    if (callbacks_.operation) {
      const OperationEvent event{std::string(api::to_string(operation.kind)), "begun",
                                 operation.reason, machine->status.decision.message};
      callbacks_.operation(machine->meta.name, operation, event);
    }
  }
  if (!machine->status.operation.id.empty()) {
    co_return co_await operate(std::move(machine), std::move(*node));
  }
  co_return co_await observe(std::move(machine), *node);
}

NodePowerStatus MachineReconciler::merged(const NodePower& machine, const NodeView& node) {
  NodePowerStatus status = machine.status;
  const auto found = intents_.find(machine.meta.name);
  if (found == intents_.end()) return status;
  Intent intent = std::move(found->second);
  intents_.erase(found);
  const TimePoint now = view_.now();

  if (intent.memory && status.memory == intent.memory_before) status.memory = *intent.memory;
  merge_decision(intent.decision, now, status.decision);
  if (intent.action && status.operation.id.empty()) {
    NodeView current = node;
    auto present = std::make_shared<NodePower>(machine);
    present->status = status;
    current.machine = std::move(present);
    status = planner::begin(current, *intent.action, intent.policy, *intent.spec, new_uuid(), now);
    scratch_.erase(machine.meta.name);
  }
  return status;
}

kube::Task<Result<void>> MachineReconciler::create(std::string name) {
  NodePower object;
  object.meta.name = name;
  auto answer = co_await client_.create(kube::resources::node_powers(), "", api::encode(object));
  if (!answer) {
    if (answer.error().code == ErrorCode::already_exists) co_return Result<void>();
    co_return answer.error().with_context("creating NodePower " + name);
  }
  auto now = std::make_shared<NodePower>();
  if (auto decoded = api::decode(*answer, *now); !decoded) co_return decoded.error();
  view_.wrote_machine("", now);
  co_return Result<void>();
}

kube::Task<Result<std::shared_ptr<const NodePower>>> MachineReconciler::write(
    std::shared_ptr<const NodePower> machine, NodePowerStatus status) {
  NodePower next = *machine;
  next.status = std::move(status);
  if (next.status.power_state != machine->status.power_state) {
    next.status.power_state_since = view_.now();
  }
  // Server-side apply of everything but the agent's report; the resourceVersion in it makes the
  // write a compare-and-swap: 409 if anybody, the agent too, was faster.
  auto answer = co_await client_.patch(kube::resources::node_powers(), {"", next.meta.name},
                                       kube::Client::PatchType::apply, kStatusManager, "status",
                                       api::apply_status(next.meta, next.status));
  if (!answer) co_return answer.error().with_context("status of NodePower " + next.meta.name);
  auto now = std::make_shared<NodePower>();
  if (auto decoded = api::decode(*answer, *now); !decoded) co_return decoded.error();
  view_.wrote_machine(machine->meta.resource_version, now);
  if (callbacks_.decided && now->status.decision != machine->status.decision) {
    callbacks_.decided(now->meta.name, now->status.decision);
  }
  co_return std::shared_ptr<const NodePower>(now);
}

std::shared_ptr<const api::EnergyPolicySpec> MachineReconciler::spec_of(
    const std::string& policy) const {
  const auto found = view_.stores().policies.get(policy);
  // An operation outlives its policy: the default timeouts then count.
  if (found == nullptr || !api::validate(found->spec).empty()) {
    return std::make_shared<const api::EnergyPolicySpec>();
  }
  if (found->meta.deletion_timestamp) {
    // On its way out it enforces nothing: a drain under it is called off, a machine half off is
    // brought to an end with the policy's own timeouts, and then released.
    auto going = std::make_shared<api::EnergyPolicySpec>(found->spec);
    going->mode = api::Mode::Recommend;
    return going;
  }
  return {found, &found->spec};
}

kube::Task<Result<ReconcileResult>> MachineReconciler::operate(
    std::shared_ptr<const NodePower> machine, NodeView node) {
  const std::string name = machine->meta.name;
  const auto spec = spec_of(machine->status.operation.policy);
  Scratch scratch = scratch_[name];
  scratch.follow(machine->status.operation);

  planner::Observation seen;
  seen.node = &node;
  seen.reset_sent = scratch.bmc.reset_sent;
  BmcAnswers answers = std::exchange(scratch.bmc, {});
  scratch.bmc.reset_sent = seen.reset_sent;
  seen.machine = answers.machine;
  seen.bmc_error = std::move(answers.error);
  seen.bmc_refusal = answers.refusal;
  seen.limit = answers.limit;
  seen.evictions = std::exchange(scratch.evictions, {});
  // Also while the node is still Ready in the API: of a machine that was woken within the grace
  // period of its shutdown, the Lease alone tells whether the kubelet of this boot runs.
  if (machine->status.operation.kind == OperationKind::PowerOn) {
    const std::string renewed = co_await lease_renewed(name);
    if (scratch.lease_at_step.empty()) {
      scratch.lease_at_step = renewed.empty() ? "none" : renewed;
    } else {
      seen.lease_renewed_since_start = !renewed.empty() && renewed != scratch.lease_at_step;
    }
  }
  seen.now = view_.now();
  const planner::Step step = planner::next_step(machine->status, seen, *spec);
  const api::Operation before = machine->status.operation;

  if (step.next != machine->status) {
    auto written = co_await write(machine, step.next);
    if (!written) {
      scratch_[name] = scratch;
      co_return written.error();
    }
    machine = *written;
  }
  scratch.follow(machine->status.operation);
  for (const planner::Effect& effect : step.effects) {
    auto done = co_await perform(effect, before, machine, scratch);
    if (!done) {
      scratch_[name] = scratch;
      if (done.error().code != ErrorCode::conflict) {
        log::warn("an effect failed", {{"node", name},
                                       {"operation", before.id},
                                       {"step", before.step},
                                       {"error", done.error()}});
      }
      co_return done.error();
    }
  }
  if (!step.finished && step.message.empty()) {
    scratch_[name] = scratch;
    co_return ReconcileResult{step.again_after};
  }
  announce(*machine, before, step);
  if (step.finished && before.then_wake && before.kind == OperationKind::PowerOn) {
    co_await answer_wake_test(machine);
  }
  if (!step.finished) {
    scratch_[name] = scratch;
    co_return ReconcileResult{step.again_after};
  }
  scratch_.erase(name);
  if (callbacks_.pass_wanted) callbacks_.pass_wanted();
  co_return ReconcileResult{kPollInterval};
}

// The result is in the status: the request for it is answered. If this fails, the machine is tested
// once more.
kube::Task<void> MachineReconciler::answer_wake_test(std::shared_ptr<const NodePower> machine) {
  if (!machine->meta.annotations.contains(planner::names::kWakeTest)) co_return;
  api::MergePatch body;
  body.remove({"metadata", "annotations", planner::names::kWakeTest});
  auto answer =
      co_await client_.patch(kube::resources::node_powers(), {"", machine->meta.name},
                             kube::Client::PatchType::merge, kFieldManager, "", body.text());
  auto now = std::make_shared<NodePower>();
  if (answer) {
    if (auto decoded = api::decode(*answer, *now); !decoded) answer = decoded.error();
  }
  if (!answer) {
    log::warn("the request for a wake test could not be removed",
              {{"node", machine->meta.name}, {"error", answer.error()}});
    co_return;
  }
  view_.wrote_machine(machine->meta.resource_version, now);
}

void MachineReconciler::tell(const NodePower& machine, bool warning, std::string reason,
                             OperationKind kind, std::string note) {
  kube::EventNote event;
  event.regarding = {"v1", "Node", "", machine.meta.name, machine.meta.name};
  event.related = kube::ObjectReference{"kwatt.dev/v1alpha1", "NodePower", "", machine.meta.name,
                                        machine.meta.uid};
  event.warning = warning;
  event.reason = std::move(reason);
  event.action = api::to_string(kind);
  event.note = std::move(note);
  events_.record(std::move(event));
}

void MachineReconciler::announce(const NodePower& machine, const api::Operation& operation,
                                 const planner::Step& step) {
  const std::string& name = machine.meta.name;
  const std::string kind(api::to_string(operation.kind));
  const std::string reason(api::to_string(step.reason));
  log::write(step.failed ? log::Level::warn : log::Level::info,
             step.finished ? "operation finished" : "operation",
             {{"node", name},
              {"operation", operation.id},
              {"kind", kind},
              {"step", operation.step},
              {"reason", reason},
              {"message", step.message}});
  tell(machine, step.failed, reason, operation.kind, step.message);
  if (!step.finished) return;
  metrics_.add("kwatt_operations_finished_total", "Operations that ended, by kind and result.",
               {{"kind", kind}, {"result", step.failed ? "failed" : "ok"}, {"reason", reason}});
  if (callbacks_.operation) {
    const OperationEvent event{kind, step.failed ? "failed" : "ended", reason, step.message};
    callbacks_.operation(name, operation, event);
  }
  if (callbacks_.action_done) {
    callbacks_.action_done(
        operation.policy,
        fmt::format("{} {}: {}{}", kind, name, step.failed ? "failed: " : "", step.message));
  }
}

kube::Task<Result<void>> MachineReconciler::perform(planner::Effect effect,
                                                    api::Operation operation,
                                                    std::shared_ptr<const NodePower> machine,
                                                    Scratch& scratch) {
  if (!fence_()) co_return fail(ErrorCode::cancelled, "not the leader any more");
  const std::string name = machine->meta.name;
  if (auto* patch = std::get_if<planner::PatchNode>(&effect)) {
    auto node = view_.node(name);
    if (node == nullptr) co_return fail(ErrorCode::not_found, "Node " + name + " is gone");
    co_return co_await patch_node(client_, view_, std::move(node), std::move(*patch));
  }
  if (auto* evict = std::get_if<planner::EvictPods>(&effect)) {
    if (callbacks_.evicted) callbacks_.evicted(name, operation);
    scratch.evictions = co_await evict_pods(client_, std::move(evict->pods), fence_);
    co_return Result<void>();
  }
  if (auto* change = std::get_if<planner::ResetMachine>(&effect)) {
    co_return co_await calls_.reset(*change, std::move(machine), scratch.bmc);
  }
  if (auto* limit = std::get_if<planner::SetPowerLimit>(&effect)) {
    co_await calls_.set_limit(*limit, std::move(machine), scratch.bmc);
  } else if (std::holds_alternative<planner::ReadPowerLimit>(effect)) {
    co_await calls_.read_limit(std::move(machine), scratch.bmc);
  } else {
    co_await calls_.read_state(std::move(machine), scratch.bmc);
  }
  co_return Result<void>();
}

kube::Task<std::string> MachineReconciler::lease_renewed(std::string node) {
  auto body = co_await client_.get(kube::resources::leases(), {"kube-node-lease", node});
  if (!body) co_return "";
  api::Lease lease;
  if (!api::decode(*body, lease)) co_return "";
  co_return lease.renew_time;
}

// No operation: keep the recorded power state true, and the shown watts fresh enough.
kube::Task<Result<ReconcileResult>> MachineReconciler::observe(
    std::shared_ptr<const NodePower> machine, const NodeView& node) {
  const std::string name = machine->meta.name;
  NodePowerStatus status = machine->status;
  // A machine we switched off stays Ready in the API for the node monitor's grace period: then only
  // the machine itself is believed.
  const bool off_by_us = status.memory.powered_off_by_us && status.power_state == PowerState::Off;
  if (node.ready && !off_by_us) {
    status.power_state = PowerState::On;
    status.memory.powered_off_by_us = false;
  } else if (node.has_driver) {
    const MonotonicPoint now = view_.clock().monotonic();
    MonotonicPoint& last = last_poll_[name];
    if (last == MonotonicPoint{} || now - last >= kPollInterval) {
      last = now;
      BmcAnswers answers;
      co_await calls_.read_state(machine, answers);
      if (const auto state = polled_state(status, answers.machine)) status.power_state = *state;
    }
  } else if (status.power_state == PowerState::On) {
    status.power_state = PowerState::Unknown;
  }
  std::unique_ptr<NodeView> again;
  if (node.has_driver && status.power_state != PowerState::Off) {
    const bool taken = co_await meter_.read(machine, node, status);
    if (taken) again = view_.node_view(name);
  }
  const NodeView& seen = again != nullptr ? *again : node;
  const api::MachinePower power = machine_power(seen, view_.now());
  const MonotonicPoint moment = view_.clock().monotonic();
  const auto shown = last_shown_.find(name);
  const Duration since =
      shown == last_shown_.end() ? kAnyWhile : std::chrono::floor<Duration>(moment - shown->second);
  if (status != machine->status || worth_showing(status.power, power, since)) {
    last_shown_[name] = moment;
    status.power = power;
    status.watts = (power.milliwatts + 500) / 1000;
  }
  if (status != machine->status) {
    auto written = co_await write(machine, std::move(status));
    if (!written) co_return written.error();
    if (callbacks_.pass_wanted) callbacks_.pass_wanted();
  }
  const bool metered = BmcMeter::of_use(seen, machine->status, view_.now());
  co_return ReconcileResult{metered ? std::min(kPollInterval, meter_.interval()) : kPollInterval};
}

}  // namespace kwatt::reconcilers
