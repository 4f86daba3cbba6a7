#include <map>
#include <tuple>

#include <doctest/doctest.h>

#include "cli/reasons.hpp"
#include "test/cli/samples.hpp"

namespace kwatt::cli {
namespace {

using api::OperationKind;
using api::PowerState;
using api::Reason;

// As many of the fields that a sentence may hold as one node can have.
NodeFacts facts_of_everything(const std::string& reason) {
  NodeFacts facts = facts_of(machine("n1", PowerState::On, reason));
  facts.pods = {pod("web-0", "n1"), pod("web-1", "n1"), pod("web-2", "n1")};
  facts.pending = 4;

  api::PowerModelSpec& model = facts.machine->spec.model;
  model.max_milliwatts = 406'000;
  model.shutdown_seconds = 30;
  model.boot_seconds = 120;
  model.boot_joules = 20'000;

  api::NodePowerStatus& status = facts.machine->status;
  status.memory.idle_since = ago(minutes{4});
  status.memory.last_on = ago(minutes{12});
  status.memory.last_off = ago(hours{3});
  status.memory.cycles_day = "2026-11-21";
  status.memory.cycles_today = 6;
  status.memory.cool_down_until = kNow + minutes{2};
  status.memory.failure_count = 2;
  status.memory.owner_policy = "other";
  status.report.time = ago(seconds{40});
  status.report.cpu_utilization_percent = 7;
  status.report.hardware_min_mhz = 800;
  status.report.hardware_max_mhz = 3200;
  status.report.cap_min_watts = 60;
  status.report.cap_max_watts = 165;
  status.report.available_governors = {"performance", "powersave"};
  status.operation.id = "x";
  status.operation.kind = OperationKind::PowerOff;
  status.operation.step = "SoftOff";
  status.operation.step_started_at = ago(seconds{10});

  api::Node& node = *facts.node;
  node.unschedulable = true;
  node.taints = {{"maintenance", "", "NoSchedule", std::nullopt},
                 {"kwatt.dev/candidate", "", "PreferNoSchedule", std::nullopt}};
  node.conditions[0].status = "False";
  node.conditions[0].last_transition_time = ago(minutes{6});
  node.meta.annotations.set("kwatt.dev/override", "on,until=2026-11-21T17:00:00Z");

  api::EnergyPolicy& policy = *facts.policy;
  policy.spec.migration.enabled = true;
  policy.spec.dvfs.enabled = true;
  policy.spec.dvfs.migration.enabled = true;
  policy.spec.capping.enabled = true;
  policy.spec.capping.budget_watts = 5000;
  policy.status.nodes.unready = 2;
  policy.status.budgets = {{"night", 0, 0, true, kNow + hours{3}}};
  return facts;
}

TEST_SUITE("cli") {
  TEST_CASE("every reason is explained without a gap, with and without the objects around") {
    REQUIRE(reason_texts().size() == static_cast<std::size_t>(Reason::Conflict) + 1);
    for (const ReasonText& text : reason_texts()) {
      const std::string reason(api::to_string(text.reason));
      CAPTURE(reason);
      NodeFacts facts = facts_of(machine("n1", PowerState::On, reason));
      NodeFacts bare;
      bare.name = "n1";
      bare.machine = facts.machine;
      for (const NodeFacts& one : {facts, bare}) {
        const Explanation explanation = explain_node(one, kNow);
        const std::string whole = explanation.sentence + explanation.change;
        CHECK(explanation.reason == reason);
        CHECK(whole.find("(" + reason + ")") != std::string::npos);
        CHECK(whole.find_first_of("{}") == std::string::npos);
        CHECK(whole.find("an unknown value") == std::string::npos);
        CHECK_FALSE(explanation.change.empty());
      }
    }
  }

  TEST_CASE("every reason is a sentence, with the numbers that the objects hold") {
    const std::map<Reason, std::string> because = {
        {Reason::InUse, "3 workload pods run on it"},
        {Reason::Idle, "no workload pod had run on it for 10 min"},
        {Reason::IdleWait, "no workload pod runs on it, but it has been idle only for 4 min"},
        {Reason::LowUtilization,
         "little of it is used: 7 % of its CPUs were busy 40 s ago; below 50 % it is emptied; "
         "below 30 % it is slowed down; below 70 % of its maximum power its cap is released"},
        {Reason::PendingPods, "4 pods are waiting for room"},
        {Reason::HighLoad,
         "the load is high: 7 % of its CPUs were busy 40 s ago; nodes are woken when those that "
         "are on are above 81 % for 5 min; above 60 % it is sped up; above 80 % pods are moved "
         "away"},
        {Reason::PowerHigh,
         "it draws 120 W, more than 90 % of its maximum of 406 W, or than its share of the 5000 W "
         "of policy default"},
        {Reason::Headroom, "less than 10 % of CPU or 10 % of memory would be free without it"},
        {Reason::Scheduled, "kube-scheduler has chosen it for a pod"},
        {Reason::Manual, "a person asked for it: held on until 2026-11-21T17:00:00Z (in 2 h)"},
        {Reason::Carbon, "of the carbon intensity of the electricity"},
        {Reason::OverBudget, "the power budget of 5000 W is used up (its nodes draw 240 W)"},
        {Reason::NotSelected, "policy default does not select it any more"},
        {Reason::Excluded, "it is annotated kwatt.dev/exclude"},
        {Reason::ControlPlane, "it is a control-plane node, or the controller runs on it"},
        {Reason::MinAwake, "without it fewer than 1 node (1 per zone) would be awake"},
        {Reason::MinOnTime, "it has been on for 12 min, less than the 30 min it must be on"},
        {Reason::MinOffTime, "it has been off for 3 h, less than the 10 min it must be off"},
        {Reason::CycleLimit, "it was switched off 6 times today, and 6 times a day are allowed"},
        {Reason::CoolDown, "it is left alone until 2026-11-21T15:02:00Z after the last change"},
        {Reason::RateLimited,
         "policy default changes no more nodes at a time (60 off and 300 on a minute, 1 emptied at "
         "once)"},
        {Reason::BudgetExhausted,
         "a disruption budget of policy default allows no further node now (night: 0 of 0 used "
         "until 2026-11-21T18:00:00Z)"},
        {Reason::Window,
         "the disruption budget in force allows nothing at this time of day (night: 0 of 0 used "
         "until 2026-11-21T18:00:00Z)"},
        {Reason::InProgress, "an operation on it is under way: power-off at step SoftOff for 10 s"},
        {Reason::PodNotMovable, "one of the 3 workload pods on it would not be replaced elsewhere"},
        {Reason::NoDestination, "one of the 3 workload pods on it fits on no other node"},
        {Reason::PDBBlocked,
         "a PodDisruptionBudget allows no disruption of one of the 3 workload pods on it now"},
        {Reason::DoNotDisrupt,
         "it, or one of the 3 workload pods on it, is annotated not to be disrupted"},
        {Reason::LocalStorage,
         "one of the 3 workload pods on it has local storage that would be lost"},
        {Reason::NotWorthIt,
         "being off would save less than shutdown and boot cost (shutdown 30 s, boot 2 min, 20000 "
         "J, moving pods has to score 50)"},
        {Reason::WakeNotVerified,
         "it has not been proved yet that its machine can be woken (wakeTest: Auto)"},
        {Reason::StaleTelemetry,
         "its newest sample is too old to be trusted (its agent reported 40 s ago)"},
        {Reason::NotSynced, "the controller does not know the whole cluster yet"},
        {Reason::TooManyUnready, "so many nodes are unready (2 of 3) that something else is wrong"},
        {Reason::NodeNotReady, "its Node is not Ready, now for 6 min"},
        {Reason::ForeignOwner,
         "somebody else holds it (it is cordoned, it has the taint maintenance)"},
        {Reason::DrainTimeout, "it could not be emptied in 10 min"},
        {Reason::NoDriver,
         "the controller does not understand the address lab+http://127.0.0.1:1/x, or may not use "
         "it (--bmc-allow)"},
        {Reason::BMCError,
         "its management controller did not do what was asked (2 attempts in a row failed)"},
        {Reason::WakeFailed, "it did not come up within 15 min (2 attempts in a row failed)"},
        {Reason::OutOfRange,
         "its hardware does not offer the setting (800 to 3200 MHz, caps of 60 to 165 W, governors "
         "performance powersave)"},
        {Reason::AgentStale,
         "no agent reports from it, or has done what was asked (its agent reported 40 s ago)"},
        {Reason::LeverDisabled, "policy default does not use the lever that would change it"},
        {Reason::Suspended, "policy default is suspended"},
        {Reason::RecommendOnly, "policy default only recommends"},
        {Reason::PolicyDeleted, "policy default is being deleted and gives back what it held"},
        {Reason::Conflict, "policy other has it"},
    };
    CHECK(because.size() == reason_texts().size());
    for (const auto& [reason, text] : because) {
      const std::string word(api::to_string(reason));
      CAPTURE(word);
      CHECK(explain_node(facts_of_everything(word), kNow).sentence ==
            "node n1 is on because " + text + " (" + word + "), for 5 min");
    }
  }

  TEST_CASE("a node that no policy selects, one without a driver, one without numbers") {
    const auto because = [](const std::string& reason, const auto& arrange) {
      NodeFacts facts = facts_of(machine("n1", PowerState::On, reason));
      arrange(facts);
      const std::string sentence = explain_node(facts, kNow).sentence;
      return sentence.substr(std::string("node n1 is on because ").size());
    };
    CHECK(because("NotSelected", [](NodeFacts& f) {
            f.machine->status.decision.policy.clear();
            f.policy.reset();
          }) == "no policy selects it (NotSelected), for 5 min");
    CHECK(because("NoDriver", [](NodeFacts& f) { f.machine->spec.bmc.address.clear(); }) ==
          "its NodePower names no way to switch it on (NoDriver), for 5 min");
    const auto nothing = [](NodeFacts&) {};
    CHECK(because("PendingPods", nothing) == "pods are waiting for room (PendingPods), for 5 min");
    CHECK(because("CoolDown", nothing) ==
          "it is left alone for a while after the last change (CoolDown), for 5 min");
    CHECK(because("LocalStorage", nothing) ==
          "a pod on it has local storage that would be lost (LocalStorage), for 5 min");
    CHECK(because("Conflict", nothing) == "another policy has it (Conflict), for 5 min");
  }

  TEST_CASE("a node in use: pods, timers, the past, the machine, the events") {
    NodeFacts facts = facts_of(machine("n1", PowerState::On, "InUse"));
    api::NodePowerStatus& status = facts.machine->status;
    status.decision.message = "shop/web-0 and 2 more run on it";
    status.memory.last_off = ago(hours{2});
    status.memory.last_on = ago(minutes{10});
    status.memory.cycles_day = "2026-11-21";
    status.memory.cycles_today = 2;
    status.memory.wake_verified_at = ago(minutes{10});
    status.power.source = api::PowerBasis::Measured;
    status.power.meter = "rapl";
    status.report.governor = "powersave";
    status.report.max_mhz = 3200;
    facts.pods = {pod("web-0", "n1"), pod("web-1", "n1"), pod("web-2", "n1")};
    api::Pod ended = pod("job", "n1");
    ended.phase = api::PodPhase::succeeded;
    facts.pods.push_back(ended);
    EventView event;
    event.type = "Normal";
    event.reason = "PendingPods";
    event.action = "PowerOn";
    event.note = "awake";
    event.event_time = ago(minutes{10});
    facts.events = {event};
    CHECK(text_of(explain_node(facts, kNow), kNow) ==
          "node n1 is on because 3 workload pods run on it (InUse), for 5 min.\n"
          "  The controller says: shop/web-0 and 2 more run on it.\n"
          "  It is considered when no workload pod has run on it for 10 min; not before "
          "2026-11-21T15:20:00Z (in 20 min).\n"
          "  It was last switched off 2 h ago and last woken 10 min ago; 2 of at most 6 power "
          "cycles today.\n"
          "  That it can be woken was proved 10 min ago.\n"
          "  It draws 120 W (measured by rapl); governor powersave, at most 3200 MHz.\n"
          "\n"
          "LAST SEEN    TYPE     REASON        ACTION    COUNT   NOTE\n"
          "10 min ago   Normal   PendingPods   PowerOn   1       awake\n");
  }

  TEST_CASE("the sentence, and the earliest time of a change, by what stands in the way") {
    struct Given {
      std::string name;
      PowerState state;
      std::string reason;
      void (*arrange)(NodeFacts&);
      std::string sentence;
      std::string earliest;  // "": no timer says
    };
    const Given cases[] = {
        {"idle for a while", PowerState::On, "IdleWait",
         [](NodeFacts& f) { f.machine->status.memory.idle_since = ago(minutes{4}); },
         "node n1 is on because no workload pod runs on it, but it has been idle only for 4 min "
         "(IdleWait), for 5 min",
         "2026-11-21T15:06:00Z"},
        {"the longest timer counts", PowerState::On, "MinOnTime",
         [](NodeFacts& f) {
           f.machine->status.memory.idle_since = ago(minutes{9});
           f.machine->status.memory.last_on = ago(minutes{12});
         },
         "node n1 is on because it has been on for 12 min, less than the 30 min it must be on "
         "(MinOnTime), for 5 min",
         "2026-11-21T15:18:00Z"},
        {"held by a person until a time", PowerState::On, "Manual",
         [](NodeFacts& f) {
           f.node->meta.annotations.set("kwatt.dev/override", "on,until=2026-11-21T17:00:00Z");
         },
         "node n1 is on because a person asked for it: held on until 2026-11-21T17:00:00Z (in 2 "
         "h) (Manual), for 5 min",
         "2026-11-21T17:00:00Z"},
        {"held by a person for ever", PowerState::On, "Manual",
         [](NodeFacts& f) { f.node->meta.annotations.set("kwatt.dev/override", "on"); },
         "node n1 is on because a person asked for it: held on until it is released (Manual), for "
         "5 min",
         ""},
        {"no more cycles today", PowerState::On, "CycleLimit",
         [](NodeFacts& f) {
           f.machine->status.memory.cycles_day = "2026-11-21";
           f.machine->status.memory.cycles_today = 6;
         },
         "node n1 is on because it was switched off 6 times today, and 6 times a day are allowed "
         "(CycleLimit), for 5 min",
         "2026-11-22T00:00:00Z"},
        {"off", PowerState::Off, "Idle",
         [](NodeFacts& f) { f.machine->status.memory.last_off = ago(minutes{3}); },
         "node n1 is off because no workload pod had run on it for 10 min (Idle), for 5 min",
         "2026-11-21T15:07:00Z"},
        {"a failed wake is tried again", PowerState::WakeFailed, "WakeFailed",
         [](NodeFacts& f) {
           f.machine->status.memory.failure_count = 2;
           f.machine->status.memory.next_attempt = kNow + minutes{2};
         },
         "node n1 is down after a wake that failed because it did not come up within 15 min (2 "
         "attempts in a row failed) (WakeFailed), for 5 min",
         "2026-11-21T15:02:00Z"},
        {"a window", PowerState::On, "Window",
         [](NodeFacts& f) {
           f.policy->status.budgets = {{"night", 0, 0, true, kNow + hours{3}}};
         },
         "node n1 is on because the disruption budget in force allows nothing at this time of day "
         "(night: 0 of 0 used until 2026-11-21T18:00:00Z) (Window), for 5 min",
         "2026-11-21T18:00:00Z"},
        {"a policy that only recommends promises nothing", PowerState::On, "RecommendOnly",
         [](NodeFacts& f) { f.policy->spec.mode = api::Mode::Recommend; },
         "node n1 is on because policy default only recommends (RecommendOnly), for 5 min", ""},
        {"under way", PowerState::PoweringOff, "Idle",
         [](NodeFacts& f) {
           api::Operation& operation = f.machine->status.operation;
           operation.id = "x";
           operation.kind = OperationKind::PowerOff;
           operation.step = "SoftOff";
         },
         "node n1 is being switched off because no workload pod had run on it for 10 min (Idle), "
         "for 5 min",
         ""},
        {"a word of a newer version", PowerState::On, "Moonlight", [](NodeFacts&) {},
         "node n1 is on; its reason Moonlight is not known to this version of kubectl-kwatt", ""},
        {"undecided", PowerState::Unknown, "", [](NodeFacts&) {},
         "node n1 is in an unknown power state; no decision about it has been made yet", ""},
    };
    for (const Given& given : cases) {
      CAPTURE(given.name);
      NodeFacts facts = facts_of(machine("n1", given.state, given.reason));
      given.arrange(facts);
      const Explanation explanation = explain_node(facts, kNow);
      CHECK(explanation.sentence == given.sentence);
      CHECK((explanation.earliest ? format_rfc3339(*explanation.earliest) : "") == given.earliest);
    }
  }

  TEST_CASE("an operation is told with its step, deadline and moves") {
    NodeFacts facts = facts_of(machine("n1", PowerState::Draining, "LowUtilization"));
    api::Operation& operation = facts.machine->status.operation;
    operation.id = "x";
    operation.kind = OperationKind::PowerOff;
    operation.step = "Evict";
    operation.policy = "default";
    operation.reason = "LowUtilization";
    operation.started_at = ago(seconds{20});
    operation.deadline = kNow + minutes{9};
    api::PodMove move;
    move.namespace_name = "shop";
    move.pod_name = "web-0";
    move.node_name = "n2";
    move.phase = "Evicting";
    operation.moves = {move};
    const Explanation explanation = explain_node(facts, kNow);
    REQUIRE(explanation.facts.size() >= 2);
    CHECK(explanation.facts[0] ==
          "A power-off of policy default (LowUtilization) is at step Evict, begun 20 s ago, to be "
          "over 2026-11-21T15:09:00Z (in 9 min)");
    CHECK(explanation.facts[1] == "1 pod leaves it: shop/web-0 to n2 (Evicting)");
  }

  TEST_CASE("a node without a NodePower is left alone, and that is said") {
    NodeFacts facts;
    facts.name = "n9";
    facts.node = node("n9");
    const Explanation explanation = explain_node(facts, kNow);
    CHECK(explanation.sentence ==
          "node n9 is left alone because no policy selects it and no agent reports from it");
    CHECK(explanation.state == "Unknown");
  }

  TEST_CASE("a pod: on a node, waiting, ended") {
    PodFacts facts;
    facts.pod = pod("web-0", "n1");
    facts.node = facts_of(machine("n1", PowerState::On, "InUse"));
    facts.node->pods = {facts.pod};
    CHECK(explain_pod(facts, kNow).sentence ==
          "pod shop/web-0 is on node n1; node n1 is on because 1 workload pod runs on it (InUse), "
          "for 5 min");

    facts.node.reset();
    facts.pod.node_name.clear();
    facts.pod.phase = api::PodPhase::pending;
    facts.pod.scheduled = api::PodScheduled::unschedulable;
    facts.pod.scheduled_transition = ago(seconds{42});
    api::NodePower waking = machine("n2", PowerState::PoweringOn, "PendingPods");
    waking.status.operation.kind = OperationKind::PowerOn;
    facts.machines = {waking, machine("n3", PowerState::Off, "Idle")};
    facts.policies = {default_policy()};
    const Explanation waiting = explain_pod(facts, kNow);
    CHECK(waiting.sentence ==
          "pod shop/web-0 has been waiting for 42 s because it fits on no node that is on");
    CHECK(waiting.facts ==
          std::vector<std::string>{"These nodes are being woken: n2",
                                   "1 machine is off; one is woken if the pod fits on its node"});

    facts.machines.clear();
    facts.policies[0].spec.mode = api::Mode::Recommend;
    CHECK(explain_pod(facts, kNow).facts ==
          std::vector<std::string>{"No policy that is enforced wakes nodes for pending pods"});

    facts.pod.phase = api::PodPhase::failed;
    CHECK(explain_pod(facts, kNow).sentence == "pod shop/web-0 has ended, so it keeps no node on");
  }

  TEST_CASE("a policy: nodes by reason, power, budgets, what is odd, the last pass") {
    PolicyFacts facts;
    facts.policy = default_policy();
    facts.policy.status.last_action = "n3 switched off";
    api::Condition halted;
    halted.type = "Halted";
    halted.status = "True";
    halted.reason = "TooManyUnready";
    halted.message = "4 of 5 nodes are not Ready";
    facts.policy.status.conditions.push_back(halted);
    api::NodePower other = machine("n4", PowerState::On, "Idle");
    other.status.decision.policy = "other";
    facts.machines = {machine("n1", PowerState::On, "InUse"),
                      machine("n2", PowerState::On, "InUse"),
                      machine("n3", PowerState::Off, "Idle"), other};
    CHECK(text_of(explain_policy(facts, kNow), kNow) ==
          "policy default is enforced and has 3 nodes: 2 on, 1 off, 0 changing.\n"
          "  Its nodes by reason: 2 InUse, 1 Idle.\n"
          "  They draw 240 W; without kwatt it would be 362 W; 12.3 kWh saved so far.\n"
          "  Disruption budget: 0 of 1 used.\n"
          "  Halted is True (TooManyUnready): 4 of 5 nodes are not Ready.\n"
          "  The last pass was 4 s ago and took 3 ms.\n"
          "  Last action: n3 switched off.\n");

    // Who asked for carbon data is told what it is, good or bad.
    api::Condition carbon;
    carbon.type = "CarbonDataAvailable";
    const std::tuple<const char*, const char*, bool> cases[] = {{"Unknown", "NotAsked", false},
                                                                {"Unknown", "NotAccepted", false},
                                                                {"Unknown", "NotRead", true},
                                                                {"True", "Published", true},
                                                                {"False", "Stale", true}};
    for (const auto& [status, reason, told] : cases) {
      carbon.status = status;
      carbon.reason = reason;
      carbon.message = "as the source says";
      facts.policy.status.conditions = {carbon};
      const std::string line =
          std::string("CarbonDataAvailable is ") + status + " (" + reason + "): as the source says";
      CHECK((text_of(explain_policy(facts, kNow), kNow).find(line) != std::string::npos) == told);
    }

    facts.policy.status = {};
    CHECK(explain_policy(facts, kNow).sentence ==
          "policy default is enforced; no controller has looked at it yet");
  }
}

}  // namespace
}  // namespace kwatt::cli
