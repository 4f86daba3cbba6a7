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

constexpr double kMostWatts = 100'000;
// Prometheus itself looks back no further for a series that has no end mark.
constexpr double kOldestSeconds = 300;
constexpr double kAheadSeconds = 30;
class PrometheusSource final : public PollSource {
 public:
  PrometheusSource(boost::asio::any_io_executor executor, PrometheusServer server, PowerQuery query,
                   Duration period)
      : query_(std::move(query)),
        period_(period),
        wanted_(server.labels),
        client_(std::move(executor), std::move(server)) {
    wanted_.emplace_back(kPartLabel);
  }

  Source source() const override { return query_.source; }
  Duration period() const override { return period_; }

  net::Task<Result<Fetched>> fetch(std::shared_ptr<const NodeDirectory> nodes,
                                   TimePoint now) override {
    auto series = co_await client_.instant(instant_query(query_), wanted_);
    if (!series) co_return series.error();
    co_return read_power(*series, query_, client_.server().labels, *nodes, now, period_);
  }

 private:
  PowerQuery query_;
  Duration period_;
  std::vector<std::string> wanted_;
  PrometheusClient client_;
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
