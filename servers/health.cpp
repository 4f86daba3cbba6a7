#include "servers/health.hpp"

#include <utility>

namespace kwatt::servers {
namespace {

net::Response text_response(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.headers.set("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

net::Response run_checks(const std::vector<HealthCheck>& checks, bool verbose) {
  std::string report;
  bool good = true;
  for (const HealthCheck& check : checks) {
    const std::string problem = check.check();
    good = good && problem.empty();
    report += (problem.empty() ? "[+]" : "[-]") + check.name +
              (problem.empty() ? " ok\n" : " failed: " + problem + "\n");
  }
  if (good && !verbose) return text_response(200, "ok");
  return text_response(good ? 200 : 503, report + (good ? "check passed\n" : "check failed\n"));
}

}  // namespace

net::Handler health_handler(const Metrics& metrics, HealthChecks checks) {
  return [&metrics, checks = std::move(checks)](net::Request request) -> net::Task<net::Response> {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const bool verbose = request.target.find("?verbose") != std::string::npos;
    if (request.method != "GET" && request.method != "HEAD") {
      co_return text_response(405, "only GET and HEAD\n");
    }
    if (path == "/metrics") {
      net::Response response = text_response(200, metrics.render());
      response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
      co_return response;
    }
    if (path == "/readyz") co_return run_checks(checks.ready, verbose);
    if (path == "/healthz" || path == "/livez") co_return run_checks(checks.live, verbose);
    co_return text_response(404, "here are /metrics /healthz /livez /readyz\n");
  };
}

}  // namespace kwatt::servers
