#include <functional>

#include <doctest/doctest.h>

#include "planner/levers.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::enforcing;
using test::kNoon;
using test::NodeBuilder;
using test::OnePass;
using test::World;
using namespace std::chrono_literals;

using Names = std::vector<std::string>;

struct Outcome {
  Proposal proposal;
  std::map<NodeName, api::NodeMemory> memory;

  Names off() const {
    Names names;
    for (const Action& action : proposal.actions) names.push_back(action.node);
    return names;
  }
  std::optional<Reason> refusal(const std::string& node) const {
    const auto at = proposal.refusals.find(node);
    return at == proposal.refusals.end() ? std::nullopt : std::optional{at->second.reason};
  }
};

Outcome run(const World& w, const api::EnergyPolicySpec& spec = enforcing()) {
  OnePass p{w.snapshot(), spec};
  Outcome outcome;
  outcome.proposal = power_off(p.pass, outcome.memory);
  return outcome;
}

// n0 stays awake, so that minAwake is no matter.
World with_idle(std::function<void(NodeBuilder&)> given = [](NodeBuilder&) {}) {
  World w;
  w.node("n0");
  w.pod("default/busy-1").on("n0");
  given(w.node("n1").idle_for(20min));
  return w;
}

TEST_CASE("a node without workload pods for idleFor is switched off") {
  const Outcome o = run(with_idle());
  CHECK(o.off() == Names{"n1"});
  const Action& action = o.proposal.actions[0];
  CHECK(action.reason == Reason::Idle);
  CHECK(std::get<PowerOff>(action.what) == PowerOff{});
  CHECK(action.expected_saving == watts(50));
  CHECK(action.message == "no workload pod for 20m; saves 50.0 W");
  CHECK(action.pre == Precondition{"uid-n1", "1", 1});
  CHECK(o.refusal("n0") == Reason::InUse);
  CHECK(o.memory.empty());
}

TEST_CASE("DaemonSet, static and terminal pods do not keep a node in use") {
  World w = with_idle();
  w.pod("kube-system/d-1").on("n1").daemon();
  w.pod("kube-system/s-1").on("n1").mirror();
  w.pod("default/done-1").on("n1").phase(api::PodPhase::succeeded);
  w.pod("default/failed-1").on("n1").phase(api::PodPhase::failed);
  CHECK(run(w).off() == Names{"n1"});
  w.pod("default/web-1").on("n1").terminating();
  CHECK(run(w).refusal("n1") == Reason::InUse);
}

TEST_CASE("idleSince starts, stays and ends with idleness") {
  World w;
  w.node("fresh");
  w.node("known").idle_for(1min);
  w.node("busy").idle_for(1min);
  w.node("off").off().idle_for(1min);
  w.pod("default/web-1").on("busy");
  const Outcome o = run(w);
  REQUIRE(o.memory.size() == 3);
  CHECK(o.memory.at("fresh").idle_since == kNoon);
  CHECK(o.memory.at("fresh").last_on == kNoon - 24h);  // the rest is kept
  CHECK_FALSE(o.memory.at("busy").idle_since.has_value());
  CHECK_FALSE(o.memory.at("off").idle_since.has_value());
  CHECK(o.refusal("fresh") == Reason::IdleWait);
  CHECK(o.refusal("known") == Reason::IdleWait);
  CHECK(o.proposal.refusals.at("known").message == "idle for 1m of 10m");
  CHECK(o.proposal.next_wake == Duration{9min});
}

