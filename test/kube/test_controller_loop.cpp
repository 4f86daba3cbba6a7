// Workers: one run per key, the contract of results, exceptions, draining, metrics.
#include <map>
#include <set>
#include <stdexcept>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <doctest/doctest.h>

#include "kube/controller_loop.hpp"
#include "test/kube/api_fixture.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

using Outcome = Result<ReconcileResult>;

struct Loop : test::ApiFixture {
  ~Loop() {
    stop.emit(boost::asio::cancellation_type::terminal);
    if (loop) run_until([this] { return ended; });
  }
  void start(Reconcile reconcile, ControllerOptions options = {}) {
    options.name = "test";
    loop.emplace(io.get_executor(), options, std::move(reconcile), clock, metrics);
    boost::asio::co_spawn(io, loop->run(),
                          boost::asio::bind_cancellation_slot(
                              stop.slot(), [this](const std::exception_ptr&) { ended = true; }));
  }
  // Answers each key with what the function says, and notes the calls.
  Reconcile answering(std::function<Outcome(const std::string&)> answer) {
    return [this, answer = std::move(answer)](std::string key) -> Task<Outcome> {
      calls.push_back(key);
      co_return answer(key);
    };
  }
  void until_calls(std::size_t count) {
    run_until([&] { return calls.size() >= count; });
  }
  bool total(const std::string& result, int count) const {
    return shows("controller_runtime_reconcile_total{controller=\"test\",result=\"" + result +
                 "\"} " + std::to_string(count));
  }

  std::vector<std::string> calls;
  std::optional<ControllerLoop> loop;
  boost::asio::cancellation_signal stop;
  bool ended = false;
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Loop, "controller: reconciles each key once, also those added before the start") {
  loop.emplace(io.get_executor(), ControllerOptions{.name = "early"},
               answering([](auto&) { return Outcome{ReconcileResult{}}; }), clock, metrics);
  loop->enqueue("a");
  loop->enqueue("a");
  loop->enqueue("b");
  boost::asio::co_spawn(io, loop->run(),
                        boost::asio::bind_cancellation_slot(
                            stop.slot(), [this](const std::exception_ptr&) { ended = true; }));
  until_calls(2);
  run_for(20ms);
  CHECK(calls == Calls{"a", "b"});
}

TEST_CASE_FIXTURE(Loop, "controller: an error is repeated with growing pauses, success forgets") {
  int left = 4;
  start(answering([&](auto&) -> Outcome {
    if (left-- > 0) return fail(ErrorCode::unavailable, "later");
    return ReconcileResult{};
  }));
  const auto began = std::chrono::steady_clock::now();
  loop->enqueue("a");
  until_calls(5);
  CHECK(std::chrono::steady_clock::now() - began >= 75ms);  // 5 + 10 + 20 + 40
  run_for(5ms);
  CHECK(loop->queue().failures("a") == 0);
  CHECK(total("error", 4));
  CHECK(total("success", 1));
  CHECK(shows("controller_runtime_reconcile_errors_total{controller=\"test\"} 4"));
}

TEST_CASE_FIXTURE(Loop, "controller: a terminal error is counted and not repeated") {
  start(
      answering([](auto&) -> Outcome { return terminal(fail(ErrorCode::invalid_argument, "x")); }));
  loop->enqueue("a");
  until_calls(1);
  run_for(30ms);
  CHECK(calls.size() == 1);
  CHECK(total("error", 1));
  CHECK(shows("controller_runtime_terminal_reconcile_errors_total{controller=\"test\"} 1"));
  loop->enqueue("a");
  until_calls(2);
}

TEST_CASE_FIXTURE(Loop, "controller: a conflict is decided again and is no failure") {
  int left = 3;
  start(answering([&](auto&) -> Outcome {
    if (left-- > 0) return fail(ErrorCode::conflict, "somebody else wrote first");
    return ReconcileResult{};
  }));
  const auto began = std::chrono::steady_clock::now();
  loop->enqueue("a");
  until_calls(4);
  CHECK(std::chrono::steady_clock::now() - began >= 35ms);  // 5 + 10 + 20
  run_for(5ms);
  CHECK(loop->queue().failures("a") == 0);
  CHECK(total("requeue", 3));
  CHECK(total("success", 1));
  CHECK(total("error", 0));
  CHECK(shows("controller_runtime_reconcile_errors_total{controller=\"test\"} 0"));
}

