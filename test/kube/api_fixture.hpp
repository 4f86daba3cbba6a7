#pragma once
// A client of ours against the fake API server, on one thread.
#include <functional>
#include <stdexcept>

#include <boost/asio/io_context.hpp>

#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "net/run.hpp"
#include "test/support/fake_api_server.hpp"
#include "test/support/folder.hpp"
#include "test/support/run_task.hpp"

namespace kwatt::test {

struct ApiFixture {
  kube::Config config() {
    kube::Config made;
    made.server = server.peer().origin();
    return made;
  }
  void connect(const kube::Config& with, kube::ClientOptions options = {}) {
    options.metrics = &metrics;
    client = kube::make_client(io.get_executor(), with, options, clock);
  }
  void connect() { connect(config()); }

  // Runs everything until `done`; a hang is a failure. The limit says nothing about speed: a
  // sanitizer on a busy machine is slow.
  void run_until(const std::function<bool()>& done, Duration limit = std::chrono::minutes{1}) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    io.restart();
    while (!done()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw std::runtime_error{"what the test waits for did not happen"};
      }
      io.run_one_for(std::chrono::milliseconds{20});
    }
  }
  void run_for(Duration time) { run_task(io, net::sleep(time)); }
  bool shows(const std::string& line) const {
    return metrics.render().find(line) != std::string::npos;
  }

  boost::asio::io_context io;
  FakeApiServer server{io.get_executor()};
  SystemClock clock;
  Metrics metrics;
  std::unique_ptr<kube::Client> client;
};

}  // namespace kwatt::test
