#include "telemetry/prometheus_client.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace kwatt::telemetry {
namespace {

constexpr std::size_t kLargestAnswer = 16U << 20U;
constexpr std::size_t kExcerpt = 200;

std::string percent_encoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char byte : text) {
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_';
    if (plain) {
      out.push_back(byte);
      continue;
    }
    const auto value = static_cast<unsigned char>(byte);
    out.push_back('%');
    out.push_back(kHex[value >> 4]);
    out.push_back(kHex[value & 15]);
  }
  return out;
}

// Printable beginning of a body that is no answer.
std::string excerpt(std::string_view body) {
  std::string out(body.substr(0, kExcerpt));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte >= 0x7f) c = byte < ' ' ? ' ' : '?';  // it may end in a status: UTF-8
  }
  return out;
}

Error refused(int status, const net::Response& response) {
  const std::string text = excerpt(response.body);
  const auto error = [&](ErrorCode code, std::string_view why) {
    return fail(code, fmt::format("HTTP {}: {}", status, why), text);
  };
  if (status / 100 == 3) {
    return fail(
        ErrorCode::forbidden,
        fmt::format("HTTP {}: redirects are not followed; give the address it leads to", status),
        excerpt(response.headers.get("Location")));
  }
  if (status == 401) return error(ErrorCode::unauthorized, "the server wants a (valid) token");
  if (status == 403) return error(ErrorCode::forbidden, "the token may not query");
  if (status == 404) return error(ErrorCode::not_found, "no Prometheus API at this URL");
  if (status == 429) return error(ErrorCode::too_many_requests, "too many queries");
  if (status == 504) return error(ErrorCode::timeout, "a proxy got no answer in time");
  if (status >= 500) return error(ErrorCode::unavailable, "the server is in trouble");
  return error(ErrorCode::protocol, "not an answer to a query");
}

}  // namespace

PrometheusClient::PrometheusClient(boost::asio::any_io_executor executor, PrometheusServer server)
    : server_(std::move(server)),
      prefix_(server_.url.path),
      client_(std::move(executor), server_.url.origin, server_.tls) {
  while (prefix_.ends_with('/')) prefix_.pop_back();
}

net::Task<Result<std::vector<Series>>> PrometheusClient::instant(std::string promql,
                                                                 std::vector<std::string> wanted) {
  net::Request request("GET",
                       fmt::format("{}/api/v1/query?query={}&timeout={}ms", prefix_,
                                   percent_encoded(promql), server_.timeout.count()));
  request.headers.set("Accept", "application/json");
  if (server_.token) {
    auto token = server_.token();
    if (!token) co_return token.error().with_context("token of Prometheus");
    request.headers.set("Authorization", "Bearer " + *token);
  }
  net::Limits limits;
  limits.connect = std::min<Duration>(server_.timeout, std::chrono::seconds{5});
  limits.header = limits.total = server_.timeout + std::chrono::seconds{1};
  limits.body_bytes = kLargestAnswer;
  auto response = co_await client_.send(std::move(request), limits);
  if (!response) co_return response.error();
  // Prometheus explains a refusal in the same JSON (400, 422, 503); whatever else came is told by
  // its status.
  auto series = parse_instant_vector(response->body, wanted);
  if (!series && series.error().code != ErrorCode::parse) co_return series.error();
  if (response->status != 200) co_return refused(response->status, *response);
  if (!series) {
    Error error = series.error();
    error.server_text = excerpt(response->body);
    co_return error;
  }
  if (series->empty()) {
    co_return fail(ErrorCode::not_found,
                   "the query gives no series: is the exporter there, and scraped?");
  }
  co_return series;
}

}  // namespace kwatt::telemetry
