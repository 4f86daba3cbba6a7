// What the history costs: rows per second when it writes as fast as it can, and the CPU time of one
// minute of 5,000 nodes. Prints one JSON object.
#include <filesystem>
#include <iostream>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "telemetry/history.hpp"

namespace {

using namespace kwatt;
using std::chrono::minutes;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// As the controller adds them: a sample and a part of the hour's energy of every node.
std::vector<telemetry::HistoryRow> minute_of(int nodes, TimePoint minute) {
  std::vector<telemetry::HistoryRow> rows;
  rows.reserve(2 * static_cast<std::size_t>(nodes));
  for (int n = 0; n < nodes; ++n) {
    const std::string node = fmt::format("node-{:05}", n);
    rows.emplace_back(telemetry::SampleRow{minute, node, watts(150 + n % 90), watts(200),
                                           Permille{330}, "agent"});
    rows.emplace_back(telemetry::EnergyRow{std::chrono::floor<std::chrono::hours>(minute), node,
                                           "default", Millijoules{9'000'000},
                                           Millijoules{9'500'000}, minutes{1}, minutes{1}});
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes minutes of history and prints what that has cost.");
  std::string file;
  int nodes = 5'000, count = 120;
  app.add_option("--file", file, "Where the history goes")->required();
  app.add_option("--nodes", nodes)->check(CLI::Range(1, 100'000));
  app.add_option("--minutes", count)->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  log::setup("bench_history", log::Level::warn, log::Format::logfmt);

  const SystemClock clock;
  Metrics metrics;
  telemetry::HistoryOptions options;
  options.path = file;
  options.batch = Duration{0};
  telemetry::History history(options, clock, metrics);
  const TimePoint start = *parse_rfc3339("2026-11-20T10:00:00Z");
  const auto begun = std::chrono::steady_clock::now();
  const double cpu_before = cpu_seconds();
  for (int i = 0; i < count; ++i) {
    history.add(minute_of(nodes, start + minutes{i}));
    if (!history.flush(minutes{5})) {
      std::cerr << "bench_history: the rows were not written\n";
      return 1;
    }
  }
  const double cpu = cpu_seconds() - cpu_before;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
  const double rows = 2.0 * nodes * count;
  fmt::print(R"({{"rows": {:.0f}, "wall_seconds": {:.3f}, "cpu_seconds": {:.3f}, )"
             R"("cpu_seconds_per_minute": {:.5f}, "file_bytes": {}}})"
             "\n",
             rows, wall.count(), cpu, cpu / count, std::filesystem::file_size(file));
  return 0;
}
