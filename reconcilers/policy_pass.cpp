#include "reconcilers/policy_pass.hpp"

#include <algorithm>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "base/log.hpp"
#include "kube/finalizer.hpp"
#include "planner/destination_choice.hpp"
#include "planner/destinations.hpp"
#include "reconcilers/decisions.hpp"
#include "reconcilers/effects.hpp"

namespace kwatt::reconcilers {
namespace {

using api::EnergyPolicy;
using api::Mode;
using api::Reason;
using planner::Action;
using planner::NodeView;
using planner::Snapshot;

// With nothing to do, an unchanged status is still refreshed this often (its watts and times).
constexpr Duration kStatusRefresh = std::chrono::seconds{30};
// A pass that could not be made is tried again after this.
constexpr Duration kRetry{250};
constexpr Duration kIdleInterval = std::chrono::seconds{10};

bool precedes(const EnergyPolicy& a, const EnergyPolicy& b) {
  if (a.spec.priority != b.spec.priority) return a.spec.priority > b.spec.priority;
  if (a.meta.creation_timestamp != b.meta.creation_timestamp) {
    return a.meta.creation_timestamp < b.meta.creation_timestamp;
  }
  return a.meta.name < b.meta.name;
}

// Room that evictions under way have reserved on their destinations.
planner::Reserved reserved_by_operations(const Snapshot& snapshot) {
  planner::Reserved reserved;
  for (const auto& [name, node] : snapshot.nodes) {
    for (const api::PodMove& move : node.operation().moves) {
      if (move.node_name.empty()) continue;
      const auto pod = std::find_if(node.pods.begin(), node.pods.end(),
                                    [&](const auto& p) { return p->uid == move.uid; });
      if (pod != node.pods.end()) reserved[move.node_name].push_back(*pod);
    }
  }
  return reserved;
}

// Whose carbon intensity matters to the policy: its own zone, or those of its nodes.
std::vector<std::string> carbon_zones(const EnergyPolicy& policy, const Snapshot& snapshot,
                                      const std::vector<planner::NodeName>& selected) {
  if (!policy.spec.carbon.zone.empty()) return {policy.spec.carbon.zone};
  std::set<std::string> zones;
  for (const std::string& name : selected) {
    const auto found = snapshot.nodes.find(name);
    if (found != snapshot.nodes.end()) zones.insert(found->second.zone);
  }
  return {zones.begin(), zones.end()};
}

bool holds(const Snapshot& snapshot, const std::string& policy) {
  return std::any_of(snapshot.nodes.begin(), snapshot.nodes.end(), [&](const auto& entry) {
    const NodeView& node = entry.second;
    return node.memory().owner_policy == policy || node.operation().policy == policy;
  });
}

bool acts(const EnergyPolicy& policy) {
  return policy.spec.mode == Mode::Enforce && !policy.spec.suspend &&
         !policy.meta.deletion_timestamp;
}

api::Desired desired_of(const planner::What& what) {
  if (std::holds_alternative<planner::PowerOn>(what)) return api::Desired::On;
  if (std::holds_alternative<planner::PowerOff>(what)) return api::Desired::Off;
  return api::Desired::None;
}

api::NodeDecision decision_of(const std::string& policy, api::Desired desired, Reason reason,
                              std::string message) {
  api::NodeDecision decision;
  decision.desired = desired;
  decision.reason = api::to_string(reason);
  decision.message = std::move(message);
  decision.policy = policy;
  return decision;
}

}  // namespace

PassResult decide(const Snapshot& snapshot,
                  std::vector<std::shared_ptr<const EnergyPolicy>> policies) {
  std::sort(policies.begin(), policies.end(),
            [](const auto& a, const auto& b) { return precedes(*a, *b); });
  PassResult result;
  std::vector<std::shared_ptr<const EnergyPolicy>> valid;
  for (const auto& policy : policies) {
    PassResult::PerPolicy entry;
    entry.policy = policy;
    entry.problems = api::validate(policy->spec);
    if (auto problem = planner::placement_problem(policy->spec.placement)) {
      entry.problems.push_back(std::move(*problem));
    }
    if (entry.problems.empty() && !policy->meta.deletion_timestamp) valid.push_back(policy);
    result.policies.push_back(std::move(entry));
  }
  planner::Assignment assignment = planner::assign(snapshot, valid);
  planner::Reserved reserved = reserved_by_operations(snapshot);

  for (PassResult::PerPolicy& entry : result.policies) {
    const EnergyPolicy& policy = *entry.policy;
    const std::string& name = policy.meta.name;
    entry.holds_anything = holds(snapshot, name);
    if (policy.meta.deletion_timestamp) {
      entry.release = planner::release(snapshot, name, {}, Reason::PolicyDeleted);
      continue;
    }
    // An invalid edit leaves everything as it is until somebody mends it.
    if (!entry.problems.empty()) continue;
    entry.selected = assignment.selected[name];
    entry.lost = assignment.lost[name];
    entry.plan =
        planner::plan(snapshot, name, policy.spec, policy.status.memory, entry.selected, reserved);
    if (policy.spec.suspend) continue;
    if (policy.spec.mode == Mode::Recommend) {
      entry.release = planner::release(snapshot, name, {}, Reason::RecommendOnly);
    } else {
      entry.release = planner::release(snapshot, name, entry.selected, Reason::NotSelected);
    }
  }
  return result;
}

PolicyPass::PolicyPass(boost::asio::thread_pool& planning, kube::Client& client, ClusterView& view,
                       MachineReconciler& machines, Migrations& migrations,
                       kube::EventRecorder& events, Metrics& metrics, Fence fence,
                       std::function<void(const std::string&)> enqueue, PassOptions options)
    : planning_(planning),
      client_(client),
      view_(view),
      machines_(machines),
      migrations_(migrations),
      events_(events),
      metrics_(metrics),
      fence_(std::move(fence)),
      enqueue_(std::move(enqueue)),
      options_(std::move(options)) {}

void PolicyPass::action_done(const std::string& policy, const std::string& sentence) {
  last_actions_[policy] = sentence;
}

kube::Task<Duration> PolicyPass::run_once() {
  if (!fence_() || !view_.stores().ready() || machines_.commits_pending()) co_return kRetry;
  const MonotonicPoint started = view_.clock().monotonic();
  std::vector<std::shared_ptr<const EnergyPolicy>> policies;
  view_.stores().policies.for_each([&](const std::shared_ptr<const EnergyPolicy>& policy) {
    policies.push_back(policy_writes_.overlay(policy->meta.name, policy));
  });
  std::erase_if(accounts_, [&](const auto& known) {
    return std::none_of(policies.begin(), policies.end(),
                        [&](const auto& policy) { return policy->meta.uid == known.first; });
  });
  std::shared_ptr<const Snapshot> snapshot = view_.snapshot();
  // Planning takes long on large clusters; the servers must answer meanwhile. (The coroutine
  // lambda has a name because of GCC bug 107288.)
  auto planning = [snapshot, policies]() -> kube::Task<PassResult> {
    co_return decide(*snapshot, policies);
  };
  PassResult result =
      co_await boost::asio::co_spawn(planning_, planning(), boost::asio::use_awaitable);
  const auto took = std::chrono::ceil<Duration>(view_.clock().monotonic() - started);

  // Admission looks at what has become of the cluster while we planned.
  std::shared_ptr<Snapshot> fresh = view_.snapshot();
  Duration due = kIdleInterval;
  for (PerPolicy& entry : result.policies) {
    entry.took = took;
    due = std::min(due, entry.policy->spec.interval);
    if (entry.plan.next_wake) due = std::min(due, *entry.plan.next_wake);
    co_await visit(entry, *fresh);
  }
  record_unselected(result, *fresh);
  measure(result, *snapshot, took);
  co_return std::max(due, kRetry);
}

kube::Task<void> PolicyPass::visit(PerPolicy& entry, Snapshot& fresh) {
  const EnergyPolicy& policy = *entry.policy;
  const bool finalized = kube::has_finalizer(policy.meta, kFinalizer);
  const bool enforcing = entry.problems.empty() && acts(policy);

  if (policy.meta.deletion_timestamp) {
    act(entry, entry.release, fresh);
    if (finalized && !entry.holds_anything && entry.release.empty()) {
      auto removed = co_await kube::remove_finalizer(client_, kube::resources::energy_policies(),
                                                     policy.meta, kFinalizer, kFieldManager);
      if (!removed) {
        log::warn("finalizer not removed",
                  {{"policy", policy.meta.name}, {"error", removed.error()}});
      }
      co_return;
    }
    co_await write_status(entry, fresh, false);
    co_return;
  }
  if (enforcing && !finalized) {
    // Before the first side effect; the pass after its event acts.
    auto added = co_await kube::add_finalizer(client_, kube::resources::energy_policies(),
                                              policy.meta, kFinalizer, kFieldManager);
    if (!added && added.error().code != ErrorCode::conflict) {
      log::warn("finalizer not added", {{"policy", policy.meta.name}, {"error", added.error()}});
    }
    co_return;
  }
  // What is no longer ours goes first; nothing new is begun on those nodes in this pass.
  act(entry, entry.release, fresh);
  if (enforcing) act(entry, entry.plan.actions, fresh);
  record_verdicts(entry, fresh, enforcing);
  warn_of_overrides(entry, fresh);
  co_await write_status(entry, fresh, enforcing);
}

void PolicyPass::act(PerPolicy& entry, const std::vector<Action>& actions, Snapshot& fresh) {
  const EnergyPolicy& policy = *entry.policy;
  const auto spec = std::shared_ptr<const api::EnergyPolicySpec>(entry.policy, &policy.spec);
  for (const Action& action : actions) {
    const auto found = fresh.nodes.find(action.node);
    if (found == fresh.nodes.end()) continue;
    NodeView& node = found->second;
    const auto refusal =
        planner::admit(fresh, action, policy.meta.name, policy.spec, entry.selected);
    if (refusal) {
      entry.plan.verdicts[action.node] = *refusal;
      continue;
    }
    Intent intent;
    intent.policy = policy.meta.name;
    intent.spec = spec;
    intent.decision =
        decision_of(policy.meta.name, desired_of(action.what), action.reason, action.message);
    intent.memory_before = node.memory();
    const auto memory = entry.plan.memory.find(action.node);
    if (memory != entry.plan.memory.end()) intent.memory = memory->second;
    intent.action = action;
    // Later admissions of this pass must count this one as in flight.
    auto begun = std::make_shared<api::NodePower>();
    if (node.machine != nullptr) *begun = *node.machine;
    begun->status =
        planner::begin(node, action, policy.meta.name, policy.spec, "admitted", fresh.now);
    node.machine = std::move(begun);
    submit(action.node, std::move(intent));
  }
}

void PolicyPass::record_verdicts(const PerPolicy& entry, const Snapshot& fresh, bool enforcing) {
  const EnergyPolicy& policy = *entry.policy;
  const auto spec = std::shared_ptr<const api::EnergyPolicySpec>(entry.policy, &policy.spec);
  const auto put = [&](const std::string& name, api::NodeDecision decision) {
    const auto found = fresh.nodes.find(name);
    if (found == fresh.nodes.end()) return;
    const NodeView& node = found->second;
    if (!node.operation().id.empty()) return;  // the decision that began it stands
    Intent intent;
    intent.policy = policy.meta.name;
    intent.spec = spec;
    intent.decision = std::move(decision);
    intent.memory_before = node.memory();
    const auto memory = entry.plan.memory.find(name);
    if (memory != entry.plan.memory.end()) intent.memory = memory->second;
    const api::NodeDecision standing =
        node.machine == nullptr ? api::NodeDecision{} : node.machine->status.decision;
    const bool same = says_the_same(standing, intent.decision);
    if (node.machine != nullptr && same && !intent.memory) return;
    submit(name, std::move(intent));
  };
  for (const auto& [name, verdict] : entry.plan.verdicts) {
    put(name, decision_of(policy.meta.name, api::Desired::None, verdict.reason, verdict.message));
  }
  if (enforcing) return;
  for (const Action& action : entry.plan.actions) {
    put(action.node, decision_of(policy.meta.name, desired_of(action.what), Reason::RecommendOnly,
                                 fmt::format("would act ({}): {}", api::to_string(action.reason),
                                             action.message)));
  }
}

void PolicyPass::record_unselected(const PassResult& result, const Snapshot& fresh) {
  if (!fresh.sync.synced) return;
  std::set<std::string> selected;
  for (const PerPolicy& entry : result.policies) {
    selected.insert(entry.selected.begin(), entry.selected.end());
  }
  const auto wanted =
      decision_of("", api::Desired::None, Reason::NotSelected, "no policy selects the node");
  for (const auto& [name, node] : fresh.nodes) {
    if (node.machine == nullptr || selected.count(name) > 0) continue;
    // What a policy still holds there, an invalid one too, is said by its release.
    if (!node.operation().id.empty() || !node.memory().owner_policy.empty()) continue;
    if (says_the_same(node.machine->status.decision, wanted)) continue;
    Intent intent;
    intent.spec = std::make_shared<const api::EnergyPolicySpec>();
    intent.decision = wanted;
    intent.memory_before = node.memory();
    submit(name, std::move(intent));
  }
}

void PolicyPass::warn_of_overrides(const PerPolicy& entry, const Snapshot& fresh) {
  for (const std::string& name : entry.selected) {
    const auto found = fresh.nodes.find(name);
    if (found == fresh.nodes.end()) continue;
    const NodeView& node = found->second;
    using Kind = planner::Override::Kind;
    if (planner::override_of(node, fresh.now).kind != Kind::not_understood) {
      warned_overrides_.erase(name);
      continue;
    }
    const std::string value(node.node->meta.annotations.get(planner::names::kOverride));
    std::string& told = warned_overrides_[name];
    if (told == value) continue;
    told = value;
    kube::EventNote event;
    event.regarding = {"v1", "Node", "", name, name};
    event.warning = true;
    event.reason = api::to_string(Reason::Manual);
    event.action = "Override";
    event.note = planner::override_problem(value) + ": the node is left as it is";
    events_.record(std::move(event));
  }
}

void PolicyPass::tell_halted(const EnergyPolicy& policy, const api::EnergyPolicyStatus& next) {
  const auto halted = [](const api::EnergyPolicyStatus& status) {
    const api::Condition* condition = api::find_condition(status.conditions, "Halted");
    return condition != nullptr && condition->status == "True" ? condition : nullptr;
  };
  const api::Condition* before = halted(policy.status);
  const api::Condition* now = halted(next);
  if ((before == nullptr) == (now == nullptr)) return;
  kube::EventNote event;
  event.regarding = {"kwatt.dev/v1alpha1", "EnergyPolicy", "", policy.meta.name, policy.meta.uid};
  event.warning = now != nullptr;
  event.reason = now != nullptr ? now->reason : before->reason;
  event.action = now != nullptr ? "Halt" : "Resume";
  event.note =
      now != nullptr ? now->message : "enough nodes are Ready again; all timers start anew";
  events_.record(std::move(event));
}

void PolicyPass::submit(const std::string& node, Intent intent) {
  machines_.submit(node, std::move(intent));
  enqueue_(node);
}

kube::Task<void> PolicyPass::write_status(PerPolicy& entry, const Snapshot& snapshot,
                                          bool enforcing) {
  const EnergyPolicy& policy = *entry.policy;
  PolicyOutcome outcome;
  outcome.problems = entry.problems;
  outcome.enforcing = enforcing;
  outcome.releasing = !enforcing && !policy.spec.suspend && entry.holds_anything;
  outcome.selected = entry.selected;
  outcome.lost = entry.lost;
  outcome.plan = std::move(entry.plan);
  outcome.migrations =
      migrations_.list(policy.meta.name, policy.status.migrations, api::kStatusListLimit);
  outcome.last_action = last_actions_[policy.meta.name];
  outcome.pass_duration = entry.took;
  outcome.carbon_grams_per_kwh = options_.carbon_grams_per_kwh;
  const auto account = accounts_.find(policy.meta.uid);
  if (account != accounts_.end()) outcome.account = account->second;
  outcome.telemetry_problems = options_.telemetry_problems();
  const api::CarbonSpec& carbon = policy.spec.carbon;
  if (!carbon.source.empty() && options_.carbon_state) {
    outcome.carbon = options_.carbon_state(carbon, carbon_zones(policy, snapshot, entry.selected));
  }
  EnergyPolicy next = policy;
  next.status = policy_status(policy, snapshot, outcome);
  accounts_[policy.meta.uid] = account_of(next.status);
  meter_.observe(snapshot, policy.meta.name, entry.selected,
                 std::max<Duration>(std::chrono::minutes{1}, 2 * policy.spec.interval));
  entry.plan = std::move(outcome.plan);
  if (!worth_writing(policy.status, next.status, kStatusRefresh)) co_return;
  auto answer = co_await client_.patch(kube::resources::energy_policies(), {"", policy.meta.name},
                                       kube::Client::PatchType::apply, kStatusManager, "status",
                                       api::apply_status(next.meta, next.status));
  if (!answer) {
    if (answer.error().code != ErrorCode::conflict && answer.error().code != ErrorCode::not_found) {
      log::warn("policy status not written",
                {{"policy", policy.meta.name}, {"error", answer.error()}});
    }
    co_return;
  }
  tell_halted(policy, next.status);
  auto now = std::make_shared<EnergyPolicy>();
  if (api::decode(*answer, *now)) {
    policy_writes_.wrote(policy.meta.name, policy.meta.resource_version, std::move(now));
  }
}

void PolicyPass::measure(const PassResult& result, const Snapshot& snapshot, Duration took) {
  metrics_.observe("kwatt_pass_duration_seconds", "Time from snapshot to plan.", {},
                   static_cast<double>(took.count()) / 1000.0,
                   {0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5, 20});
  metrics_.set("kwatt_snapshot_nodes", "Nodes in the last snapshot.", {},
               static_cast<double>(snapshot.nodes.size()));
  metrics_.set("kwatt_last_pass_timestamp_seconds", "When the last pass ended, Unix time.", {},
               static_cast<double>(view_.now().time_since_epoch().count()) / 1000.0);
  for (const PerPolicy& entry : result.policies) {
    const std::string& name = entry.policy->meta.name;
    metrics_.set("kwatt_policy_selected_nodes", "Nodes a policy has.", {{"policy", name}},
                 static_cast<double>(entry.selected.size()));
    metrics_.set("kwatt_policy_accepted", "1 if the policy is valid.", {{"policy", name}},
                 entry.problems.empty() ? 1 : 0);
    metrics_.set("kwatt_halted", "1 while a guard stops what takes capacity away.",
                 {{"policy", name}}, entry.plan.halted ? 1 : 0);
  }
}

}  // namespace kwatt::reconcilers
