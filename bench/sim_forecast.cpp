// How well utilization is forecast: a backtest over every column of CSV files (a header, then one
// row for each step). bench/sim_forecast.py runs it. Prints one JSON object.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "models/forecast/backtest.hpp"

namespace {

namespace forecast = kwatt::models::forecast;
using kwatt::Result;
using Columns = std::vector<std::vector<double>>;

// Values are percent; a little more than all (memory of google-vms) counts as all.
Result<void> read(const std::string& name, Columns& out) {
  std::ifstream file(name);
  std::string line;
  if (!std::getline(file, line)) {
    return kwatt::fail(kwatt::ErrorCode::io, "cannot read a header from " + name);
  }
  const auto columns = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',') + 1);
  const std::size_t first = out.size();
  out.resize(first + columns);
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    const char* at = line.data();
    const char* const end = at + line.size();
    for (std::size_t i = 0; i < columns; ++i) {
      double value = 0;
      const auto [rest, error] = std::from_chars(at, end, value);
      const bool last = i + 1 == columns;
      if (error != std::errc{} || (!last && (rest == end || *rest != ',')) || value < 0) {
        return kwatt::fail(kwatt::ErrorCode::parse,
                           fmt::format("{}:{}: column {} is no percentage", name, number, i + 1));
      }
      out[first + i].push_back(std::min(100.0, value));
      at = last ? end : rest + 1;
    }
  }
  return {};
}

int run(const std::vector<std::string>& files, const std::vector<std::size_t>& leads,
        double quantile) {
  Columns columns;
  for (const std::string& file : files) {
    if (const auto done = read(file, columns); !done) {
      std::cerr << "error: " << done.error().text() << "\n";
      return 1;
    }
  }
  std::string rows;
  for (const std::size_t lead : leads) {
    for (const std::string_view name : forecast::forecaster_names()) {
      forecast::BacktestOptions options;
      options.forecaster = name;
      options.lead = lead;
      options.quantile = quantile;
      forecast::BacktestScore score;
      for (const auto& column : columns) {
        const auto one = forecast::backtest(column, options);
        if (!one) {
          std::cerr << "error: " << one.error().text() << "\n";
          return 1;
        }
        score += *one;
      }
      rows += fmt::format(
          "{}{{\"forecaster\":\"{}\",\"lead\":{},\"series\":{},\"judged\":{},\"mae\":{:.6f},"
          "\"bias\":{:.6f},\"coverage\":{:.6f},\"headroom\":{:.6f}}}",
          rows.empty() ? "" : ",", name, lead, columns.size(), score.judged, score.mae(),
          score.bias(), score.coverage(), score.mean_headroom());
    }
  }
  std::cout << fmt::format("{{\"backtests\":[{}]}}\n", rows);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::vector<std::size_t> leads{1, 6};
  double quantile = 0.95;
  CLI::App app("Backtest of utilization forecasts");
  app.add_option("FILES", files, "CSV files, one column for each workload")->required();
  app.add_option("--lead", leads, "Steps ahead")->capture_default_str();
  app.add_option("--quantile", quantile, "Of the upper value")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run(files, leads, quantile);
}
