// Whatever the server does in between, in the end the store equals it, and so does what the
// subscribers were told. A model of an API server (versions, pages, history, compaction) with
// faults drawn from a fixed seed.
#include <map>
#include <random>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "api/decode.hpp"
#include "base/log.hpp"
#include "kube/indexes.hpp"
#include "kube/informer.hpp"
#include "test/support/fake_api_server.hpp"
#include "test/support/stub_client.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

class ModelServer final : public test::StubClient {
 public:
  explicit ModelServer(unsigned seed) : random_(seed) {}

  std::map<std::string, std::string> pods;  // name → resourceVersion
  int faults_percent = 0;

  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  void change() {
    const std::string name = "p" + std::to_string(below(12));
    ++version_;
    const std::string version = std::to_string(version_);
    std::string type = pods.contains(name) ? "MODIFIED" : "ADDED";
    if (pods.contains(name) && below(3) == 0) {
      type = "DELETED";
      pods.erase(name);
    } else {
      pods[name] = version;
    }
    history_.push_back({version_, test::frame_json(type, test::pod_json(name, version))});
    send(history_.back().frame);
  }
  // Forgets what happened so far: older versions are 410 from now on.
  void compact() {
    history_.clear();
    compacted_ = version_;
    for (auto& [token, page] : pages_) page.expired = true;
  }
  void disturb() {
    switch (below(6)) {
      case 0:
        send(test::bookmark_json(std::to_string(version_)));
        break;
      case 1:
        if (watch_) watch_->end();
        watch_.reset();
        break;
      case 2:  // half a frame, then the end
        if (watch_) {
          watch_->add(R"({"type":"ADDED","object":{"metadata":{"name":"half)");
          watch_->end();
        }
        watch_.reset();
        break;
      case 3:
        if (watch_) watch_->fail(kwatt::fail(ErrorCode::unavailable, "reset"));
        watch_.reset();
        break;
      case 4: {
        static const std::vector<std::pair<int, std::string>> kErrors = {
            {410, "Expired"}, {410, "Gone"}, {500, "InternalError"}, {429, "TooManyRequests"}};
        const auto& [code, reason] = kErrors[below(4)];
        send(test::frame_json("ERROR", test::status_json(code, reason)));
        watch_.reset();
        break;
      }
      default:
        send("nonsense");
        watch_.reset();
    }
  }
  void heal() {
    faults_percent = 0;
    if (watch_) watch_->end();
    watch_.reset();
  }

  Task<Result<std::unique_ptr<net::BodyStream>>> open(std::string target) override {
    if (below(100) < static_cast<unsigned>(faults_percent)) {
      switch (below(5)) {
        case 0:
          co_return kwatt::fail(ErrorCode::unavailable, "connection refused");
        case 1:
          co_return refusal(429, "TooManyRequests");
        case 2:
          co_return refusal(500, "InternalError");
        case 3:
          co_return refusal(410, "Expired");
        default:
          co_return refusal(401, "Unauthorized");
      }
    }
    if (target.find("watch=1") != std::string::npos) co_return open_watch(target);
    co_return open_list(target);
  }

 private:
  struct Event {
    int version;
    std::string frame;
  };
  struct Page {
    std::vector<std::string> rest;
    int version = 0;
    bool expired = false;
  };
  using Stream = std::unique_ptr<net::BodyStream>;

  static std::string parameter(const std::string& target, const std::string& name) {
    const auto at = target.find(name + "=");
    if (at == std::string::npos) return {};
    const auto start = at + name.size() + 1;
    return target.substr(start, target.find('&', start) - start);
  }

  // As chunks of random sizes, which have nothing to do with frames.
  void cut(std::string_view text, test::MemoryBody& body) {
    while (!text.empty()) {
      const std::size_t size = std::min<std::size_t>(text.size(), 1 + below(300));
      body.add(std::string(text.substr(0, size)));
      text.remove_prefix(size);
    }
  }
  void send(const std::string& frame) {
    if (watch_) cut(frame, *watch_);
  }
  Stream refusal(int code, const std::string& reason) {
    auto body = std::make_shared<test::MemoryBody>();
    body->add(test::status_json(code, reason));
    body->end();
    return std::make_unique<test::MemoryStream>(code, body);
  }

  Result<Stream> open_watch(const std::string& target) {
    const std::string from = parameter(target, "resourceVersion");
    REQUIRE_FALSE(from.empty());
    if (std::stoi(from) < compacted_) {
      if (below(2) == 0) return refusal(410, "Expired");
      auto body = std::make_shared<test::MemoryBody>();
      body->add(test::frame_json("ERROR", test::status_json(410, "Expired")));
      return Stream(std::make_unique<test::MemoryStream>(200, body));
    }
    watch_ = std::make_shared<test::MemoryBody>();
    for (const Event& event : history_) {
      if (event.version > std::stoi(from)) cut(event.frame, *watch_);
    }
    return Stream(std::make_unique<test::MemoryStream>(200, watch_));
  }

