#include "servers/ingest.hpp"

#include <utility>

#include "base/log.hpp"
#include "telemetry/dropped.hpp"
#include "telemetry/ingest_format.hpp"
#include "telemetry/scaphandre.hpp"

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

// What one request brings.
struct Push {
  std::string node;
  std::vector<telemetry::Sample> samples;  // oldest first
};

Result<Push> read_batch(const std::string& json) {
  auto batch = telemetry::decode_batch(json);
  if (!batch) return batch.error();
  Push push;
  push.node = batch->node;
  for (const telemetry::AgentSample& pushed : batch->samples) {
    telemetry::Sample sample;
    sample.at = pushed.time;
    sample.utilization = pushed.utilization;
    sample.busy = pushed.cpu_busy;
    sample.power = pushed.power;
    sample.whole_machine = pushed.source != telemetry::PowerSource::rapl;  // the packages alone
    push.samples.push_back(sample);
  }
  return push;
}

// The text names no node: it is that of the token.
Result<Push> read_text(const std::string& text, const std::string& node, TimePoint now) {
  auto power = telemetry::read_host_power(text);
  if (!power) return power.error();
  telemetry::Sample sample;
  sample.at = now;
  sample.power = *power;
  sample.source = telemetry::Source::scaphandre;
  sample.has_utilization = false;
  sample.whole_machine = false;  // RAPL, on most machines
  Push push;
  push.node = node;
  push.samples.push_back(sample);
  return push;
}

void take(IngestDependencies& self, const Push& push) {
  using telemetry::Source;
  const bool first = !self.samples.newest(push.node, Source::agent);
  const TimePoint now = self.clock.now();
  const auto maximum =
      self.machine_maximum ? self.machine_maximum(push.node) : std::optional<Milliwatts>{};
  std::size_t taken = 0;
  for (const telemetry::Sample& sample : push.samples) {
    if (const auto refusal = self.samples.add(push.node, sample, now, maximum)) {
      telemetry::count_dropped(self.metrics, *refusal);
    } else {
      ++taken;
    }
  }
  self.metrics.add("kwatt_samples_total", "Samples taken.", {}, static_cast<double>(taken));
  if (first && self.samples.newest(push.node, Source::agent)) self.first_sample(push.node);
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
  // A push without a Content-Type is an older agent's.
  const bool is_text = request.headers.get("Content-Type").substr(0, 10) == "text/plain";
  auto push = is_text ? read_text(request.body, caller->node_name, self.clock.now())
                      : read_batch(request.body);
  if (!push) {
    telemetry::count_dropped(self.metrics, "malformed");
    co_return answer(400, push.error().message);
  }
  if (caller->node_name.empty() || caller->node_name != push->node) {
    self.metrics.add("kwatt_ingest_refused_total", "Pushes that were refused, by reason.",
                     {{"reason", "node"}});
    co_return answer(403, push->node.empty() ? "the token is not of a node"
                                             : "the token is not of node " + push->node);
  }
  take(self, *push);
  net::Response response = answer(204, "");
  const bool leading = self.leading();
  response.headers.set("Kwatt-Leading", leading ? "true" : "false");
  // The next push has a new connection, which the Service may take to the replica that leads.
  if (!leading) response.headers.set("Connection", "close");
  co_return response;
}

}  // namespace

net::Handler ingest_handler(IngestDependencies dependencies) {
  auto self = std::make_shared<IngestDependencies>(std::move(dependencies));
  return [self](net::Request request) { return handle(self, std::move(request)); };
}

}  // namespace kwatt::servers
