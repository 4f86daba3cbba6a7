#pragma once
// Words of the API's enumerations, as they are on the wire and as they are in a sentence.
#include <string>
#include <string_view>

#include "api/energy_policy.hpp"
#include "api/node_power.hpp"

namespace kwatt::cli {

std::string_view word(api::PowerState state);    // "PoweringOn"
std::string_view word(api::OperationKind kind);  // "PowerOff"
std::string_view word(api::Mode mode);           // "Enforce"

std::string_view phrase(api::PowerState state);    // "being switched on"
std::string_view phrase(api::OperationKind kind);  // "power-off"

}  // namespace kwatt::cli
