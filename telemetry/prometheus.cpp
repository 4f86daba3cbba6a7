#include "telemetry/prometheus.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::telemetry {
namespace {

constexpr std::size_t kLargestAnswer = 16U << 20U;
constexpr double kMostWatts = 100'000;
// Prometheus itself looks back no further for a series that has no end mark.
constexpr double kOldestSeconds = 300;
constexpr double kAheadSeconds = 30;
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

class PrometheusSource final : public PollSource {
 public:
  PrometheusSource(boost::asio::any_io_executor executor, PrometheusServer server, PowerQuery query,
                   Duration period)
      : server_(std::move(server)),
        query_(std::move(query)),
        period_(period),
        client_(std::move(executor), server_.url.origin, server_.tls) {
    std::string path = server_.url.path;
    while (path.ends_with('/')) path.pop_back();
    target_ = fmt::format("{}/api/v1/query?query={}&timeout={}ms", path,
                          percent_encoded(instant_query(query_)), server_.timeout.count());
    wanted_ = server_.labels;
    wanted_.emplace_back(kPartLabel);
  }

  Source source() const override { return query_.source; }
  Duration period() const override { return period_; }

  net::Task<Result<Fetched>> fetch(std::shared_ptr<const NodeDirectory> nodes,
                                   TimePoint now) override {
    net::Request request("GET", target_);
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
    // Prometheus explains a refusal in the same JSON (400, 422, 503); whatever else came is told
    // by its status.
    auto series = parse_instant_vector(response->body, wanted_);
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
    co_return read_power(*series, query_, server_.labels, *nodes, now, period_);
  }

 private:
  PrometheusServer server_;
  PowerQuery query_;
  Duration period_;
  net::Client client_;
  std::string target_;
  std::vector<std::string> wanted_;
};

// What one answer says about one node.
struct Parts {
  int watts_count = 0, measured_count = 0;
  double watts = 0, measured = 0, evaluated = 0;
  bool is_number = true;
};

}  // namespace

Fetched read_power(const std::vector<Series>& series, const PowerQuery& query,
                   const std::vector<std::string>& labels, const NodeDirectory& nodes,
                   TimePoint now, Duration period) {
  Fetched out;
  std::map<std::string, Parts> by_node;
  for (const Series& one : series) {
    const bool is_watts = one.label(kPartLabel) == "watts";
    std::string_view name;
    for (const std::string& label : labels) {
      name = one.label(label);
      if (!name.empty()) break;
    }
    const NodeDirectory::Entry* node = name.empty() ? nullptr : nodes.find(name);
    if (node == nullptr) {
      if (!is_watts) continue;
      if (name.empty()) {
        out.reject(Rejection::no_label,
                   fmt::format("a series has none of the labels {}", fmt::join(labels, ", ")));
      } else {
        out.reject(Rejection::unknown_node, fmt::format("\"{}\" names no node", name));
      }
      continue;
    }
    Parts& parts = by_node[node->name];
    if (is_watts) {
      ++parts.watts_count;
      parts.watts = one.value;
      parts.is_number = one.is_number;
      parts.evaluated = one.time;
    } else {
      ++parts.measured_count;
      parts.measured = one.is_number ? one.value : std::nan("");
    }
  }
  for (const auto& [node, parts] : by_node) {
    if (parts.watts_count == 0) continue;  // a time alone: the exporter has no value just now
    if (parts.watts_count > 1 || parts.measured_count > 1) {
      out.reject(Rejection::several_series,
                 fmt::format("{} series for node {}: none is believed",
                             std::max(parts.watts_count, parts.measured_count), node));
      continue;
    }
    if (!parts.is_number || !std::isfinite(parts.watts)) {
      out.reject(Rejection::not_a_number, fmt::format("the watts of {} are no number", node));
      continue;
    }
    if (parts.watts < 0 || parts.watts > kMostWatts) {
      out.reject(Rejection::out_of_range,
                 fmt::format("{} W is not what {} draws", parts.watts, node));
      continue;
    }
    const double age = parts.evaluated - parts.measured;
    // (A NaN fails every comparison.)
    const bool known = parts.measured_count == 1 && age <= kOldestSeconds && age >= -kAheadSeconds;
    if (!known) {
      out.reject(Rejection::stale, fmt::format("the watts of {} are old, or of unknown age", node));
      continue;
    }
    Sample sample;
    // Told from the age, so that the server's clock need not agree with ours.
    sample.at = now - Duration{std::llround(std::max(0.0, age) * 1000)};
    sample.power = Milliwatts{std::llround(parts.watts * 1000)};
    sample.source = query.source;
    sample.whole_machine = query.whole_machine;
    sample.period = period;
    sample.has_utilization = false;
    out.readings.push_back({node, sample});
  }
  return out;
}

std::unique_ptr<PollSource> make_prometheus_source(boost::asio::any_io_executor executor,
                                                   PrometheusServer server, PowerQuery query,
                                                   Duration period) {
  return std::make_unique<PrometheusSource>(std::move(executor), std::move(server),
                                            std::move(query), period);
}

}  // namespace kwatt::telemetry
