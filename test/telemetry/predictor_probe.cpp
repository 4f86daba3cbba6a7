// One batch of predictions through the product's own predictors: for tests against real model
// servers, and for people who look for the mistake in a model.
//
//   predictor_probe (--mlserver URL | --tfserving URL [--signature S]) [--allow HOST]...
//                   [--timeout 5s] POINT...
// POINT: "used=1000,extra=500,cpus=4,ambient=22,cpu1=50,cpu2=55,pressure=0.2"; what is left out is
// not known, but cpus (1). With --ranges, temperatures have the ranges 10…30 and 30…90 °C.
// Prints milliwatts, one line for each point; an error as "<code>: <text>" on stderr, status 1.
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "telemetry/predictor.hpp"

namespace {

using namespace kwatt;
using namespace kwatt::telemetry;

PredictionPoint point_of(const std::string& text) {
  PredictionPoint point;
  point.logical_processors = 1;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const double value = std::stod(part.substr(equals + 1));
    if (name == "used") point.used = Millicores{static_cast<std::int64_t>(value)};
    if (name == "extra") point.extra = Millicores{static_cast<std::int64_t>(value)};
    if (name == "cpus") point.logical_processors = static_cast<std::int64_t>(value);
    if (name == "ambient") point.ambient_celsius = value;
    if (name == "cpu1") point.cpu1_celsius = value;
    if (name == "cpu2") point.cpu2_celsius = value;
    if (name == "pressure") point.static_pressure_pascal = value;
  }
  return point;
}

int show(const Result<std::vector<Milliwatts>>& watts) {
  if (!watts) {
    std::cerr << to_string(watts.error().code) << ": " << watts.error().text() << "\n";
    return 1;
  }
  for (const Milliwatts one : *watts) std::cout << one.count() << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string mlserver, tfserving, signature, timeout = "5s";
  std::vector<std::string> allow, texts;
  bool ranges = false;
  CLI::App app{"Asks a model server for watts."};
  app.add_option("--mlserver", mlserver);
  app.add_option("--tfserving", tfserving);
  app.add_option("--signature", signature);
  app.add_option("--allow", allow);
  app.add_option("--timeout", timeout);
  app.add_flag("--ranges", ranges);
  app.add_option("points", texts);
  CLI11_PARSE(app, argc, argv);

  PredictorSettings settings;
  auto allowed = net::AllowList::parse(allow, net::AllowList::Bare::both);
  const auto wait = parse_go_duration(timeout);
  if (!allowed || !wait) {
    std::cerr << "--allow or --timeout is not valid\n";
    return 2;
  }
  settings.allowed = *allowed;
  settings.timeout = *wait;
  std::vector<PredictionPoint> points;
  for (const std::string& text : texts) {
    points.push_back(point_of(text));
    if (!ranges) continue;
    points.back().ambient_range = {10, 30};
    points.back().cpu1_range = points.back().cpu2_range = {30, 90};
  }
  boost::asio::io_context io;
  auto made = mlserver.empty() ? make_tf_serving(io.get_executor(), tfserving, signature, settings)
                               : make_mlserver(io.get_executor(), mlserver, settings);
  if (!made) return show(made.error());
  std::optional<Result<std::vector<Milliwatts>>> answer;
  boost::asio::co_spawn(io, (*made)->predict(std::move(points)),
                        [&](const std::exception_ptr& error, Result<std::vector<Milliwatts>> got) {
                          if (error) std::rethrow_exception(error);
                          answer.emplace(std::move(got));
                        });
  io.run();
  return show(*answer);
}
