#pragma once
// Machine power from a Prometheus server.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "telemetry/prometheus_answer.hpp"
#include "telemetry/prometheus_client.hpp"
#include "telemetry/prometheus_query.hpp"
#include "telemetry/source.hpp"

namespace kwatt::telemetry {

// Asks `query` once per fetch, for all nodes. Redirects are refused, an answer is at most 16 MiB.
std::unique_ptr<PollSource> make_prometheus_source(boost::asio::any_io_executor executor,
                                                   PrometheusServer server, PowerQuery query,
                                                   Duration period);

// From the series of an answer to readings: which node, how many watts, how long ago. Pure.
Fetched read_power(const std::vector<Series>& series, const PowerQuery& query,
                   const std::vector<std::string>& labels, const NodeDirectory& nodes,
                   TimePoint now, Duration period);

}  // namespace kwatt::telemetry
