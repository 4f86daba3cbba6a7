#pragma once
// Machine power from a Prometheus server.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "telemetry/prometheus_answer.hpp"
#include "telemetry/prometheus_query.hpp"
#include "telemetry/source.hpp"

namespace kwatt::telemetry {

// One server, shared by all queries to it. Plain values but for the two functions, which are asked
// before every request or connection, so that rotated files take effect.
struct PrometheusServer {
  net::Url url;                     // the root; /api/v1/query comes behind its path
  std::vector<std::string> labels;  // name a node, the first that a series has counts
  Duration timeout = std::chrono::seconds{10};
  // The bearer token; empty function: none is sent. Never the ServiceAccount's by itself.
  std::function<Result<std::string>()> token = {};
  net::Client::TlsSource tls = {};
};

// Asks `query` once per fetch, for all nodes. Redirects are refused, an answer is at most 16 MiB.
std::unique_ptr<PollSource> make_prometheus_source(boost::asio::any_io_executor executor,
                                                   PrometheusServer server, PowerQuery query,
                                                   Duration period);

// From the series of an answer to readings: which node, how many watts, how long ago. Pure.
Fetched read_power(const std::vector<Series>& series, const PowerQuery& query,
                   const std::vector<std::string>& labels, const NodeDirectory& nodes,
                   TimePoint now, Duration period);

}  // namespace kwatt::telemetry
