// The whole controller against an API server in memory: it must be able to end at any moment, with
// requests, watches, passes and readings under way. Most of all a test for the sanitizers.
#include <random>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "controller/program.hpp"
#include "net/run.hpp"
#include "test/controller/memory_api.hpp"
#include "test/support/certificates.hpp"
#include "test/support/folder.hpp"

using namespace kwatt;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;

constexpr const char* kLease =
    "/apis/coordination.k8s.io/v1/namespaces/kwatt-system/leases/kwatt-controller";

std::uint16_t free_port() {
  asio::io_context context;
  const asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  return acceptor.local_endpoint().port();
}

// Three idle nodes with machines whose controllers seldom answer, and a policy that may do
// everything with them.
void furnish(test::MemoryApi& api) {
  for (const char* name : {"a", "b", "c"}) {
    api.put(fmt::format("/api/v1/nodes/{}", name), fmt::format(R"({{
      "apiVersion":"v1","kind":"Node","metadata":{{"name":"{0}","uid":"node-{0}"}},"spec":{{}},
      "status":{{"allocatable":{{"cpu":"8","memory":"16Gi","pods":"110"}},
        "conditions":[{{"type":"Ready","status":"True","reason":"KubeletReady"}}]}}}})",
                                                               name));
    api.put(fmt::format("/apis/kwatt.dev/v1alpha1/nodepowers/{}", name),
            fmt::format(R"({{
      "apiVersion":"kwatt.dev/v1alpha1","kind":"NodePower",
      "metadata":{{"name":"{0}","uid":"machine-{0}","generation":1}},
      "spec":{{"bmc":{{"address":"lab+http://127.0.0.1:{1}/machines/{0}"}},
        "model":{{"idleMilliwatts":60000,"maxMilliwatts":200000}}}}}})",
                        name, api.port()));
  }
  api.put("/apis/kwatt.dev/v1alpha1/energypolicies/all", R"({
    "apiVersion":"kwatt.dev/v1alpha1","kind":"EnergyPolicy",
    "metadata":{"name":"all","uid":"policy-all","generation":1,
      "creationTimestamp":"2026-11-20T10:00:00Z","finalizers":["kwatt.dev/release"]},
    "spec":{"mode":"Enforce","interval":"1s","powerOff":{"idleFor":"0s","minAwake":1,
      "minOnDuration":"0s","wakeTest":"Skip"},"powerOn":{"enabled":true}}})");
}

// Asks for the history all the time; nobody tells whose its token is, so the answers never come.
class Visitor {
 public:
  Visitor(std::uint16_t port, std::string ca)
      : client_(context_.get_executor(),
                net::Origin{.tls = true, .host = "127.0.0.1", .port = port}, [ca = std::move(ca)] {
                  net::TlsConfig tls;
                  tls.ca_pem = ca;
                  return tls;
                }) {
    asio::co_spawn(context_.get_executor(), visit(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Visitor() {
    context_.stop();
    thread_.join();
    context_.end();
  }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

 private:
  net::Task<void> visit() {
    for (;;) {
      net::Request request;
      request.target = "/history?kind=decisions";
      request.headers.set("Authorization", "Bearer whose");
      (void)co_await client_.send(std::move(request));
      co_await net::sleep(5ms);
    }
  }

  net::Context context_;
  net::Client client_;
  std::thread thread_;
};

struct World {
  explicit World(unsigned seed) : api(seed) {
    furnish(api);
    const std::string server = fmt::format("http://127.0.0.1:{}", api.port());
    folder.write("config",
                 R"({"current-context":"c","clusters":[{"name":"c","cluster":{"server":")" +
                     server +
                     R"("}}],"users":[{"name":"u","user":{"token":"t"}}],"contexts":[)"
                     R"({"name":"c","context":{"cluster":"c","user":"u"}}]})");
    const auto identity = authority.issue();
    folder.write("tls.crt", identity.certificate_pem);
    folder.write("tls.key", identity.private_key_pem);
    options.kubeconfig = folder.path("config");
    options.namespace_name = "kwatt-system";
    options.health = {"127.0.0.1", 0};
    options.ingest = {"127.0.0.1", free_port()};
    options.tls_cert_file = folder.path("tls.crt");
    options.tls_key_file = folder.path("tls.key");
    options.history_file = folder.path("history.db");
    options.lease_duration = 3s;
    options.renew_deadline = 2s;
    options.retry_period = 200ms;
    options.bmc_allow = *hardware::AllowList::parse({"http://127.0.0.1"});
    options.bmc_poll_interval = 50ms;
    options.client_qps = 1000;
    options.client_burst = 1000;
    options.shutdown_grace = 200ms;
  }

  test::Folder folder;
  test::Authority authority;
  test::MemoryApi api;
  controller::Options options;
};

bool released(const test::MemoryApi& api) {
  return api.get(kLease).find(R"("holderIdentity":"")") != std::string::npos;
}

}  // namespace

TEST_CASE("the controller ends in the middle of anything, and touches nothing that is gone") {
  enum class End { stop, stolen, silence };
  for (unsigned seed = 1; seed <= 24; ++seed) {
    // Requests 1 to about 30 fill the caches; then there are passes, readings and renewals.
    std::mt19937 random(seed);
    const std::size_t moment = 1 + random() % 120;
    const End end = seed % 8 == 0 ? End::silence : seed % 2 == 0 ? End::stop : End::stolen;
    CAPTURE(seed);
    CAPTURE(moment);
    World world(seed);
    int status = -1;
    {
      controller::Program program(world.options);
      world.api.start(
          [&](std::size_t number, const std::string&) {
            if (number != moment) return;
            if (end == End::stop) program.stop();
            if (end == End::stolen) world.api.steal(kLease);
            if (end == End::silence) world.api.silence();
          },
          4000, [&program] { program.stop(); });
      const Visitor visitor(world.options.ingest.port, world.authority.ca_pem());
      status = program.run();
      world.api.stop();
    }
    CHECK((status == 0 || (end != End::stop && status == 1)));
  }
}

TEST_CASE("the controller gives its lease back when it is stopped, and ends well") {
  World world(7);
  controller::Program program(world.options);
  bool led = false;
  world.api.start(
      [&](std::size_t, const std::string& line) {
        // The policy's status is written by a pass, that is by the leader.
        if (std::exchange(led, led || line.find("energypolicies/all/status") != line.npos)) return;
        if (led) program.stop();
      },
      20000, [&program] { program.stop(); });
  CHECK(program.run() == 0);
  world.api.stop();
  CHECK(led);
  CHECK(released(world.api));
}

TEST_CASE("the controller ends with a failure when somebody else takes its lease") {
  World world(8);
  controller::Program program(world.options);
  bool led = false;
  world.api.start(
      [&](std::size_t, const std::string& line) {
        if (std::exchange(led, led || line.find("energypolicies/all/status") != line.npos)) return;
        if (led) world.api.steal(kLease);
      },
      20000, [&program] { program.stop(); });
  CHECK(program.run() == 1);
  world.api.stop();
}

TEST_CASE("the controller can be stopped before it has seen anything") {
  World world(9);
  world.api.silence();
  controller::Program program(world.options);
  world.api.start([](std::size_t, const std::string&) {}, 300, [&program] { program.stop(); });
  const auto began = std::chrono::steady_clock::now();
  CHECK(program.run() == 0);
  world.api.stop();
  CHECK(std::chrono::steady_clock::now() - began < 30s);
}
