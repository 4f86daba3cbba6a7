// One question to a Prometheus server through the product's own source: for tests against the real
// one, and for people who look for the mistake in a query.
//
//   telemetry_probe --url URL (--exporter NAME | --query PROMQL | [--temperatures]
//                   [--pressure-query PROMQL]) [--label L]... [--node NAME=IP]...
//                   [--token-file FILE] [--timeout 5s] [--print]
// Prints a line for each reading, "node milliwatts source machine|packages age-ms", then one for
// each reason of rejection, "rejected reason count: example"; an error as "<code>: <text>" on
// stderr, status 1. --print prints the query and asks nobody. With --temperatures and
// --pressure-query the lines are "node ambient cpu1 cpu2 pressure", milli-degrees, pascals or -.
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "kube/credentials.hpp"
#include "telemetry/environment.hpp"
#include "telemetry/prometheus.hpp"

namespace {

using namespace kwatt;
using namespace kwatt::telemetry;

net::Task<Result<Fetched>> ask(PollSource& source, std::shared_ptr<const NodeDirectory> nodes,
                               TimePoint now) {
  co_return co_await source.fetch(std::move(nodes), now);
}

net::Task<Result<Environments>> ask_air(EnvironmentSource& source,
                                        std::shared_ptr<const NodeDirectory> nodes, TimePoint now) {
  co_return co_await source.fetch(std::move(nodes), now);
}

int show_air(const Result<Environments>& air) {
  if (!air) {
    std::cerr << to_string(air.error().code) << ": " << air.error().text() << "\n";
    return 1;
  }
  const auto degrees = [](const std::optional<Millicelsius>& value) {
    return value ? std::to_string(value->count()) : std::string("-");
  };
  for (const auto& [node, one] : air->by_node) {
    std::cout << node << " " << degrees(one.ambient) << " " << degrees(one.cpu1) << " "
              << degrees(one.cpu2) << " "
              << (one.static_pressure_pascal ? std::to_string(*one.static_pressure_pascal) : "-")
              << "\n";
  }
  for (const auto& [why, count] : air->rejected) {
    std::cout << "rejected " << to_string(why) << " " << count << ": " << air->example << "\n";
  }
  return 0;
}

int show(const Result<Fetched>& fetched, TimePoint now) {
  if (!fetched) {
    std::cerr << to_string(fetched.error().code) << ": " << fetched.error().text() << "\n";
    return 1;
  }
  for (const NodeReading& reading : fetched->readings) {
    const Sample& s = reading.sample;
    std::cout << reading.node << " " << s.power->count() << " " << to_string(s.source) << " "
              << (s.whole_machine ? "machine" : "packages") << " " << (now - s.at).count() << "\n";
  }
  for (const auto& [why, count] : fetched->rejected) {
    std::cout << "rejected " << to_string(why) << " " << count << ": " << fetched->example << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string url, exporter, promql, pressure, token_file, timeout = "5s";
  std::vector<std::string> labels, nodes;
  bool print = false, temperatures = false;
  CLI::App app{"Asks Prometheus for the watts of nodes."};
  app.add_option("--url", url);
  app.add_option("--exporter", exporter);
  app.add_option("--query", promql);
  app.add_flag("--temperatures", temperatures);
  app.add_option("--pressure-query", pressure);
  app.add_option("--label", labels);
  app.add_option("--node", nodes, "NAME=IP");
  app.add_option("--token-file", token_file);
  app.add_option("--timeout", timeout);
  app.add_flag("--print", print);
  CLI11_PARSE(app, argc, argv);

  if (labels.empty()) labels = {"node", "instance"};
  std::optional<PowerQuery> query;
  if (!promql.empty()) query = own_query(promql);
  for (const Source known : known_exporters()) {
    if (to_string(known) == exporter) query = query_of(known, labels);
  }
  const bool air = temperatures || !pressure.empty();
  if (!query && !air) {
    std::cerr << "no such exporter\n";
    return 2;
  }
  if (print) {
    std::cout << instant_query(*query) << "\n";
    return 0;
  }
  auto parsed = net::parse_url(url);
  const auto wait = parse_go_duration(timeout);
  if (!parsed || !wait) {
    std::cerr << "--url or --timeout is not valid\n";
    return 2;
  }
  PrometheusServer server;
  server.url = *parsed;
  server.labels = labels;
  server.timeout = *wait;
  if (!token_file.empty()) server.token = [token_file] { return kube::read_file(token_file); };

  const auto directory = std::make_shared<NodeDirectory>();
  for (const std::string& node : nodes) {
    const auto equals = node.find('=');
    directory->add(node.substr(0, equals),
                   equals == std::string::npos ? "" : node.substr(equals + 1), Millicores{1000});
  }
  boost::asio::io_context io;
  if (air) {
    EnvironmentSource environment(io.get_executor(), server, temperatures, pressure);
    std::optional<Result<Environments>> known;
    boost::asio::co_spawn(io, ask_air(environment, directory, SystemClock{}.now()),
                          [&](const std::exception_ptr& error, Result<Environments> got) {
                            if (error) std::rethrow_exception(error);
                            known.emplace(std::move(got));
                          });
    io.run();
    return show_air(*known);
  }
  const auto source =
      make_prometheus_source(io.get_executor(), server, *query, std::chrono::seconds{15});
  const TimePoint now = SystemClock{}.now();
  std::optional<Result<Fetched>> answer;
  boost::asio::co_spawn(io, ask(*source, directory, now),
                        [&](const std::exception_ptr& error, Result<Fetched> fetched) {
                          if (error) std::rethrow_exception(error);
                          answer.emplace(std::move(fetched));
                        });
  io.run();
  return show(*answer, now);
}
