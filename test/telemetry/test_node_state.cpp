#include <doctest/doctest.h>

#include "telemetry/node_state.hpp"

namespace kwatt::telemetry {
namespace {

api::StringMap labels(std::initializer_list<std::pair<const char*, const char*>> pairs) {
  api::StringMap map;
  for (const auto& [key, value] : pairs) map.set(key, value);
  return map;
}

TEST_CASE("WAO's labels tell the fake monitor what to see; what is not there is 0") {
  const auto all =
      fake_state(labels({{"waofed.bitmedia.co.jp/node-status.cpuusage", "0.35"},
                         {"waofed.bitmedia.co.jp/node-status.ambienttemp", "22.5"},
                         {"waofed.bitmedia.co.jp/node-status.staticpressurediff", "-0.2"}}));
  REQUIRE(all.has_value());
  CHECK(all->cpu_usage == 0.35);
  CHECK(all->ambient_celsius == 22.5);
  CHECK(all->static_pressure_pascal == -0.2);
  const auto none = fake_state({});
  REQUIRE(none.has_value());
  CHECK(none->cpu_usage == 0.0);

  const auto power = fake_power(labels({{"waofed.bitmedia.co.jp/fakepcp.basewatts", "100"},
                                        {"waofed.bitmedia.co.jp/fakepcp.wpc", "5"}}));
  REQUIRE(power.has_value());
  CHECK(power->base == watts(100));
  CHECK(power->per_core == watts(5));
  CHECK(fake_power({})->base == watts(0));
}

TEST_CASE("a label that says nothing sensible is named") {
  struct Case {
    const char *label, *value, *want;
  };
  const Case cases[] = {
      {"node-status.cpuusage", "much",
       "label waofed.bitmedia.co.jp/node-status.cpuusage: \"much\" must be a number"},
      {"node-status.cpuusage", "1.5",
       "label waofed.bitmedia.co.jp/node-status.cpuusage: \"1.5\" must be from 0 to 1"},
      {"node-status.ambienttemp", "nan",
       "label waofed.bitmedia.co.jp/node-status.ambienttemp: \"nan\" must be a number"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.value);
    const auto read =
        fake_state(labels({{(std::string("waofed.bitmedia.co.jp/") + c.label).c_str(), c.value}}));
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().message == c.want);
  }
  const auto power = fake_power(labels({{"waofed.bitmedia.co.jp/fakepcp.wpc", "-5"}}));
  REQUIRE_FALSE(power.has_value());
  CHECK(power.error().message ==
        "label waofed.bitmedia.co.jp/fakepcp.wpc: \"-5\" must be whole watts from 0 to 100000");
}

TEST_CASE("ranges of temperatures come from both labels, or not at all") {
  PredictionPoint point;
  REQUIRE(
      read_ranges(labels({{"ambient/min", "10"}, {"ambient/max", "40"}, {"cpu1/max", "90"}}), point)
          .has_value());
  REQUIRE(point.ambient_range.has_value());
  CHECK(point.ambient_range->lowest_celsius == 10);
  CHECK(point.ambient_range->highest_celsius == 40);
  CHECK_FALSE(point.cpu1_range.has_value());
  const auto wrong = read_ranges(labels({{"cpu2/min", "50"}, {"cpu2/max", "50"}}), point);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().message == "label cpu2/max: \"50\" must be above cpu2/min");
}

TEST_CASE("WAO's pressure API") {
  const auto state = read_pressure_answer(
      R"({"code":200,"sensor":[{"pressure":0.01,"sensorid":"101037B","temperature":26.02}]})");
  REQUIRE(state.has_value());
  CHECK(state->static_pressure_pascal == 0.01);
  // The sensor stands behind the server: its temperature is not that of the inlet.
  CHECK_FALSE(state->ambient_celsius.has_value());
  for (const char* bad : {"", "[]", R"({"sensor":[]})", R"({"sensor":{}})",
                          R"({"sensor":[{"pressure":"high"}]})", R"({"sensor":[7]})"}) {
    CAPTURE(bad);
    CHECK_FALSE(read_pressure_answer(bad).has_value());
  }
}

TEST_CASE("ipmi_exporter: the air before the machine, by the names of the sensors") {
  struct Case {
    const char *name, *text;
    std::optional<double> ambient, cpu1;
  };
  const Case cases[] = {{"ambient before inlet",
                         "# TYPE ipmi_temperature_celsius gauge\n"
                         "ipmi_temperature_celsius{id=\"1\",name=\"Inlet Temp\"} 19\n"
                         "ipmi_temperature_celsius{id=\"2\",name=\"Ambient\"} 22\n"
                         "ipmi_temperature_celsius{id=\"3\",name=\"CPU1 Temp\"} 55.5\n"
                         "ipmi_fan_speed_rpm{id=\"4\",name=\"Ambient fan\"} 4000\n",
                         22, 55.5},
                        {"the coldest of several",
                         "ipmi_temperature_celsius{name=\"Intake 1\"} 25\n"
                         "ipmi_temperature_celsius{name=\"INTAKE 2\"} 23 1700000000000\n",
                         23, std::nullopt},
                        {"without a reading", "ipmi_temperature_celsius{name=\"Ambient\"} NaN\n",
                         std::nullopt, std::nullopt},
                        {"not plausible", "ipmi_temperature_celsius{name=\"Ambient\"} 999\n",
                         std::nullopt, std::nullopt},
                        {"something else", "node_load1 0.5\n", std::nullopt, std::nullopt},
                        {"no number", "ipmi_temperature_celsius{name=\"Ambient\"} warm\n",
                         std::nullopt, std::nullopt}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto state = read_ipmi_metrics(c.text);
    CHECK(state.has_value() == c.ambient.has_value());
    if (!state) continue;
    CHECK(state->ambient_celsius == c.ambient);
    CHECK(state->cpu1_celsius == c.cpu1);
  }
}

TEST_CASE("Redfish: the intake's temperature and those of the CPUs") {
  const auto state = read_redfish_thermal(
      R"({"Temperatures":[{"PhysicalContext":"CPU","ReadingCelsius":61},
          {"PhysicalContext":"Intake","ReadingCelsius":24},
          {"PhysicalContext":"Intake","ReadingCelsius":21.5},
          {"PhysicalContext":"Exhaust","ReadingCelsius":12},
          {"PhysicalContext":"CPU","ReadingCelsius":58},{"PhysicalContext":"Intake","ReadingCelsius":null}]})");
  REQUIRE(state.has_value());
  CHECK(state->ambient_celsius == 21.5);
  CHECK(state->cpu1_celsius == 61);
  CHECK(state->cpu2_celsius == 58);
  CHECK_FALSE(read_redfish_thermal(R"({"Temperatures":[]})").has_value());
  CHECK_FALSE(read_redfish_thermal("{}").has_value());
}

TEST_CASE("of several agents the last one that tells something counts") {
  NodeState state;
  state.cpu_usage = 0.2;
  state.ambient_celsius = 20;
  NodeState later;
  later.ambient_celsius = 25;
  later.static_pressure_pascal = 0.1;
  lay_over(state, later);
  CHECK(state.cpu_usage == 0.2);
  CHECK(state.ambient_celsius == 25);
  CHECK(state.static_pressure_pascal == 0.1);
}

}  // namespace
}  // namespace kwatt::telemetry
