// Random worlds with fixed seeds: no plan breaks the invariants a, b, e and f of the design, and
// what is planned is admitted.
#include <random>

#include <doctest/doctest.h>

#include "planner/cap_budget.hpp"
#include "planner/destinations.hpp"
#include "planner/guards.hpp"
#include "planner/steps.hpp"
#include "test/planner/agent.hpp"

namespace kwatt::test {
namespace {

using planner::Action;
using planner::Migrate;
using planner::NodeView;
using planner::Plan;
using planner::PowerOff;
using planner::PowerOn;
using planner::SetCap;
using planner::SetFrequency;
using planner::Snapshot;

class Chance {
 public:
  explicit Chance(std::uint32_t seed) : random_(seed) {}
  bool one_in(std::int64_t n) { return below(n) == 0; }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

 private:
  std::mt19937_64 random_;
};

void random_node(World& w, Chance& chance, const std::string& name) {
  NodeBuilder& node = with_agent(w.node(name));
  node.cpu(2 + chance.below(15)).memory_gib(8 + chance.below(57));
  if (!chance.one_in(3)) node.zone(std::string(1, static_cast<char>('a' + chance.below(3))));
  const std::int64_t load = chance.below(101);
  if (!chance.one_in(6)) node.utilization(load, chance.one_in(4) ? 0 : 50 + load);
  if (chance.one_in(2)) node.idle_for(minutes{chance.below(60)});
  if (chance.one_in(12)) node.on_for(minutes{chance.below(60)});
  if (chance.one_in(15)) node.annotation("kwatt.dev/exclude", "true");
  if (chance.one_in(15)) node.control_plane();
  if (chance.one_in(20)) node.own_node();
  if (chance.one_in(10)) node.wake_not_verified();
  if (chance.one_in(15)) node.no_driver();
  if (chance.one_in(12)) node.annotation("kwatt.dev/governor", "ondemand");
  if (chance.one_in(6)) slowed(node);
  if (chance.one_in(6)) capped(node, 60 + chance.below(81), !chance.one_in(4));
  if (chance.one_in(8)) node.machine().status.report.available_governors = {"schedutil"};
  if (chance.one_in(10)) {
    node.machine().status.report.cap_min_watts = node.machine().status.report.cap_max_watts = 0;
  }
  if (chance.one_in(5)) {
    node.off(hours{1 + chance.below(3)});
  } else if (chance.one_in(20)) {
    node.not_ready();
  } else if (chance.one_in(12)) {
    using Kind = api::OperationKind;
    const Kind kinds[] = {Kind::PowerOff, Kind::PowerOn, Kind::Migrate, Kind::SetCap,
                          Kind::SetFrequency};
    const char* steps[] = {"Cordon", "Evict", "SoftOff", "Annotate"};
    node.operation(kinds[chance.below(5)], steps[chance.below(4)]);
  } else if (chance.one_in(15)) {
    node.cordoned(chance.one_in(2));
  }
}

void random_pods(World& w, Chance& chance, std::int64_t nodes, std::int64_t pods) {
  for (std::int64_t i = 0; i < pods; ++i) {
    PodBuilder& pod = w.pod("default/p" + std::to_string(i) + "-x");
    pod.cpu_milli(50 + chance.below(900)).memory_mib(64 + chance.below(2000));
    if (!chance.one_in(10)) {
      const std::string on = "n" + std::to_string(chance.below(nodes));
      if (w.node(on).machine().status.power_state == api::PowerState::On) pod.on(on);
    }
    if (chance.one_in(12)) pod.bare();
    if (chance.one_in(12)) pod.daemon();
    if (chance.one_in(20)) pod.local_storage();
    if (chance.one_in(20)) pod.annotation("kwatt.dev/do-not-disrupt", "true");
    if (chance.one_in(15)) pod.label("app", "web").anti_affinity("app", "web");
    if (chance.one_in(25)) pod.terminating();
    if (chance.one_in(30)) pod.phase(api::PodPhase::succeeded);
  }
}

api::EnergyPolicySpec random_policy(Chance& chance, std::int64_t nodes) {
  api::EnergyPolicySpec spec = enforcing();
  spec.power_off.min_awake = chance.below(4);
  spec.power_off.min_awake_per_zone = chance.below(3);
  spec.migration.enabled = chance.one_in(2);
  spec.migration.max_nodes = 1 + chance.below(4);
  spec.migration.min_saving_score = chance.below(60);
  if (chance.one_in(2)) spec.migration.strategy = api::MigrationStrategy::FewestPods;
  spec.dvfs.enabled = !chance.one_in(3);
  spec.dvfs.idle_nodes = chance.below(3);
  spec.dvfs.migration.enabled = chance.one_in(2);
  spec.capping.enabled = !chance.one_in(3);
  spec.capping.migration.enabled = chance.one_in(2);
  if (chance.one_in(2)) spec.capping.budget_watts = nodes * (60 + chance.below(100));
  spec.include_control_plane = chance.one_in(2);
  spec.disruption.budgets[0].nodes =
      chance.one_in(2) ? std::to_string(chance.below(5)) : std::to_string(chance.below(101)) + "%";
  return spec;
}

const std::vector<api::PodMove>* moves_of(const Action& action) {
  if (const auto* off = std::get_if<PowerOff>(&action.what)) return &off->moves;
  if (const auto* migrate = std::get_if<Migrate>(&action.what)) return &migrate->moves;
  return nullptr;
}

void check_every_node_once(const Snapshot& s, const Plan& plan) {
  std::set<std::string> seen;
  for (const Action& action : plan.actions) CHECK(seen.insert(action.node).second);
  for (const auto& [name, verdict] : plan.verdicts) CHECK(seen.insert(name).second);
  CHECK(seen.size() == s.nodes.size());
}

// a: everything that runs on a machine to be switched off has a place to go.
void check_pods_have_places(const Snapshot& s, const Plan& plan) {
  std::set<std::string> leaving;
  std::map<std::string, std::int64_t> arriving;
  for (const Action& action : plan.actions) {
    if (std::holds_alternative<PowerOff>(action.what)) leaving.insert(action.node);
  }
  for (const Action& action : plan.actions) {
    const auto* moves = moves_of(action);
    if (moves == nullptr) continue;
    const NodeView& node = s.nodes.at(action.node);
    std::set<std::string> moved;
    for (const api::PodMove& move : *moves) {
      moved.insert(move.uid);
      CHECK(move.node_name != action.node);
      CHECK(leaving.count(move.node_name) == 0);
      CHECK(planner::tier_of(s.nodes.at(move.node_name), s.now) != planner::Tier::none);
    }
    for (const auto& pod : node.pods) {
      if (moved.count(pod->uid) > 0) {
        CHECK(pod->workload());
        arriving[std::find_if(moves->begin(), moves->end(), [&](const auto& m) {
                   return m.uid == pod->uid;
                 })->node_name] += pod->spec->requests.cpu.count();
      } else if (std::holds_alternative<PowerOff>(action.what)) {
        const bool stays = pod->workload() && !pod->deletion_timestamp;
        CHECK_FALSE(stays);
      }
    }
  }
  for (const auto& [name, cpu] : arriving) {
    std::int64_t used = cpu;
    for (const auto& pod : s.nodes.at(name).pods) {
      if (!pod->terminal()) used += pod->spec->requests.cpu.count();
    }
    CHECK(used <= s.nodes.at(name).node->allocatable.cpu.count());
  }
}

// b: enough stay awake, and no budget is exceeded.
void check_floors_and_budgets(const Snapshot& s, const api::EnergyPolicySpec& spec,
                              const Plan& plan) {
  std::int64_t awake = 0, going = 0, disrupted = 0, added = 0;
  std::map<std::string, std::int64_t> zone_awake, zone_going;
  for (const auto& [name, node] : s.nodes) {
    if (planner::disrupts(node.operation())) ++disrupted;
    if (!planner::counts_as_awake(node)) continue;
    ++awake;
    ++zone_awake[node.zone];
  }
  for (const Action& action : plan.actions) {
    if (planner::disrupts(action.what)) ++added;
    const NodeView& node = s.nodes.at(action.node);
    if (!std::holds_alternative<PowerOff>(action.what) || !planner::counts_as_awake(node)) continue;
    ++going;
    ++zone_going[node.zone];
  }
  if (going > 0) CHECK(awake - going >= spec.power_off.min_awake);
  for (const auto& [zone, count] : zone_going) {
    if (!zone.empty()) CHECK(zone_awake[zone] - count >= spec.power_off.min_awake_per_zone);
  }
  const auto allowed = planner::scaled_amount(spec.disruption.budgets[0].nodes,
                                              static_cast<std::int64_t>(s.nodes.size()));
  if (added > 0) CHECK(disrupted + added <= *allowed);
}

// b, second half: caps in force plus the maxima of uncapped nodes never exceed the budget because
// of us, whichever of the actions takes effect first.
void check_power_budget(const Snapshot& s, const api::EnergyPolicySpec& spec, const Plan& plan) {
  if (!spec.capping.enabled || spec.capping.budget_watts == 0) return;
  std::int64_t before = 0, worst = 0;
  std::map<std::string, std::int64_t> bound;
  for (const auto& [name, node] : s.nodes) {
    bound[name] = planner::cap_facts(node).bound;
    before += bound[name];
  }
  for (const Action& action : plan.actions) {
    const planner::CapFacts facts = planner::cap_facts(s.nodes.at(action.node));
    std::int64_t after = bound[action.node];
    if (const auto* cap = std::get_if<SetCap>(&action.what)) {
      after = cap->watts.value_or(facts.maximum);
    } else if (std::holds_alternative<PowerOn>(action.what) && !s.nodes.at(action.node).ready) {
      after = facts.maximum;
    }
    bound[action.node] = std::max(bound[action.node], after);
  }
  for (const auto& [name, watts] : bound) worst += watts;
  CHECK(worst <= std::max(before, spec.capping.budget_watts));
}

// e: nothing is asked of the hardware that it does not offer. f: who is never touched.
void check_ranges_and_protection(const Snapshot& s, const api::EnergyPolicySpec& spec,
                                 const Plan& plan) {
  for (const Action& action : plan.actions) {
    const NodeView& node = s.nodes.at(action.node);
    CHECK(node.node->meta.annotations.get("kwatt.dev/exclude") != "true");
    const bool protected_node = node.control_plane || node.own_node;
    if (planner::disrupts(action.what)) CHECK_FALSE(protected_node);
    if (protected_node && !spec.include_control_plane) {
      CHECK(std::holds_alternative<PowerOn>(action.what));
    }
    const api::AgentReport& report = node.machine->status.report;
    if (const auto* cap = std::get_if<SetCap>(&action.what); cap != nullptr && cap->watts) {
      CHECK(*cap->watts >= report.cap_min_watts);
      CHECK(*cap->watts <= report.cap_max_watts);
    }
    if (const auto* set = std::get_if<SetFrequency>(&action.what)) {
      const auto& offered = report.available_governors;
      // None at all: what a lever that is off had set is given back.
      if (set->level == api::FrequencyLevel{}) continue;
      CHECK(std::find(offered.begin(), offered.end(), set->level.governor) != offered.end());
      CHECK(node.node->meta.annotations.get("kwatt.dev/governor") != "ondemand");
    }
  }
}

// Each action, begun after the ones before it, is still right.
void check_admitted(Snapshot s, const api::EnergyPolicySpec& spec, const Plan& plan) {
  for (const Action& action : plan.actions) {
    const auto refusal = planner::admit(s, action, "default", spec, all_nodes(s));
    if (refusal) {
      CAPTURE(action.message);
      CAPTURE(refusal->message);
      FAIL_CHECK("not admitted: " << action.node);
    }
    NodeView& node = s.nodes.at(action.node);
    auto begun = std::make_shared<api::NodePower>(*node.machine);
    begun->status = planner::begin(node, action, "default", spec, "op", s.now);
    node.machine = begun;
  }
}

TEST_CASE("invariants: 600 random worlds, no plan breaks any") {
  std::map<std::string, int> kinds;
  for (std::uint32_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    Chance chance{seed};
    World w;
    const std::int64_t nodes = 2 + chance.below(14);
    for (std::int64_t i = 0; i < nodes; ++i) random_node(w, chance, "n" + std::to_string(i));
    random_pods(w, chance, nodes, chance.below(40));
    if (chance.one_in(4)) w.budget("default/web", "app", "web", chance.below(2));
    const api::EnergyPolicySpec spec = random_policy(chance, nodes);
    const Snapshot s = w.snapshot();
    planner::Reserved reserved;
    const Plan plan = planner::plan(s, "default", spec, {}, all_nodes(s), reserved);
    check_every_node_once(s, plan);
    check_pods_have_places(s, plan);
    check_floors_and_budgets(s, spec, plan);
    check_power_budget(s, spec, plan);
    check_ranges_and_protection(s, spec, plan);
    check_admitted(s, spec, plan);
    for (const Action& action : plan.actions) {
      kinds[std::string(1, static_cast<char>('0' + action.what.index()))]++;
    }
  }
  // PowerOn, PowerOff, Migrate, SetFrequency and SetCap were all among them, and often.
  for (const char* kind : {"0", "1", "2", "3", "4"}) {
    CAPTURE(kind);
    CHECK(kinds[kind] > 20);
  }
}

// The executor's side of the power budget: passes and confirmations in random order.
TEST_CASE("invariants: over many passes a budget that is kept once is kept for good") {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Chance chance{seed};
    World w;
    const std::int64_t nodes = 2 + chance.below(6);
    for (std::int64_t i = 0; i < nodes; ++i) with_agent(w.node("n" + std::to_string(i)));
    api::EnergyPolicySpec spec = enforcing();
    spec.power_off.enabled = spec.power_on.enabled = false;
    spec.capping.enabled = true;
    spec.capping.budget_watts = nodes * 100;
    std::map<std::string, std::int64_t> asked;  // by us, not yet effective; 0: release
    bool kept = false;
    for (int pass = 0; pass < 60; ++pass) {
      for (std::int64_t i = 0; i < nodes; ++i) {
        const std::int64_t load = chance.below(101);
        w.node("n" + std::to_string(i)).utilization(load, 50 + load, minutes{2});
      }
      const Plan plan = plan_of(w, spec);
      for (const Action& action : plan.actions) {
        if (const auto* cap = std::get_if<SetCap>(&action.what)) {
          asked[action.node] = cap->watts.value_or(0);
          w.node(action.node).operation(api::OperationKind::SetCap, "Annotate");
          w.node(action.node).machine().status.operation.request.power_cap_watts = cap->watts;
        }
      }
      std::int64_t in_force = 0;
      for (std::int64_t i = 0; i < nodes; ++i) {
        NodeBuilder& node = w.node("n" + std::to_string(i));
        const auto request = asked.find(node.node().meta.name);
        if (request != asked.end() && !chance.one_in(3)) {  // else the agent is slow
          if (request->second > 0) {
            budgeted(node, request->second);
          } else {
            node.node().meta.annotations = {};
            node.machine().status.report.effective_cap_watts = 0;
          }
          node.machine().status.operation = {};
          asked.erase(request);
        }
        const std::int64_t cap = node.machine().status.report.effective_cap_watts;
        in_force += cap > 0 ? cap : 150;
      }
      kept = kept || in_force <= spec.capping.budget_watts;
      if (kept) CHECK(in_force <= spec.capping.budget_watts);
    }
    CHECK(kept);
  }
}

}  // namespace
}  // namespace kwatt::test
