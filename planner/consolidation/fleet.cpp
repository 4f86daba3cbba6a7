#include "planner/consolidation/fleet.hpp"

namespace kwatt::planner::consolidation {

// The steps of the calculation are CloudSim 3.0.3's: on one straight piece a VM costs the same
// everywhere, and which host its heuristics take is then decided by the last bit.
double Watts::at(double load) const {
  if (!(load > 0)) return points.front();
  if (load >= 1) return points.back();
  const double tenths = load * 10;
  const auto below = static_cast<std::size_t>(tenths);
  const std::size_t above = below + (static_cast<double>(below) < tenths ? 1 : 0);
  const double slope = (points[above] - points[below]) / 10;
  return points[below] + slope * (load - static_cast<double>(below) / 10) * 100;
}

}  // namespace kwatt::planner::consolidation
