#include <doctest/doctest.h>

#include "reconcilers/policy_status.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;
using std::chrono::seconds;

namespace {
const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

api::EnergyPolicy policy(api::Mode mode = api::Mode::Enforce) {
  api::EnergyPolicy p;
  p.meta.name = "default";
  p.meta.generation = 3;
  p.spec.mode = mode;
  return p;
}

// One node that is on and one that is off, both with a line of 100..300 W.
planner::Snapshot snapshot(TimePoint now = kStart) {
  planner::Snapshot s;
  s.now = now;
  s.sync.synced = true;
  for (const char* name : {"n1", "n2"}) {
    auto node = std::make_shared<api::Node>();
    node->meta.name = name;
    auto machine = std::make_shared<api::NodePower>();
    machine->meta.name = name;
    const bool off = std::string(name) == "n2";
    machine->status.power_state = off ? api::PowerState::Off : api::PowerState::On;
    machine->status.memory.powered_off_by_us = off;
    planner::NodeView& view = s.nodes[name];
    view.node = node;
    view.machine = machine;
    view.ready = !off;
    api::PowerModelSpec model;
    model.idle_milliwatts = 100'000;
    model.max_milliwatts = 300'000;
    view.model = models::model_of(model, Millicores{8000});
  }
  return s;
}

PolicyOutcome outcome(bool enforcing = true) {
  PolicyOutcome o;
  o.enforcing = enforcing;
  o.selected = {"n1", "n2"};
  return o;
}

std::string condition(const api::EnergyPolicyStatus& status, std::string_view type) {
  const api::Condition* found = api::find_condition(status.conditions, type);
  return found == nullptr ? "missing" : found->status + " " + found->reason;
}
}  // namespace

