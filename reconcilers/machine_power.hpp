#pragma once
// NodePower status.power: what planner::draw_of says a machine draws, in the words of the API.
// Pure.
#include "planner/snapshot.hpp"

namespace kwatt::reconcilers {

// By which protocol its BMC is reached: "redfish" of redfish+https://…
std::string bmc_protocol(const api::NodePower& machine);

api::MachinePower machine_power(const planner::NodeView& node, TimePoint now);

// Is this power worth a write of its own, `since` the last one? What somebody acts on at once: from
// or to nothing, or known in another way (but a source that comes and goes costs no more than a
// write a minute). Else a tenth of a difference, every five minutes (api.md).
bool worth_showing(const api::MachinePower& shown, const api::MachinePower& now, Duration since);

}  // namespace kwatt::reconcilers
