#pragma once
// Words of the enumerations of our kinds: as they are on the wire, and as they are in a sentence.
#include <string_view>

#include "api/energy_policy.hpp"
#include "api/node_power.hpp"

namespace kwatt::api {

std::string_view to_string(PowerState state);    // "PoweringOn"
std::string_view to_string(Desired desired);     // "Keep"
std::string_view to_string(OperationKind kind);  // "PowerOff"
std::string_view to_string(Mode mode);           // "Enforce"
std::string_view to_string(WakeTest test);       // "Auto"

// "node a is …", "a … of policy p".
std::string_view phrase(PowerState state);    // "being switched on"
std::string_view phrase(OperationKind kind);  // "power-off"

}  // namespace kwatt::api
