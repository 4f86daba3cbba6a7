// The election driver against a Lease in memory: two candidates, a server that stops answering.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "kube/lease_election.hpp"
#include "test/support/fake_api_server.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

// One Lease with optimistic concurrency; may refuse to answer; says who watches.
class LeaseServer final : public test::StubClient {
 public:
  std::optional<api::Lease> lease;
  bool silent = false;
  int writes = 0;

  Task<Text> get(const Resource&, Name) override {
    co_await answer();
    if (!lease) co_return fail(ErrorCode::not_found, "no lease");
    co_return api::encode(*lease);
  }
  Task<Text> create(const Resource&, std::string, std::string body) override {
    co_await answer();
    if (lease) co_return fail(ErrorCode::already_exists, "there is one");
    co_return store(body);
  }
  Task<Text> replace(const Resource&, Name, std::string body) override {
    co_await answer();
    api::Lease next;
    REQUIRE(api::decode(body, next).has_value());
    if (!lease) co_return fail(ErrorCode::not_found, "no lease");
    if (next.meta.resource_version != lease->meta.resource_version) {
      co_return fail(ErrorCode::conflict, "changed meanwhile");
    }
    co_return store(body);
  }
  Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string target) override {
    auto body = std::make_shared<test::MemoryBody>();
    if (target.find("watch=1") != std::string::npos) {
      watchers_.push_back(body);
    } else {
      std::vector<std::string> items;
      if (lease) items.push_back(api::encode(*lease));
      body->add(test::list_json(items, std::to_string(version_)));
      body->end();
    }
    co_return std::unique_ptr<net::BodyStream>(std::make_unique<test::MemoryStream>(200, body));
  }

 private:
  Task<void> answer() {
    while (silent) co_await net::sleep(5ms);
  }
  std::string store(const std::string& body) {
    api::Lease next;
    REQUIRE(api::decode(body, next).has_value());
    next.meta.resource_version = std::to_string(++version_);
    lease = next;
    ++writes;
    for (auto& watcher : watchers_) {
      watcher->add(test::frame_json("MODIFIED", api::encode(next)));
    }
    return api::encode(next);
  }

  int version_ = 10;
  std::vector<std::shared_ptr<test::MemoryBody>> watchers_;
};

struct Candidate {
  Candidate(boost::asio::io_context& io, LeaseServer& server, const std::string& name)
      : io_(io),
        election(io.get_executor(), server, Name{"ns", "kwatt-controller"},
                 {.identity = name,
                  .lease_duration = 1000ms,
                  .renew_deadline = 700ms,
                  .retry_period = 100ms},
                 clock, metrics) {}
  void run() {
    boost::asio::co_spawn(io_, election.run([this] { ++started; }, [this] { ++lost; }),
                          boost::asio::bind_cancellation_slot(
                              stop.slot(), [this](const std::exception_ptr&) { ended = true; }));
  }
  boost::asio::io_context& io_;
  SystemClock clock;
  Metrics metrics;
  LeaseElection election;
  boost::asio::cancellation_signal stop;
  int started = 0, lost = 0;
  bool ended = false;
};

struct Election {
  void run_until(const std::function<bool()>& done, Duration limit = 60s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    io.restart();
    while (!done()) {
      if (std::chrono::steady_clock::now() >= deadline) throw std::runtime_error{"did not happen"};
      io.run_one_for(5ms);
    }
  }
  void run_for(Duration time) { test::run_task(io, net::sleep(time)); }
  ~Election() {
    for (Candidate* c : {&a, &b}) c->stop.emit(boost::asio::cancellation_type::terminal);
    io.restart();
    io.run_for(50ms);
  }

  boost::asio::io_context io;
  LeaseServer server;
  Candidate a{io, server, "a"}, b{io, server, "b"};
};

}  // namespace

TEST_CASE_FIXTURE(Election, "election: the first leads and renews, the second follows") {
  a.run();
  run_until([this] { return a.started == 1; });
  CHECK(a.election.leading());
  CHECK(server.lease->holder_identity == "a");
  CHECK(server.lease->lease_duration_seconds == 1);
  b.run();
  const auto expires = a.election.lease_expires();
  run_for(600ms);
  CHECK(a.election.lease_expires() > expires);
  CHECK(a.election.leading());
  CHECK_FALSE(b.election.leading());
  CHECK(b.started == 0);
  CHECK(b.election.leader() == "a");
  CHECK(server.writes >= 3);
}

TEST_CASE_FIXTURE(Election, "election: an orderly release is taken over at once") {
  a.run();
  run_until([this] { return a.started == 1; });
  b.run();
  run_for(50ms);
  const auto began = std::chrono::steady_clock::now();
  test::run_task(io, a.election.release());
  CHECK_FALSE(a.election.leading());
  CHECK(a.lost == 0);
  run_until([this] { return b.started == 1; });
  CHECK(std::chrono::steady_clock::now() - began < 900ms);  // no waiting for an expiry
  CHECK(server.lease->holder_identity == "b");
  CHECK(server.lease->lease_transitions == 1);
  CHECK(a.ended);
}

TEST_CASE_FIXTURE(Election,
                  "election: after a crash the follower takes over when the lease ran out") {
  a.run();
  run_until([this] { return a.started == 1; });
  b.run();
  run_for(100ms);
  a.stop.emit(boost::asio::cancellation_type::terminal);
  const auto began = std::chrono::steady_clock::now();
  run_until([this] { return a.ended; });
  CHECK(a.lost == 0);
  CHECK_FALSE(a.election.leading());
  run_until([this] { return b.started == 1; });
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(took >= 900ms);
  CHECK(took < 1900ms);
}

TEST_CASE_FIXTURE(Election,
                  "election: a server that is silent until the renew deadline loses it at once") {
  a.run();
  run_until([this] { return a.started == 1; });
  const auto renewed = a.election.lease_expires() - 1000ms;
  server.silent = true;
  run_until([this] { return a.lost == 1; });
  const auto took = a.clock.monotonic() - renewed;
  CHECK(took >= 700ms);
  CHECK(took < 1000ms);  // before anybody else may lead
  CHECK_FALSE(a.election.leading());
  run_until([this] { return a.ended; });
}

TEST_CASE_FIXTURE(Election, "election: a Lease stolen by hand is lost") {
  a.run();
  run_until([this] { return a.started == 1; });
  server.lease->holder_identity = "thief";
  server.lease->meta.resource_version = "99";
  run_until([this] { return a.lost == 1; });
  CHECK(server.lease->holder_identity == "thief");
}

TEST_CASE_FIXTURE(Election, "election: a follower can be released, too") {
  a.run();
  run_until([this] { return a.started == 1; });
  b.run();
  run_for(50ms);
  test::run_task(io, b.election.release());
  CHECK(b.lost == 0);
  CHECK(a.election.leading());
}

TEST_CASE("election: identities are unique") {
  CHECK(make_identity() != make_identity());
  CHECK(make_identity().find('_') != std::string::npos);
}
