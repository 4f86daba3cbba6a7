#include "agent/report.hpp"

#include <algorithm>
#include <cmath>

namespace kwatt::agent {
namespace {

constexpr std::size_t kMostErrors = 10;
constexpr std::size_t kLongestError = 500;

// Values that follow the measured draw: small changes are readings.
bool moved(std::int64_t before, std::int64_t after) {
  const std::int64_t tolerance = std::max<std::int64_t>(5, std::abs(before) / 20);
  return (before == 0) != (after == 0) || std::abs(after - before) > tolerance;
}

// The same report without what is not worth a write of its own.
api::AgentReport without_readings(api::AgentReport report) {
  for (std::string& error : report.errors) error = without_numbers(std::move(error));
  report.time.reset();
  report.watts = report.cpu_utilization_percent = report.current_mhz = 0;
  // Nobody's settings but the people's own: they may change them as often as they like.
  if (!says_held(report.original)) {
    report.original = {.boot_id = report.original.boot_id, .governor = {}, .epp = {}, .exact = {}};
  }
  report.effective_cap_watts = report.cap_min_watts = report.cap_max_watts = 0;
  return report;
}

}  // namespace

std::string without_numbers(std::string sentence) {
  std::erase_if(sentence, [](char c) { return c >= '0' && c <= '9'; });
  return sentence;
}

api::AgentReport build_report(const ReportInput& input) {
  const hardware::CpuSummary cpu = hardware::summarize(input.state.cpu);
  api::AgentReport report;
  report.boot_id = input.boot_id;
  report.time = input.now;
  report.agent_version = input.agent_version;
  report.watts_source = telemetry::to_string(telemetry::PowerSource::none);
  if (input.sample) {
    if (input.sample->power) report.watts = (input.sample->power->count() + 500) / 1000;
    report.watts_source = telemetry::to_string(input.sample->source);
    report.cpu_utilization_percent = (input.sample->utilization.count() + 5) / 10;
    report.current_mhz = input.sample->frequency.count();
  }
  report.governor = cpu.governor;
  report.min_mhz = cpu.min.count();
  report.max_mhz = cpu.max.count();
  if (!input.sample) report.current_mhz = cpu.current.count();
  for (const hardware::UncoreDie& die : input.state.uncore) {
    report.max_uncore_mhz = std::max(report.max_uncore_mhz, die.max_khz / 1000);
  }
  report.applied_request = input.applied_request;
  if (input.desired.power_cap) {
    report.requested_cap_watts = input.desired.power_cap->count() / 1000;
    report.effective_cap_watts = effective_cap_watts(input.state, input.desired);
  }
  report.converged = input.converged;
  report.original = to_report(input.original, input.held);
  for (const std::string& error : input.errors) {
    if (report.errors.size() == kMostErrors) break;
    report.errors.push_back(error.substr(0, kLongestError));
  }
  report.available_governors = input.state.cpu.governors;
  report.hardware_min_mhz = cpu.hardware_min.count();
  report.hardware_max_mhz = cpu.hardware_max.count();
  const CapRange range = cap_range(input.state, input.original);
  report.cap_min_watts = range.min_watts;
  report.cap_max_watts = range.max_watts;
  return report;
}

Difference compare(const api::AgentReport& written, const api::AgentReport& next) {
  if (!(without_readings(written) == without_readings(next)) ||
      moved(written.effective_cap_watts, next.effective_cap_watts)) {
    return Difference::important;
  }
  if (moved(written.cap_min_watts, next.cap_min_watts) ||
      moved(written.cap_max_watts, next.cap_max_watts)) {
    return Difference::ranges;
  }
  return written == next ? Difference::none : Difference::readings;
}

bool worth_writing(Difference difference, Duration since_last, const ReportTiming& timing) {
  switch (difference) {
    case Difference::none:
      return false;
    case Difference::readings:
      return since_last >= timing.readings_every;
    case Difference::ranges:
      return since_last >= timing.ranges_every;
    case Difference::important:
      return since_last >= timing.at_most_every;
  }
  return false;
}

}  // namespace kwatt::agent
