#include <doctest/doctest.h>

#include "planner/draw.hpp"
#include "planner/request.hpp"

TEST_SUITE("telemetry") {
  using namespace kwatt;
  using namespace kwatt::planner;
  using api::PowerState;
  using std::chrono::minutes;
  using std::chrono::seconds;

  namespace {
  const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:00Z");

  // A machine of 100 W idle and 300 W at full load, 5 W off, that boots in 60 s with 12 kJ.
  NodeView machine(PowerState state, bool off_by_us = false) {
    NodeView view;
    auto node = std::make_shared<api::Node>();
    node->meta.name = "n1";
    view.node = node;
    view.ready = state == PowerState::On;
    auto power = std::make_shared<api::NodePower>();
    power->status.power_state = state;
    power->status.power_state_since = kNow - minutes{5};
    power->status.memory.powered_off_by_us = off_by_us;
    view.machine = power;
    api::PowerModelSpec model;
    model.idle_milliwatts = 100'000;
    model.max_milliwatts = 300'000;
    model.standby_milliwatts = 5'000;
    model.boot_seconds = 60;
    model.boot_joules = 12'000;
    view.model = models::model_of(model, Millicores{8000});
    return view;
  }

  void sample(NodeView& view, Duration ago, std::int64_t permille,
              std::optional<std::int64_t> shown = std::nullopt) {
    view.samples.push_back({kNow - ago, Permille{permille}, Permille{permille},
                            watts(shown.value_or(0)), shown.has_value()});
  }

  void hold_back(NodeView& view, std::string_view label, std::string_view value,
                 std::string_view key, bool by_us = true) {
    auto node = std::make_shared<api::Node>(*view.node);
    node->meta.labels.set(label, value);
    node->meta.annotations.set(key, "1");
    if (by_us) {
      RequestNote note{"id", kNow, "p", {std::string(key)}};
      node->meta.annotations.set(names::kRequest, format_request(note));
    }
    view.node = node;
  }
  }  // namespace

  TEST_CASE("draw: what a machine draws and would draw, by its state") {
    struct Case {
      const char* name;
      NodeView view;
      std::int64_t actual, baseline;
      bool measured;
    };
    std::vector<Case> cases;
    cases.push_back({"on, nothing known", machine(PowerState::On), 100, 100, false});
    cases.push_back({"off by us", machine(PowerState::Off, true), 5, 100, false});
    cases.push_back({"off by somebody else", machine(PowerState::Off), 5, 5, false});
    cases.push_back({"booting after us", machine(PowerState::PoweringOn, true), 200, 100, false});
    cases.push_back({"booting by itself", machine(PowerState::PoweringOn), 200, 200, false});
    cases.push_back({"shutting down", machine(PowerState::PoweringOff), 100, 100, false});
    cases.push_back({"did not wake", machine(PowerState::WakeFailed, true), 100, 100, false});
    cases.push_back({"unknown", machine(PowerState::Unknown), 100, 100, false});
    {
      Case c{"on, load without a meter", machine(PowerState::On), 200, 200, false};
      sample(c.view, seconds{5}, 500);
      cases.push_back(c);
    }
    {
      Case c{"on, measured", machine(PowerState::On), 120, 120, true};
      sample(c.view, seconds{5}, 500, 120);
      cases.push_back(c);
    }
    {
      Case c{"on, no load is known but that of its pods", machine(PowerState::On), 150, 150, false};
      auto node = std::make_shared<api::Node>(*c.view.node);
      node->allocatable.cpu = Millicores{8000};
      c.view.node = node;
      auto spec = std::make_shared<api::PodTemplate>();
      spec->requests.cpu = Millicores{2000};
      auto pod = std::make_shared<api::Pod>();
      pod->spec = spec;
      c.view.pods.push_back(pod);
      cases.push_back(c);
    }
    {
      Case c{"off, measured by its BMC", machine(PowerState::Off, true), 7, 100, true};
      sample(c.view, seconds{5}, 0, 7);
      c.view.newest.meter = kBmcMeter;
      cases.push_back(c);
    }
    {
      Case c{"off, and an agent whose clock is ahead", machine(PowerState::Off, true), 5, 100,
             false};
      sample(c.view, seconds{5}, 0, 120);
      cases.push_back(c);
    }
    {
      Case c{"on, the meter has been silent for long", machine(PowerState::On), 100, 100, false};
      sample(c.view, minutes{3}, 500, 120);
      cases.push_back(c);
    }
    {
      Case c{"off, and the newest sample is of the time before", machine(PowerState::Off, true), 5,
             100, false};
      auto power = std::make_shared<api::NodePower>(*c.view.machine);
      power->status.power_state_since = kNow - seconds{2};
      c.view.machine = power;
      sample(c.view, seconds{5}, 10, 120);
      cases.push_back(c);
    }
    {
      Case c{"on, only the agent's report", machine(PowerState::On), 130, 130, true};
      auto power = std::make_shared<api::NodePower>(*c.view.machine);
      power->status.report.watts = 130;
      power->status.report.time = kNow - minutes{4};
      c.view.machine = power;
      cases.push_back(c);
      power = std::make_shared<api::NodePower>(*power);
      power->status.report.time = kNow - minutes{7};
      c.name = "on, an old report";
      c.view.machine = power;
      c.actual = c.baseline = 100;
      c.measured = false;
      cases.push_back(c);
    }
    for (const Case& c : cases) {
      INFO(c.name);
      const Draw draw = draw_of(c.view, kNow);
      CHECK(draw.power.actual == watts(c.actual));
      CHECK(draw.power.baseline == watts(c.baseline));
      CHECK(draw.measured() == c.measured);
    }
  }

  TEST_CASE("draw: the learned model goes before the fitted curve, in states that it has seen") {
    models::PowerSamples seen;
    for (std::int64_t i = 0; i < 240; ++i) {
      models::MachineState state;
      state.utilization = state.busy = Permille{100 + 2 * i};  // 10 % to 57.8 %
      seen.add(state, Milliwatts{150'000 + 100 * i}, kNow + seconds{5 * i});
    }
    const auto learned = models::learn_power(seen.samples());
    REQUIRE(learned.has_value());
    models::PowerFit fit;
    fit.curve.points.fill(watts(90));
    const auto drawn = [&](std::int64_t load) {
      NodeView view = machine(PowerState::On);
      sample(view, seconds{5}, load);
      view.fit = std::make_shared<const models::PowerFit>(fit);
      view.learned = std::make_shared<const models::LearnedPower>(*learned);
      return draw_of(view, kNow);
    };
    const Draw inside = drawn(300);
    CHECK(inside.basis == api::PowerBasis::Fitted);
    CHECK(std::abs((inside.power.actual - watts(160)).count()) < 1000);
    CHECK(inside.power.baseline == inside.power.actual);
    CHECK(drawn(900).power.actual == watts(90));
  }

  TEST_CASE("draw: a machine that is held back saves against its own model, and only then") {
    struct Case {
      const char* name;
      void (*change)(NodeView&);
      std::int64_t baseline;  // at a load of which the model says 200 W; 150 W are measured
    };
    const Case cases[] = {
        {"left alone", [](NodeView&) {}, 150},
        {"slowed down",
         [](NodeView& v) { hold_back(v, names::kLabelFrequency, "low", names::kGovernor); }, 200},
        {"capped", [](NodeView& v) { hold_back(v, names::kLabelCapped, "true", names::kPowerCap); },
         200},
        {"capped by its BMC",
         [](NodeView& v) {
           auto power = std::make_shared<api::NodePower>(*v.machine);
           power->status.bmc.requested_cap_watts = power->status.bmc.effective_cap_watts = 180;
           v.machine = power;
         },
         200},
        {"capped by its BMC, by somebody else",
         [](NodeView& v) {
           auto power = std::make_shared<api::NodePower>(*v.machine);
           power->status.bmc.effective_cap_watts = 180;
           v.machine = power;
         },
         150},
        {"slow again at normal frequency",
         [](NodeView& v) { hold_back(v, names::kLabelFrequency, "normal", names::kGovernor); },
         150},
        {"slowed down by hand",
         [](NodeView& v) { hold_back(v, names::kLabelFrequency, "low", names::kGovernor, false); },
         150},
        {"slowed down, without a model of its own",
         [](NodeView& v) {
           hold_back(v, names::kLabelFrequency, "low", names::kGovernor);
           v.model = models::model_of({}, Millicores{8000});
         },
         150},
        {"slowed down, but no load is known",
         [](NodeView& v) {
           hold_back(v, names::kLabelFrequency, "low", names::kGovernor);
           v.samples.back().at = kNow - minutes{10};
         },
         100},
        {"slowed down, but only the packages are measured",
         [](NodeView& v) {
           hold_back(v, names::kLabelFrequency, "low", names::kGovernor);
           v.newest.whole_machine = false;
         },
         150},
        {"slowed down, and the meter has fallen silent",
         [](NodeView& v) {
           hold_back(v, names::kLabelFrequency, "low", names::kGovernor);
           v.newest.power_until = kNow - seconds{1};
         },
         200},
        {"slowed down, and what its meter taught is less than its model says",
         [](NodeView& v) {
           hold_back(v, names::kLabelFrequency, "low", names::kGovernor);
           v.newest.power_until = kNow - seconds{1};
           models::PowerFit fit;
           fit.curve.points.fill(watts(90));
           v.fit = std::make_shared<const models::PowerFit>(fit);
         },
         90},
        {"slowed down, and draws more than its model says",
         [](NodeView& v) {
           hold_back(v, names::kLabelFrequency, "low", names::kGovernor);
           v.samples.back().power = watts(250);
         },
         250},
    };
    for (const Case& c : cases) {
      INFO(c.name);
      NodeView view = machine(PowerState::On);
      auto power = std::make_shared<api::NodePower>(*view.machine);
      power->status.power_state_since = kNow - minutes{30};
      view.machine = power;
      sample(view, seconds{5}, 500, 150);
      c.change(view);
      CHECK(draw_of(view, kNow).power.baseline == watts(c.baseline));
    }
  }

  TEST_CASE(
      "draw: a boot of unknown length draws the maximum, one that seems too cheap draws idle") {
    NodeView view = machine(PowerState::PoweringOn, true);
    view.model.boot = Duration{0};
    CHECK(draw_of(view, kNow).power.actual == watts(300));
    view.model.boot = minutes{10};
    CHECK(draw_of(view, kNow).power.actual == watts(100));
  }
}
