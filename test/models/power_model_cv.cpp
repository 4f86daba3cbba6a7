// Cross-validates the learned power model on a measured machine: kepler-model-db's nx12 (see
// docs/explanation/power-model.md). A program, not a doctest file: test_power_model.py drives it.
//
//   power_model_cv FILE.csv   →   fold 1: rows 0-439, 152 samples kept, MAPE 3.41 %, line 7.9 %, …
//
// Blocked 5-fold by time: the machine's rows are cut into five consecutive blocks; each is
// predicted by a model that learned from the other four as it would live, one measurement after
// the other, in bounded memory. Nothing is estimated, scaled or chosen from the block itself.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/learned_power.hpp"

namespace kwatt::models {
namespace {

constexpr std::size_t kFolds = 5;

struct Row {
  MachineState state;
  Milliwatts power;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "power_model_cv: {}\n", why);
  std::exit(2);
}

// Columns by name; counters are per interval of 3 s.
std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) give_up(path + " cannot be read");
  std::vector<std::string> names;
  std::stringstream header(line);
  for (std::string name; std::getline(header, name, ',');) names.push_back(name);
  const auto column = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) give_up(path + " has no column " + name);
    return static_cast<std::size_t>(found - names.begin());
  };
  const std::size_t cycles = column("cpu_cycles"), busy = column("bpf_cpu_time_us"),
                    instructions = column("cpu_instructions"), misses = column("cache_miss"),
                    power = column("platform_power");
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::vector<double> values;
    std::stringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::stod(cell));
    if (values.size() != names.size()) give_up(fmt::format("row {} is cut short", rows.size()));
    Row row;
    // As parts of a machine that does 6e10 cycles and 30,000 units of CPU time in an interval:
    // round numbers above all that occur, which decide nothing but which span a sample falls into.
    row.state.utilization = Permille{std::llround(values[cycles] / 6e7)};
    row.state.busy = Permille{std::llround(values[busy] / 30)};
    row.state.instructions_per_second = std::llround(values[instructions] / 3);
    row.state.cache_misses_per_second = std::llround(values[misses] / 3);
    row.power = Milliwatts{std::llround(values[power] * 1000)};
    rows.push_back(row);
  }
  return rows;
}

double relative_error(Milliwatts predicted, Milliwatts measured) {
  return std::abs(static_cast<double>((predicted - measured).count())) /
         static_cast<double>(measured.count());
}

// What the straight line of the utilization says, for comparison: ordinary least squares.
struct Line {
  double idle = 0, gain = 0;
  Milliwatts at(Permille load) const {
    return Milliwatts{std::llround(idle + gain * static_cast<double>(load.count()))};
  }
};
Line fit_line(const std::vector<Row>& rows) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const Row& row : rows) {
    x += static_cast<double>(row.state.utilization.count());
    y += static_cast<double>(row.power.count());
  }
  const auto n = static_cast<double>(rows.size());
  x /= n;
  y /= n;
  for (const Row& row : rows) {
    const double dx = static_cast<double>(row.state.utilization.count()) - x;
    xx += dx * dx;
    xy += dx * (static_cast<double>(row.power.count()) - y);
  }
  return {y - xy / xx * x, xy / xx};
}

int run(const std::string& path) {
  const std::vector<Row> rows = read_rows(path);
  if (rows.size() < 100) give_up("too few rows");
  double sum = 0, line_sum = 0;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    const std::size_t begin = rows.size() * fold / kFolds;
    const std::size_t end = rows.size() * (fold + 1) / kFolds;
    PowerSamples samples;
    std::vector<Row> training;
    // The block is a gap in time, so that the sample behind it is not compared with one in it.
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i >= begin && i < end) continue;
      samples.add(rows[i].state, rows[i].power,
                  TimePoint{std::chrono::seconds{static_cast<std::int64_t>(i) * 3}});
      training.push_back(rows[i]);
    }
    auto learned = learn_power(samples.samples());
    if (!learned) give_up(learned.error().text());
    const Line line = fit_line(training);
    double error = 0, line_error = 0;
    std::size_t outside = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const LearnedEstimate estimate = learned->at(rows[i].state);
      error += relative_error(estimate.power, rows[i].power);
      line_error += relative_error(line.at(rows[i].state.utilization), rows[i].power);
      if (!estimate.in_range) ++outside;
    }
    const auto count = static_cast<double>(end - begin);
    fmt::print(
        "fold {}: rows {}-{}, {} samples kept, MAPE {:.2f} %, line {:.2f} %, "
        "expected {}.{} %, {} outside, {}\n",
        fold + 1, begin, end - 1, samples.size(), 100 * error / count, 100 * line_error / count,
        learned->error_permille() / 10, learned->error_permille() % 10, outside, learned->form());
    sum += error / count;
    line_sum += line_error / count;
  }
  fmt::print("mean: MAPE {:.2f} %, line {:.2f} %\n", 100 * sum / kFolds, 100 * line_sum / kFolds);
  return 0;
}

}  // namespace
}  // namespace kwatt::models

int main(int argc, char** argv) {
  if (argc != 2) kwatt::models::give_up("usage: power_model_cv FILE.csv");
  return kwatt::models::run(argv[1]);
}
