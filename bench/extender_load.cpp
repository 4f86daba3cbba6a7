// What ./dev bench extender runs: the scheduler extender with a cache of nodes, and callers that
// ask it as kube-scheduler does. Two processes, so that each can have a core of its own.
//
//   bench_extender serve --nodes 5000             prints {"port":…}, serves until stdin is closed
//   bench_extender ask --port P --names 500 …     prints one JSON object of figures
#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "base/memory.hpp"
#include "net/run.hpp"
#include "placement/registry.hpp"
#include "servers/extender.hpp"

using namespace kwatt;
using Steady = std::chrono::steady_clock;

namespace {

std::string node_name(std::size_t i) {
  return fmt::format("worker-{:04}.rack-{:02}.example", i, i % 40);
}

// Machines of several kinds, half used: no two neighbours alike, some slow, some capped.
std::shared_ptr<const placement::NodeTable> make_table(std::size_t count) {
  std::vector<placement::NodeTable::Pointer> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    auto node = std::make_shared<api::Node>();
    node->meta.name = node_name(i);
    node->allocatable.cpu = Millicores{static_cast<std::int64_t>(32 + i % 3 * 32) * 1000};
    node->allocatable.memory = Bytes{std::int64_t{128} << 30};
    node->allocatable.pods = 110;
    auto info = std::make_shared<placement::NodeInfo>();
    info->name = node->meta.name;
    info->node = node;
    info->face = placement::face_of(*node);
    info->allocatable = node->allocatable;
    info->requested.cpu = Millicores{static_cast<std::int64_t>(i * 7919 % 24) * 1000};
    info->requested.memory = Bytes{static_cast<std::int64_t>(i * 104729 % 64) << 30};
    info->requested.pods = static_cast<std::int64_t>(i % 60);
    info->slow = i % 20 == 7;
    info->capped = i % 25 == 3;
    api::PowerModelSpec model;
    model.idle_milliwatts = static_cast<std::int64_t>(60 + i * 31 % 90) * 1000;
    model.max_milliwatts = static_cast<std::int64_t>(250 + i * 53 % 400) * 1000;
    info->model = models::model_of(model, node->allocatable.cpu);
    info->load = Permille{static_cast<std::int64_t>(i * 37 % 700)};
    info->load_source = placement::LoadSource::measured;
    nodes.push_back(std::move(info));
  }
  return std::make_shared<const placement::NodeTable>(std::move(nodes));
}

int serve(std::size_t nodes) {
  keep_freed_memory();  // as the controller does that serves an extender
  log::setup("bench_extender", log::Level::info, log::Format::json);
  auto framework = placement::node_framework(
      placement::changed_profile(placement::default_profile(), {{"Taints", 0}, {"Affinity", 0}}));
  if (!framework) throw std::runtime_error(framework.error().text());
  const auto table = make_table(nodes);
  SystemClock clock;
  Metrics metrics;
  net::Context context;
  net::ServerOptions options;
  options.address = "127.0.0.1";
  options.limits.body_bytes = servers::kExtenderBodyBytes;
  net::Server server(
      context.get_executor(), options,
      servers::extender_handler(
          {.table = [&] { return table; },
           .framework = std::make_shared<const placement::NodeFramework>(std::move(*framework)),
           .metrics = metrics,
           .clock = clock}));
  if (auto started = server.start(); !started) throw std::runtime_error(started.error().text());
  fmt::print("{{\"port\":{}}}\n", server.port());
  std::fflush(stdout);
  std::thread watch([&] {
    while (std::getchar() != EOF) {
    }
    context.stop();
  });
  context.run();
  watch.join();
  return 0;
}

// One kept connection, blocking.
class Caller {
 public:
  explicit Caller(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect");
    }
    const int one = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  ~Caller() { ::close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // The body of the answer; it lives until the next call.
  std::string_view post(std::string_view path, std::string_view body) {
    const std::string request_head = fmt::format(
        "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n",
        path, body.size());
    // Header and body leave together, and the body is not copied for that.
    iovec parts[] = {{const_cast<char*>(request_head.data()), request_head.size()},
                     {const_cast<char*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    while (message.msg_iovlen > 0) {
      const auto n = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
      if (n <= 0) throw std::runtime_error("the server closed the connection");
      for (auto left = static_cast<std::size_t>(n); message.msg_iovlen > 0;) {
        iovec& part = *message.msg_iov;
        const std::size_t of_it = std::min(left, part.iov_len);
        part.iov_base = static_cast<char*>(part.iov_base) + of_it;
        part.iov_len -= of_it;
        left -= of_it;
        if (part.iov_len > 0) break;
        ++message.msg_iov;
        --message.msg_iovlen;
      }
    }
    std::size_t have = 0, need = 0, head = 0;
    while (need == 0 || have < need) {
      if (answer_.size() < have + (1U << 20U)) answer_.resize(have + (1U << 20U));
      const auto n = ::recv(socket_, answer_.data() + have, answer_.size() - have, 0);
      if (n <= 0) throw std::runtime_error("no answer");
      have += static_cast<std::size_t>(n);
      if (need != 0) continue;
      const auto end = std::string_view(answer_).substr(0, have).find("\r\n\r\n");
      if (end == std::string_view::npos) continue;
      if (answer_.compare(0, 12, "HTTP/1.1 200") != 0) {
        throw std::runtime_error(answer_.substr(0, have));
      }
      const auto length = answer_.find("Content-Length: ");
      head = end + 4;
      need = head + std::stoul(answer_.substr(length + 16, 12));
    }
    return std::string_view(answer_).substr(head, need - head);
  }

 private:
  int socket_;
  std::string answer_;
};

std::string pod_json(int number) {
  return fmt::format(
      R"({{"metadata":{{"name":"web-{0}","namespace":"shop","uid":"00000000-0000-4000-8000-{0:012}",)"
      R"("labels":{{"app":"web","tier":"front"}},"ownerReferences":[{{"apiVersion":"apps/v1",)"
      R"("kind":"ReplicaSet","name":"web","uid":"11111111-1111-4111-8111-111111111111",)"
      R"("controller":true}}]}},"spec":{{"containers":[{{"name":"main","image":"example/web:1",)"
      R"("resources":{{"requests":{{"cpu":"1500m","memory":"2Gi"}}}},"volumeMounts":[{{"name":"t",)"
      R"("mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}]}}],"schedulerName":)"
      R"("default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":)"
      R"("Exists","effect":"NoExecute","tolerationSeconds":300}}]}},"status":{{"phase":"Pending"}}}})",
      number);
}

