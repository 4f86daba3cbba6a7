#include "servers/history.hpp"

#include <charconv>
#include <set>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "telemetry/history_format.hpp"

namespace kwatt::servers {
namespace {

net::Response answer(int status, std::string text) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.headers.set("Cache-Control", "no-store");
  response.body = std::move(text) + "\n";
  return response;
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

std::optional<TimePoint> moment(const std::string& text, TimePoint now) {
  if (const auto time = parse_rfc3339(text)) return time;
  const auto back = parse_go_duration(text);
  if (!back || *back < Duration{0}) return std::nullopt;
  return now - *back;
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return 400;
    case ErrorCode::unauthorized:
      return 401;
    case ErrorCode::forbidden:
      return 403;
    default:
      return 503;
  }
}

net::Response refusal(const Error& error, const char* what) {
  const int status = status_of(error.code);
  if (status == 503) log::warn(what, {{"error", error}});
  return answer(status, error.message);
}

std::string as_csv(telemetry::HistoryKind kind, const std::vector<telemetry::HistoryRow>& rows) {
  std::string out(telemetry::csv_header(kind));
  for (const telemetry::HistoryRow& row : rows) telemetry::append_csv(row, out);
  return out;
}

// Owns what it uses: the server may forget the handler while a request is under way.
net::Task<net::Response> handle(std::shared_ptr<HistoryDependencies> dependencies,
                                net::Request request) {
  HistoryDependencies& self = *dependencies;
  if (request.method != "GET") co_return answer(405, "only GET");
  std::string token = bearer(request);
  if (token.empty()) co_return answer(401, "a bearer token of audience kwatt is needed");
  auto caller = co_await self.tokens.review(std::move(token));
  if (!caller) co_return refusal(caller.error(), "token not reviewed");
  auto allowed = co_await self.access.review(*caller, kHistoryPath, "get");
  if (!allowed) co_return refusal(allowed.error(), "access not reviewed");

  const TimePoint now = self.clock.now();
  auto asked = parse_history_target(request.target, now);
  if (!asked) co_return refusal(asked.error(), "");
  const telemetry::HistoryKind kind = asked->query.kind;
  const std::size_t limit = asked->query.limit;
  auto rows = co_await self.history.read(asked->query);
  if (!rows) co_return refusal(rows.error(), "history not read");

  net::Response response;
  response.headers.set("Cache-Control", "no-store");
  if (asked->csv) {
    response.headers.set("Content-Type", "text/csv; charset=utf-8");
    response.headers.set("Content-Disposition", fmt::format("attachment; filename=\"{}\"",
                                                            telemetry::csv_name(kind, now)));
    response.body = as_csv(kind, *rows);
  } else {
    response.headers.set("Content-Type", "application/json");
    response.body = telemetry::history_json(kind, *rows, rows->size() >= limit);
  }
  co_return response;
}

}  // namespace

Result<HistoryRequest> parse_history_target(std::string_view target, TimePoint now) {
  const auto url = boost::urls::parse_origin_form({target.data(), target.size()});
  if (!url) return fail(ErrorCode::invalid_argument, "the request target is not understood");
  HistoryRequest request;
  telemetry::HistoryQuery& query = request.query;
  std::set<std::string> seen;
  // "/history?" would otherwise be one parameter without a name.
  if (url->encoded_query().empty()) return request;
  for (const auto& parameter : url->params()) {
    const std::string key = parameter.key, value = parameter.value;
    const auto wrong = [&](std::string_view want) {
      return fail(ErrorCode::invalid_argument, fmt::format("{}={}: must be {}", key, value, want));
    };
    if (!seen.insert(key).second) {
      return fail(ErrorCode::invalid_argument, fmt::format("{} is given twice", key));
    }
    if (key == "kind") {
      const auto kind = telemetry::parse_history_kind(value);
      if (!kind) return wrong("samples, decisions, operations or energy");
      query.kind = *kind;
    } else if (key == "node" || key == "policy") {
      if (value.empty() || value.size() > 253) return wrong("a name of 1 to 253 bytes");
      (key == "node" ? query.node : query.policy) = value;
    } else if (key == "since" || key == "until") {
      const auto time = moment(value, now);
      if (!time) return wrong("a time such as 2026-11-20T21:00:00Z or a duration such as 90m");
      (key == "since" ? query.since : query.until) = time;
    } else if (key == "limit") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), query.limit);
      if (error != std::errc{} || end != value.data() + value.size() || query.limit < 1 ||
          query.limit > kHistoryLimit) {
        return wrong(fmt::format("1 to {}", kHistoryLimit));
      }
    } else if (key == "format") {
      if (value != "json" && value != "csv") return wrong("json or csv");
      request.csv = value == "csv";
    } else {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} is not known: kind, node, policy, since, until, limit and format "
                              "are",
                              key));
    }
  }
  return request;
}

net::Handler history_handler(HistoryDependencies dependencies) {
  auto self = std::make_shared<HistoryDependencies>(dependencies);
  return [self](net::Request request) { return handle(self, std::move(request)); };
}

}  // namespace kwatt::servers
