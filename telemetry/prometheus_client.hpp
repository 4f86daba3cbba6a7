#pragma once
// Instant queries to a Prometheus server.
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "net/client.hpp"
#include "telemetry/prometheus_answer.hpp"

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

// Redirects are refused, an answer is at most 16 MiB. Single-threaded.
class PrometheusClient {
 public:
  PrometheusClient(boost::asio::any_io_executor executor, PrometheusServer server);
  // The vector that `promql` gives, with the labels named in `wanted`; perhaps empty.
  // Errors: those of PollSource::fetch().
  net::Task<Result<std::vector<Series>>> query(std::string promql, std::vector<std::string> wanted);

 private:
  PrometheusServer server_;
  net::Client client_;
};

}  // namespace kwatt::telemetry
