#pragma once
// NodePower status.power: what planner::draw_of says a machine draws, in the words of the API.
// Pure.
#include "planner/snapshot.hpp"

namespace kwatt::reconcilers {

api::MachinePower machine_power(const planner::NodeView& node, TimePoint now);

}  // namespace kwatt::reconcilers
