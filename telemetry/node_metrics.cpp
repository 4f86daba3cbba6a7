#include "telemetry/node_metrics.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/node_metrics.hpp"
#include "api/quantity.hpp"

namespace kwatt::telemetry {
namespace {

constexpr Duration kOldest = std::chrono::minutes{5};
constexpr Duration kAhead = std::chrono::seconds{30};

}  // namespace

Result<Fetched> read_node_metrics(std::string_view json, const NodeDirectory& nodes, TimePoint now,
                                  Duration period) {
  Fetched out;
  std::set<std::string> seen;
  const auto take = [&](api::NodeMetrics&& metrics) {
    const std::string& name = metrics.meta.name;
    const NodeDirectory::Entry* node = nodes.find(name);
    if (node == nullptr) {
      out.reject(Rejection::unknown_node, fmt::format("\"{}\" names no node", name));
      return;
    }
    if (!seen.insert(name).second) {
      out.reject(Rejection::several_series, fmt::format("{} is listed more than once", name));
      return;
    }
    if (!metrics.timestamp || now - *metrics.timestamp > kOldest ||
        *metrics.timestamp - now > kAhead) {
      out.reject(Rejection::stale, fmt::format("the usage of {} is old, or of unknown age", name));
      return;
    }
    const auto cpu = api::parse_quantity_milli(metrics.usage.get("cpu"));
    if (!cpu) {
      out.reject(Rejection::not_a_number, fmt::format("the cpu usage of {} is no quantity", name));
      return;
    }
    // Ten times all CPUs is no rounding any more.
    const std::int64_t all = node->cpu.count();
    if (*cpu < 0 || all <= 0 || *cpu > 10 * all) {
      out.reject(Rejection::out_of_range,
                 fmt::format("{} cannot use {} m of {} m cpu", name, *cpu, all));
      return;
    }
    Sample sample;
    sample.at = *metrics.timestamp;
    sample.busy = sample.utilization = Permille{std::min<std::int64_t>(1000, *cpu * 1000 / all)};
    sample.source = Source::metrics_api;
    sample.period = period;
    out.readings.push_back({name, sample});
  };
  api::ListDecoder<api::NodeMetrics> list(nullptr, take);
  if (auto fed = list.feed(json); !fed) return fed.error();
  auto meta = list.finish();
  if (!meta) return meta.error();
  if (out.readings.empty() && out.rejected.empty()) {
    return fail(ErrorCode::not_found,
                "the list has no nodes: metrics-server has measured none yet");
  }
  std::sort(out.readings.begin(), out.readings.end(),
            [](const NodeReading& a, const NodeReading& b) { return a.node < b.node; });
  return out;
}

}  // namespace kwatt::telemetry
