#pragma once
// What Redfish services say about power (DSP0268), as values: no connection here. Three models are
// in use: EnvironmentMetrics with PowerLimitWatts (since 2020.4), Power with PowerControl (before,
// deprecated), and the metrics of the PowerSubsystem's supplies where neither is there.
#include <optional>
#include <string>
#include <vector>

#include "hardware/driver.hpp"

namespace kwatt::hardware::redfish {

// The resources of a Chassis that have to do with power; "": not there.
struct Chassis {
  std::string environment, power, subsystem;
};

// A Power or EnvironmentMetrics resource, as far as a driver needs it.
struct Power {
  bool metered = false;                  // there is a reading, even if it is null now
  std::optional<double> consumed_watts;  // as the service says it: see reading_of
  bool limitable = false;                // there is a limit to set
  std::optional<double> limit;           // watts; nullopt: none in force
  std::optional<double> lowest, highest;
  bool has_mode = false;  // EnvironmentMetrics: the limit has a ControlMode
  std::string etag;       // from the body, if there
};

// Errors of all: parse, or protocol when it is JSON but not that resource, or has a link that
// leads elsewhere.
Result<Chassis> parse_chassis(const std::string& body);
// PowerControl[0]: PowerConsumedWatts, PowerLimit.LimitInWatts, PowerCapacityWatts.
Result<Power> parse_power(const std::string& body);
// PowerWatts.Reading; PowerLimitWatts: SetPoint, ControlMode, AllowableMin, AllowableMax.
Result<Power> parse_environment(const std::string& body);
// The link to the supplies of a PowerSubsystem, and to the metrics of a PowerSupply; "": none.
Result<std::string> parse_supplies_link(const std::string& body);
Result<std::string> parse_metrics_link(const std::string& body);
// PowerSupplyMetrics: InputPowerWatts.Reading.
Result<Power> parse_supply_metrics(const std::string& body);

// The reading; nullopt: no sensor, or nothing now. Errors: protocol for what no machine draws
// (negative, above 1 MW): it must be seen and counted, neither believed nor taken for "no sensor".
Result<std::optional<Milliwatts>> reading_of(const Power& power);
// The limit with its range. A limit of 0 or null is none. Errors: protocol for a limit that is no
// number of watts.
Result<PowerLimit> limit_of(const Power& power);

// Bodies of the PATCH that sets (nullopt: lifts) the limit.
std::string power_limit_body(std::optional<Milliwatts> limit);
std::string environment_limit_body(std::optional<Milliwatts> limit, bool has_mode);

}  // namespace kwatt::hardware::redfish
