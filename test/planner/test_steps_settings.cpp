// The step machines of SetFrequency, SetCap, Migrate and Release, and the request annotation.
#include <doctest/doctest.h>

#include "planner/request.hpp"
#include "test/planner/stage.hpp"

namespace kwatt::test {
namespace {

using planner::Reason;
using planner::RequestNote;
using planner::SetCap;
using planner::SetFrequency;
namespace names = planner::names;
using Names = std::vector<std::string>;

const SetFrequency kLow{{"powersave", 1200, "power"}, true};

TEST_CASE("request: what is written is read back, and anything else is nobody's") {
  RequestNote note;
  note.id = "op-1";
  note.time = kNoon;
  note.policy = "a \"b\"";
  note.keys = {"kwatt.dev/governor", "kwatt.dev/epp"};
  const std::string text = format_request(note);
  CHECK(text == R"({"id":"op-1","time":"2026-11-20T12:00:00Z","policy":"a \"b\"",)"
                R"("keys":["kwatt.dev/epp","kwatt.dev/governor"]})");
  CHECK(planner::parse_request(text) == note);
  for (const char* bad : {"", "x", "[]", "{}", "3", R"({"id":"x"})", R"({"id":"x","keys":[3]})",
                          R"({"id":"x","keys":{}})", R"({"keys":["kwatt.dev/epp"]})",
                          R"({"id":"x","keys":[]}x)", "{\"id\":\"x\",\"keys\":[\"a\""}) {
    CAPTURE(bad);
    CHECK_FALSE(planner::parse_request(bad).has_value());
  }
}

TEST_CASE("set frequency: annotations, the agent's word, then the label") {
  Stage stage;
  stage.begin(kLow, Reason::LowUtilization);
  CHECK(stage.status.operation.step == "Annotate");
  REQUIRE(stage.run_to("WaitApplied"));
  const auto& annotations = stage.node.meta.annotations;
  CHECK(annotations.get(names::kGovernor) == "powersave");
  CHECK(annotations.get(names::kMaxFrequency) == "1200");
  CHECK(annotations.get(names::kEpp) == "power");
  CHECK_FALSE(stage.node.meta.labels.contains(names::kLabelFrequency));
  const RequestNote note = planner::request_on(stage.node);
  CHECK(note.id == "op-1");
  CHECK(note.policy == "default");
  CHECK(note.keys == planner::frequency_keys());
  REQUIRE(stage.run());
  CHECK(stage.node.meta.labels.get(names::kLabelFrequency) == "low");
  CHECK_FALSE(stage.ends.back().failed);
  CHECK(stage.status.memory.owner_policy == "default");

  SUBCASE("the next level replaces only what is ours") {
    stage.begin(SetFrequency{{"performance", 0, ""}, false}, Reason::HighLoad);
    stage.status.operation.id = "op-2";
    REQUIRE(stage.run());
    CHECK(annotations.get(names::kGovernor) == "performance");
    CHECK_FALSE(annotations.contains(names::kMaxFrequency));
    CHECK_FALSE(annotations.contains(names::kEpp));
    CHECK(planner::request_on(stage.node).keys == std::set<std::string>{"kwatt.dev/governor"});
    CHECK(stage.node.meta.labels.get(names::kLabelFrequency) == "normal");
  }
  SUBCASE("a cap beside it keeps both recorded") {
    stage.begin(SetCap{180}, Reason::PowerHigh);
    stage.status.operation.id = "op-3";
    REQUIRE(stage.run());
    CHECK(planner::request_on(stage.node).keys.size() == 4);
    CHECK(annotations.get(names::kPowerCap) == "180");
    CHECK(stage.node.meta.labels.get(names::kLabelCapped) == "true");
    CHECK(stage.node.meta.labels.get(names::kLabelFrequency) == "low");
    stage.begin(SetCap{std::nullopt}, Reason::LowUtilization);
    stage.status.operation.id = "op-4";
    REQUIRE(stage.run());
    CHECK_FALSE(annotations.contains(names::kPowerCap));
    CHECK_FALSE(stage.node.meta.labels.contains(names::kLabelCapped));
    CHECK(planner::request_on(stage.node).keys == planner::frequency_keys());
  }
}

TEST_CASE("set cap: the release of the last setting takes the note away as well") {
  Stage stage;
  stage.begin(SetCap{180}, Reason::PowerHigh);
  REQUIRE(stage.run());
  stage.begin(SetCap{std::nullopt}, Reason::LowUtilization);
  stage.status.operation.id = "op-2";
  REQUIRE(stage.run());
  CHECK(stage.node.meta.annotations.empty());
  CHECK_FALSE(stage.node.meta.labels.contains(names::kLabelCapped));
  CHECK(stage.status.memory.owner_policy.empty());
}

TEST_CASE("set cap: an agent that does not answer is not claimed to have applied it") {
  Stage stage;
  stage.agent_answers = false;
  stage.begin(SetCap{180}, Reason::PowerHigh);
  SUBCASE("silence") {}
  SUBCASE("it could not") {
    stage.status.report.applied_request = "op-1";
    stage.status.report.errors = {"powercap: permission denied"};
  }
  REQUIRE(stage.run());
  CHECK(stage.now - kNoon >= seconds{60});
  CHECK(stage.ends.back().failed);
  CHECK(stage.ends.back().reason == Reason::AgentStale);
  if (!stage.status.report.errors.empty()) {
    CHECK(stage.ends.back().message.find("permission denied") != std::string::npos);
  }
  CHECK(stage.node.meta.annotations.get(names::kPowerCap) == "180");  // requested, not effective
  CHECK_FALSE(stage.node.meta.labels.contains(names::kLabelCapped));
}

TEST_CASE("settings: what a person sets meanwhile is left alone") {
  Stage stage;
  stage.begin(kLow, Reason::LowUtilization);
  stage.node.meta.annotations.set(names::kGovernor, "ondemand");
  REQUIRE(stage.run());
  CHECK(stage.ends.back().reason == Reason::Manual);
  CHECK(stage.node.meta.annotations.get(names::kGovernor) == "ondemand");
  CHECK_FALSE(stage.node.meta.annotations.contains(names::kRequest));
}

TEST_CASE("settings: a policy that stops enforcing calls the request off") {
  Stage stage;
  stage.agent_answers = false;
  stage.begin(kLow, Reason::LowUtilization);
  REQUIRE(stage.run_to("WaitApplied"));
  stage.spec.mode = api::Mode::Recommend;
  stage.look();
  CHECK_FALSE(stage.busy());
  CHECK(stage.status.memory.owner_policy == "default");  // so that release() finds it
}

TEST_CASE("release: everything recorded as ours goes, what people set stays") {
  Stage stage;
  stage.begin(kLow, Reason::LowUtilization);
  REQUIRE(stage.run());
  stage.node.meta.annotations.set(names::kPowerCap, "150");  // by hand
  stage.node.meta.annotations.set("example.com/x", "y");
  stage.node.meta.labels.set("example.com/z", "1");
  stage.begin(planner::Release{}, Reason::PolicyDeleted);
  REQUIRE(stage.run());
  CHECK(stage.node.meta.annotations ==
        api::StringMap{{"kwatt.dev/power-cap-watts", "150"}, {"example.com/x", "y"}});
  CHECK(stage.node.meta.labels == api::StringMap{{"example.com/z", "1"}});
  CHECK(stage.status.memory.owner_policy.empty());
  CHECK(stage.ends.back().reason == Reason::PolicyDeleted);
}

TEST_CASE("release: a foreign cordon stays, ours goes") {
  for (const bool ours : {true, false}) {
    Stage stage;
    stage.node.unschedulable = true;
    stage.status.memory.cordoned_by_us = ours;
    stage.begin(planner::Release{}, Reason::PolicyDeleted);
    REQUIRE(stage.run());
    CHECK(stage.node.unschedulable == !ours);
  }
}

TEST_CASE("release: a machine that we switched off is woken first") {
  Stage stage;
  stage.begin(planner::PowerOff{});
  REQUIRE(stage.run());
  stage.tick(minutes{1});
  stage.begin(planner::Release{}, Reason::PolicyDeleted);
  CHECK(stage.status.operation.kind == api::OperationKind::PowerOn);
  CHECK(stage.status.operation.step == "Wake");
  stage.spec.mode = api::Mode::Recommend;
  REQUIRE(stage.run());
  CHECK(stage.machine == api::PowerState::On);
  CHECK(stage.clean());
  CHECK(stage.status.memory.owner_policy.empty());
}

TEST_CASE("migrate: its pods leave, the node stays in service") {
  Stage stage;
  stage.pod("default/a-1");
  stage.pod("default/b-1");
  planner::Migrate migrate;
  migrate.moves.push_back({"default", "a-1", "uid-default/a-1", "n2", "", {}});
  stage.begin(migrate, Reason::HighLoad);
  REQUIRE(stage.run_to("Evict"));
  CHECK(stage.tainted(names::kCandidateTaint));
  CHECK_FALSE(stage.node.unschedulable);
  REQUIRE(stage.run());
  CHECK(stage.clean());
  CHECK(stage.pods.size() == 1);
  CHECK(stage.pods[0].name == "b-1");
  CHECK_FALSE(stage.ends.back().failed);
  CHECK(stage.ends.back().reason == Reason::HighLoad);
  // Readings from before are forgotten before the next decision.
  CHECK(stage.status.memory.cool_down_until.has_value());
  CHECK(stage.status.power_state == api::PowerState::On);
}

TEST_CASE("migrate: a pod that does not go ends it in time, and is named") {
  Stage stage;
  stage.on_evict = [](const api::Pod&) {
    return planner::EvictionResult::Outcome::blocked_by_budget;
  };
  stage.pod("default/db-0");
  planner::Migrate migrate;
  migrate.moves.push_back({"default", "db-0", "uid-default/db-0", "n2", "", {}});
  stage.begin(migrate, Reason::PowerHigh);
  REQUIRE(stage.run());
  CHECK(stage.ends.back().reason == Reason::DrainTimeout);
  CHECK(stage.ends.back().failed);
  CHECK(stage.ends.back().message.find("default/db-0") != std::string::npos);
  CHECK(stage.clean());
}

}  // namespace
}  // namespace kwatt::test
