// One pass over one policy: gates, then the levers in their fixed order, then a verdict for every
// node that is left as it is.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planner/cap_budget.hpp"
#include "planner/guards.hpp"
#include "planner/levers.hpp"
#include "planner/pending.hpp"
#include "planner/propose.hpp"
#include "planner/recall.hpp"
#include "planner/steps_common.hpp"
#include "planner/verdicts.hpp"

namespace kwatt::planner {
namespace {

const std::vector<api::PodMove>& moves_of(const What& what) {
  static const std::vector<api::PodMove> none;
  if (const auto* off = std::get_if<PowerOff>(&what)) return off->moves;
  if (const auto* migrate = std::get_if<Migrate>(&what)) return migrate->moves;
  return none;
}

class Planning {
 public:
  Planning(const Snapshot& snapshot, const std::string& policy_name,
           const api::EnergyPolicySpec& spec, const api::PolicyMemory& memory,
           const std::vector<NodeName>& selected, Reserved& reserved)
      : snapshot_(snapshot),
        spec_(spec),
        memory_(memory),
        selected_(selected),
        reserved_(reserved),
        what_if_(snapshot, reserved),
        pass_{snapshot, policy_name, spec, selected, what_if_},
        budgets_(snapshot, spec.disruption, selected),
        floor_(snapshot, spec.power_off, selected),
        ledger_(snapshot, selected, spec.capping.enabled ? spec.capping.budget_watts : 0) {
    plan_.policy_memory = memory;
    plan_.budgets = budgets_.uses();
  }

  Plan run() {
    if (!snapshot_.sync.synced) {
      return all({Reason::NotSynced, "the cache has not seen everything yet"});
    }
    const Health health = health_of(snapshot_, selected_);
    if (health.all_unready()) {
      halt("no selected node is Ready: nothing is done at all");
      forget_timers();
      stop_drains();
      return all({Reason::NodeNotReady, plan_.halted_message});
    }
    if (spec_.suspend) return suspended();
    if (health.tripped()) halt(too_many_unready(health).message);

    for (const NodeName& name : selected_) skip_if_busy(name);
    pass_.idle_pool = idle_pool(pass_);
    give_capacity();
    cap();
    if (plan_.halted) {
      forget_timers();
      stop({*plan_.halted, plan_.halted_message});
    } else {
      take_capacity();
    }
    change_frequency();
    finish();
    return std::move(plan_);
  }

 private:
  const NodeView* find(const NodeName& name) const {
    const auto found = snapshot_.nodes.find(name);
    return found == snapshot_.nodes.end() ? nullptr : &found->second;
  }

  Plan all(const Verdict& verdict) {
    for (const NodeName& name : selected_) {
      if (taken(name)) continue;
      const NodeView* node = find(name);
      plan_.verdicts[name] = node == nullptr ? verdict : fixed_verdict(*node).value_or(verdict);
    }
    return std::move(plan_);
  }

  // Nothing is changed; but whoever waits for a node that is off shall see which one, and why.
  Plan suspended() {
    api::PolicyMemory unused;
    const Proposal wanted = power_on(pass_, memory_, unused, plan_.pending);
    const Verdict verdict{Reason::Suspended, "the policy is suspended"};
    Plan plan = all(verdict);
    for (const Action& action : wanted.actions) {
      if (action.reason != Reason::PendingPods) continue;
      plan.verdicts[action.node] = {Reason::Suspended,
                                    "off, and the policy is suspended; " + action.message};
    }
    return plan;
  }

  // After a halt nothing counts that was measured before it.
  void forget_timers() {
    plan_.policy_memory.high_since.reset();
    for (const NodeName& name : selected_) {
      const NodeView* node = find(name);
      if (node == nullptr || !node->memory().idle_since) continue;
      plan_.memory.try_emplace(name, node->memory()).first->second.idle_since.reset();
    }
  }

  void skip_if_busy(const NodeName& name) {
    const NodeView* node = find(name);
    if (node == nullptr) {
      say(name, {Reason::NotSynced, "the Node is not in the cache"}, Weight::fixed);
    } else if (auto verdict = fixed_verdict(*node)) {
      say(name, std::move(*verdict), Weight::fixed);
    }
  }

  // ---- one action per node: the first lever wins
  bool taken(const NodeName& name) const { return acted_.count(name) > 0; }

