// The step machine of PowerOff: the whole way, and every way out of it.
#include <doctest/doctest.h>

#include "test/planner/stage.hpp"

namespace kwatt::test {
namespace {

using api::OperationKind;
using api::PowerState;
using planner::PowerOff;
using planner::Reason;
namespace names = planner::names;
namespace steps = planner::steps;
using Outcome = planner::EvictionResult::Outcome;
using Names = std::vector<std::string>;

std::string last_reason(const Stage& stage) {
  return stage.ends.empty() ? "none" : std::string(api::to_string(stage.ends.back().reason));
}

TEST_CASE("power off: an idle node goes through all steps and ends off") {
  Stage stage;
  stage.begin(PowerOff{});
  CHECK(stage.status.power_state == PowerState::Draining);
  CHECK(stage.status.decision.desired == api::Desired::Off);
  CHECK(stage.status.memory.owner_policy == "default");
  REQUIRE(stage.run());
  CHECK(stage.steps == Names{"Cordon", "Evict", "WaitEmpty", "Evacuate", "SoftOff", "Verify"});
  CHECK(stage.resets == Names{"graceful_shutdown"});
  CHECK(stage.machine == PowerState::Off);
  CHECK(stage.status.power_state == PowerState::Off);
  CHECK_FALSE(stage.ends.back().failed);
  CHECK(last_reason(stage) == "Idle");
  const api::NodeMemory& memory = stage.status.memory;
  CHECK(memory.powered_off_by_us);
  CHECK(memory.cordoned_by_us);
  CHECK(memory.last_off.has_value());
  CHECK(memory.cycles_today == 1);
  CHECK(memory.cycles_day == "2026-11-20");
  CHECK(memory.owner_policy == "default");
  CHECK(stage.node.unschedulable);
  CHECK(stage.tainted(names::kPowerOffTaint));
  CHECK(stage.node.meta.labels.get(names::kLabelPower) == "off");
  CHECK(api::find_condition(stage.node.conditions, "Suspended") != nullptr);
}

TEST_CASE("power off: nothing is touched before the record of it is committed") {
  Stage stage;
  stage.begin(PowerOff{});
  CHECK_FALSE(stage.node.unschedulable);
  CHECK(stage.resets.empty());
  // Whatever was committed before a crash in between is asked for again.
  while (stage.busy()) {
    const std::string step = stage.status.operation.step;
    const std::size_t sent = stage.resets.size();
    stage.look(true);
    if (stage.status.operation.step == "SoftOff" && step != "SoftOff") {
      CHECK(stage.resets.size() == sent);
    }
    if (stage.busy()) stage.look();
    stage.tick();
    REQUIRE(stage.now < kNoon + hours{1});
  }
  CHECK(stage.machine == PowerState::Off);
  CHECK(stage.unsafe.empty());
}

TEST_CASE("power off: pods are evicted, and waited for, before the machine is touched") {
  Stage stage;
  stage.pod("default/web-1");
  stage.pod("default/web-2");
  stage.pod("kube-system/agent-1", [](PodBuilder& p) { p.daemon(); });
  stage.begin_drain();
  REQUIRE(stage.run_to("WaitEmpty"));
  CHECK(stage.resets.empty());
  CHECK(stage.status.operation.moves.size() == 2);
  CHECK(stage.status.operation.moves[0].phase == "Evicted");
  REQUIRE(stage.run());
  CHECK(stage.machine == PowerState::Off);
  CHECK(stage.unsafe.empty());
  CHECK(stage.pods.size() == 1);  // the DaemonSet's, which tolerates everything
}

TEST_CASE("power off: DaemonSet pods that do not tolerate the taint get time to end") {
  Stage stage;
  stage.pod_grace = seconds{8};
  stage.pod("kube-system/exporter-1", [](PodBuilder& p) { p.owner("DaemonSet", "exporter"); });
  stage.begin(PowerOff{});
  REQUIRE(stage.run_to("SoftOff"));
  CHECK(stage.pods.empty());
  SUBCASE("but not for ever") {
    Stage stuck;
    stuck.pod_grace = hours{9};
    stuck.pod("kube-system/exporter-1", [](PodBuilder& p) { p.owner("DaemonSet", "exporter"); });
    stuck.begin(PowerOff{});
    REQUIRE(stuck.run_to("SoftOff", minutes{3}));
    CHECK(stuck.pods.size() == 1);
  }
}

TEST_CASE("power off: what interrupts it before the machine is touched is undone") {
  struct Case {
    const char* name;
    std::function<void(Stage&)> happens;
    std::string reason;
    bool failed;
  };
  const std::vector<Case> cases = {
      {"a person excludes the node",
       [](Stage& s) { s.node.meta.annotations.set(names::kExclude, "true"); }, "Excluded", false},
      {"a person holds it on",
       [](Stage& s) { s.node.meta.annotations.set(names::kOverride, "on"); }, "Manual", false},
      {"a person uncordons it", [](Stage& s) { s.node.unschedulable = false; }, "Manual", false},
      {"the policy only recommends now", [](Stage& s) { s.spec.mode = api::Mode::Recommend; },
       "RecommendOnly", false},
      {"the policy does not select it any more",
       [](Stage& s) { s.spec.node_selector.match_labels.set("pool", "other"); }, "NotSelected",
       false},
      {"a new pod was bound past the cordon", [](Stage& s) { s.pod("default/late-1"); }, "InUse",
       false},
      {"pods wait for its room",
       [](Stage& s) {
         s.status.decision.desired = api::Desired::On;
         s.status.decision.reason = "PendingPods";
       },
       "PendingPods", false},
      {"the Node object is being deleted", [](Stage& s) { s.node.meta.deletion_timestamp = s.now; },
       "ForeignOwner", false},
      {"cluster-autoscaler has chosen it",
       [](Stage& s) {
         s.node.taints.push_back({"ToBeDeletedByClusterAutoscaler", "", "NoSchedule", {}});
       },
       "ForeignOwner", false},
      {"the drain takes too long", [](Stage& s) { s.now += minutes{11}; }, "DrainTimeout", true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Stage stage;
    stage.pod("default/web-1");
    stage.pod_grace = hours{2};  // never leaves by itself
    stage.begin_drain();
    REQUIRE(stage.run_to("WaitEmpty"));
    c.happens(stage);
    REQUIRE(stage.run(minutes{2}));
    CHECK(last_reason(stage) == c.reason);
    CHECK(stage.ends.back().failed == c.failed);
    CHECK(stage.clean());
    CHECK(stage.resets.empty());
    CHECK(stage.status.power_state == PowerState::On);
    CHECK_FALSE(stage.status.memory.cordoned_by_us);
    CHECK_FALSE(stage.status.memory.powered_off_by_us);
    CHECK(stage.status.memory.owner_policy.empty());
    CHECK(stage.status.memory.cool_down_until.has_value() == c.failed);
  }
}

TEST_CASE("power off: a foreign cordon is respected") {
  Stage stage;
  stage.begin(PowerOff{});
  stage.node.unschedulable = true;  // somebody was faster
  REQUIRE(stage.run());
  CHECK(last_reason(stage) == "ForeignOwner");
  CHECK(stage.node.unschedulable);
  CHECK(stage.resets.empty());
  CHECK_FALSE(stage.status.memory.cordoned_by_us);
}

TEST_CASE("power off: our own cordon is known again after a crash") {
  Stage stage;
  stage.begin(PowerOff{});
  stage.look();
  CHECK(stage.node.unschedulable);
  CHECK(stage.status.operation.step == "Cordon");
  stage.crash();
  REQUIRE(stage.run());
  CHECK(stage.machine == PowerState::Off);
}

TEST_CASE("power off: a pod held by its budget is retried, then named") {
  Stage stage;
  int asked = 0;
  stage.on_evict = [&](const api::Pod&) {
    ++asked;
    return Outcome::blocked_by_budget;
  };
  stage.spec.migration.eviction_retry = minutes{2};
  stage.spec.migration.drain_timeout = minutes{10};
  stage.pod("default/db-0");
  stage.begin_drain();
  REQUIRE(stage.run_to("Undo"));
  CHECK(asked == 5);
  CHECK(stage.now - kNoon >= minutes{10});
  CHECK(stage.status.decision.reason == "DrainTimeout");
  CHECK(stage.status.decision.message.find("default/db-0") != std::string::npos);
  REQUIRE(stage.run());
  CHECK(stage.clean());
  CHECK(stage.pods.size() == 1);
  CHECK(stage.messages[0].find("default/db-0") != std::string::npos);
}

TEST_CASE("power off: an eviction whose answer was lost is asked for again") {
  Stage stage;
  stage.pod("default/web-1");
  stage.begin_drain();
  REQUIRE(stage.run_to("Evict"));
  stage.look(true);  // committed, never sent
  CHECK(stage.status.operation.moves[0].phase == "Evicting");
  CHECK_FALSE(stage.pods[0].deletion_timestamp.has_value());
  REQUIRE(stage.run(minutes{5}));
  CHECK(stage.machine == PowerState::Off);
}

TEST_CASE("power off: an attached volume is waited for") {
  Stage stage;
  stage.volume_attached = true;
  stage.begin(PowerOff{});
  REQUIRE(stage.run_to("WaitEmpty"));
  for (int i = 0; i < 60; ++i) {
    stage.look();
    stage.tick();
  }
  CHECK(stage.status.operation.step == "WaitEmpty");
  SUBCASE("and when it goes, the machine does") {
    stage.volume_attached = false;
    REQUIRE(stage.run());
    CHECK(stage.machine == PowerState::Off);
  }
  SUBCASE("but not beyond the drain timeout") {
    REQUIRE(stage.run());
    CHECK(last_reason(stage) == "DrainTimeout");
    CHECK(stage.machine == PowerState::On);
    CHECK(stage.clean());
  }
}

TEST_CASE("power off: a BMC that does not answer leaves the machine on, and backs off") {
  Stage stage;
  stage.bmc_answers = false;
  stage.status.memory.failure_count = 2;
  stage.begin(PowerOff{});
  REQUIRE(stage.run());
  CHECK(last_reason(stage) == "BMCError");
  CHECK(stage.ends.back().failed);
  CHECK(stage.resets.empty());
  CHECK(stage.clean());
  CHECK(stage.status.memory.failure_count == 3);
  REQUIRE(stage.status.memory.next_attempt.has_value());
  // 1m doubled twice; the attempt was made some seconds before now.
  const Duration wait = *stage.status.memory.next_attempt - stage.now;
  CHECK(wait > minutes{3});
  CHECK(wait <= minutes{4});
}

TEST_CASE("power off: a machine that does not shut down in time is forced off") {
  Stage stage;
  stage.heeds_graceful = false;
  stage.spec.power_off.soft_timeout = seconds{30};
  stage.begin(PowerOff{});
  REQUIRE(stage.run());
  CHECK(stage.resets == Names{"graceful_shutdown", "force_off"});
  CHECK(stage.machine == PowerState::Off);
  CHECK(stage.steps ==
        Names{"Cordon", "Evict", "WaitEmpty", "Evacuate", "SoftOff", "HardOff", "Verify"});
}

TEST_CASE("power off: the shutdown is sent once, and again only after a crash") {
  Stage stage;
  stage.begin(PowerOff{});
  REQUIRE(stage.run_to("SoftOff"));
  stage.look();
  stage.look();
  CHECK(stage.resets.size() == 1);
  stage.crash();
  stage.look();
  CHECK(stage.resets == Names{"graceful_shutdown", "graceful_shutdown"});
}

TEST_CASE("power off: a pod that comes during the shutdown is never met by a forced off") {
  Stage stage;
  stage.spec.power_off.soft_timeout = seconds{30};
  stage.begin(PowerOff{});
  SUBCASE("the shutdown goes on: the machine is woken again") {
    REQUIRE(stage.run_to("SoftOff"));
    stage.pod("default/late-1");
    REQUIRE(stage.run());
    CHECK(stage.resets == Names{"graceful_shutdown", "on"});
    CHECK(stage.machine == PowerState::On);
    CHECK(stage.clean());
  }
  SUBCASE("the machine ignores it: back into service") {
    stage.heeds_graceful = false;
    REQUIRE(stage.run_to("SoftOff"));
    // One that our NoExecute taint does not drive away.
    stage.pod("default/late-1", [](PodBuilder& p) { p.tolerate("", "Exists", "", ""); });
    REQUIRE(stage.run());
    CHECK(stage.resets == Names{"graceful_shutdown"});
    CHECK(last_reason(stage) == "InUse");
    CHECK(stage.clean());
    CHECK_FALSE(stage.status.memory.powered_off_by_us);
  }
  CHECK(stage.unsafe.empty());
}

TEST_CASE("power off: the BMC fails after the shutdown was sent, the truth is waited for") {
  Stage stage;
  stage.spec.power_off.soft_timeout = seconds{30};
  stage.begin(PowerOff{});
  REQUIRE(stage.run_to("SoftOff"));
  stage.bmc_answers = false;
  for (int i = 0; i < 200; ++i) {
    stage.look();
    stage.tick();
  }
  CHECK(stage.busy());
  CHECK(stage.status.memory.powered_off_by_us);
  stage.bmc_answers = true;
  REQUIRE(stage.run());
  CHECK(stage.machine == PowerState::Off);
  CHECK(stage.status.power_state == PowerState::Off);
}

TEST_CASE("power off: a wake test switches the machine on again") {
  Stage stage;
  stage.begin(PowerOff{{}, true});
  REQUIRE(stage.run());
  CHECK(stage.resets == Names{"graceful_shutdown", "on"});
  CHECK(stage.machine == PowerState::On);
  CHECK(stage.clean());
  const api::NodeMemory& memory = stage.status.memory;
  CHECK(memory.wake_verified_at.has_value());
  CHECK_FALSE(memory.powered_off_by_us);
  CHECK_FALSE(memory.cool_down_until.has_value());
  CHECK(memory.owner_policy.empty());
  CHECK(memory.cycles_today == 1);
  CHECK(stage.steps == Names{"Cordon", "Evict", "WaitEmpty", "Evacuate", "SoftOff", "Verify",
                             "Wake", "WaitLease", "WaitReady", "Uncordon"});
}

TEST_CASE("power off: while the policy is suspended nothing more is taken away") {
  Stage stage;
  stage.pod("default/web-1");
  stage.begin_drain();
  stage.spec.suspend = true;
  for (int i = 0; i < 30; ++i) {
    stage.look();
    stage.tick();
  }
  CHECK(stage.clean());
  CHECK_FALSE(stage.pods[0].deletion_timestamp.has_value());
  stage.spec.suspend = false;
  REQUIRE(stage.run());
  CHECK(stage.machine == PowerState::Off);
}

TEST_CASE("power off: cycles are counted per day") {
  Stage stage;
  stage.status.memory.cycles_today = 4;
  SUBCASE("another day") {
    stage.status.memory.cycles_day = "2026-11-19";
    stage.begin(PowerOff{});
    REQUIRE(stage.run());
    CHECK(stage.status.memory.cycles_today == 1);
  }
  SUBCASE("the same day") {
    stage.status.memory.cycles_day = "2026-11-20";
    stage.begin(PowerOff{});
    REQUIRE(stage.run());
    CHECK(stage.status.memory.cycles_today == 5);
  }
}

TEST_CASE("power off: a step of another version ends with the machine awake") {
  Stage stage;
  stage.begin(PowerOff{});
  stage.status.operation.step = "Hibernate";
  SUBCASE("it was off") {
    stage.set_machine(PowerState::Off);
  }
  SUBCASE("it was on") {
    stage.set_machine(PowerState::On);
  }
  REQUIRE(stage.run());
  CHECK(stage.machine == PowerState::On);
  CHECK(stage.clean());
}

}  // namespace
}  // namespace kwatt::test
