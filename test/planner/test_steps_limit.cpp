// Caps that the machine's BMC enforces: the limit of before is recorded before the first write and
// in force again at the end, whatever happens in between.
#include <algorithm>
#include <functional>

#include <doctest/doctest.h>

#include "planner/request.hpp"
#include "test/planner/stage.hpp"

namespace kwatt::test {
namespace {

TEST_SUITE_BEGIN("redfish");

using api::CapBy;
using planner::Reason;
using planner::SetCap;
namespace names = planner::names;
using Names = std::vector<std::string>;
using Watts = std::vector<std::int64_t>;

const SetCap kCap{100, CapBy::BMC};
const SetCap kUncap{std::nullopt, CapBy::BMC};

void next(Stage& stage, planner::What what, Reason reason = Reason::LowUtilization) {
  stage.begin(std::move(what), reason);
  stage.status.operation.id = "op-2";
}

TEST_CASE("BMC limit: recorded, set, read back, labelled; and given back") {
  struct Case {
    const char* name;
    std::int64_t before;
    planner::What undo;
  };
  const Case cases[] = {{"by a release", 0, kUncap},
                        {"by a release, to another limit", 130, kUncap},
                        {"by the policy's deletion", 0, planner::Release{}},
                        {"by the policy's deletion, to another limit", 130, planner::Release{}}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Stage stage;
    stage.agent_answers = false;  // none is needed
    stage.limit.watts = c.before;
    stage.begin(kCap, Reason::PowerHigh);
    REQUIRE(stage.run());
    CHECK(stage.steps == Names{"SetLimit", "WaitLimit", "Label"});
    CHECK(stage.unsafe == "");
    CHECK(stage.limit.watts == 100);
    CHECK(stage.limits == Watts{100});
    CHECK_FALSE(stage.ends.back().failed);
    CHECK(stage.ends.back().message == "power-cap-watts 100 at the BMC is effective");
    const api::BmcStatus& bmc = stage.status.bmc;
    CHECK(bmc.power_limit);
    CHECK(bmc.requested_cap_watts == 100);
    CHECK(bmc.effective_cap_watts == 100);
    CHECK(bmc.original_known);
    CHECK(bmc.original_cap_watts == c.before);
    CHECK(bmc.cap_min_watts == 60);
    CHECK(bmc.cap_max_watts == 140);
    CHECK(stage.node.meta.labels.get(names::kLabelCapped) == "true");
    CHECK(stage.node.meta.annotations.empty());
    CHECK(stage.status.memory.owner_policy == "default");

    next(stage, c.undo);
    REQUIRE(stage.run());
    CHECK_FALSE(stage.ends.back().failed);
    CHECK(stage.limit.watts == c.before);
    CHECK(bmc.requested_cap_watts == 0);
    CHECK_FALSE(bmc.original_known);
    CHECK(bmc.effective_cap_watts == c.before);
    CHECK_FALSE(stage.node.meta.labels.contains(names::kLabelCapped));
    CHECK(stage.status.memory.owner_policy.empty());
  }
}

// The limit, the record and the order of both, for a crash at every commit.
TEST_CASE("BMC limit: a crash after any commit loses neither the cap nor what was before") {
  for (int crash_at = 0; crash_at < 12; ++crash_at) {
    CAPTURE(crash_at);
    Stage stage;
    stage.limit.watts = 130;
    int looks = 0;
    const auto run = [&] {
      for (int i = 0; i < 200 && stage.busy(); ++i) {
        stage.look(looks++ == crash_at);
        stage.tick(seconds{5});
      }
      return !stage.busy();
    };
    stage.begin(kCap, Reason::PowerHigh);
    REQUIRE(run());
    CHECK(stage.limit.watts == 100);
    CHECK(stage.status.bmc.original_cap_watts == 130);
    next(stage, kUncap);
    REQUIRE(run());
    CHECK(stage.limit.watts == 130);
    CHECK_FALSE(stage.status.bmc.original_known);
    CHECK(stage.unsafe == "");
  }
}

TEST_CASE("BMC limit: another value keeps the record of what was before us") {
  Stage stage;
  stage.limit.watts = 130;
  stage.begin(kCap, Reason::PowerHigh);
  REQUIRE(stage.run());
  next(stage, SetCap{80, CapBy::BMC}, Reason::PowerHigh);
  REQUIRE(stage.run());
  CHECK(stage.limit.watts == 80);
  CHECK(stage.status.bmc.requested_cap_watts == 80);
  CHECK(stage.status.bmc.original_cap_watts == 130);
}

TEST_CASE("BMC limit: what cannot be is refused before or by the BMC, and nothing is held") {
  struct Case {
    const char* name;
    std::function<void(Stage&)> given;
    Reason reason;
    std::string words;
    bool written;
  };
  const Case cases[] = {
      {"below its range", [](Stage& s) { s.limit.lowest = 110; }, Reason::OutOfRange, "110 to 140",
       false},
      {"above its range", [](Stage& s) { s.limit.highest = 90; }, Reason::OutOfRange, "60 to 90",
       false},
      {"a lower limit of somebody else", [](Stage& s) { s.limit.watts = 100; }, Reason::OutOfRange,
       "somebody has set a limit of 100 W", false},
      {"a BMC that does not answer", [](Stage& s) { s.bmc_answers = false; }, Reason::BMCError,
       "connection refused", false},
      {"a BMC that accepts and does nothing", [](Stage& s) { s.heeds_limit = false; },
       Reason::BMCError, "it says none", true},
      {"no driver any more", [](Stage& s) { s.has_driver = false; }, Reason::NoDriver, "no driver",
       false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Stage stage;
    c.given(stage);
    const std::int64_t before = stage.limit.watts;
    stage.begin(kCap, Reason::PowerHigh);
    REQUIRE(stage.run());
    CHECK(stage.now - kNoon < minutes{3});
    CHECK(stage.ends.back().failed);
    CHECK(stage.ends.back().reason == c.reason);
    CHECK(stage.ends.back().message.find(c.words) != std::string::npos);
    CHECK(stage.limits.empty() == !c.written);
    CHECK(stage.limit.watts == before);
    CHECK_FALSE(stage.status.bmc.original_known);
    CHECK(stage.status.bmc.requested_cap_watts == 0);
    CHECK_FALSE(stage.node.meta.labels.contains(names::kLabelCapped));
    // Not tried again at once.
    CHECK(stage.status.bmc.failure_count == 1);
    CHECK(stage.status.bmc.next_attempt > stage.now);
    CHECK(stage.status.memory.owner_policy.empty());
  }
}

TEST_CASE("BMC limit: a range that the BMC does not tell is found by its refusal") {
  Stage stage;
  stage.limit = {0, 0, 0};
  stage.begin(SetCap{150, CapBy::BMC}, Reason::PowerHigh);
  REQUIRE(stage.run());
  CHECK(stage.limits == Watts{150});
  CHECK(stage.ends.back().failed);
  CHECK(stage.ends.back().reason == Reason::OutOfRange);
  CHECK(stage.ends.back().message.find("not in the supported range") != std::string::npos);
  CHECK_FALSE(stage.status.bmc.original_known);
}

TEST_CASE("BMC limit: rounded down is in force, rounded up is not") {
  Stage stage;
  stage.limit_step = 8;
  stage.begin(kCap, Reason::PowerHigh);
  REQUIRE(stage.run());
  CHECK_FALSE(stage.ends.back().failed);
  CHECK(stage.status.bmc.requested_cap_watts == 100);
  CHECK(stage.status.bmc.effective_cap_watts == 96);
}

TEST_CASE("BMC limit: a BMC that goes away keeps the record, and is restored when it is back") {
  Stage stage;
  stage.limit.watts = 130;
  stage.begin(kCap, Reason::PowerHigh);
  REQUIRE(stage.run());
  stage.bmc_answers = false;
  SUBCASE("at a release") {
    next(stage, kUncap);
  }
  SUBCASE("at the policy's deletion") {
    next(stage, planner::Release{}, Reason::PolicyDeleted);
  }
  REQUIRE(stage.run());
  CHECK(stage.ends.back().failed);
  CHECK(stage.ends.back().reason == Reason::BMCError);
  CHECK(stage.status.bmc.original_known);
  CHECK(stage.status.bmc.requested_cap_watts == 100);
  CHECK(stage.status.bmc.next_attempt > stage.now);
  CHECK(stage.status.memory.owner_policy == "default");  // so that release() asks again
  stage.bmc_answers = true;
  next(stage, planner::Release{}, Reason::PolicyDeleted);
  REQUIRE(stage.run());
  CHECK(stage.limit.watts == 130);
  CHECK_FALSE(stage.status.bmc.original_known);
  CHECK(stage.status.bmc.requested_cap_watts == 0);
  CHECK(stage.status.bmc.failure_count == 0);
  CHECK(stage.status.bmc.error.empty());
}

TEST_CASE("BMC limit: a BMC that people took away does not hold a policy's deletion up") {
  Stage stage;
  stage.begin(kCap, Reason::PowerHigh);
  REQUIRE(stage.run());
  stage.has_driver = false;
  next(stage, planner::Release{}, Reason::PolicyDeleted);
  REQUIRE(stage.run());
  CHECK_FALSE(stage.status.bmc.original_known);
  CHECK(stage.messages.end() !=
        std::find_if(stage.messages.begin(), stage.messages.end(), [](const std::string& m) {
          return m.find("a limit of 100 W may still be set") != std::string::npos;
        }));
}

TEST_CASE("BMC limit: from the agent to the BMC and back, the new one comes before the old goes") {
  Stage stage;
  stage.begin(SetCap{100, CapBy::RAPL}, Reason::PowerHigh);
  REQUIRE(stage.run());
  REQUIRE(stage.node.meta.annotations.get(names::kPowerCap) == "100");
  next(stage, kCap, Reason::PowerHigh);
  REQUIRE(stage.run_to("Label"));
  CHECK(stage.limit.watts == 100);
  CHECK(stage.node.meta.annotations.get(names::kPowerCap) == "100");
  REQUIRE(stage.run());
  CHECK(stage.node.meta.annotations.empty());
  CHECK(stage.node.meta.labels.get(names::kLabelCapped) == "true");
  CHECK(stage.status.memory.owner_policy == "default");

  stage.begin(SetCap{100, CapBy::RAPL}, Reason::PowerHigh);
  stage.status.operation.id = "op-3";
  REQUIRE(stage.run_to("SetLimit"));
  CHECK(stage.status.report.applied_request == "op-3");
  CHECK(stage.limit.watts == 100);
  REQUIRE(stage.run());
  CHECK(stage.limit.watts == 0);
  CHECK_FALSE(stage.status.bmc.original_known);
  CHECK(stage.node.meta.annotations.get(names::kPowerCap) == "100");
  CHECK(stage.node.meta.labels.get(names::kLabelCapped) == "true");
}

TEST_CASE("BMC limit: a policy that stops enforcing calls it off, and its release restores") {
  Stage stage;
  stage.heeds_limit = false;
  stage.begin(kCap, Reason::PowerHigh);
  REQUIRE(stage.run_to("WaitLimit"));
  stage.spec.mode = api::Mode::Recommend;
  stage.look();
  CHECK_FALSE(stage.busy());
  CHECK(stage.status.bmc.original_known);
  CHECK(stage.status.memory.owner_policy == "default");
  stage.heeds_limit = true;
  next(stage, planner::Release{}, Reason::RecommendOnly);
  REQUIRE(stage.run());
  CHECK(stage.limit.watts == 0);
  CHECK_FALSE(stage.status.bmc.original_known);
}

TEST_CASE("power off: a BMC that says Off while the node reports is not believed") {
  Stage stage;
  stage.begin(planner::PowerOff{});
  REQUIRE(stage.run_to("Evacuate"));
  // A lying BMC: the node goes on reporting.
  stage.machine = api::PowerState::Off;
  for (int i = 0; i < 5 && stage.status.operation.step == "Evacuate"; ++i) {
    stage.look();
    stage.now += seconds{1};
  }
  CHECK(stage.status.operation.step == "Undo");
  CHECK(stage.resets.empty());
  CHECK(stage.status.operation.reason == "BMCError");
}

TEST_CASE("power off: a machine without graceful shutdown is forced at once") {
  Stage stage;
  stage.reset_refusal = Reason::BMCError;
  stage.begin(planner::PowerOff{});
  REQUIRE(stage.run_to("HardOff"));
  CHECK(stage.now - kNoon < seconds{30});
  REQUIRE(stage.run());
  CHECK(stage.machine == api::PowerState::Off);
  CHECK(stage.resets == Names{"graceful_shutdown", "force_off"});
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::test
