#include <fmt/format.h>

#include "simulator/report/report.hpp"

namespace kwatt::simulator::report {
namespace {

constexpr double kMillijoulesPerKwh = 3.6e9, kMillisecondsPerHour = 3.6e6;

double kwh_of(const models::Whole& energy) {
  return static_cast<double>(energy.units) / kMillijoulesPerKwh;
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string head(std::string_view by, const Run& run) {
  return fmt::format("{},{},{},{}", by, csv_field(run.trace), csv_field(run.strategy), run.seed);
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string schedule_line(std::string_view job, std::string_view node, std::string_view strategy,
                          double grams_per_kwh, TimePoint at) {
  return fmt::format("{},{},{},{:.6g},{}\n", csv_field(job), csv_field(node), csv_field(strategy),
                     grams_per_kwh, format_rfc3339(at));
}

std::string csv_of(const std::vector<Run>& runs) {
  std::string text = "trace,strategy,seed";
  for (const Figure& figure : figures()) text += fmt::format(",{}", figure.key);
  text += '\n';
  for (const Run& run : runs) {
    text += fmt::format("{},{},{}", csv_field(run.trace), csv_field(run.strategy), run.seed);
    for (const Figure& figure : figures()) {
      text += fmt::format(",{:.9g}", figure.value(run.outcome));
    }
    text += '\n';
  }
  return text;
}

std::string metrics_csv_of(const std::vector<Run>& runs) {
  std::string text =
      "by,trace,strategy,seed,node,zone,time,energy_kwh,co2_g,average_intensity,utilization,"
      "machines_on,queued\n";
  for (const Run& run : runs) {
    const Outcome& outcome = run.outcome;
    text += fmt::format("{},,,,{:.9g},{:.9g},{:.9g},{:.6g},,\n", head("strategy", run),
                        outcome.energy_kwh, outcome.grams_co2, outcome.mean_intensity(),
                        outcome.utilization);
    double all_cpu = 0;
    for (const Outcome::Node& node : outcome.nodes) {
      const double kwh = kwh_of(node.account.energy);
      all_cpu += static_cast<double>(node.cpu_millicores);
      text += fmt::format("{},{},{},,{:.9g},{:.9g},{:.9g},{:.6g},{:.6g},\n", head("node", run),
                          csv_field(node.name), csv_field(node.zone), kwh, node.account.grams_co2,
                          ratio(node.account.grams_co2, kwh),
                          ratio(node.account.cpu_ms, static_cast<double>(node.account.on_ms) *
                                                         static_cast<double>(node.cpu_millicores)),
                          ratio(static_cast<double>(node.account.on_ms),
                                static_cast<double>(outcome.length.count())));
    }
    const double step = static_cast<double>(outcome.timeline.step().count());
    for (const Timeline::Point& point : outcome.timeline.points()) {
      const double length =
          std::min(step, static_cast<double>((outcome.length - point.at).count()));
      const double hours = length / kMillisecondsPerHour;
      const double kwh = point.mean.watts / 1000 * hours;
      const double grams = point.mean.grams_per_hour * hours;
      text += fmt::format("{},,,{},{:.9g},{:.9g},{:.9g},{:.6g},{:.6g},{:.6g}\n", head("time", run),
                          format_rfc3339(outcome.start + point.at), kwh, grams, ratio(grams, kwh),
                          ratio(point.mean.used_cpu, all_cpu), point.mean.machines_on,
                          point.mean.queued);
    }
  }
  return text;
}

}  // namespace kwatt::simulator::report
