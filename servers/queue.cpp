#include "servers/queue.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/json_writer.hpp"
#include "base/log.hpp"
#include "servers/job_request.hpp"

namespace kwatt::servers {
namespace {

using planner::queue::Decided;

const kube::Resource& jobs() {
  static const kube::Resource resource{"batch", "v1", "jobs", true};
  return resource;
}

net::Response plain(int status, std::string text) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.headers.set("Cache-Control", "no-store");
  if (status == 503) response.headers.set("Retry-After", "1");
  response.body = std::move(text) + "\n";
  return response;
}

net::Response json(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.headers.set("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

net::Response refusal(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return plain(400, error.message);
    case ErrorCode::unauthorized:
      return plain(401, error.message);
    case ErrorCode::forbidden:
      return plain(403, error.message);
    default:
      log::warn("a request to the queue failed", {{"error", error}});
      return plain(503, error.message);
  }
}

std::string bearer(const net::Request& request) {
  constexpr std::string_view kPrefix = "Bearer ";
  for (const char* name : {"Authorization", "Kwatt-Authorization"}) {
    const std::string_view header = request.headers.get(name);
    if (header.substr(0, kPrefix.size()) == kPrefix) {
      return std::string(header.substr(kPrefix.size()));
    }
  }
  return "";
}

struct Handler {
  QueueDependencies dependencies;
  int running = 0;
};

struct Running {
  explicit Running(Handler& handler) : handler_(handler) { ++handler_.running; }
  ~Running() { --handler_.running; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  Handler& handler_;
};

bool wants_text(const net::Request& request) {
  return request.headers.get("Accept").substr(0, 10) == "text/plain";
}

net::Response shown(const std::vector<Decided>& decided, bool as_text) {
  if (!as_text) return json(200, decision_json(decided));
  net::Response response = plain(200, "");
  response.body = decision_table(decided);
  return response;
}

// Owns what it uses: the server may forget the handler while a request is under way.
net::Task<net::Response> ingest(std::shared_ptr<Handler> self, Caller caller, std::string body) {
  auto job = parse_job_request(body);
  if (!job) co_return refusal(job.error());
  auto allowed = co_await self->dependencies.access.review_create(caller, "batch", "jobs",
                                                                  job->namespace_name);
  if (!allowed) co_return refusal(allowed.error());
  std::string text = job_body(*job, caller.user);
  auto made =
      co_await self->dependencies.client.create(jobs(), job->namespace_name, std::move(text));
  const std::string name = job->namespace_name + "/" + job->name;
  if (!made) {
    const Error& error = made.error();
    switch (error.code) {
      case ErrorCode::already_exists:
        co_return plain(409, fmt::format("there is a Job {} already", name));
      case ErrorCode::not_found:
        co_return plain(422, fmt::format("there is no namespace {}", job->namespace_name));
      case ErrorCode::invalid_argument:
      case ErrorCode::forbidden:  // a quota, or an admission policy
        co_return plain(422, error.text());
      default:
        co_return refusal(error);
    }
  }
  log::info("job taken", {{"job", name}, {"queue", job->queue}, {"caller", caller.user}});
  api::JsonWriter out;
  out.begin().text("namespace", job->namespace_name).text("name", job->name).end();
  co_return json(201, out.take());
}

net::Task<net::Response> handle(std::shared_ptr<Handler> self, net::Request request) {
  QueueDependencies& use = self->dependencies;
  const std::string path = request.target.substr(0, request.target.find('?'));
  const std::string method = path == kQueuePath ? "GET" : "POST";
  if (request.method != method) co_return plain(405, "only " + method);
  std::string token = bearer(request);
  if (token.empty()) co_return plain(401, "a bearer token of audience kwatt is needed");
  if (request.body.size() > kJobBody) {
    co_return plain(413, fmt::format("a request has at most {} bytes", kJobBody));
  }
  if (self->running >= kQueueAtOnce) co_return plain(503, "too many requests at the same time");
  const Running counted(*self);
  auto caller = co_await use.tokens.review(std::move(token));
  if (!caller) co_return refusal(caller.error());
  if (path == kJobPath) {
    co_return co_await ingest(self, std::move(*caller), std::move(request.body));
  }
  const std::string verb = path == kQueuePath ? "get" : "post";
  auto allowed = co_await use.access.review(*caller, path, verb);
  if (!allowed) co_return refusal(allowed.error());
  if (path == kQueuePath) {
    auto decided = use.preview();
    if (!decided) co_return refusal(decided.error());
    co_return shown(*decided, wants_text(request));
  }
  auto decided = co_await use.dispatch();
  if (!decided) co_return refusal(decided.error());
  log::info("all jobs released", {{"caller", caller->user}, {"jobs", decided->size()}});
  co_return shown(*decided, wants_text(request));
}

}  // namespace

std::string decision_table(const std::vector<Decided>& decided) {
  using Line = std::array<std::string, 7>;
  std::vector<Line> lines{{"JOB", "QUEUE", "STRATEGY", "PODS", "STARTS", "REASON", "NODES"}};
  std::array<std::size_t, 7> widths{};
  for (const Decided& one : decided) {
    lines.push_back({one.gated.job.name, one.gated.queue, one.strategy,
                     fmt::format("{}", one.gated.pods.size()), one.verdict.starts ? "yes" : "no",
                     std::string(to_string(one.verdict.why)),
                     fmt::format("{}", fmt::join(one.nodes, ","))});
  }
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      out += fmt::format("{:<{}}  ", lines[at][i], widths[i]);
    }
    out += at == 0 ? "MESSAGE" : decided[at - 1].verdict.sentence;
    out += "\n";
  }
  return out;
}

std::string decision_json(const std::vector<Decided>& decided) {
  api::JsonWriter out;
  out.begin().begin_list("jobs");
  for (const Decided& one : decided) {
    out.begin();
    out.text("namespace", one.gated.namespace_name).text("name", one.gated.name);
    out.text("queue", one.gated.queue).text("strategy", one.strategy);
    out.key("pods").integer(static_cast<std::int64_t>(one.gated.pods.size()));
    out.key("starts").boolean(one.verdict.starts);
    out.text("reason", to_string(one.verdict.why)).text("message", one.verdict.sentence);
    out.begin_list("nodes");
    for (const std::string& node : one.nodes) out.text(node);
    out.end_list();
    if (one.verdict.grams_per_kwh >= 0) {
      out.key("gramsPerKWh").integer(std::llround(one.verdict.grams_per_kwh));
    }
    out.end();
  }
  out.end_list().end();
  return out.take();
}

net::Handler queue_handler(QueueDependencies dependencies) {
  auto self = std::make_shared<Handler>(Handler{std::move(dependencies), 0});
  return [self](net::Request request) { return handle(self, std::move(request)); };
}

}  // namespace kwatt::servers