  Result<Stream> open_list(const std::string& target) {
    Page page;
    const std::string token = parameter(target, "continue");
    if (token.empty()) {
      page.version = version_;
      for (const auto& [name, version] : pods) page.rest.push_back(test::pod_json(name, version));
    } else {
      page = pages_.at(token);
      if (page.expired) return refusal(410, "Expired");
    }
    const std::string limit = parameter(target, "limit");
    const std::size_t most = limit.empty() ? 1000 : 4;  // small pages, so that they matter
    std::vector<std::string> items;
    while (!page.rest.empty() && items.size() < most) {
      items.push_back(page.rest.front());
      page.rest.erase(page.rest.begin());
    }
    std::string next;
    const int at = page.version;
    if (!page.rest.empty()) {
      next = "t" + std::to_string(pages_.size());
      pages_[next] = page;
    }
    const std::string text = test::list_json(items, std::to_string(at), next);
    auto body = std::make_shared<test::MemoryBody>();
    const bool broken = below(100) < static_cast<unsigned>(faults_percent);
    cut(broken ? text.substr(0, below(static_cast<unsigned>(text.size()))) : text, *body);
    if (broken && below(2) == 0) {
      body->fail(kwatt::fail(ErrorCode::unavailable, "cut"));
    } else {
      body->end();
    }
    return Stream(std::make_unique<test::MemoryStream>(200, body));
  }

  std::mt19937 random_;
  int version_ = 1, compacted_ = 0;
  std::vector<Event> history_;
  std::map<std::string, Page> pages_;
  std::shared_ptr<test::MemoryBody> watch_;
};

}  // namespace

TEST_CASE("store equals server state after any script of events and faults") {
  log::setup("test", log::Level::error, log::Format::logfmt);
  for (const unsigned seed : {1U, 2U, 3U, 7U, 11U, 42U, 77U, 1001U, 4711U, 31337U}) {
    CAPTURE(seed);
    boost::asio::io_context io;
    SystemClock clock;
    Metrics metrics;
    ModelServer server(seed);
    ReflectorOptions options;
    options.watch.backoff.initial = options.watch.backoff.maximum = 1ms;
    options.watch.very_short = 0ms;
    Informer<api::Pod> informer(
        server, WatchTarget{resources::pods(), "", "", ""},
        [](std::string_view json) -> Result<api::Pod> {
          api::Pod pod;
          if (auto done = api::decode(json, pod); !done) return done.error();
          return pod;
        },
        clock, metrics, pod_indexes(), options);
    std::map<std::string, std::string> mirror;
    bool synced = false;
    informer.store().subscribe([&](const Delta<api::Pod>& delta) {
      using Type = Delta<api::Pod>::Type;
      if (delta.type == Type::synced) synced = true;
      if (delta.type == Type::added) REQUIRE_FALSE(mirror.contains(delta.now->name));
      if (delta.type == Type::updated) REQUIRE(mirror.contains(delta.now->name));
      if (delta.now) mirror[delta.now->name] = delta.now->resource_version;
      if (delta.type == Type::deleted) REQUIRE(mirror.erase(delta.old->name) == 1);
    });
    boost::asio::cancellation_signal stop;
    bool ended = false;
    boost::asio::co_spawn(io, informer.run(),
                          boost::asio::bind_cancellation_slot(
                              stop.slot(), [&](const std::exception_ptr&) { ended = true; }));
    server.faults_percent = 20;
    for (int step = 0; step < 400; ++step) {
      const unsigned what = server.below(20);
      if (what == 0) {
        server.compact();
      } else if (what < 4) {
        server.disturb();
      } else {
        server.change();
      }
      // Sometimes the client keeps up, sometimes a lot happens at once.
      if (server.below(3) == 0) io.run_for(std::chrono::microseconds{server.below(1500)});
      io.poll();
    }
    server.heal();
    const auto stored = [&] {
      std::map<std::string, std::string> found;
      informer.store().for_each([&](const auto& pod) { found[pod->name] = pod->resource_version; });
      return found;
    };
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (stored() != server.pods && std::chrono::steady_clock::now() < deadline)
      io.run_one_for(5ms);
    CHECK(stored() == server.pods);
    CHECK(mirror == server.pods);
    CHECK(synced);
    stop.emit(boost::asio::cancellation_type::terminal);
    while (!ended && std::chrono::steady_clock::now() < deadline) io.run_one_for(5ms);
    CHECK(ended);
  }
  log::setup("test", log::Level::info, log::Format::logfmt);
}
