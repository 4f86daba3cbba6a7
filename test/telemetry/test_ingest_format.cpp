#include <doctest/doctest.h>

#include "telemetry/ingest_format.hpp"

namespace kwatt::telemetry {
namespace {

AgentBatch example() {
  AgentSample sample;
  sample.time = *parse_rfc3339("2026-11-20T21:44:03.250Z");
  sample.cpu_busy = Permille{412};
  sample.utilization = Permille{330};
  sample.power = Milliwatts{151'000};
  sample.source = PowerSource::hwmon;
  sample.frequency = Megahertz{2400};
  sample.governor = "powersave";
  sample.milli_celsius = 54'500;
  AgentSample unmetered;
  unmetered.time = *parse_rfc3339("2026-11-20T21:44:04Z");
  return {"n1", "boot-1", {sample, unmetered}};
}

TEST_CASE("a batch comes out as it went in") {
  const AgentBatch batch = example();
  const auto decoded = decode_batch(encode(batch));
  REQUIRE(decoded.has_value());
  CHECK((*decoded == batch));
}

TEST_CASE("the wire format is the documented one") {
  AgentBatch batch = example();
  batch.samples.pop_back();
  CHECK(encode(batch) ==
        R"({"node":"n1","bootID":"boot-1","samples":[{"time":"2026-11-20T21:44:03.250Z",)"
        R"("cpuBusyPermille":412,"utilizationPermille":330,"milliwatts":151000,)"
        R"("source":"hwmon","mhz":2400,"governor":"powersave","milliCelsius":54500}]})");
}

TEST_CASE("unknown keys are skipped, whatever they hold") {
  const auto decoded = decode_batch(
      R"({"version":2,"x":{"samples":[{"time":1}]},"node":"n1","y":[[1],{"z":null}],"samples":[)"
      R"({"time":"2026-11-20T21:44:03Z","extra":{"milliwatts":-1},"more":[1.5,"a"],"u":1.5}]})");
  REQUIRE(decoded.has_value());
  CHECK(decoded->node == "n1");
  REQUIRE(decoded->samples.size() == 1);
  CHECK_FALSE(decoded->samples.front().power);
}

TEST_CASE("what is not a batch is refused with the place") {
  struct Case {
    std::string json;
    std::string message;
  };
  const auto sample = [](const std::string& more) {
    return R"({"node":"n1","samples":[{"time":"2026-11-20T21:44:03Z",)" + more + "}]}";
  };
  const Case cases[] = {
      {"", "not JSON"},
      {"<html>", "not JSON"},
      {R"({"node":"n1")", "not JSON"},
      {R"({"node":"n1"} x)", "not JSON"},
      {"[]", "must not be a list"},
      {"1", "must not be a number"},
      {"{}", "node: must name the node"},
      {R"({"node":1})", "node: must not be a number"},
      {R"({"node":{}})", "node: must not be an object"},
      {R"({"node":"n1","samples":{}})", "samples: must not be an object"},
      {R"({"node":"n1","samples":"x"})", "samples: must not be a text"},
      {R"({"node":"n1","samples":[1]})", "samples[0]: must not be a number"},
      {R"({"node":"n1","samples":[[]]})", "samples[0]: must not be a list"},
      {R"({"node":"n1","samples":[{}]})", "samples[0]: has no time"},
      {R"({"node":"n1","samples":[{"time":"yesterday"}]})", "samples[0].time: must be an RFC"},
      {R"({"node":"n1","samples":[{"time":5}]})", "samples[0].time: must not be a number"},
      {sample(R"("mhz":-1)"), "samples[0].mhz: must be 0 to 100000"},
      {sample(R"("mhz":1.5)"), "samples[0].mhz: must be a whole number"},
      {sample(R"("mhz":null)"), "samples[0].mhz: must not be null"},
      {sample(R"("mhz":"1")"), "samples[0].mhz: must not be a text"},
      {sample(R"("milliwatts":18446744073709551615)"), "samples[0].milliwatts: must not be"},
      {sample(R"("milliwatts":NaN)"), "not JSON"},
      {sample(R"("milliwatts":1)"), "samples[0]: milliwatts and source"},
      {sample(R"("source":"rapl")"), "samples[0]: milliwatts and source"},
      {sample(R"("source":"ipmi")"), "samples[0].source: must be one of"},
      {sample(R"("milliCelsius":150001)"), "milliCelsius: must be 0 to 150000"},
      {sample(R"("governor":")" + std::string(254, 'x') + "\""), "governor: must be at most 253"},
      {sample("\"governor\":\"\xff\""), "not JSON"},
      {R"({"x":)" + std::string(20, '[') + std::string(20, ']') + "}", "nested too deep"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    const auto decoded = decode_batch(c.json);
    REQUIRE_FALSE(decoded.has_value());
    CHECK(decoded.error().code == ErrorCode::parse);
    CHECK_MESSAGE(decoded.error().message.find(c.message) != std::string::npos,
                  decoded.error().message);
  }
}

TEST_CASE("a reading that cannot be true is one sample's matter, not the push's") {
  const auto decoded = decode_batch(
      R"({"node":"n1","samples":[{"time":"2026-11-20T21:44:03Z","cpuBusyPermille":1001,)"
      R"("utilizationPermille":-1,"milliwatts":4294967295,"source":"hwmon"}]})");
  REQUIRE(decoded.has_value());
  CHECK(decoded->samples[0].cpu_busy == Permille{1001});
  CHECK(decoded->samples[0].utilization == Permille{-1});
  CHECK(decoded->samples[0].power == Milliwatts{4294967295});
}

TEST_CASE("at most 600 samples are taken") {
  AgentBatch batch{"n1", "b", {}};
  batch.samples.assign(kMaximumSamples, example().samples.back());
  CHECK(decode_batch(encode(batch)).has_value());
  batch.samples.push_back(batch.samples.back());
  const auto decoded = decode_batch(encode(batch));
  REQUIRE_FALSE(decoded.has_value());
  CHECK(decoded.error().message == "samples: more than 600");
}

TEST_CASE("power sources have stable words") {
  for (const auto source :
       {PowerSource::none, PowerSource::rapl, PowerSource::rapl_psys, PowerSource::hwmon}) {
    CHECK(parse_power_source(to_string(source)) == source);
  }
  CHECK_FALSE(parse_power_source("kepler"));
}

}  // namespace
}  // namespace kwatt::telemetry
