// The step machine of PowerOn.
#include <doctest/doctest.h>

#include "test/planner/stage.hpp"

namespace kwatt::test {
namespace {

using api::PowerState;
using planner::PowerOn;
using planner::Reason;
namespace names = planner::names;
using Names = std::vector<std::string>;

// Off by us an hour ago, with everything the off sequence leaves behind.
Stage asleep() {
  Stage stage;
  stage.set_machine(PowerState::Off);
  stage.set_ready(false);
  stage.status.power_state = PowerState::Off;
  stage.status.memory.powered_off_by_us = true;
  stage.status.memory.cordoned_by_us = true;
  stage.status.memory.owner_policy = "default";
  stage.status.memory.idle_since = kNoon - hours{2};
  stage.node.unschedulable = true;
  stage.node.taints = {{"kwatt.dev/candidate", "", "PreferNoSchedule", {}},
                       {"kwatt.dev/power-off", "", "NoExecute", {}}};
  stage.node.meta.labels.set(names::kLabelPower, "off");
  stage.node.conditions.push_back({"Suspended", "True", "", "", 0, kNoon - hours{1}});
  return stage;
}

TEST_CASE("power on: the machine comes on, taints go first, the cordon last") {
  Stage stage = asleep();
  stage.begin(PowerOn{}, Reason::PendingPods);
  CHECK(stage.status.power_state == PowerState::PoweringOn);
  CHECK(stage.status.decision.desired == api::Desired::On);
  REQUIRE(stage.run_to("WaitReady"));
  CHECK_FALSE(stage.tainted(names::kPowerOffTaint));
  CHECK(stage.node.unschedulable);
  REQUIRE(stage.run());
  CHECK(stage.steps == Names{"Wake", "WaitLease", "WaitReady", "Uncordon"});
  CHECK(stage.resets == Names{"on"});
  CHECK(stage.clean());
  CHECK(api::find_condition(stage.node.conditions, "Suspended") == nullptr);
  const api::NodeMemory& memory = stage.status.memory;
  CHECK(stage.status.power_state == PowerState::On);
  CHECK(memory.last_on == stage.now);
  CHECK(memory.wake_verified_at == stage.now);
  CHECK(memory.cool_down_until == stage.now + minutes{10});
  CHECK_FALSE(memory.idle_since.has_value());
  CHECK_FALSE(memory.powered_off_by_us);
  CHECK_FALSE(memory.cordoned_by_us);
  CHECK(memory.owner_policy.empty());
}

TEST_CASE("power on: the owner stays while settings of ours are on the node") {
  Stage stage = asleep();
  stage.node.meta.annotations.set(names::kRequest,
                                  R"({"id":"x","policy":"default","keys":["kwatt.dev/governor"]})");
  stage.begin(PowerOn{});
  REQUIRE(stage.run());
  CHECK(stage.status.memory.owner_policy == "default");
}

TEST_CASE("power on: a cordon that is not ours stays") {
  Stage stage = asleep();
  stage.status.memory.cordoned_by_us = false;
  stage.begin(PowerOn{});
  REQUIRE(stage.run());
  CHECK(stage.node.unschedulable);
  CHECK_FALSE(stage.tainted(names::kPowerOffTaint));
}

TEST_CASE("power on: what goes wrong marks the machine and backs off") {
  struct Case {
    const char* name;
    std::function<void(Stage&)> happens;
    Duration at_least, at_most;
    std::string says;
  };
  const std::vector<Case> cases = {
      {"the BMC refuses", [](Stage& s) { s.bmc_answers = false; }, seconds{30}, minutes{1},
       "connection refused"},
      {"the machine never comes on", [](Stage& s) { s.heeds_on = false; }, minutes{15}, minutes{16},
       "not come on within"},
      {"it boots for too long", [](Stage& s) { s.boot_time = hours{1}; }, minutes{15}, minutes{16},
       "kubelet has not reported within"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Stage stage = asleep();
    stage.status.memory.wake_verified_at = kNoon - hours{24};
    c.happens(stage);
    stage.begin(PowerOn{}, Reason::PendingPods);
    REQUIRE(stage.run());
    CHECK(stage.now - kNoon >= c.at_least);
    CHECK(stage.now - kNoon <= c.at_most);
    const planner::Step& end = stage.ends.back();
    CHECK(end.failed);
    CHECK(end.reason == Reason::WakeFailed);
    CHECK(end.message.find(c.says) != std::string::npos);
    CHECK(stage.status.power_state == PowerState::WakeFailed);
    CHECK(stage.status.memory.failure_count == 1);
    CHECK(stage.status.memory.next_attempt == stage.now + minutes{1});
    // Still ours to wake.
    CHECK(stage.status.memory.powered_off_by_us);
    CHECK(stage.status.memory.cordoned_by_us);
    CHECK(stage.status.memory.owner_policy == "default");
    // What an earlier test proved is not true any more.
    CHECK_FALSE(stage.status.memory.wake_verified_at.has_value());
  }
}

TEST_CASE("power on: a machine that somebody else switched on has proved nothing") {
  Stage stage = asleep();
  stage.set_machine(PowerState::On);
  stage.set_ready(true);
  stage.status.power_state = PowerState::On;
  stage.begin(PowerOn{}, Reason::Manual);
  CHECK(stage.status.power_state == PowerState::On);
  REQUIRE(stage.run());
  CHECK(stage.clean());
  CHECK_FALSE(stage.status.memory.wake_verified_at.has_value());
}

TEST_CASE("power on: what was asked of the node's own agent is taken back, and only that") {
  Stage ours = asleep();
  ours.node.meta.annotations.set(names::kPowerState, "off");
  ours.node.meta.annotations.set(names::kPowerOffBoot, "boot-1");
  ours.begin(PowerOn{});
  REQUIRE(ours.run());
  CHECK_FALSE(ours.node.meta.annotations.contains(names::kPowerState));
  CHECK_FALSE(ours.node.meta.annotations.contains(names::kPowerOffBoot));
  Stage by_hand = asleep();
  by_hand.node.meta.annotations.set(names::kPowerState, "off");
  by_hand.begin(PowerOn{});
  REQUIRE(by_hand.run());
  CHECK(by_hand.node.meta.annotations.get(names::kPowerState) == "off");
}

TEST_CASE("power on: the backoff doubles and ends at 8h30m") {
  struct Case {
    std::int64_t failures;
    Duration wait;
  };
  for (const Case& c : std::vector<Case>{{0, minutes{1}},
                                         {1, minutes{2}},
                                         {4, minutes{16}},
                                         {9, minutes{510}},
                                         {5000, minutes{510}}}) {
    CAPTURE(c.failures);
    Stage stage = asleep();
    stage.bmc_answers = false;
    stage.status.memory.failure_count = c.failures;
    stage.begin(PowerOn{});
    REQUIRE(stage.run());
    CHECK(stage.status.memory.next_attempt == stage.now + c.wait);
  }
}

TEST_CASE("power on: success forgets the failures") {
  Stage stage = asleep();
  stage.status.memory.failure_count = 3;
  stage.status.memory.next_attempt = kNoon - minutes{1};
  stage.begin(PowerOn{});
  REQUIRE(stage.run());
  CHECK(stage.status.memory.failure_count == 0);
  CHECK_FALSE(stage.status.memory.next_attempt.has_value());
}

TEST_CASE("power on: what others measure of the machine is no sign of its kubelet") {
  Stage stage = asleep();
  stage.set_machine(PowerState::On);
  stage.begin(PowerOn{});
  REQUIRE(stage.run_to("WaitLease"));
  planner::NodeView view = stage.view();
  view.ready = true;
  planner::TelemetrySample bmc{stage.now + seconds{4}, {}, {}, watts(90), true, false};
  bmc.from_agent = false;
  view.samples.push_back(bmc);
  planner::Observation seen;
  seen.now = stage.now + seconds{5};
  seen.node = &view;
  CHECK(planner::next_step(stage.status, seen, stage.spec).next.operation.step == "WaitLease");
}

TEST_CASE("power on: a Ready left over from before is no proof") {
  Stage stage = asleep();
  stage.set_machine(PowerState::On);
  stage.begin(PowerOn{});
  REQUIRE(stage.run_to("WaitLease"));
  // On by the BMC's word, Ready by the API's, but no sign of the kubelet since.
  planner::NodeView view = stage.view();
  view.ready = true;
  planner::Observation seen;
  seen.now = stage.now + seconds{5};
  seen.node = &view;
  CHECK(planner::next_step(stage.status, seen, stage.spec).next.operation.step == "WaitLease");
  SUBCASE("a renewed lease is") {
    seen.lease_renewed_since_start = true;
  }
  SUBCASE("a new sample is") {
    view.samples.push_back({stage.now + seconds{4}, Permille{10}, Permille{10}, {}, false});
  }
  SUBCASE("a Ready that has outlived the grace period is") {
    seen.now = stage.now + seconds{60};
  }
  CHECK(planner::next_step(stage.status, seen, stage.spec).next.operation.step == "WaitReady");
}

TEST_CASE("power on: it ends even if the policy only recommends by then") {
  Stage stage = asleep();
  stage.begin(PowerOn{});
  stage.spec.mode = api::Mode::Recommend;
  REQUIRE(stage.run());
  CHECK(stage.machine == PowerState::On);
  CHECK(stage.clean());
}

TEST_CASE("power on: a node that runs already only loses our marks") {
  Stage stage = asleep();
  stage.set_machine(PowerState::On);
  stage.boot_time = seconds{1};
  stage.begin(PowerOn{}, Reason::Manual);
  REQUIRE(stage.run());
  CHECK(stage.clean());
  CHECK(stage.ends.back().reason == Reason::Manual);
}

}  // namespace
}  // namespace kwatt::test
