#pragma once
// The agent's own small HTTP server: GET /healthz, GET /metrics, and /forward-metrics (GET or POST:
// push samples now).
#include <functional>
#include <memory>
#include <string>

#include "net/server.hpp"

namespace kwatt::agent {

struct HealthSources {
  std::function<bool()> healthy;
  std::function<std::string()> metrics;
  std::function<void()> push_now;
};

// `address` is HOST:PORT. Errors: invalid_argument, io.
Result<std::unique_ptr<net::Server>> start_health_server(boost::asio::any_io_executor executor,
                                                         const std::string& address,
                                                         HealthSources sources);

}  // namespace kwatt::agent
