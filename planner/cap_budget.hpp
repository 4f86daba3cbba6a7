#pragma once
// capping.budgetWatts: one amount of power shared among machines by need.
#include <map>
#include <optional>
#include <vector>

#include "planner/levers.hpp"

namespace kwatt::planner {

// What a machine may draw and how it may be capped, in whole watts.
struct CapFacts {
  std::int64_t maximum = 0;               // uncapped
  api::CapBy by = api::CapBy::RAPL;       // who would enforce a new cap
  std::int64_t cap_min = 0, cap_max = 0;  // of that way; 0, 0: it cannot be capped
  std::optional<std::int64_t> requested;  // our cap
  api::CapBy held = api::CapBy::None;     // who enforces it, or holds something of ours
  bool lost = false;  // the BMC does not have our cap (any more): it must be set again
  bool kept = false;  // the agent holds it, and its request says keepCap; a BMC keeps it anyway
  // An upper bound of what the machine draws now and until the next pass: a cap counts only once
  // agent or BMC have confirmed it; while an operation changes it, the higher value counts.
  std::int64_t bound = 0;
  // What the bound will be when the operation that changes the cap now has ended; else the bound.
  // Shares are made of it: made of bounds, they would swing with every operation under way.
  std::int64_t settled = 0;
};
// Auto is the BMC where it is known to take a limit, else the agent. A limit that others have set
// at the BMC is the upper end of the range: ours would lift it.
CapFacts cap_facts(const NodeView& node, api::CapMethod method = api::CapMethod::Auto);

// Is the machine drawing power, or about to? Only what is known to be off is not.
bool draws_power(const NodeView& node);

// Power that is spoken for under a budget. Lowering a cap frees nothing before it is confirmed.
class PowerLedger {
 public:
  // `budget_watts` 0: everything fits.
  PowerLedger(const Snapshot& snapshot, const std::vector<NodeName>& selected,
              std::int64_t budget_watts);
  // May this machine draw up to `watts` (nullopt: its maximum) from now on? Counts it if so.
  bool raise(const NodeView& node, std::optional<std::int64_t> watts);
  // Would it fit, without counting?
  bool fits(const NodeView& node, std::optional<std::int64_t> watts) const;
  std::int64_t bound() const { return bound_; }

 private:
  std::int64_t more(const NodeView& node, std::optional<std::int64_t> watts) const;
  std::int64_t budget_ = 0, bound_ = 0;
  std::map<NodeName, std::int64_t> by_node_;
};

// Shares `budget` so that every machine has at least its floor, and the rest goes by need, to at
// most its ceiling. nullopt: the floors alone exceed the budget. Whole watts, the sum never exceeds
// the budget, the same input gives the same shares.
struct ShareOf {
  NodeName name;
  std::int64_t floor = 0, ceiling = 0, need = 0;
};
std::optional<std::map<NodeName, std::int64_t>> share_power(std::int64_t budget,
                                                            const std::vector<ShareOf>& shares);

}  // namespace kwatt::planner
