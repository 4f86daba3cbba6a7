#pragma once
// Small steps that all levers share: an action with its precondition, and bookkeeping of times.
#include <string>

#include "planner/levers.hpp"

namespace kwatt::planner {

// The action on this node, true for the state that the pass looks at.
Action action_on(const Pass& pass, const NodeView& node, What what, Reason reason,
                 std::string message, Milliwatts expected_saving);

// The machine has proven that it can be woken, or nobody asks for a proof (wakeTest: Skip).
bool wake_trusted(const Pass& pass, const NodeView& node);
// Somebody has asked for a wake test of this machine (annotation kwatt.dev/wake-test on its
// NodePower), whatever is known of it.
bool wake_test_requested(const NodeView& node);

// Keeps the earliest time at which something changes without an event.
void wake_after(Proposal& proposal, Duration wait);

// "12.3 W".
std::string watts_text(Milliwatts power);
// "a", "a and b", "a, b and 3 more".
std::string list_text(const std::vector<std::string>& names, std::size_t shown = 3);

// The UTC day of NodeMemory.cyclesDay, "2026-11-20".
std::string day_of(TimePoint now);

}  // namespace kwatt::planner
