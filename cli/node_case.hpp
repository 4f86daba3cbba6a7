#pragma once
// What the texts of cli/reasons.hpp are filled with for one node. Pure.
#include "cli/explain.hpp"
#include "cli/reasons.hpp"
#include "planner/destinations.hpp"

namespace kwatt::cli {

// The objects of one node with their absences filled in, so that each sentence can just look.
struct NodeCase {
  const NodeFacts& facts;
  TimePoint now;
  api::NodePowerStatus status{};
  api::EnergyPolicySpec spec{};
  planner::Override held{};
  std::int64_t pods = 0;  // workload pods on it

  NodeCase(const NodeFacts& given, TimePoint at);
  // "5 min", how long ago that was.
  std::string since(const std::optional<TimePoint>& when) const;
};

// A value for every placeholder.
Values values_of(const NodeCase& c);
// ": held on until …", "" if nobody holds it.
std::string override_clause(const NodeCase& c);

}  // namespace kwatt::cli
