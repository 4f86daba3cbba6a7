#pragma once
// What the agent tells in NodePower status.report, and when it is worth a write. PURE.
#include <optional>
#include <string>
#include <vector>

#include "agent/desired.hpp"
#include "agent/original.hpp"
#include "agent/plan.hpp"
#include "api/node_power.hpp"
#include "telemetry/ingest_format.hpp"

namespace kwatt::agent {

struct ReportInput {
  std::string boot_id, agent_version;
  TimePoint now;
  const MachineState& state;
  const DesiredSettings& desired;  // what is being applied
  const Original& original;
  Held held;
  std::string applied_request;      // the newest id that was applied and read back
  bool converged = false;           // the plan for this state is empty and refuses nothing
  std::vector<std::string> errors;  // sentences
  std::optional<telemetry::AgentSample> sample;  // the newest
};
api::AgentReport build_report(const ReportInput& input);

// Sentences name ranges that move with the measured draw; that alone is no news.
std::string without_numbers(std::string sentence);

// How the next report differs from the one written last.
enum class Difference {
  none,
  readings,   // watts, utilization, frequency, time
  ranges,     // what caps can be set to, which follows the load
  important,  // anything that somebody acts on
};
Difference compare(const api::AgentReport& written, const api::AgentReport& next);

// When to write: what is important at once, but at most once a second; ranges once a minute;
// readings every 5 minutes, which also shows that the agent lives.
struct ReportTiming {
  Duration readings_every = std::chrono::minutes{5};
  Duration ranges_every = std::chrono::minutes{1};
  Duration at_most_every = std::chrono::seconds{1};
};
bool worth_writing(Difference difference, Duration since_last, const ReportTiming& timing);

}  // namespace kwatt::agent
