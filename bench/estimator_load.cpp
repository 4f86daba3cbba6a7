// The estimator under load. Three programs in one, because the server is to have a core to itself:
//
//   bench_estimator exact            times the exact estimate; prints one JSON object
//   bench_estimator serve            the HTTP API alone; prints its port, serves until killed
//   bench_estimator load --port P    asks it as fast as it answers; prints one JSON object
#include <algorithm>
#include <iostream>
#include <random>

#include <CLI/CLI.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "net/run.hpp"
#include "servers/estimator.hpp"

namespace {

using namespace kwatt;
namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::steady_clock;

// No two machines alike, and none of them convex: power rises fast at first, as with servers of
// 2021 and later, here and there with a step, and a third of each is in use already.
placement::EstimatorNodes cluster(int nodes) {
  std::mt19937_64 random(5656);
  placement::EstimatorNodes out;
  for (int n = 0; n < nodes; ++n) {
    placement::EstimatorNode node;
    node.name = fmt::format("node-{:05}", n);
    const std::int64_t cores = 16 + static_cast<std::int64_t>(random() % 112);
    node.free = Millicores{cores * 700};
    node.free_pods = 110;
    std::int64_t draw = 60'000 + static_cast<std::int64_t>(random() % 200'000);
    for (int step = 0; step <= 20; ++step) {
      node.draw.push_back({Millicores{cores * 1000 * step / 20}, Milliwatts{draw}});
      draw += 1'000 + (20 - step) * 900 + static_cast<std::int64_t>(random() % 9'000);
    }
    out.nodes.push_back(std::move(node));
  }
  return out;
}

int exact(int nodes, int workloads) {
  const placement::EstimatorNodes machines = cluster(nodes);
  std::vector<double> took;
  double last = 0;
  for (int round = 0; round < 25; ++round) {
    const auto started = steady_clock::now();
    const auto least = placement::least_watts(machines, Millicores{250 + round},
                                              static_cast<std::size_t>(workloads));
    took.push_back(std::chrono::duration<double>(steady_clock::now() - started).count());
    last = least.back();
  }
  std::sort(took.begin(), took.end());
  std::cout
      << fmt::format(
             R"({{"nodes":{},"workloads":{},"median_seconds":{},"worst_seconds":{},"last_watts":{}}})",
             nodes, workloads, took[took.size() / 2], took.back(), last)
      << "\n";
  return last > 0 ? 0 : 1;
}

int serve(int nodes) {
  net::Context context;
  Metrics metrics;
  servers::EstimatorBook book;
  book.publish("default/default", cluster(nodes));
  net::Server server(context.get_executor(), net::ServerOptions{.address = "127.0.0.1"},
                     servers::estimator_handler({.book = book, .metrics = metrics, .keys = {}}));
  if (auto started = server.start(); !started) {
    std::cerr << started.error().text() << "\n";
    return 1;
  }
  std::cout << server.port() << std::endl;
  asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([&](const auto&, int) { context.stop(); });
  context.run();
  book.stop();
  context.end();
  return 0;
}

struct Tally {
  std::vector<float> latencies;  // microseconds
  std::size_t wrong = 0;
};

// One client: the next question when the last one is answered.
asio::awaitable<void> client(std::uint16_t port, std::vector<std::string> questions,
                             steady_clock::time_point begin, steady_clock::time_point end,
                             Tally& tally) {
  constexpr auto token = asio::as_tuple(asio::use_awaitable);
  tcp::socket socket(co_await asio::this_coro::executor);
  const tcp::endpoint peer(asio::ip::address_v4::loopback(), port);
  const auto [refused] = co_await socket.async_connect(peer, token);
  if (refused) {
    ++tally.wrong;
    co_return;
  }
  socket.set_option(tcp::no_delay(true));
  std::string buffer;
  for (std::size_t i = 0; steady_clock::now() < end; ++i) {
    const std::string& question = questions[i % questions.size()];
    const auto asked = steady_clock::now();
    const auto [not_sent, sent] = co_await asio::async_write(socket, asio::buffer(question), token);
    const auto [lost, header] =
        co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer), "\r\n\r\n", token);
    if (not_sent || lost) {
      ++tally.wrong;
      co_return;
    }
    const std::size_t at = buffer.find("Content-Length: ");
    const std::size_t length = at < header ? std::stoul(buffer.substr(at + 16, 8)) : 0;
    while (buffer.size() < header + length) {
      std::array<char, 4096> piece{};
      const auto [broken, size] = co_await socket.async_read_some(asio::buffer(piece), token);
      if (broken) {
        ++tally.wrong;
        co_return;
      }
      buffer.append(piece.data(), size);
    }
    const auto now = steady_clock::now();
    if (!buffer.starts_with("HTTP/1.1 200") || buffer.find("watt_increases") == std::string::npos) {
      ++tally.wrong;
    }
    buffer.erase(0, header + length);
    if (asked >= begin) {
      tally.latencies.push_back(std::chrono::duration<float, std::micro>(now - asked).count());
    }
  }
}

int load(std::uint16_t port, int clients, double seconds) {
  std::vector<std::string> questions;
  for (const int milli : {100, 250, 500, 1000}) {
    const std::string body = fmt::format(R"({{"cpu_milli":{},"num_workloads":5}})", milli);
    questions.push_back(fmt::format(
        "POST /namespaces/default/estimators/default/values/powerconsumption HTTP/1.1\r\n"
        "Host: localhost:{}\r\nUser-Agent: Go-http-client/1.1\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\nAccept-Encoding: gzip\r\n\r\n{}",
        port, body.size(), body));
  }
  net::Context context;
  Tally tally;
  // The first half second warms the caches, of the server and of the machine.
  const auto begin = steady_clock::now() + std::chrono::milliseconds(500);
  const auto span =
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
  for (int i = 0; i < clients; ++i) {
    asio::co_spawn(context.get_executor(), client(port, questions, begin, begin + span, tally),
                   asio::detached);
  }
  context.run();
  auto& all = tally.latencies;
  std::sort(all.begin(), all.end());
  if (all.empty()) return 1;
  const auto part = [&](double share) {
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  };
  std::cout
      << fmt::format(
             R"({{"clients":{},"requests":{},"wrong":{},"per_second":{},"p50_ms":{},"p99_ms":{},"worst_ms":{}}})",
             clients, all.size(), tally.wrong, static_cast<double>(all.size()) / seconds,
             part(0.5) / 1000, part(0.99) / 1000, all.back() / 1000)
      << "\n";
  return tally.wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The estimator under load.");
  app.require_subcommand(1);
  int nodes = 5'000, workloads = 100, clients = 4;
  double seconds = 5;
  std::uint16_t port = 0;
  CLI::App* one = app.add_subcommand("exact", "Times the exact estimate");
  CLI::App* two = app.add_subcommand("serve", "Serves the API");
  CLI::App* three = app.add_subcommand("load", "Asks it");
  for (CLI::App* verb : {one, two}) {
    verb->add_option("--nodes", nodes)->check(CLI::Range(1, 100'000));
  }
  one->add_option("--workloads", workloads)->check(CLI::Range(1, 100'000));
  three->add_option("--port", port)->required();
  three->add_option("--clients", clients)->check(CLI::Range(1, 1'000));
  three->add_option("--seconds", seconds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  log::setup("bench_estimator", log::Level::warn, log::Format::logfmt);
  if (one->parsed()) return exact(nodes, workloads);
  if (two->parsed()) return serve(nodes);
  return load(port, clients, seconds);
}
