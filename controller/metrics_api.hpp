#pragma once
// CPU utilization of nodes from metrics.k8s.io, through the API server.
#include <memory>

#include "kube/client.hpp"
#include "telemetry/source.hpp"

namespace kwatt::controller {

// One list for all nodes per fetch. `client` outlives it. Errors: not_found where no metrics-server
// (or adapter) is installed, unavailable where it does not answer.
std::unique_ptr<telemetry::PollSource> make_metrics_api_source(kube::Client& client,
                                                               Duration period);

}  // namespace kwatt::controller
