#pragma once
// Requests to the controller's own server (--ingest-address): through the API server's service
// proxy, or directly. Who asks is told by a short-lived token of a ServiceAccount that has the
// right, because the proxy passes on no proof of who is behind it.
#include <string>

#include "cli/verb.hpp"
#include "net/http.hpp"

namespace kwatt::cli {

// Where the controller is.
struct ControllerPlace {
  std::string namespace_name = "kwatt-system";
  std::string controller, ca_file;  // ask this URL instead of going through the API server
};

// Who is asked for, and how people come to be allowed to.
struct ControllerRight {
  std::string account;   // the ServiceAccount whose token is shown
  std::string role;      // the Role that lets people have one
  std::string manifest;  // where both are
  std::string deed;      // "read the history"
};

// -n/--namespace, --controller and --ca.
void add_controller_place(CLI::App& verb, ControllerPlace& place);

// The answer whatever its status is. Errors: no token (not_found, forbidden, with what to do), no
// connection.
kube::Task<Result<net::Response>> call_controller(Session& session, ControllerPlace place,
                                                  ControllerRight right, net::Request request);

// The path of the API server's service proxy to `target` on the controller.
std::string proxy_path(const std::string& namespace_name, const std::string& target);
// What an answer other than 2xx means, in a sentence with what to do about it. `without`: what a
// 404 of the controller itself means.
Error controller_refusal(const net::Response& response, const ControllerPlace& place,
                         const ControllerRight& right, const std::string& without);

}  // namespace kwatt::cli
