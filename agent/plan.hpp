#pragma once
// What to write so that the machine is as desired. PURE.
//
// A power cap is in watts of the whole machine but enforced by RAPL, which sees only CPU packages:
//   limit of each package = (cap − watts measured outside the packages) ÷ number of packages
// where "outside" is the whole machine's reading (hwmon or RAPL's psys zone) minus the packages'. A
// machine without such a reading gets the whole cap as the sum over its packages.
#include <string>
#include <vector>

#include "agent/desired.hpp"
#include "agent/original.hpp"

namespace kwatt::agent {

struct Plan {
  std::vector<hardware::AttributeWrite> writes;  // in this order; empty: all is as it should be
  std::vector<std::string> refusals;             // sentences; what is refused stays as it is
  Held held;                                     // once the writes are done
};

struct PlanInput {
  const DesiredSettings& desired;
  const MachineState& now;
  const Original& original;
  Held held;
  // The desired cap is another than in the plan before: then the limits are set exactly. Otherwise
  // they follow the changing draw outside the packages only by more than a watt each.
  bool cap_changed = false;
  // What the policies show since the desired preference was stored (see hardware::changes).
  std::string shown_preference = {};
};
Plan make_plan(const PlanInput& input);

// What differs between the machine and its original settings: what an agent must take as held when
// the stored original does not tell.
Held difference(const MachineState& now, const Original& original);

// Settings that nobody asks for belong to the people of the machine: what is not held is taken over
// into `original` as it is now, so that a later request is measured against the newest state. A
// policy or zone that is new came with settings of its own, whatever is held elsewhere; one that is
// away stays known.
void refresh_original(Original& original, const MachineState& now, const Held& held);

// The watts of machine power that caps can be set to, and the cap in force (0: not limited below
// the original). Zeros where packages cannot be limited.
struct CapRange {
  std::int64_t min_watts = 0, max_watts = 0;
  bool operator==(const CapRange&) const = default;
};
CapRange cap_range(const MachineState& now, const Original& original);
// What the limits in force amount to in machine watts, with the desired cap if they match it within
// the hardware's rounding; 0 while the draw outside the packages is being measured.
std::int64_t effective_cap_watts(const MachineState& now, const DesiredSettings& desired);

}  // namespace kwatt::agent
