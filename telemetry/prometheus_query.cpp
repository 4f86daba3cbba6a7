#include "telemetry/prometheus_query.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::telemetry {
namespace {

PowerQuery plain(Source source, bool whole_machine, const std::string& selector) {
  PowerQuery query;
  query.source = source;
  query.whole_machine = whole_machine;
  query.watts = selector;
  query.measured = fmt::format("timestamp({})", selector);
  return query;
}

// Of all sensors only the machine's own meter, which the chip's name tells, as in hardware/hwmon.
PowerQuery hwmon() {
  constexpr std::string_view kPower = "node_hwmon_power_average_watt";
  constexpr std::string_view kMeter =
      "on (instance, chip) group_left () "
      "node_hwmon_chip_names{chip_name=~\"power_meter|ibmpowernv\"}";
  PowerQuery query;
  query.source = Source::node_exporter_hwmon;
  query.watts = fmt::format("{} * {}", kPower, kMeter);
  query.measured = fmt::format("timestamp({}) * {}", kPower, kMeter);
  return query;
}

// Joules of all sockets. intel-rapl-mmio counts package 0 once more. irate, because rate divides by
// the whole span: for two minutes after an exporter's start it says too little.
PowerQuery rapl(const std::vector<std::string>& labels) {
  constexpr std::string_view kJoules = "node_rapl_package_joules_total{path!~\".*mmio.*\"}";
  PowerQuery query;
  query.source = Source::node_exporter_rapl;
  query.whole_machine = false;
  query.watts = fmt::format("sum by ({}) (irate({}[2m]))", fmt::join(labels, ", "), kJoules);
  query.measured = fmt::format("min by ({}) (timestamp({}))", fmt::join(labels, ", "), kJoules);
  return query;
}

}  // namespace

std::vector<Source> known_exporters() {
  return {Source::ipmi_exporter,     Source::node_exporter_hwmon, Source::kepler_platform,
          Source::kepler_psys,       Source::scaphandre,          Source::kepler,
          Source::node_exporter_rapl};
}

std::optional<PowerQuery> query_of(Source exporter, const std::vector<std::string>& labels) {
  switch (exporter) {
    case Source::ipmi_exporter:
      return plain(exporter, true, "ipmi_dcmi_power_consumption_watts");
    case Source::node_exporter_hwmon:
      return hwmon();
    case Source::kepler_platform:
      return plain(exporter, true, "kepler_platform_watts");
    case Source::kepler_psys:
      return plain(exporter, true, "kepler_node_cpu_watts{zone=\"psys\"}");
    case Source::kepler:
      return plain(exporter, false, "kepler_node_cpu_watts{zone=\"package\"}");
    case Source::scaphandre: {
      PowerQuery query = plain(exporter, false, "scaph_host_power_microwatts");
      query.watts += " / 1000000";
      return query;
    }
    case Source::node_exporter_rapl:
      return rapl(labels);
    case Source::agent:
    case Source::bmc:
    case Source::prometheus:
    case Source::metrics_api:
      break;
  }
  return std::nullopt;
}

PowerQuery own_query(const std::string& promql) {
  // The line breaks end a comment, should the operator's query close with one.
  PowerQuery query = plain(Source::prometheus, true, "(" + promql + "\n)");
  return query;
}

std::string instant_query(const PowerQuery& query) {
  const auto part = [](std::string_view expression, std::string_view name) {
    return fmt::format("label_replace({}, \"{}\", \"{}\", \"__name__\", \".*\")", expression,
                       kPartLabel, name);
  };
  return part(query.watts, "watts") + " or " + part(query.measured, "measured");
}

}  // namespace kwatt::telemetry
