#include "servers/ingest.hpp"

#include <utility>

#include "base/log.hpp"
#include "telemetry/ingest_format.hpp"

namespace kwatt::servers {
namespace {

net::Response answer(int status, std::string text) {
  net::Response response;
  response.status = status;
  if (!text.empty()) {
    response.headers.set("Content-Type", "text/plain; charset=utf-8");
    response.body = std::move(text) + "\n";
  }
  return response;
}

// The token of "Authorization: Bearer TOKEN"; "" if there is none.
std::string bearer(const net::Request& request) {
  const std::string_view header = request.headers.get("Authorization");
  constexpr std::string_view kPrefix = "Bearer ";
  if (header.substr(0, kPrefix.size()) != kPrefix) return "";
  return std::string(header.substr(kPrefix.size()));
}

// Owns what it uses: the server may forget the handler while a request is under way.
net::Task<net::Response> handle(std::shared_ptr<IngestDependencies> dependencies,
                                net::Request request) {
  IngestDependencies& self = *dependencies;
  if (request.target.substr(0, request.target.find('?')) != "/metrics-ingest") {
    co_return answer(404, "here is POST /metrics-ingest");
  }
  if (request.method != "POST") co_return answer(405, "only POST");
  const std::string token = bearer(request);
  if (token.empty()) co_return answer(401, "a bearer token of audience kwatt is needed");
  auto caller = co_await self.reviewer.review(token);
  if (!caller) {
    const bool refused = caller.error().code == ErrorCode::unauthorized;
    if (!refused) log::warn("token not reviewed", {{"error", caller.error()}});
    co_return answer(refused ? 401 : 503, caller.error().message);
  }
  if (caller->user != self.agent_user) {
    self.metrics.add("kwatt_ingest_refused_total", "Pushes that were refused, by reason.",
                     {{"reason", "user"}});
    co_return answer(403, "the token is not of " + self.agent_user);
  }
  auto push = telemetry::decode_batch(request.body);
  if (!push) {
    self.metrics.add("kwatt_samples_dropped_total", "Samples that were not taken, by reason.",
                     {{"reason", "malformed"}});
    co_return answer(400, push.error().message);
  }
  if (caller->node_name.empty() || caller->node_name != push->node) {
    self.metrics.add("kwatt_ingest_refused_total", "Pushes that were refused, by reason.",
                     {{"reason", "node"}});
    co_return answer(403, "the token is not of node " + push->node);
  }

  const bool first = !self.samples.newest(push->node).has_value();
  const TimePoint now = self.clock.now();
  const auto maximum =
      self.machine_maximum ? self.machine_maximum(push->node) : std::optional<Milliwatts>{};
  std::size_t taken = 0;
  for (const telemetry::AgentSample& pushed : push->samples) {
    const telemetry::Sample sample{.at = pushed.time,
                                   .utilization = pushed.utilization,
                                   .busy = pushed.cpu_busy,
                                   .power = pushed.power};
    if (const auto refusal = self.samples.add(push->node, sample, now, maximum)) {
      self.metrics.add("kwatt_samples_dropped_total", "Samples that were not taken, by reason.",
                       {{"reason", std::string(telemetry::to_string(*refusal))}});
    } else {
      ++taken;
    }
  }
  self.metrics.add("kwatt_samples_total", "Samples taken.", {}, static_cast<double>(taken));
  if (first && taken > 0) self.first_sample(push->node);
  net::Response response = answer(204, "");
  response.headers.set("Kwatt-Leading", self.leading() ? "true" : "false");
  co_return response;
}

}  // namespace

net::Handler ingest_handler(IngestDependencies dependencies) {
  auto self = std::make_shared<IngestDependencies>(std::move(dependencies));
  return [self](net::Request request) { return handle(self, std::move(request)); };
}

}  // namespace kwatt::servers
