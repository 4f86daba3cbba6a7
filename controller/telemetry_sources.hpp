#pragma once
// Which sources the command line asks for.
#include "controller/options.hpp"
#include "controller/telemetry_poll.hpp"
#include "kube/client.hpp"
#include "reconcilers/stores.hpp"
#include "telemetry/environment.hpp"
#include "telemetry/prometheus_client.hpp"

namespace kwatt::controller {

// Adds them to `poll`; `client` outlives it. The options have been checked by parse_options().
void add_sources(TelemetryPoll& poll, const boost::asio::any_io_executor& executor,
                 const Options& options, kube::Client& client);

// Temperatures from ipmi_exporter, if its metrics are asked for, and the operator's pressure query;
// nullptr: neither.
std::unique_ptr<telemetry::EnvironmentSource> environment_source(
    const boost::asio::any_io_executor& executor, const Options& options);

// The server of --prometheus-url, which has been checked.
telemetry::PrometheusServer prometheus_server(const PrometheusOptions& options);

// The nodes of the cache under all their names.
std::shared_ptr<const telemetry::NodeDirectory> node_directory(const reconcilers::Stores& stores);

}  // namespace kwatt::controller
