#pragma once
// /metrics, /healthz, /livez, /readyz.
#include <functional>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "net/server.hpp"

namespace kwatt::servers {

// One named check; an empty answer is good, else a sentence.
struct HealthCheck {
  std::string name;
  std::function<std::string()> check;
};

// live: the process must be restarted when one fails. ready: it must get no traffic meanwhile.
struct HealthChecks {
  std::vector<HealthCheck> live, ready;
};

// Answers GET and HEAD of the four paths, with ?verbose as kube-apiserver does; 404 for others.
net::Handler health_handler(const Metrics& metrics, HealthChecks checks);

}  // namespace kwatt::servers
