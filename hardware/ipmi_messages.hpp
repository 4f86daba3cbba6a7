#pragma once
// What ipmitool (1.8.19) prints. PURE.
#include <optional>
#include <string>
#include <string_view>

#include "hardware/driver.hpp"
#include "hardware/process.hpp"

namespace kwatt::hardware::ipmi {

// "Chassis Power is on". Errors: protocol.
Result<MachinePower> parse_power(const std::string& out);

// `dcmi power reading`; nullopt: measuring is deactivated. Errors: protocol, also for what no
// machine draws (65535 W is how a controller says that it does not know).
Result<std::optional<Milliwatts>> parse_reading(const std::string& out);

// `dcmi power get_limit`. Errors: protocol.
struct Limit {
  bool active = false;
  Milliwatts power;
};
Result<Limit> parse_limit(const std::string& out);

// `-c sdr list full`: the machine's draw from its power sensors: the one that stands for the whole
// machine by its name; else the sum of the inputs of all power supplies; else the only one there
// is. nullopt: none of these, for parts of a machine must not pass for all of it.
std::optional<Milliwatts> sensor_reading(const std::string& csv);

// What ipmitool said when it failed. unauthorized: user, password or privilege. unavailable: no
// answer, busy. unsupported, out_of_range, conflict (not in this state): as it says. Else protocol.
Error error_of(const Finished& finished, std::string_view what);

}  // namespace kwatt::hardware::ipmi
