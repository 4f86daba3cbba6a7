#include <doctest/doctest.h>

#include "reconcilers/machine_power.hpp"
#include "reconcilers/power_history.hpp"

namespace kwatt::reconcilers {
namespace {

using api::PowerBasis;
using std::chrono::minutes;
using std::chrono::seconds;
const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:00Z");

// A machine whose model is a line of 100..300 W.
planner::NodeView node() {
  planner::NodeView view;
  auto object = std::make_shared<api::Node>();
  object->meta.name = "n1";
  object->allocatable.cpu = Millicores{4000};
  view.node = object;
  auto machine = std::make_shared<api::NodePower>();
  machine->status.power_state = api::PowerState::On;
  view.machine = machine;
  api::PowerModelSpec model;
  model.idle_milliwatts = 100'000;
  model.max_milliwatts = 300'000;
  view.model = models::model_of(model, Millicores{4000});
  return view;
}

// Its only sample from now on.
void sample(planner::NodeView& view, Duration age, std::int64_t load,
            std::optional<std::int64_t> of_watts = {}, std::string_view meter = "agent") {
  planner::TelemetrySample s;
  s.at = kNow - age;
  s.utilization = s.busy = Permille{load};
  view.newest = {};
  view.newest.utilization_until = s.at + seconds{30};
  if (of_watts) {
    s.power = watts(*of_watts);
    s.has_power = true;
    view.newest.power_at = s.at - seconds{1};
    view.newest.power_until = s.at + seconds{30};
    view.newest.meter = meter;
  }
  view.samples = {s};
}

std::shared_ptr<const models::PowerFit> fitted() {
  models::PowerFit fit;
  api::PowerModelSpec line;
  line.idle_milliwatts = 50'000;
  line.max_milliwatts = 150'000;
  fit.curve = models::model_of(line, Millicores{4000}).curve;
  fit.error_permille = 47;
  return std::make_shared<const models::PowerFit>(fit);
}

void run_pod(planner::NodeView& view, std::int64_t millicores) {
  auto spec = std::make_shared<api::PodTemplate>();
  spec->requests.cpu = Millicores{millicores};
  auto pod = std::make_shared<api::Pod>();
  pod->spec = spec;
  view.pods.push_back(pod);
}

TEST_SUITE("telemetry") {
  TEST_CASE("power: measured before fitted before specified before default") {
    planner::NodeView view = node();
    sample(view, seconds{5}, 500, 170);
    view.fit = fitted();
    api::MachinePower power = machine_power(view, kNow);
    CHECK(power.source == PowerBasis::Measured);
    CHECK(power.milliwatts == 170'000);
    CHECK(power.meter == "agent");
    CHECK(power.time == kNow - seconds{6});

    sample(view, seconds{5}, 500);
    power = machine_power(view, kNow);
    CHECK(power.source == PowerBasis::Fitted);
    CHECK(power.milliwatts == 100'000);
    CHECK(power.error_percent == 5);
    CHECK(power.meter == "");
    CHECK_FALSE(power.time.has_value());

    view.fit = nullptr;
    power = machine_power(view, kNow);
    CHECK(power.source == PowerBasis::Specified);
    CHECK(power.milliwatts == 200'000);
    CHECK(power.error_percent == 0);

    view.model = models::model_of({}, Millicores{4000});
    power = machine_power(view, kNow);
    CHECK(power.source == PowerBasis::Default);
    CHECK(power.milliwatts > 0);
  }

  TEST_CASE("power: a reading counts as long as its source's own periods allow, and no longer") {
    planner::NodeView view = node();
    sample(view, seconds{30}, 500, 170);
    CHECK(machine_power(view, kNow).source == PowerBasis::Measured);
    sample(view, seconds{31}, 500, 170);
    CHECK(machine_power(view, kNow).source == PowerBasis::Specified);
  }

  TEST_CASE("power: without a measured load the pods' requests stand for it") {
    planner::NodeView view = node();
    CHECK(machine_power(view, kNow).milliwatts == 100'000);
    run_pod(view, 1000);
    CHECK(machine_power(view, kNow).milliwatts == 150'000);
    sample(view, minutes{5}, 900);  // a load of long ago is no load
    CHECK(machine_power(view, kNow).milliwatts == 150'000);
    run_pod(view, 9000);
    CHECK(machine_power(view, kNow).milliwatts == 300'000);
  }

  TEST_CASE("power: an off machine draws what its BMC says, else nothing that anybody knows of") {
    planner::NodeView view = node();
    auto machine = std::make_shared<api::NodePower>();
    machine->status.power_state = api::PowerState::Off;
    machine->status.report.watts = 120;
    machine->status.report.time = kNow;
    view.machine = machine;
    view.fit = fitted();
    sample(view, seconds{5}, 0, 120, "agent");
    CHECK(machine_power(view, kNow) == api::MachinePower{});
    sample(view, seconds{5}, 0, 6, "bmc");
    CHECK(machine_power(view, kNow).milliwatts == 6'000);
    view.samples.clear();
    view.model.standby = watts(4);
    CHECK(machine_power(view, kNow).milliwatts == 4'000);
    CHECK(machine_power(view, kNow).source == PowerBasis::Specified);
  }

  TEST_CASE("power: the meter has the name that people know it by") {
    CHECK(to_string(telemetry::Source::agent) == planner::kAgentMeter);
    CHECK(to_string(telemetry::Source::bmc) == planner::kBmcMeter);
    planner::NodeView view = node();
    auto machine = std::make_shared<api::NodePower>(*view.machine);
    machine->spec.bmc.address = "redfish+https://10.0.0.7/redfish/v1/Systems/1";
    machine->status.report.watts_source = "rapl-psys";
    view.machine = machine;
    struct Case {
      const char *meter, *name;
    };
    for (const Case& c : {Case{"agent", "rapl-psys"}, Case{"bmc", "redfish"},
                          Case{"ipmi-exporter", "ipmi-exporter"}}) {
      sample(view, seconds{5}, 500, 170, c.meter);
      CHECK(machine_power(view, kNow).meter == c.name);
    }
    machine->spec.bmc.address = "ipmi://10.0.0.7";
    sample(view, seconds{5}, 500, 170, "bmc");
    CHECK(machine_power(view, kNow).meter == "ipmi");
  }

  TEST_CASE("power: the agent's report counts until samples come, while it is fresh") {
    planner::NodeView view = node();
    auto machine = std::make_shared<api::NodePower>(*view.machine);
    machine->status.report.watts = 130;
    machine->status.report.time = kNow - minutes{5};
    view.machine = machine;
    CHECK(machine_power(view, kNow).milliwatts == 130'000);
    CHECK(machine_power(view, kNow + minutes{2}).source == PowerBasis::Specified);
  }

  TEST_CASE(
      "power history: a meter that falls silent leaves a fit; packages give way to machines") {
    PowerHistory history;
    std::vector<telemetry::Reading> readings;
    const auto add = [&](std::int64_t load, std::int64_t of_watts, bool whole) {
      telemetry::Reading reading;
      reading.at = kNow + seconds{static_cast<std::int64_t>(readings.size())};
      reading.has_utilization = true;
      reading.utilization = Permille{load};
      reading.power = watts(of_watts);
      reading.whole_machine = whole;
      readings.push_back(reading);
    };
    for (int i = 0; i < 40; ++i) add(25 * i, 20 + i, false);
    history.observe("n1", readings);
    REQUIRE(history.fit("n1") != nullptr);
    CHECK(history.fit("n1")->curve.maximum() < watts(70));
    CHECK(history.fit("n2") == nullptr);

    for (int i = 0; i < 20; ++i) add(50 * i, 100 + 10 * i, true);
    history.observe("n1", readings);
    CHECK(history.fit("n1") == nullptr);  // twenty points are too few
    for (int i = 0; i < 20; ++i) add(50 * i, 100 + 10 * i, true);
    for (int i = 0; i < 20; ++i) add(50 * i, 30, false);  // not of the machine
    history.observe("n1", readings);
    const auto fit = history.fit("n1");
    REQUIRE(fit != nullptr);
    CHECK(fit->points == 40);
    CHECK(std::abs(fit->curve.maximum().count() - 300'000) < 1000);
    history.observe("n1", readings);
    CHECK(history.fit("n1") == fit);  // nothing new, nothing made
    history.forget("n1");
    CHECK(history.fit("n1") == nullptr);
  }

  TEST_CASE("power history: a meter of the whole machine teaches a model, temperatures with it") {
    PowerHistory history;
    telemetry::Environment air;
    air.cpu1 = Millicelsius{50'000};
    air.cpu2 = Millicelsius{55'000};
    CHECK(history.learned("n1") == nullptr);
    const auto measure = [&](bool whole_machine) {
      for (std::int64_t i = 0; i < 200; ++i) {
        telemetry::Reading reading;
        reading.at = kNow + seconds{5 * i} + (whole_machine ? minutes{60} : minutes{0});
        reading.has_utilization = true;
        reading.utilization = reading.busy = Permille{100 + 4 * i};
        reading.power = Milliwatts{100'000 + 200 * i};
        reading.whole_machine = whole_machine;
        air.cpu2 = Millicelsius{50'000 + 100 * i};
        history.observe("n1", {reading}, &air);
      }
    };
    measure(false);
    CHECK(history.learn("n1") == nullptr);  // packages are not the machine
    measure(true);
    const auto learned = history.learn("n1");
    REQUIRE(learned != nullptr);
    CHECK(learned->form().find("cpu temperature") != std::string::npos);
    CHECK(learned->error_permille() <= 20);
    CHECK(history.learned("n1") == learned);
    history.forget("n1");
    CHECK(history.learned("n1") == nullptr);
  }
}

}  // namespace
}  // namespace kwatt::reconcilers