struct Work {
  int port = 0, rounds = 1000, connections = 1;
  std::size_t names = 500, nodes = 5000, node_bytes = 0;  // node_bytes > 0: whole nodes
};

std::string offered(const Work& work) {
  std::string list =
      work.node_bytes > 0 ? R"("Nodes":{"metadata":{},"items":[)" : R"("Nodes":null,"NodeNames":[)";
  for (std::size_t i = 0; i < work.names; ++i) {
    if (i > 0) list += ',';
    // Spread over the whole cache, in no order of its own.
    const std::string name = node_name(i * 7919 % work.nodes);
    if (work.node_bytes == 0) {
      list += '"' + name + '"';
      continue;
    }
    std::string node = R"({"metadata":{"name":")" + name + R"(","labels":{)";
    for (int k = 0; node.size() + 64 < work.node_bytes; ++k) {
      if (k > 0) node += ',';
      node += fmt::format(R"("example.com/label-{0:03}":"a \"quoted\" value {{{0}}}")", k);
    }
    list += node + R"(}},"spec":{},"status":{"phase":"Running"}})";
  }
  return list + (work.node_bytes > 0 ? R"(]},"NodeNames":null)" : "]");
}

// What of a filter's answer the next request offers.
std::string_view passed_on(std::string_view answer, bool whole) {
  const std::string_view from = whole ? R"("Nodes":{)" : R"("NodeNames":[)";
  const std::string_view until = whole ? R"(,"NodeNames":null)" : R"(,"FailedNodes":)";
  const auto begin = answer.find(from), end = answer.find(until, begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) {
    throw std::runtime_error("not a filter's answer: " + std::string(answer.substr(0, 200)));
  }
  return answer.substr(begin, end - begin);
}

double milliseconds(Steady::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

int ask(const Work& work) {
  const std::string list = offered(work);
  const bool whole = work.node_bytes > 0;
  std::vector<std::vector<double>> pairs(static_cast<std::size_t>(work.connections)),
      filters = pairs;
  std::atomic<bool> failed = false;
  const auto run = [&](std::size_t connection) {
    try {
      Caller caller(work.port);
      std::string second;
      for (int round = -work.rounds / 10; round < work.rounds; ++round) {
        const std::string pod = pod_json(std::abs(round));
        const std::string first = R"({"Pod":)" + pod + "," + list + "}";
        const auto started = Steady::now();
        const std::string_view answer = caller.post("/scheduler/filter", first);
        const auto filtered = Steady::now();
        second = R"({"Pod":)" + pod + ",";
        second += passed_on(answer, whole);
        second += "}";
        const auto again = Steady::now();
        const std::string_view scores = caller.post("/scheduler/prioritize", second);
        const auto ended = Steady::now();
        if (scores.find("\"Score\":10") == std::string_view::npos) {
          throw std::runtime_error("no node has score 10");
        }
        if (round < 0) continue;
        filters[connection].push_back(milliseconds(filtered - started));
        pairs[connection].push_back(milliseconds(filtered - started + (ended - again)));
      }
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      failed = true;
    }
  };
  const auto started = Steady::now();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < pairs.size(); ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  if (failed) return 1;
  const double seconds = milliseconds(Steady::now() - started) / 1000;
  const auto merged = [](const std::vector<std::vector<double>>& lists) {
    std::vector<double> all;
    for (const auto& part : lists) all.insert(all.end(), part.begin(), part.end());
    std::sort(all.begin(), all.end());
    return all;
  };
  const std::vector<double> pair = merged(pairs), filter = merged(filters);
  const auto at = [](const std::vector<double>& sorted, std::size_t percent) {
    return sorted[std::min(sorted.size() - 1, sorted.size() * percent / 100)];
  };
  fmt::print(
      "{{\"pairs\":{},\"seconds\":{:.4f},\"pairs_per_second\":{:.1f},\"pair_p50_ms\":{:.4f},"
      "\"pair_p99_ms\":{:.4f},\"filter_p50_ms\":{:.4f},\"filter_p99_ms\":{:.4f},"
      "\"request_bytes\":{}}}\n",
      pair.size(), seconds, static_cast<double>(pair.size()) * 1.1 / seconds, at(pair, 50),
      at(pair, 99), at(filter, 50), at(filter, 99), list.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The extender under load, for ./dev bench extender"};
  std::size_t nodes = 5000;
  Work work;
  auto* serving = app.add_subcommand("serve");
  serving->add_option("--nodes", nodes);
  auto* asking = app.add_subcommand("ask");
  asking->add_option("--port", work.port)->required();
  asking->add_option("--names", work.names);
  asking->add_option("--nodes", work.nodes, "in the server's cache");
  asking->add_option("--node-bytes", work.node_bytes, "send whole nodes of this size");
  asking->add_option("--rounds", work.rounds, "filter and prioritize, on each connection");
  asking->add_option("--connections", work.connections);
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  try {
    return serving->parsed() ? serve(nodes) : ask(work);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
