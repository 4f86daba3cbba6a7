#include "controller/telemetry_sources.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "controller/metrics_api.hpp"
#include "kube/credentials.hpp"
#include "telemetry/prometheus.hpp"

namespace kwatt::controller {
namespace {

Result<std::string> read_token(const std::string& file) {
  auto token = kube::read_file(file);
  if (!token) return token;
  while (!token->empty() && static_cast<unsigned char>(token->back()) <= ' ') token->pop_back();
  if (token->empty()) return fail(ErrorCode::io, file + " is empty");
  return token;
}

// While the file is being replaced, what was read last stays in use.
net::Client::TlsSource trusting(const std::string& ca_file) {
  return [ca_file, last = std::string()]() mutable {
    net::TlsConfig tls;
    if (ca_file.empty()) return tls;
    if (auto pem = kube::read_file(ca_file); pem && !pem->empty()) {
      last = std::move(*pem);
    } else if (!pem) {
      log::warn("CA file of Prometheus not readable", {{"error", pem.error()}});
    }
    // Without any certificate nobody is trusted: an empty text would mean the system's roots.
    tls.ca_pem = last.empty() ? "no certificate" : last;
    return tls;
  };
}

}  // namespace

telemetry::PrometheusServer prometheus_server(const PrometheusOptions& options) {
  telemetry::PrometheusServer server;
  server.url = *net::parse_url(options.url);
  server.labels = options.labels;
  if (!options.token_file.empty()) {
    server.token = [file = options.token_file] { return read_token(file); };
  }
  server.tls = trusting(options.ca_file);
  return server;
}

void add_sources(TelemetryPoll& poll, const boost::asio::any_io_executor& executor,
                 const Options& options, kube::Client& client) {
  if (options.metrics_api) {
    poll.add(make_metrics_api_source(client, options.metrics_api_interval));
  }
  const PrometheusOptions& prometheus = options.prometheus;
  if (prometheus.url.empty()) return;
  std::vector<telemetry::PowerQuery> queries;
  for (const telemetry::Source known : telemetry::known_exporters()) {
    const bool wanted = std::find(prometheus.exporters.begin(), prometheus.exporters.end(),
                                  to_string(known)) != prometheus.exporters.end();
    if (wanted) queries.push_back(*telemetry::query_of(known, prometheus.labels));
  }
  if (!prometheus.query.empty()) queries.push_back(telemetry::own_query(prometheus.query));
  for (telemetry::PowerQuery& query : queries) {
    poll.add(telemetry::make_prometheus_source(executor, prometheus_server(prometheus),
                                               std::move(query), prometheus.interval));
  }
}

std::unique_ptr<telemetry::EnvironmentSource> environment_source(
    const boost::asio::any_io_executor& executor, const Options& options) {
  const PrometheusOptions& prometheus = options.prometheus;
  const bool temperatures =
      std::find(prometheus.exporters.begin(), prometheus.exporters.end(),
                to_string(telemetry::Source::ipmi_exporter)) != prometheus.exporters.end();
  if (prometheus.url.empty() || (!temperatures && prometheus.pressure_query.empty())) {
    return nullptr;
  }
  return std::make_unique<telemetry::EnvironmentSource>(executor, prometheus_server(prometheus),
                                                        temperatures, prometheus.pressure_query);
}

std::shared_ptr<const telemetry::NodeDirectory> node_directory(const reconcilers::Stores& stores) {
  auto nodes = std::make_shared<telemetry::NodeDirectory>();
  stores.nodes.for_each([&](const std::shared_ptr<const api::Node>& node) {
    nodes->add(node->meta.name, node->internal_ip, node->allocatable.cpu);
  });
  return nodes;
}

}  // namespace kwatt::controller
