#include "telemetry/environment.hpp"

#include <cctype>
#include <cmath>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::telemetry {
namespace {

constexpr std::string_view kTemperatures = "ipmi_temperature_celsius";
constexpr std::string_view kSensorLabel = "name";
constexpr double kColdest = -60, kHottest = 150;
constexpr double kMostPascals = 10'000;

std::string letters_and_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) out.push_back(static_cast<char>(std::tolower(byte)));
  }
  return out;
}

// nullptr: rejected.
const NodeDirectory::Entry* node_of(Environments& out, const Series& series,
                                    const std::vector<std::string>& labels,
                                    const NodeDirectory& nodes) {
  std::string_view name;
  for (const std::string& label : labels) {
    name = series.label(label);
    if (!name.empty()) break;
  }
  if (name.empty()) {
    out.reject(Rejection::no_label,
               fmt::format("a series has none of the labels {}", fmt::join(labels, ", ")));
    return nullptr;
  }
  const NodeDirectory::Entry* node = nodes.find(name);
  if (node == nullptr) {
    out.reject(Rejection::unknown_node, fmt::format("\"{}\" names no node", name));
  }
  return node;
}

}  // namespace

Sensor sensor_of(std::string_view name) {
  const std::string plain = letters_and_digits(name);
  if (plain.find("ambient") != std::string::npos || plain.find("inlet") != std::string::npos) {
    return Sensor::ambient;
  }
  for (const auto& [prefix, sensor] : {std::pair{"cpu1", Sensor::cpu1}, {"cpu2", Sensor::cpu2}}) {
    if (!plain.starts_with(prefix)) continue;
    const std::string rest = plain.substr(4);
    if (rest.empty() || rest == "temp" || rest == "temperature") return sensor;
  }
  return Sensor::other;
}

void Environments::reject(Rejection why, std::string sentence) {
  if (rejected.empty()) example = std::move(sentence);
  ++rejected[why];
}

void read_temperatures(Environments& out, const std::vector<Series>& series,
                       const std::vector<std::string>& labels, const NodeDirectory& nodes,
                       TimePoint now) {
  std::map<std::string, bool> exact;  // nodes whose ambient sensor has WAO's name
  for (const Series& one : series) {
    const std::string_view sensor_name = one.label(kSensorLabel);
    const Sensor sensor = sensor_of(sensor_name);
    if (sensor == Sensor::other) continue;
    const NodeDirectory::Entry* node = node_of(out, one, labels, nodes);
    if (node == nullptr) continue;
    if (!one.is_number || !std::isfinite(one.value)) {
      out.reject(Rejection::not_a_number,
                 fmt::format("sensor \"{}\" of {} has no value", sensor_name, node->name));
      continue;
    }
    if (one.value < kColdest || one.value > kHottest) {
      out.reject(Rejection::out_of_range,
                 fmt::format("sensor \"{}\" of {} says {} °C", sensor_name, node->name, one.value));
      continue;
    }
    Environment& environment = out.by_node[node->name];
    environment.at = now;
    const Millicelsius value{std::llround(one.value * 1000)};
    if (sensor == Sensor::cpu1) environment.cpu1 = value;
    if (sensor == Sensor::cpu2) environment.cpu2 = value;
    if (sensor != Sensor::ambient) continue;
    const bool waos = sensor_name == "Ambient";
    bool& found = exact[node->name];
    if (!environment.ambient || (waos && !found) ||
        (waos == found && value < *environment.ambient)) {
      environment.ambient = value;
    }
    found = found || waos;
  }
}

void read_pressures(Environments& out, const std::vector<Series>& series,
                    const std::vector<std::string>& labels, const NodeDirectory& nodes,
                    TimePoint now) {
  for (const Series& one : series) {
    const NodeDirectory::Entry* node = node_of(out, one, labels, nodes);
    if (node == nullptr) continue;
    if (!one.is_number || !std::isfinite(one.value) || std::abs(one.value) > kMostPascals) {
      out.reject(one.is_number && !std::isnan(one.value) ? Rejection::out_of_range
                                                         : Rejection::not_a_number,
                 fmt::format("the pressure difference of {} is no pressure", node->name));
      continue;
    }
    Environment& environment = out.by_node[node->name];
    environment.at = now;
    environment.static_pressure_pascal = one.value;
  }
}

EnvironmentSource::EnvironmentSource(boost::asio::any_io_executor executor, PrometheusServer server,
                                     bool temperatures, std::string pressure_query)
    : labels_(server.labels),
      temperatures_(temperatures),
      pressure_query_(std::move(pressure_query)),
      client_(std::move(executor), std::move(server)) {}

net::Task<Result<Environments>> EnvironmentSource::fetch(std::shared_ptr<const NodeDirectory> nodes,
                                                         TimePoint now) {
  Environments out;
  if (temperatures_) {
    std::vector<std::string> wanted = labels_;
    wanted.emplace_back(kSensorLabel);
    auto series = co_await client_.query(std::string(kTemperatures), std::move(wanted));
    if (!series) co_return series.error().with_context(kTemperatures);
    read_temperatures(out, *series, labels_, *nodes, now);
  }
  if (!pressure_query_.empty()) {
    auto series = co_await client_.query(pressure_query_, labels_);
    if (!series) co_return series.error().with_context("pressure query");
    read_pressures(out, *series, labels_, *nodes, now);
  }
  co_return out;
}

void EnvironmentStore::take(const Environments& environments) {
  for (auto& [node, environment] : environments.by_node) by_node_[node] = environment;
}

const Environment* EnvironmentStore::find(std::string_view node, TimePoint now) const {
  const auto found = by_node_.find(node);
  if (found == by_node_.end() || now - found->second.at > kBelieved) return nullptr;
  return &found->second;
}

}  // namespace kwatt::telemetry
