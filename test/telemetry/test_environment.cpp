#include <cmath>

#include <doctest/doctest.h>

#include "telemetry/environment.hpp"

namespace kwatt::telemetry {
namespace {

const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:00Z");
const std::vector<std::string> kLabels{"node", "instance"};

NodeDirectory nodes() {
  NodeDirectory directory;
  directory.add("n1", "10.0.0.1", Millicores{4000});
  directory.add("n2", "10.0.0.2", Millicores{4000});
  return directory;
}

Series sensor(const std::string& instance, const std::string& name, double value) {
  Series series;
  series.labels = {{"instance", instance}, {"name", name}};
  series.value = value;
  return series;
}

TEST_SUITE_BEGIN("telemetry");

TEST_CASE("sensors: what vendors call them") {
  for (const char* name : {"Ambient", "Ambient Temp", "Inlet Temp", "inlet_ambient",
                           "01-Inlet Ambient", "System Inlet Temp"}) {
    CAPTURE(name);
    CHECK(sensor_of(name) == Sensor::ambient);
  }
  for (const char* name : {"CPU1", "CPU1 Temp", "CPU 1 Temperature", "cpu1_temp"}) {
    CAPTURE(name);
    CHECK(sensor_of(name) == Sensor::cpu1);
  }
  CHECK(sensor_of("CPU2 Temp") == Sensor::cpu2);
  for (const char* name : {"Exhaust Temp", "DIMM A1", "CPU1 VRM Temp", "CPU12", "CPU", ""}) {
    CAPTURE(name);
    CHECK(sensor_of(name) == Sensor::other);
  }
}

TEST_CASE("temperatures: by node, WAO's own sensor name first, else the coolest inlet") {
  Environments out;
  read_temperatures(
      out,
      {sensor("10.0.0.1:9290", "Inlet Temp", 19), sensor("10.0.0.1:9290", "Ambient", 21),
       sensor("10.0.0.1:9290", "Inlet 2", 18), sensor("10.0.0.1:9290", "CPU1", 48.5),
       sensor("10.0.0.1:9290", "CPU2", 51), sensor("10.0.0.1:9290", "Exhaust", 40),
       sensor("n2:9290", "Inlet A", 25), sensor("n2:9290", "Inlet B", 23)},
      kLabels, nodes(), kNow);
  CHECK(out.rejected.empty());
  REQUIRE(out.by_node.size() == 2);
  CHECK(out.by_node["n1"].ambient == Millicelsius{21'000});
  CHECK(out.by_node["n1"].cpu1 == Millicelsius{48'500});
  CHECK(out.by_node["n1"].cpu2 == Millicelsius{51'000});
  CHECK(out.by_node["n2"].ambient == Millicelsius{23'000});
  CHECK_FALSE(out.by_node["n2"].cpu1.has_value());
}

TEST_CASE("temperatures: values that cannot be are rejected one by one") {
  Environments out;
  Series text = sensor("n1", "CPU2", 0);
  text.is_number = false;
  read_temperatures(out,
                    {sensor("n1", "Ambient", std::nan("")), sensor("n1", "CPU1", 900), text,
                     sensor("other", "Ambient", 20), sensor("", "Ambient", 20)},
                    kLabels, nodes(), kNow);
  CHECK(out.by_node.empty());
  CHECK(out.rejected[Rejection::not_a_number] == 2);
  CHECK(out.rejected[Rejection::out_of_range] == 1);
  CHECK(out.rejected[Rejection::unknown_node] == 1);
  CHECK(out.rejected[Rejection::no_label] == 1);
  CHECK(out.example == "sensor \"Ambient\" of n1 has no value");
}

TEST_CASE("pressures: one for each node, in pascals") {
  Environments out;
  read_pressures(out, {sensor("n1", "", 12.5), sensor("n2", "", 1e9)}, kLabels, nodes(), kNow);
  CHECK(out.by_node["n1"].static_pressure_pascal == 12.5);
  CHECK(out.rejected[Rejection::out_of_range] == 1);
}

TEST_CASE("environment: what is old is not known") {
  Environments air;
  air.by_node["n1"].at = kNow;
  EnvironmentStore store;
  store.take(air);
  CHECK(store.find("n1", kNow + EnvironmentStore::kBelieved) != nullptr);
  CHECK(store.find("n1", kNow + EnvironmentStore::kBelieved + Duration{1}) == nullptr);
  CHECK(store.find("n2", kNow) == nullptr);
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::telemetry
