#pragma once
// The wire format in which agents push their samples: the body of POST /metrics-ingest with
// Content-Type application/json. Both ends are here, so they cannot drift apart.
//
//   {"node":"n1","bootID":"6d0f…","samples":[
//     {"time":"2026-11-20T21:44:03.250Z","cpuBusyPermille":412,"utilizationPermille":330,
//      "milliwatts":151000,"source":"hwmon","mhz":2400,"governor":"powersave",
//      "milliCelsius":54000}, …]}
//
// `milliwatts` is left out when nothing measures power; then source is "none". `milliCelsius`, of
// the hottest CPU package, is left out where there is no sensor. Unknown keys are skipped, so that
// a newer agent can talk to an older controller.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace kwatt::telemetry {

// Where a power reading comes from. hwmon and rapl_psys cover the whole machine, rapl only CPU
// packages and memory.
enum class PowerSource { none, rapl, rapl_psys, hwmon };
std::string_view to_string(PowerSource source);  // "none" "rapl" "rapl-psys" "hwmon"
std::optional<PowerSource> parse_power_source(std::string_view word);

struct AgentSample {
  TimePoint time;
  Permille cpu_busy;     // fraction of all CPUs' time, 0..1000
  Permille utilization;  // the same at full frequency (frequency-invariant), 0..1000
  std::optional<Milliwatts> power;
  PowerSource source = PowerSource::none;
  Megahertz frequency;                             // average of all CPUs; 0: unknown
  std::string governor;                            // "": none; several as "performance,powersave"
  std::optional<std::int64_t> milli_celsius = {};  // of the hottest CPU package
  bool operator==(const AgentSample&) const = default;
};

struct AgentBatch {
  std::string node;
  std::string boot_id;
  std::vector<AgentSample> samples;  // oldest first
  bool operator==(const AgentBatch&) const = default;
};

inline constexpr std::size_t kMaximumSamples = 600;

std::string encode(const AgentBatch& batch);

// Errors: parse, with the place ("samples[3].mhz: must be 0 to 100000"). Refused: what is not JSON
// or nested deeper than the format, more than kMaximumSamples, a missing node or time, a number
// that is no integer, mhz outside 0..100,000, milliCelsius outside 0..150,000, a text longer than
// 253 bytes, power without a source or a source without power. Whether a reading can be true is for
// SampleStore to say, sample by sample.
Result<AgentBatch> decode_batch(std::string_view json);

}  // namespace kwatt::telemetry
