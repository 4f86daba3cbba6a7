#pragma once
// Requests to any path on the API server, as kubectl's --raw: for services behind its service
// proxy.
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "kube/config.hpp"
#include "net/client.hpp"

namespace kwatt::kube {

// Sends `headers` beside the credentials and returns the answer whatever its status is, which may
// be the API server's (kube/status_error.hpp) or that of the service. Answers of up to 32 MiB;
// nothing is retried. Errors: io and parse (credentials), others as net::Client.
using Fetch =
    std::function<net::Task<Result<net::Response>>(std::string path_and_query, net::Headers)>;

// The same for any method and body; the request's target is a path and query of the API server.
// Answers of up to 32 MiB, within `timeout`.
using Send = std::function<net::Task<Result<net::Response>>(net::Request, Duration timeout)>;

// `clock` outlives the result; use it from one executor only.
Send make_send(boost::asio::any_io_executor executor, const Config& config, std::string user_agent,
               const Clock& clock);
Fetch make_fetch(boost::asio::any_io_executor executor, const Config& config,
                 std::string user_agent, const Clock& clock);

}  // namespace kwatt::kube
