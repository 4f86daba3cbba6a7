#pragma once
// What Redfish services say (DSP0266, DSP0268), as values: no connection here.
#include <optional>
#include <string>
#include <vector>

#include "hardware/driver.hpp"
#include "net/http.hpp"

namespace kwatt::hardware::redfish {

// The parts of a ComputerSystem that a driver needs. Links are paths on the same service.
struct System {
  MachinePower power = MachinePower::unknown;
  std::string reset_target;          // "": the system cannot be reset
  std::vector<std::string> allowed;  // reset types on offer; empty: the service does not say
  std::string action_info;           // where they are said instead, or ""
  std::string chassis;               // the first chassis, or ""
};

// The parts of a Power resource (DSP0268 PowerControl[0]: the machine's input).
struct Power {
  std::optional<double> consumed_watts;  // as the service says it: see reading_of
  bool limitable = false;                // there is a PowerControl to patch
  std::string etag;                      // from the body, if there
};

// Errors of all: parse, or protocol when it is JSON but not that resource, or has a link that
// leads elsewhere.
Result<System> parse_system(const std::string& body);
Result<std::vector<std::string>> parse_reset_types(const std::string& action_info_body);
Result<std::string> parse_power_link(const std::string& chassis_body);  // "": no Power resource
Result<Power> parse_power(const std::string& body);

// The reading; nullopt: no sensor. Errors: protocol for what no machine draws (negative, above
// 1 MW): it must be seen and counted, neither believed nor taken for "no sensor".
Result<std::optional<Milliwatts>> reading_of(const Power& power);

// The ResetType to send. Errors: unsupported, with what is on offer: a machine without
// GracefulShutdown must be forced, which is the caller's decision.
Result<std::string> reset_type(const System& system, Reset reset);

// Bodies of requests.
std::string reset_body(const std::string& type);
std::string limit_body(std::optional<Milliwatts> limit);

// nullopt for 2xx, otherwise the error: 401 unauthorized, 403 forbidden, 404 not_found, 405 and 501
// unsupported, 409 and 412 conflict, 429 too_many_requests, 503 unavailable, 3xx and all others
// protocol. server_text: the messages of the body (ExtendedInfo), or its beginning.
std::optional<Error> error_of(const net::Response& response);

// A link of the service as a request target. Errors: protocol, unless it is a plain path.
Result<std::string> local_target(std::string_view link);

}  // namespace kwatt::hardware::redfish
