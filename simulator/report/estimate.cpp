#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "simulator/report/report.hpp"

namespace kwatt::simulator::report {
namespace {

// Student's t, 97.5 %, by degrees of freedom from 1 on; beyond, the normal distribution's.
constexpr std::array<double, 30> kStudent = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.960;

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  Estimate result;
  result.count = values.size();
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const std::size_t freedom = values.size() - 1;
  const double t = freedom <= kStudent.size() ? kStudent[freedom - 1] : kNormal;
  result.half_width = t * std::sqrt(squares / (n - 1) / n);
  return result;
}

std::vector<Group> groups_of(const std::vector<Run>& runs) {
  std::vector<Group> groups;
  for (const Run& run : runs) {
    auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.strategy == run.strategy && group.trace == run.trace;
    });
    if (found == groups.end()) {
      groups.push_back({run.strategy, run.trace, {}});
      found = groups.end() - 1;
    }
    found->runs.push_back(&run);
  }
  return groups;
}

std::string number(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1000 || (value == std::floor(value) && size >= 1))
    return fmt::format("{:.0f}", value);
  if (size >= 100) return fmt::format("{:.1f}", value);
  if (size >= 10) return fmt::format("{:.2f}", value);
  if (size >= 1) return fmt::format("{:.3f}", value);
  return fmt::format("{:.4g}", value);
}

}  // namespace kwatt::simulator::report