TEST_CASE("why an idle node stays on") {
  struct Case {
    std::string name;
    std::function<void(NodeBuilder&)> given;
    std::optional<Reason> want;  // nullopt: it goes
  };
  const Case cases[] = {
      {"control plane", [](auto& n) { n.control_plane(); }, Reason::ControlPlane},
      {"this controller's node", [](auto& n) { n.own_node(); }, Reason::ControlPlane},
      {"excluded", [](auto& n) { n.annotation("kwatt.dev/exclude", "true"); }, Reason::Excluded},
      {"excluded: false is nothing", [](auto& n) { n.annotation("kwatt.dev/exclude", "false"); },
       std::nullopt},
      {"held on", [](auto& n) { n.annotation("kwatt.dev/override", "on"); }, Reason::Manual},
      {"held on until later",
       [](auto& n) { n.annotation("kwatt.dev/override", "on,until=2026-11-20T12:00:01Z"); },
       Reason::Manual},
      {"held on until now",
       [](auto& n) { n.annotation("kwatt.dev/override", "on,until=2026-11-20T12:00:00Z"); },
       std::nullopt},
      {"an override nobody understands holds it on",
       [](auto& n) { n.annotation("kwatt.dev/override", "please"); }, Reason::Manual},
      {"do-not-disrupt on the node",
       [](auto& n) { n.annotation("karpenter.sh/do-not-disrupt", "true"); }, Reason::DoNotDisrupt},
      {"cluster-autoscaler deletes it",
       [](auto& n) { n.taint("ToBeDeletedByClusterAutoscaler", "1", "NoSchedule"); },
       Reason::ForeignOwner},
      {"Karpenter disrupts it",
       [](auto& n) { n.taint("karpenter.sh/disrupted", "", "NoSchedule"); }, Reason::ForeignOwner},
      {"medik8s drains it", [](auto& n) { n.taint("medik8s.io/drain", "", "NoSchedule"); },
       Reason::ForeignOwner},
      {"Karpenter owns it", [](auto& n) { n.label("karpenter.sh/nodepool", "x"); },
       Reason::ForeignOwner},
      {"scale-down is disabled on it",
       [](auto& n) {
         n.annotation("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true");
       },
       Reason::ForeignOwner},
      {"somebody else's cordon", [](auto& n) { n.cordoned(); }, Reason::ForeignOwner},
      {"not ready", [](auto& n) { n.not_ready(); }, Reason::NodeNotReady},
      {"no driver", [](auto& n) { n.no_driver(); }, Reason::NoDriver},
      {"no NodePower yet", [](auto& n) { n.no_machine(); }, Reason::NoDriver},
      {"an operation in flight", [](auto& n) { n.operation(api::OperationKind::SetCap); },
       Reason::InProgress},
      {"cooling down", [](auto& n) { n.cool_down(1min); }, Reason::CoolDown},
      {"backing off", [](auto& n) { n.quarantined(1min); }, Reason::CoolDown},
      {"cooled down", [](auto& n) { n.cool_down(-1min); }, std::nullopt},
      {"on for too short", [](auto& n) { n.on_for(29min); }, Reason::MinOnTime},
      {"on for long enough", [](auto& n) { n.on_for(30min); }, std::nullopt},
      {"switched too often today", [](auto& n) { n.cycles(6); }, Reason::CycleLimit},
      {"that was yesterday", [](auto& n) { n.cycles(6, "2026-11-19"); }, std::nullopt},
      {"a volume is still attached", [](auto& n) { n.volume_attached(); }, Reason::InUse},
      {"its samples have stopped", [](auto& n) { n.utilization(5, 5, 0, 10min, 31s); },
       Reason::StaleTelemetry},
      {"its samples are fresh", [](auto& n) { n.utilization(5, 5, 0, 10min, 25s); }, std::nullopt},
      {"its agent reported once, but sends nothing",
       [](auto& n) { n.machine().status.report.time = kNoon - 1h; }, Reason::StaleTelemetry},
      {"its agent reported once, and only a meter elsewhere goes on",
       [](auto& n) {
         n.machine().status.report.time = kNoon - 1h;
         n.sample({kNoon, {}, {}, kwatt::watts(90), true, false});
       },
       Reason::StaleTelemetry},
      {"a meter elsewhere, and there never was an agent",
       [](auto& n) {
         n.sample({kNoon, {}, {}, kwatt::watts(90), true, false});
       },
       std::nullopt},
      {"a meter elsewhere that has fallen silent",
       [](auto& n) {
         n.sample({kNoon - 5min, {}, {}, kwatt::watts(90), true, false});
         n.meter("kepler", kNoon - 1min);
       },
       Reason::StaleTelemetry},
      {"a BMC that gives no readings any more, as slow as it is asked then",
       [](auto& n) {
         n.sample({kNoon - 5min, {}, {}, kwatt::watts(90), true, false});
         n.meter("bmc", kNoon - 1min);
       },
       std::nullopt},
      {"shutdown and boot take more than its idling",
       [](auto& n) { n.watts(10, 100).boot(300s, 30'000); }, Reason::NotWorthIt},
      {"they take as much as 20 minutes of it",
       [](auto& n) { n.watts(10, 100).boot(60s, 11'800).shutdown(20s); }, std::nullopt},
      {"without a model nothing can be compared",
       [](auto& n) { n.no_model().boot(300s, 3'000'000); }, std::nullopt},
      {"nobody knows whether it can be woken: it is tested", [](auto& n) { n.wake_not_verified(); },
       std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Outcome o = run(with_idle(c.given));
    CHECK(o.off() == (c.want ? Names{} : Names{"n1"}));
    CHECK(o.refusal("n1") == c.want);
    if (c.want == Reason::InUse && o.refusal("n1")) {
      CHECK_FALSE(o.proposal.refusals.at("n1").message.empty());
    }
  }
}

TEST_CASE("a node in use says so, unless something lasting speaks louder") {
  struct Case {
    std::string name;
    std::function<void(NodeBuilder&)> given;
    Reason want;
  };
  const Case cases[] = {
      {"plainly in use", [](auto&) {}, Reason::InUse},
      {"on for a short time", [](auto& n) { n.on_for(1min); }, Reason::InUse},
      {"without a driver", [](auto& n) { n.no_driver(); }, Reason::InUse},
      {"excluded", [](auto& n) { n.annotation("kwatt.dev/exclude", "true"); }, Reason::Excluded},
      {"control plane", [](auto& n) { n.control_plane(); }, Reason::ControlPlane},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w = with_idle(c.given);
    w.pod("default/web-1").on("n1");
    CHECK(run(w).refusal("n1") == c.want);
  }
}

TEST_CASE("the least efficient idle nodes go first, and minAwake stops it") {
  World w;
  w.node("n1").idle_for(1h).watts(50, 100);
  w.node("n2").idle_for(1h).watts(90, 100);
  w.node("n3").idle_for(1h).watts(70, 100);
  w.node("n4").off();
  api::EnergyPolicySpec spec = enforcing();
  CHECK(run(w, spec).off() == Names{"n2", "n3"});
  CHECK(run(w, spec).refusal("n1") == Reason::MinAwake);
  spec.power_off.min_awake = 2;
  CHECK(run(w, spec).off() == Names{"n2"});
  spec.power_off.min_awake = 0;
  CHECK(run(w, spec).off() == Names{"n2", "n3", "n1"});
}

TEST_CASE("each zone keeps minAwakePerZone nodes") {
  World w;
  w.node("a1").zone("a").idle_for(1h);
  w.node("a2").zone("a").idle_for(1h);
  w.node("b1").zone("b").idle_for(1h);
  api::EnergyPolicySpec spec = enforcing();
  const Outcome o = run(w, spec);
  CHECK(o.off() == Names{"a1"});
  CHECK(o.refusal("b1") == Reason::MinAwake);
  CHECK(o.proposal.refusals.at("b1").message.find("zone b") != std::string::npos);
}

TEST_CASE("nodes that cannot take ordinary pods, or are leaving, do not count as awake") {
  World w;
  w.node("cp").control_plane().taint("node-role.kubernetes.io/control-plane", "", "NoSchedule");
  w.node("going").operation(api::OperationKind::PowerOff);
  w.node("sick").not_ready();
  w.node("n1").idle_for(1h);
  CHECK(run(w).refusal("n1") == Reason::MinAwake);
}

TEST_CASE("the rest of the awake nodes keep the headroom") {
  World w;
  w.node("n0").cpu(10);
  w.pod("default/busy-1").on("n0").cpu_milli(9100);
  w.node("n1").cpu(10).idle_for(1h);
  api::EnergyPolicySpec spec = enforcing();
  spec.power_on.headroom = {10, 10};
  Outcome o = run(w, spec);
  CHECK(o.refusal("n1") == Reason::Headroom);
  CHECK(o.proposal.refusals.at("n1").message.find("without it: cpu 9 %") == 0);
  w.pod("default/busy-1").cpu_milli(9000);
  CHECK(run(w, spec).off() == Names{"n1"});
}

TEST_CASE("a node stays on if the others would be above highUtilizationPercent without it") {
  World w;
  w.node("n0").utilization(90);
  w.pod("default/busy-1").on("n0");
  w.node("n1").idle_for(1h).utilization(0);
  Outcome o = run(w);
  CHECK(o.refusal("n1") == Reason::HighLoad);
  CHECK(o.proposal.refusals.at("n1").message ==
        "without it the awake nodes would be at 90 %, above 81 %");
  w.node("n0").utilization(81);
  CHECK(run(w).off() == Names{"n1"});
}

TEST_CASE("nothing is switched off while pods wait for resources") {
  World w = with_idle([](NodeBuilder& n) { n.cpu(1); });
  w.node("n2").cpu(8).off();
  w.pod("default/p-1").cpu_milli(6000);
  CHECK(run(w).refusal("n1") == Reason::PendingPods);
  // A pod that no machine of ours could take does not hold everything up.
  w.pod("default/p-1").cpu_milli(60'000);
  CHECK(run(w).off() == Names{"n1"});
}

TEST_CASE("an idle node that a pod is about to use stays on") {
  World w = with_idle();
  w.pod("default/p-1").cpu_milli(3950).pod().scheduled = api::PodScheduled::unknown;
  const Outcome o = run(w);
  CHECK(o.refusal("n1") == Reason::InUse);
  CHECK(o.proposal.refusals.at("n1").message == "1 more pod is expected here");
}

TEST_CASE("maxPerMinute counts what went off in the last minute") {
  World w;
  for (const char* n : {"n0", "n1", "n2", "n3"}) w.node(n).idle_for(1h);
  w.node("n8").off(30s);
  w.node("n9").operation(api::OperationKind::PowerOff, "", 20s);
  api::EnergyPolicySpec spec = enforcing();
  spec.power_off.max_per_minute = 3;
  const Outcome o = run(w, spec);
  CHECK(o.off() == Names{"n0"});
  CHECK(o.refusal("n1") == Reason::RateLimited);
}

TEST_CASE("power-off is trusted only after a wake test, one at a time") {
  World w;
  w.node("n0");
  w.pod("default/busy-1").on("n0");
  w.node("n1").idle_for(1h).wake_not_verified();
  w.node("n2").idle_for(1h).wake_not_verified();
  w.node("n3").idle_for(1h);
  api::EnergyPolicySpec spec = enforcing();
  Outcome o = run(w, spec);
  CHECK(o.off() == Names{"n1", "n3"});
  CHECK(std::get<PowerOff>(o.proposal.actions[0].what).wake_test);
  CHECK(o.proposal.actions[0].expected_saving == Milliwatts{0});
  CHECK_FALSE(std::get<PowerOff>(o.proposal.actions[1].what).wake_test);
  CHECK(o.refusal("n2") == Reason::WakeNotVerified);

  spec.power_off.wake_test = api::WakeTest::Skip;
  o = run(w, spec);
  CHECK(o.off() == Names{"n1", "n2", "n3"});
  CHECK_FALSE(std::get<PowerOff>(o.proposal.actions[0].what).wake_test);

  spec.power_off.wake_test = api::WakeTest::Manual;
  o = run(w, spec);
  CHECK(o.off() == Names{"n3"});
  CHECK(o.refusal("n1") == Reason::WakeNotVerified);

  spec.power_off.wake_test = api::WakeTest::Auto;
  w.node("n1").operation(api::OperationKind::PowerOff).machine().status.operation.then_wake = true;
  CHECK(run(w, spec).refusal("n2") == Reason::WakeNotVerified);
}

TEST_CASE(
    "a wake test that somebody asks for is made whatever is known, by the rules of any other") {
  struct Case {
    const char* name;
    api::WakeTest mode;
    std::function<void(NodeBuilder&)> given;
    std::optional<Reason> refused;  // nullopt: tested
  };
  const Case cases[] = {
      {"Manual, never tested", api::WakeTest::Manual, [](auto& n) { n.wake_not_verified(); },
       std::nullopt},
      {"Manual, tested long ago", api::WakeTest::Manual, [](auto&) {}, std::nullopt},
      {"Auto, tested long ago", api::WakeTest::Auto, [](auto&) {}, std::nullopt},
      {"Skip", api::WakeTest::Skip, [](auto&) {}, std::nullopt},
      {"not idle for long enough", api::WakeTest::Manual, [](auto& n) { n.idle_for(1min); },
       Reason::IdleWait},
      {"excluded", api::WakeTest::Manual,
       [](auto& n) { n.annotation("kwatt.dev/exclude", "true"); }, Reason::Excluded},
      {"quarantined", api::WakeTest::Manual, [](auto& n) { n.quarantined(10min); },
       Reason::CoolDown},
      {"asked with another word", api::WakeTest::Manual,
       [](auto& n) {
         n.wake_not_verified().machine().meta.annotations.set("kwatt.dev/wake-test", "please");
       },
       Reason::WakeNotVerified},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w = with_idle([&](NodeBuilder& n) {
      n.machine().meta.annotations.set("kwatt.dev/wake-test", "requested");
      c.given(n);
    });
    api::EnergyPolicySpec spec = enforcing();
    spec.power_off.wake_test = c.mode;
    const Outcome o = run(w, spec);
    if (c.refused) {
      CHECK(o.off().empty());
      CHECK(o.refusal("n1") == *c.refused);
    } else {
      REQUIRE(o.off() == Names{"n1"});
      CHECK(std::get<PowerOff>(o.proposal.actions[0].what).wake_test);
      CHECK(o.proposal.actions[0].expected_saving == Milliwatts{0});
    }
  }
}

TEST_CASE("a machine that can only be woken is never switched off") {
  const Outcome o = run(with_idle([](NodeBuilder& n) { n.only_wakes(); }));
  CHECK(o.off().empty());
  CHECK(o.refusal("n1") == Reason::NoDriver);
  CHECK(o.proposal.refusals.at("n1").message.find("--power-off-command") != std::string::npos);
}

TEST_CASE("a wake test is not judged by its energy") {
  const Outcome o = run(
      with_idle([](NodeBuilder& n) { n.wake_not_verified().watts(1, 100).boot(300s, 90'000); }));
  CHECK(o.off() == Names{"n1"});
}

TEST_CASE("people hold a node off by a normal drain: all rules hold") {
  World w = with_idle([](NodeBuilder& n) { n.annotation("kwatt.dev/override", "off"); });
  w.node("n1").machine().status.memory.idle_since.reset();
  w.pod("default/web-1").on("n1");
  w.pod("default/web-2").on("n1");
  Outcome o = run(w);
  REQUIRE(o.off() == Names{"n1"});
  CHECK(o.proposal.actions[0].reason == Reason::Manual);
  const auto& moves = std::get<PowerOff>(o.proposal.actions[0].what).moves;
  REQUIRE(moves.size() == 2);
  CHECK(moves[0].pod_name == "web-1");
  CHECK(moves[0].node_name == "n0");

  w.pod("default/web-2").bare();
  CHECK(run(w).refusal("n1") == Reason::PodNotMovable);
  w.pod("default/web-2").owner("ReplicaSet", "web").cpu_milli(3950);
  CHECK(run(w).refusal("n1") == Reason::NoDestination);
}

TEST_CASE("a disabled lever says so, but still remembers idleness") {
  World w;
  w.node("n1");
  api::EnergyPolicySpec spec = enforcing();
  spec.power_off.enabled = false;
  const Outcome o = run(w, spec);
  CHECK(o.refusal("n1") == Reason::LeverDisabled);
  CHECK(o.memory.at("n1").idle_since == kNoon);
}

}  // namespace
}  // namespace kwatt::planner
