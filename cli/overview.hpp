#pragma once
// What `status` shows, made from policies and NodePowers. Pure.
#include <string>
#include <vector>

#include "api/energy_policy.hpp"
#include "api/node_power.hpp"

namespace kwatt::cli {

struct PolicyLine {
  std::string name, mode;
  std::string ready;  // "True", or the reason why not, or "Unknown" before the first pass
  std::int64_t nodes = 0, on = 0, off = 0, transitioning = 0, slow = 0, capped = 0, unready = 0;
  std::int64_t watts = 0, watts_without = 0, saved_watt_hours = 0;
  bool operator==(const PolicyLine&) const = default;
};

struct ReasonCount {
  std::string reason;
  std::int64_t nodes = 0;
  bool operator==(const ReasonCount&) const = default;
};

struct StateLine {
  std::string state;
  std::int64_t nodes = 0, watts = 0;
  std::vector<ReasonCount> reasons;  // the most frequent first
  bool operator==(const StateLine&) const = default;
};

struct NodeLine {
  std::string name, state, reason, policy, governor;
  std::int64_t watts = 0, cap_watts = 0;  // cap 0: none
  std::optional<TimePoint> since;         // of the decision
  bool operator==(const NodeLine&) const = default;
};

struct Overview {
  std::vector<PolicyLine> policies;  // by name
  std::vector<StateLine> states;     // in the order of api::PowerState, only those that occur
  std::vector<NodeLine> nodes;       // by name
  std::int64_t watts = 0, saved_watt_hours = 0;
};

Overview overview_of(const std::vector<api::EnergyPolicy>& policies,
                     const std::vector<api::NodePower>& machines);

// As people look at it; `nodes`: with a line per node.
std::string table_of(const Overview& overview, bool nodes, TimePoint now);
std::string json_of(const Overview& overview);

}  // namespace kwatt::cli