TEST_CASE_FIXTURE(Loop, "controller: requeue_after comes back after that time") {
  start(answering([this](auto&) -> Outcome {
    if (calls.size() > 1) return ReconcileResult{};
    return ReconcileResult{.requeue_after = 50ms};
  }));
  const auto began = std::chrono::steady_clock::now();
  loop->enqueue("a");
  until_calls(2);
  CHECK(std::chrono::steady_clock::now() - began >= 50ms);
  run_for(5ms);
  CHECK(total("requeue_after", 1));
  CHECK(total("success", 1));
}

TEST_CASE_FIXTURE(Loop, "controller: an exception is an error of that key alone") {
  start(answering([this](const std::string& key) -> Outcome {
    if (key == "bad" && calls.size() < 3) throw std::runtime_error("bug");
    return ReconcileResult{};
  }));
  loop->enqueue("bad");
  loop->enqueue("good");
  until_calls(3);
  run_for(10ms);
  CHECK(calls == Calls{"bad", "good", "bad"});
  CHECK(shows("controller_runtime_reconcile_panics_total{controller=\"test\"} 1"));
}

TEST_CASE_FIXTURE(Loop, "controller: never two runs of one key at once, with many workers") {
  std::set<std::string> running;
  std::size_t most = 0;
  int runs = 0;
  bool twice = false;
  start(
      [&](std::string key) -> Task<Outcome> {
        twice = twice || !running.insert(key).second;
        most = std::max(most, running.size());
        co_await net::sleep(3ms);
        running.erase(key);
        ++runs;
        co_return ReconcileResult{};
      },
      {.workers = 4});
  for (int i = 0; i < 40; ++i) {
    loop->enqueue("k" + std::to_string(i % 6));
    if (i >= 6) run_for(1ms);
  }
  run_until([&] { return loop->queue().depth() == 0 && running.empty(); });
  CHECK_FALSE(twice);
  CHECK(most == 4);
  CHECK(runs >= 6);
}

TEST_CASE_FIXTURE(Loop, "controller: stop lets running keys end and starts no others") {
  bool finished = false;
  start([&](std::string key) -> Task<Outcome> {
    calls.push_back(key);
    co_await net::sleep(50ms);
    finished = true;
    co_return ReconcileResult{};
  });
  loop->enqueue("a");
  loop->enqueue("b");
  until_calls(1);
  test::run_task(io, loop->stop());
  CHECK(finished);
  CHECK(calls == Calls{"a"});
  run_until([this] { return ended; });
}

TEST_CASE_FIXTURE(Loop, "controller: stop cancels what outlasts the grace period") {
  bool cancelled = false;
  start(
      [&](std::string key) -> Task<Outcome> {
        calls.push_back(key);
        struct Note {
          bool& flag;
          ~Note() { flag = true; }
        } note{cancelled};
        co_await net::sleep(1h);
        co_await net::sleep(1h);
        co_return ReconcileResult{};
      },
      {.drain = 30ms});
  loop->enqueue("a");
  until_calls(1);
  const auto began = std::chrono::steady_clock::now();
  test::run_task(io, loop->stop());
  run_until([this] { return ended; });
  CHECK(cancelled);
  CHECK(std::chrono::steady_clock::now() - began < 2s);
}

TEST_CASE_FIXTURE(Loop, "controller: every key comes round again without any event") {
  start(answering([](auto&) { return Outcome{ReconcileResult{}}; }),
        {.resync = 20ms, .all_keys = [] {
           return Calls{"a", "b"};
         }});
  until_calls(4);
  CHECK(Calls(calls.begin(), calls.begin() + 4) == Calls{"a", "b", "a", "b"});
}

TEST_CASE_FIXTURE(Loop, "controller: metrics are there from the start") {
  start(answering([](auto&) { return Outcome{ReconcileResult{}}; }), {.workers = 3});
  for (const char* result : {"success", "error", "requeue", "requeue_after"}) {
    CHECK(total(result, 0));
  }
  CHECK(shows("controller_runtime_reconcile_errors_total{controller=\"test\"} 0"));
  CHECK(shows("controller_runtime_terminal_reconcile_errors_total{controller=\"test\"} 0"));
  CHECK(shows("controller_runtime_reconcile_panics_total{controller=\"test\"} 0"));
  CHECK(shows("controller_runtime_max_concurrent_reconciles{controller=\"test\"} 3"));
  CHECK(shows("controller_runtime_active_workers{controller=\"test\"} 0"));
  loop->enqueue("a");
  until_calls(1);
  run_for(5ms);
  CHECK(shows("controller_runtime_reconcile_time_seconds_count{controller=\"test\"} 1"));
}
