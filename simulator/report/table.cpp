#include <algorithm>

#include <fmt/format.h>

#include "simulator/report/report.hpp"

namespace kwatt::simulator::report {
namespace {

std::string cell(const Group& group, const Figure& figure) {
  std::vector<double> values;
  for (const Run* run : group.runs) values.push_back(figure.value(run->outcome));
  const Estimate found = estimate(values);
  if (found.count < 2) return number(found.mean);
  return fmt::format("{} ± {}", number(found.mean), number(found.half_width));
}

}  // namespace

std::vector<std::vector<std::string>> table_of(const std::vector<Run>& runs) {
  const std::vector<Group> groups = groups_of(runs);
  const bool traces = std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
    return group.trace != groups.front().trace;
  });
  std::vector<std::vector<std::string>> rows{{"FIGURE"}};
  for (const Group& group : groups) {
    rows.front().push_back(traces ? group.strategy + " · " + group.trace : group.strategy);
  }
  for (const Figure& figure : figures()) {
    // What is nothing everywhere says nothing.
    const bool nothing = std::all_of(
        runs.begin(), runs.end(), [&](const Run& run) { return figure.value(run.outcome) == 0; });
    if (nothing) continue;
    std::vector<std::string> row{figure.unit.empty()
                                     ? std::string(figure.title)
                                     : fmt::format("{} ({})", figure.title, figure.unit)};
    for (const Group& group : groups) row.push_back(cell(group, figure));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace kwatt::simulator::report
