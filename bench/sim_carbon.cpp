// What waiting for clean electricity would have saved: bench/sim_carbon.py runs it for each zone.
// Prints one JSON object.
#include <algorithm>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/carbon/intensity_csv.hpp"
#include "models/carbon/shift_trial.hpp"

namespace {

namespace carbon = kwatt::models::carbon;
using kwatt::Duration;
using kwatt::Result;
using kwatt::TimePoint;

constexpr Duration kHour = std::chrono::hours{1}, kDay = std::chrono::hours{24};

struct Options {
  std::vector<std::string> files;
  carbon::CsvShape shape;
  std::string from, to;
  std::vector<std::string> learners{"blend"};
  bool daily = false;
};

// Files one after another, each a part of the same series.
Result<carbon::IntensitySeries> read(const Options& options) {
  std::vector<carbon::Reading> readings;
  Duration step = kHour;
  for (const std::string& name : options.files) {
    std::ifstream file(name);
    if (!file) return kwatt::fail(kwatt::ErrorCode::io, "cannot open " + name);
    auto read = carbon::read_csv(file, name, options.shape);
    if (!read) return read.error();
    for (const auto& [zone, series] : read->zones) {
      step = series.step();
      for (std::size_t i = 0; i < series.size(); ++i) {
        if (const auto grams = series.value(i)) readings.push_back({series.time_of(i), *grams});
      }
    }
  }
  return carbon::IntensitySeries::make(readings, step);
}

int failed(const kwatt::Error& error) {
  std::cerr << "error: " << error.text() << "\n";
  return 1;
}

// Let's Wait Awhile, scenario I: a job of one step every day at 01:00, which may start up to
// `window` earlier or later, by an oracle. Grams per kWh: at 01:00, and at the best start.
std::pair<double, double> nightly(const carbon::IntensitySeries& series, TimePoint from,
                                  TimePoint to, Duration window) {
  double base = 0, best = 0;
  std::size_t days = 0;
  for (TimePoint day = from; day < to; day += kDay) {
    const TimePoint at = day + kHour;
    const auto usual = series.at(at);
    if (!usual) continue;
    double least = *usual;
    for (TimePoint other = at - window; other <= at + window; other += series.step()) {
      if (const auto grams = series.at(other)) least = std::min(least, *grams);
    }
    base += *usual;
    best += least;
    ++days;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, days));
  return {base / count, best / count};
}

int run(const Options& options) {
  const auto series = read(options);
  if (!series) return failed(series.error());
  const auto from = carbon::parse_time(options.from), to = carbon::parse_time(options.to);
  if (!from || !to) {
    return failed(kwatt::fail(kwatt::ErrorCode::invalid_argument, "--from and --to must be times"));
  }
  if (options.daily) {
    std::string rows;
    double base = 0;
    for (const int hours : {2, 4, 6, 8}) {
      const auto [usual, best] = nightly(*series, *from, *to, std::chrono::hours{hours});
      base = usual;
      rows += fmt::format("{}{:.6f}", rows.empty() ? "" : ",", 1 - best / usual);
    }
    std::cout << fmt::format("{{\"base\":{:.6f},\"savings\":[{}]}}\n", base, rows);
    return 0;
  }
  std::string rows;
  for (const std::string& learner : options.learners) {
    for (const bool again : {false, true}) {
      carbon::ShiftTrial trial;
      trial.learner = learner;
      trial.decide_again = again;
      trial.from = *from;
      trial.to = *to;
      const auto score = carbon::try_shifting(*series, trial);
      if (!score) return failed(score.error());
      rows += fmt::format(
          "{}{{\"learner\":\"{}\",\"decideAgain\":{},\"jobs\":{},\"saving\":{:.6f},"
          "\"oracleSaving\":{:.6f},\"ratio\":{:.6f},\"waitHours\":{:.3f}}}",
          rows.empty() ? "" : ",", learner, again, score->jobs, score->saving(),
          score->oracle_saving(), score->ratio(), score->mean_wait_hours);
    }
  }
  std::cout << fmt::format("{{\"trials\":[{}]}}\n", rows);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Carbon-aware shifting of past jobs");
  app.add_option("FILES", options.files, "CSV files of one zone, oldest first")->required();
  app.add_option("--time-column", options.shape.time)->capture_default_str();
  app.add_option("--value-column", options.shape.value)->capture_default_str();
  app.add_flag("--skip-bad", options.shape.skip_bad);
  app.add_option_function<int>(
      "--step-minutes", [&](int minutes) { options.shape.step = std::chrono::minutes{minutes}; });
  app.add_option("--from", options.from)->required();
  app.add_option("--to", options.to)->required();
  app.add_option("--learner", options.learners)->capture_default_str();
  app.add_flag("--daily", options.daily, "Let's Wait Awhile, scenario I, instead");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
