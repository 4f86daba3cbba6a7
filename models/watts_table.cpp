#include "models/watts_table.hpp"

#include <algorithm>

namespace kwatt::models {
namespace {

constexpr std::int64_t kSteps = 8;
constexpr Millicores kOneCore{1000};
// Below this the ratio of two small numbers says nothing about the frequency under load.
constexpr Permille kBusyEnough{100};

Permille share(Millicores work, Millicores all) {
  return Permille{work.count() * 1000 / std::max<std::int64_t>(1, all.count())};
}

}  // namespace

std::string_view to_string(WattsBasis basis) {
  switch (basis) {
    case WattsBasis::served:
      return "Served";
    case WattsBasis::learned:
      return "Learned";
    case WattsBasis::specified:
      return "Specified";
    case WattsBasis::default_curve:
      return "Default";
  }
  return "Default";
}

std::vector<Millicores> extra_steps(Millicores used, Millicores all) {
  const Millicores most = std::max(all - used, kOneCore);
  std::vector<Millicores> steps;
  for (std::int64_t step = 0; step <= kSteps; ++step) steps.push_back(most * step / kSteps);
  return steps;
}

WattsPoints never_falling(WattsPoints points) {
  for (std::size_t i = 1; i < points.size(); ++i) {
    points[i].second = std::max(points[i].second, points[i - 1].second);
  }
  return points;
}

WattsPoints learned_points(const LearnedPower& model, const MachineState& now, Millicores all,
                           const std::vector<Millicores>& steps) {
  WattsPoints points;
  for (const Millicores extra : steps) {
    const Permille more = share(extra, all);
    MachineState then = now;
    then.busy = std::min(Permille{1000}, now.busy + more);
    const bool slow_or_fast = now.busy >= kBusyEnough;
    const Permille work =
        slow_or_fast ? Permille{more.count() * now.utilization.count() / now.busy.count()} : more;
    then.utilization = std::min(Permille{1000}, now.utilization + work);
    // How many there would be, nobody knows.
    then.instructions_per_second = then.cache_misses_per_second = std::nullopt;
    const LearnedEstimate estimate = model.at(then);
    if (!estimate.in_range) break;
    points.emplace_back(extra, estimate.power);
  }
  return never_falling(std::move(points));
}

}  // namespace kwatt::models
