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
  std::vector<std::string> chassis;  // Links.Chassis, at most 8
};

// Of the ServiceRoot: the collections of systems and of sessions; "": the service has none.
struct Root {
  std::string systems, sessions;
};

// A new session: its token and, if the service says it, its path.
struct Session {
  std::string token, path;
};

// Errors of all: parse, or protocol when it is JSON but not that resource, or has a link that
// leads elsewhere.
Result<System> parse_system(const std::string& body);
Result<std::vector<std::string>> parse_reset_types(const std::string& action_info_body);
Result<Root> parse_root(const std::string& body);
// The links of a collection's Members (DSP0266 resource collections), at most 256.
Result<std::vector<std::string>> parse_members(const std::string& body);
// From the answer to the POST: header X-Auth-Token; Location, or the body's @odata.id.
Result<Session> parse_session(const net::Response& answer);

// The ResetType to send. Errors: unsupported, with what is on offer: a machine without
// GracefulShutdown must be forced, which is the caller's decision.
Result<std::string> reset_type(const System& system, Reset reset);

// Bodies of requests.
std::string reset_body(const std::string& type);
std::string session_body(const Credentials& credentials);

// nullopt for 2xx, otherwise the error: 401 unauthorized, 403 forbidden, 404 not_found, 405 and 501
// unsupported, 409 and 412 conflict, 429 too_many_requests, 503 unavailable, 3xx and all others
// protocol. server_text: the messages of the body (ExtendedInfo), or its beginning.
std::optional<Error> error_of(const net::Response& response);

// The answer to a login says that the credentials are wrong: 401, 403, or a message that calls the
// attempt unauthorized under another status.
bool refuses_credentials(const net::Response& response);

// A link of the service as a request target. Errors: protocol, unless it is a plain path.
Result<std::string> local_target(std::string_view link);

}  // namespace kwatt::hardware::redfish
