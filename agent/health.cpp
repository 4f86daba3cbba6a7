#include "agent/health.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace kwatt::agent {
namespace {

net::Response answer(const HealthSources& sources, const net::Request& request) {
  const auto text = [](int status, std::string body) {
    return net::Response{status, {{"Content-Type", "text/plain; version=0.0.4"}}, std::move(body)};
  };
  const bool reads = request.method == "GET";
  if (request.target == "/healthz" && reads) {
    return sources.healthy() ? text(200, "ok\n") : text(503, "the main loop stands still\n");
  }
  if (request.target == "/metrics" && reads) return text(200, sources.metrics());
  if (request.target == "/forward-metrics" && (reads || request.method == "POST")) {
    sources.push_now();
    return text(202, "pushing\n");
  }
  return text(404, "not found\n");
}

}  // namespace

Result<std::unique_ptr<net::Server>> start_health_server(boost::asio::any_io_executor executor,
                                                         const std::string& address,
                                                         HealthSources sources) {
  const auto url = net::parse_url("http://" + address);
  if (!url || url->path != "/") {
    return fail(ErrorCode::invalid_argument,
                fmt::format("health address \"{}\" is not HOST:PORT", address));
  }
  net::ServerOptions options;
  options.address = url->origin.host;
  options.port = url->origin.port;
  options.max_connections = 16;
  options.limits.body_bytes = 1024;
  const auto handler = [sources =
                            std::move(sources)](net::Request request) -> net::Task<net::Response> {
    co_return answer(sources, request);
  };
  auto server = std::make_unique<net::Server>(std::move(executor), options, handler);
  if (auto started = server->start(); !started) return started.error();
  return server;
}

}  // namespace kwatt::agent