TEST_CASE("policy status: all condition types are there on the first visit") {
  struct Case {
    const char* name;
    api::EnergyPolicy policy;
    PolicyOutcome outcome;
    const char *accepted, *ready, *enforcing, *conflict;
  };
  PolicyOutcome invalid;
  invalid.problems = {"spec.capping.capPercentOfMax: 101 is above 100"};
  PolicyOutcome lost = outcome();
  lost.lost = {{"n3", "stronger"}};
  api::EnergyPolicy suspended = policy();
  suspended.spec.suspend = true;
  const Case cases[] = {
      {"enforced", policy(), outcome(), "True Valid", "True Reconciled", "True Enforce",
       "False None"},
      {"recommended", policy(api::Mode::Recommend), outcome(false), "True Valid", "True Reconciled",
       "False RecommendOnly", "False None"},
      {"suspended", suspended, outcome(false), "True Valid", "True Reconciled", "False Suspended",
       "False None"},
      {"invalid", policy(), invalid, "False Invalid", "False NotAccepted", "False NotAccepted",
       "Unknown NotAccepted"},
      {"a node lost", policy(), lost, "True Valid", "True Reconciled", "True Enforce",
       "True Conflict"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const auto status = policy_status(c.policy, snapshot(), c.outcome);
    CHECK(condition(status, "Accepted") == c.accepted);
    CHECK(condition(status, "Ready") == c.ready);
    CHECK(condition(status, "Enforcing") == c.enforcing);
    CHECK(condition(status, "Conflict") == c.conflict);
    for (const char* type : {"TelemetryAvailable", "CarbonDataAvailable", "Halted"}) {
      CHECK(condition(status, type) != "missing");
    }
    for (const api::Condition& one : status.conditions) CHECK(one.observed_generation == 3);
  }
}

TEST_CASE("policy status: whether carbon data can be relied on is told as the source tells it") {
  using telemetry::CarbonState;
  struct Case {
    const char* source;
    std::optional<CarbonState> carbon;
    const char *want, *message;
  };
  const Case cases[] = {
      {"", std::nullopt, "Unknown NotAsked", "spec.carbon.source is empty"},
      {"", CarbonState{"True", "Published", "300 g/kWh"}, "Unknown NotAsked",
       "spec.carbon.source is empty"},
      {"maps", std::nullopt, "Unknown NotRead", "no carbon intensity has been read"},
      {"maps", CarbonState{"True", "Published", "300 g/kWh"}, "True Published", "300 g/kWh"},
      {"maps", CarbonState{"False", "Stale", "yesterday's"}, "False Stale", "yesterday's"},
  };
  for (const Case& c : cases) {
    api::EnergyPolicy p = policy();
    p.spec.carbon.source = c.source;
    PolicyOutcome o = outcome();
    o.carbon = c.carbon;
    const auto status = policy_status(p, snapshot(), o);
    CHECK(condition(status, "CarbonDataAvailable") == c.want);
    CHECK(api::find_condition(status.conditions, "CarbonDataAvailable")->message == c.message);
  }
}

TEST_CASE("policy status: an invalid policy keeps the decisions that stand") {
  api::EnergyPolicy p = policy();
  p.status.power_off = {"n9"};
  p.status.nodes.off = 1;
  PolicyOutcome invalid;
  invalid.problems = {"spec.interval: must be positive"};
  const auto status = policy_status(p, snapshot(), invalid);
  CHECK(status.power_off == std::vector<std::string>{"n9"});
  CHECK(api::find_condition(status.conditions, "Accepted")->message ==
        "spec.interval: must be positive");
}

TEST_CASE("policy status: nodes and watts are counted, an off machine draws nothing") {
  const auto status = policy_status(policy(), snapshot(), outcome());
  CHECK(status.nodes.selected == 2);
  CHECK(status.nodes.on == 1);
  CHECK(status.nodes.off == 1);
  CHECK(status.nodes.unready == 0);
  CHECK(status.power.estimated_milliwatts == 100'000);
  CHECK(status.power.baseline_milliwatts == 200'000);
}

TEST_CASE("policy status: lists are bounded with the total beside them") {
  PolicyOutcome o = outcome();
  for (int i = 0; i < 250; ++i) {
    planner::Action action;
    action.node = "n" + std::to_string(1000 + i);
    action.what = planner::PowerOff{};
    o.plan.actions.push_back(action);
  }
  const auto status = policy_status(policy(), snapshot(), o);
  CHECK(status.power_off.size() == 100);
  CHECK(status.power_off_total == 250);
}

TEST_CASE("policy status: only what matters is worth a write") {
  api::EnergyPolicy p = policy();
  const auto first = policy_status(p, snapshot(kStart), outcome());
  p.status = first;
  const auto second = policy_status(p, snapshot(kStart + seconds{5}), outcome());
  CHECK_FALSE(worth_writing(first, second, seconds{30}));
  CHECK(worth_writing(first, policy_status(p, snapshot(kStart + seconds{31}), outcome()),
                      seconds{30}));
  PolicyOutcome other = outcome();
  other.last_action = "PowerOff n2: off";
  CHECK(worth_writing(first, policy_status(p, snapshot(kStart + seconds{5}), other), seconds{30}));
}

TEST_SUITE("telemetry") {
  TEST_CASE("policy status: what telemetry there is, and what is wrong with its sources") {
    const std::vector<std::string> troubles = {"ipmi: HTTP 502", "kepler: no series"};
    struct Case {
      const char* name;
      std::optional<Duration> age;  // of the only sample; none: there is none
      std::vector<std::string> problems;
      const char *condition, *message;
    };
    const Case cases[] = {
        {"fresh", Duration{0}, {}, "True Samples", "samples of 1 of 2 selected nodes"},
        {"fresh, with a source that fails", Duration{0}, troubles, "True SourceFailing",
         "samples of 1 of 2 selected nodes; ipmi: HTTP 502; kepler: no series"},
        {"old",
         seconds{31},
         {},
         "False StaleTelemetry",
         "all samples are old: nothing is decided that takes capacity away"},
        {"old, with a source that fails", seconds{31}, troubles, "False SourceFailed",
         "ipmi: HTTP 502; kepler: no series"},
        {"none",
         {},
         {},
         "False NoSamples",
         "no agent has sent samples: frequency and caps are not decided"},
        {"none, with a source that fails",
         {},
         troubles,
         "False SourceFailed",
         "ipmi: HTTP 502; kepler: no series"},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      planner::Snapshot s = snapshot();
      if (c.age) {
        s.nodes["n1"].samples = {{kStart - *c.age, Permille{500}, Permille{500}, watts(120), true}};
      }
      PolicyOutcome o = outcome();
      o.telemetry_problems = c.problems;
      const auto status = policy_status(policy(), s, o);
      CHECK(condition(status, "TelemetryAvailable") == c.condition);
      CHECK(api::find_condition(status.conditions, "TelemetryAvailable")->message == c.message);
    }
  }
}