  void accept(Action action) {
    acted_.insert(action.node);
    if (std::holds_alternative<Migrate>(action.what)) leaving_.insert(action.node);
    for (const api::PodMove& move : moves_of(action.what)) {
      receiving_.insert(move.node_name);
      reserve(action.node, move);
    }
    plan_.actions.push_back(std::move(action));
  }

  void reserve(const NodeName& from, const api::PodMove& move) {
    const NodeView* node = find(from);
    if (node == nullptr) return;
    const auto pod = std::find_if(node->pods.begin(), node->pods.end(),
                                  [&](const auto& p) { return p->uid == move.uid; });
    if (pod != node->pods.end()) reserved_[move.node_name].push_back(*pod);
  }

  void say(const NodeName& name, Verdict verdict, Weight weight) {
    chosen_.add(name, std::move(verdict), weight);
  }

  void hear(Proposal& proposal, Lever lever) {
    for (auto& [name, verdict] : proposal.refusals) {
      say(name, verdict, weight_of(lever, verdict.reason));
    }
    if (proposal.next_wake) wake_in(*proposal.next_wake);
  }

  void wake_in(Duration wait) {
    if (wait <= Duration{0}) return;
    plan_.next_wake = plan_.next_wake ? std::min(*plan_.next_wake, wait) : wait;
  }

  // In service again without our doing (somebody pressed the button, or a wake that we had given
  // up came true): our marks must go.
  bool carries_marks(const NodeView& node) const {
    if (!node.operation().id.empty() || node.power_state() != api::PowerState::On || !node.ready) {
      return false;
    }
    const bool cordon = node.node->unschedulable && node.memory().cordoned_by_us;
    return cordon || steps::has_taint(*node.node, names::kCandidateTaint) ||
           steps::has_taint(*node.node, names::kPowerOffTaint);
  }

  void halt(std::string why) {
    plan_.halted = Reason::TooManyUnready;
    plan_.halted_message = std::move(why);
  }

  // No more pods are evicted while a guard holds.
  void stop_drains() {
    for (Action& action : call_off(pass_, {*plan_.halted, plan_.halted_message})) {
      chosen_.drop(action.node);
      accept(std::move(action));
    }
  }

  void give_capacity() {
    if (plan_.halted) stop_drains();
    for (const NodeName& name : selected_) {
      const NodeView* node = find(name);
      if (node == nullptr || chosen_.fixed(name) || !carries_marks(*node)) continue;
      accept(action_on(pass_, *node, PowerOn{}, Reason::Manual,
                       "the machine runs although we switched it off: back into service",
                       Milliwatts{}));
    }
    if (spec_.power_on.enabled) {
      for (Action& action : recall(pass_)) {
        if (taken(action.node)) continue;
        chosen_.drop(action.node);
        accept(std::move(action));
      }
    }
    Proposal proposal = power_on(pass_, memory_, plan_.policy_memory, plan_.pending);
    hear(proposal, Lever::power_on);
    for (Action& action : proposal.actions) {
      if (taken(action.node) || chosen_.fixed(action.node)) continue;
      const NodeView& node = *find(action.node);
      if (!ledger_.raise(node, std::nullopt)) {
        const std::int64_t maximum = cap_facts(node).maximum;
        pass_.power_wanted += watts(maximum);
        say(action.node,
            {Reason::OverBudget, fmt::format("its {} W do not fit budgetWatts {} before others are "
                                             "capped lower",
                                             maximum, spec_.capping.budget_watts)},
            Weight::exceptional);
        continue;
      }
      woken_for_pods_ |= action.reason == Reason::PendingPods;
      accept(std::move(action));
    }
  }

  void cap() {
    Proposal proposal = capping(pass_);
    hear(proposal, Lever::capping);
    for (Action& action : proposal.actions) {
      if (taken(action.node) || chosen_.fixed(action.node)) continue;
      const auto* set = std::get_if<SetCap>(&action.what);
      const bool takes = set == nullptr || lowers(*find(action.node), *set);
      if (takes && plan_.halted) continue;
      // What power_on has been promised is not given away again.
      if (set != nullptr && !takes && !ledger_.raise(*find(action.node), set->watts)) {
        say(action.node, {Reason::OverBudget, "waits until others are lowered"},
            Weight::exceptional);
        continue;
      }
      if (disrupts(action.what) && (!destinations_stay(action) || !within_budget(action))) continue;
      accept(std::move(action));
    }
  }

