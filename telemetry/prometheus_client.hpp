#pragma once
// One Prometheus server, asked for the instant value of a query.
#include <functional>
#include <string>
#include <vector>

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

// Use from one executor. Redirects are refused, an answer is at most 16 MiB.
class PrometheusClient {
 public:
  PrometheusClient(boost::asio::any_io_executor executor, PrometheusServer server);

  // The vector that `promql` gives now, with the labels in `wanted`. Errors: those of the token,
  // of net::Client and of parse_instant_vector(); not_found when there is no series; protocol,
  // unauthorized, forbidden, … by the status of an answer that is none.
  net::Task<Result<std::vector<Series>>> instant(std::string promql,
                                                 std::vector<std::string> wanted);

  const PrometheusServer& server() const { return server_; }

 private:
  PrometheusServer server_;
  std::string prefix_;
  net::Client client_;
};

}  // namespace kwatt::telemetry