  static bool lowers(const NodeView& node, const SetCap& set) {
    if (!set.watts) return false;
    const CapFacts facts = cap_facts(node);
    return *set.watts < facts.requested.value_or(facts.maximum);
  }

  bool within_budget(const Action& action) {
    if (auto verdict = budgets_.refuse(action.reason)) {
      say(action.node, std::move(*verdict), Weight::decisive);
      return false;
    }
    budgets_.add();
    return true;
  }

  void take_capacity() {
    Proposal idle = power_off(pass_, plan_.memory);
    hear(idle, Lever::power_off);
    power_off_all(idle.actions);
    if (!spec_.migration.enabled) return;
    Proposal proposal = migrate(pass_);
    hear(proposal, Lever::migrate);
    power_off_all(proposal.actions);
  }

  void power_off_all(std::vector<Action>& actions) {
    for (Action& action : actions) {
      if (taken(action.node) || chosen_.fixed(action.node)) continue;
      const NodeView& node = *find(action.node);
      if (woken_for_pods_) {
        say(action.node, {Reason::PendingPods, "nodes are being woken for pods that wait"},
            Weight::decisive);
        continue;
      }
      if (auto verdict = floor_.refuse(node)) {
        say(action.node, std::move(*verdict), Weight::decisive);
        continue;
      }
      if (receiving_.count(action.node) > 0) {
        say(action.node, {Reason::InUse, "pods are on their way to it"}, Weight::decisive);
        continue;
      }
      if (!destinations_stay(action) || !within_budget(action)) continue;
      floor_.remove(node);
      leaving_.insert(action.node);
      accept(std::move(action));
    }
  }

  // Pods must not be sent to a node that leaves, or sends pods away itself, in the same pass.
  bool destinations_stay(const Action& action) {
    for (const api::PodMove& move : moves_of(action.what)) {
      if (leaving_.count(move.node_name) == 0) continue;
      say(action.node,
          {Reason::NoDestination,
           fmt::format("node {} leaves, or sends pods away, in this pass", move.node_name)},
          Weight::decisive);
      return false;
    }
    return true;
  }

  void stop(const Verdict& verdict) {
    for (const NodeName& name : selected_) {
      const NodeView* node = find(name);
      if (node != nullptr && node->power_state() == api::PowerState::On) {
        say(name, verdict, Weight::decisive);
      }
    }
  }

  void change_frequency() {
    Proposal proposal = dvfs(pass_);
    hear(proposal, Lever::dvfs);
    for (Action& action : proposal.actions) {
      if (taken(action.node) || chosen_.fixed(action.node)) continue;
      const auto* set = std::get_if<SetFrequency>(&action.what);
      // Slower is less capacity.
      if (plan_.halted && (set == nullptr || set->low)) continue;
      if (disrupts(action.what) && (!destinations_stay(action) || !within_budget(action))) continue;
      accept(std::move(action));
    }
  }

  void finish() {
    for (const NodeName& name : selected_) {
      if (taken(name)) continue;
      const NodeView* node = find(name);
      plan_.verdicts[name] =
          chosen_.take(name).value_or(default_verdict(spec_, node == nullptr ? nullptr : node));
    }
    std::erase_if(plan_.memory, [&](const auto& entry) {
      const NodeView* node = find(entry.first);
      return node == nullptr || entry.second == node->memory();
    });
    plan_.budgets = budgets_.uses();
    if (const auto change = budgets_.next_change()) wake_in(*change - snapshot_.now);
  }

  const Snapshot& snapshot_;
  const api::EnergyPolicySpec& spec_;
  const api::PolicyMemory& memory_;
  const std::vector<NodeName>& selected_;
  Reserved& reserved_;
  WhatIf what_if_;
  Pass pass_;
  DisruptionBudgets budgets_;
  AwakeFloor floor_;
  PowerLedger ledger_;
  Plan plan_;
  std::set<NodeName> acted_, leaving_, receiving_;
  Verdicts chosen_;
  bool woken_for_pods_ = false;
};

}  // namespace

Plan plan(const Snapshot& snapshot, const std::string& policy_name,
          const api::EnergyPolicySpec& spec, const api::PolicyMemory& memory,
          const std::vector<NodeName>& selected, Reserved& reserved) {
  return Planning{snapshot, policy_name, spec, memory, selected, reserved}.run();
}

}  // namespace kwatt::planner
