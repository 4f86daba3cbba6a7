#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "controller/prediction_poll.hpp"
#include "test/support/run_task.hpp"
#include "test/support/scripted_peer.hpp"

namespace kwatt::controller {
namespace {

using models::WattsBasis;
using std::chrono::seconds;
using test::json_response;

const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

std::shared_ptr<const models::LearnedPower> straight() {
  models::PowerSamples samples;
  TimePoint at = kStart;
  for (std::int64_t load = 20; load <= 980; load += 10) {
    for (int i = 0; i < 3; ++i, at += seconds{5}) {
      models::MachineState state;
      state.utilization = state.busy = Permille{load};
      samples.add(state, Milliwatts{100'000 + 100 * load}, at);
    }
  }
  return std::make_shared<const models::LearnedPower>(*models::learn_power(samples.samples()));
}

struct Fixture {
  ManualClock clock{kStart};
  Metrics metrics;
  boost::asio::io_context io;
  test::ScriptedPeer peer{io.get_executor()};
  std::map<std::string, PredictionSubject> subjects;
  std::optional<PredictionPoll> poll;

  Fixture() {
    PredictionOptions options;
    options.predictors.allowed = *net::AllowList::parse({"127.0.0.1"}, net::AllowList::Bare::both);
    options.predictors.timeout = Duration{300};
    poll.emplace(
        io.get_executor(), options,
        [this] {
          std::vector<std::string> names;
          for (const auto& [name, subject] : subjects) names.push_back(name);
          return names;
        },
        [this](const std::string& name) -> std::optional<PredictionSubject> {
          return subjects.at(name);
        },
        clock, metrics);
  }
  // 8 CPUs, a quarter of them busy; a MLServer model that takes only the usage, if `served`.
  PredictionSubject& add(const std::string& name, bool served) {
    auto node = std::make_shared<api::Node>();
    node->meta.name = name;
    node->allocatable.cpu = Millicores{8000};
    if (served) {
      node->meta.annotations.set(
          "kwatt.dev/predictor",
          "mlserver+http://127.0.0.1:" + std::to_string(peer.port()) + "/v2/models/usage");
    }
    PredictionSubject& subject = subjects[name];
    subject.node = node;
    subject.state.emplace();
    subject.state->utilization = subject.state->busy = Permille{250};
    return subject;
  }
  void metadata() {
    peer.reply(json_response(
        200,
        R"({"name":"usage","inputs":[{"name":"CPUUsage","datatype":"FP64","shape":[-1,1]}]})"));
  }
  void answer(int nodes) {
    std::string data;
    for (int i = 0; i < nodes * 9; ++i) {
      data += std::to_string(100 + 10 * (i % 9)) + (i + 1 < nodes * 9 ? "," : "");
    }
    peer.reply(json_response(200, R"({"outputs":[{"data":[)" + data + "]}]}"));
  }
  void round() { test::run_task(io, poll->poll_once()); }
  const models::WattsTable& table(const std::string& node) { return *poll->table(node); }
};

TEST_SUITE_BEGIN("mlserver");

TEST_CASE_FIXTURE(Fixture, "predictions: nodes of one model are asked about in one batch") {
  add("n1", true);
  add("n2", true);
  CHECK(poll->table("n1") == nullptr);
  metadata();
  answer(2);
  round();
  CHECK(peer.requests().size() == 2);
  for (const char* name : {"n1", "n2"}) {
    CAPTURE(name);
    CHECK(table(name).basis == WattsBasis::served);
    REQUIRE(table(name).at_extra.size() == 9);
    CHECK(table(name).at_extra.front() == std::pair{Millicores{0}, watts(100)});
    CHECK(table(name).at_extra.back() == std::pair{Millicores{6000}, watts(180)});
    CHECK(table(name).note.empty());
    CHECK(table(name).at == kStart);
  }
  CHECK(poll->problems().empty());
  CHECK(metrics.render().find("kwatt_prediction_nodes{basis=\"Served\"} 2") != std::string::npos);
  // What is known of the load goes out as WAO's usage: 2 of 8 CPUs, then more.
  CHECK(peer.requests().back().find(R"("data":[0.25,0.34375,)") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "predictions: many nodes are asked about in several batches") {
  for (int i = 0; i < 60; ++i) add("n" + std::to_string(100 + i), true);
  metadata();
  answer(56);
  answer(4);
  round();
  CHECK(peer.requests().size() == 3);
  CHECK(table("n159").basis == WattsBasis::served);
}

TEST_CASE_FIXTURE(Fixture,
                  "predictions: a failing model is old for a while, then the ladder counts") {
  add("n1", true).learned = straight();
  metadata();
  answer(1);
  round();
  REQUIRE(table("n1").basis == WattsBasis::served);
  peer.always(test::response(500, "Traceback"));
  clock.advance(seconds{30});
  round();
  CHECK(table("n1").basis == WattsBasis::served);
  CHECK(table("n1").at == kStart);
  CHECK(table("n1").note.find("HTTP 500: the model or its server failed") != std::string::npos);
  clock.advance(seconds{61});
  round();
  CHECK(table("n1").basis == WattsBasis::learned);
  CHECK(table("n1").note.find("HTTP 500") != std::string::npos);
  CHECK(table("n1").by.starts_with("learned from its own meter, expected error "));
  REQUIRE(table("n1").at_extra.size() >= 8);
  CHECK(static_cast<double>(table("n1").at_extra.front().second.count()) ==
        doctest::Approx(125'000).epsilon(0.01));
  REQUIRE(poll->problems().size() == 1);
  CHECK(poll->problems().front().starts_with("MLServer http://127.0.0.1:"));
  CHECK(metrics.render().find("kwatt_prediction_nodes{basis=\"Learned\"} 1") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture,
                  "predictions: without anything better the curves count, and need no table") {
  add("n1", false);
  add("n2", false).specified = true;
  round();
  CHECK(table("n1").basis == WattsBasis::default_curve);
  CHECK(table("n2").basis == WattsBasis::specified);
  CHECK(table("n1").at_extra.empty());
  CHECK(poll->problems().empty());
}

TEST_CASE_FIXTURE(Fixture, "predictions: one node's bad label is its own affair") {
  auto labelled = std::make_shared<api::Node>(*add("n1", true).node);
  labelled->meta.labels.set("ambient/min", "cold");
  subjects["n1"].node = labelled;
  add("n2", true);
  metadata();
  answer(1);
  round();
  CHECK(table("n2").basis == WattsBasis::served);
  CHECK(table("n1").basis == WattsBasis::default_curve);
  CHECK(table("n1").note == "label ambient/min is \"cold\": not a temperature in °C");
  REQUIRE(poll->problems().size() == 1);
  CHECK(poll->problems().front() ==
        "node n1: label ambient/min is \"cold\": not a temperature in °C");
  subjects.erase("n1");
  answer(1);
  round();
  CHECK(poll->problems().empty());
  CHECK(poll->table("n1") == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "predictions: a node whose load is not known is not asked about") {
  add("n1", true).state.reset();
  round();
  CHECK(peer.requests().empty());
  CHECK(table("n1").note == "its load is not known");
}

TEST_CASE_FIXTURE(Fixture,
                  "predictions: a server that hangs holds nobody up for longer than its time") {
  add("n1", true);
  peer.always(test::Script{}.stall());
  round();
  CHECK(table("n1").basis == WattsBasis::default_curve);
  CHECK(table("n1").note.find("MLServer") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "predictions: a host that is not on the list is named with the option") {
  auto& subject = add("n1", false);
  auto node = std::make_shared<api::Node>(*subject.node);
  node->meta.labels.set("tensorflow/host", "10.9.9.9");
  subject.node = node;
  round();
  CHECK(table("n1").note.find("--endpoint-allow 10.9.9.9") != std::string::npos);
  CHECK(poll->problems().size() == 1);
}

TEST_SUITE_END();

}  // namespace
}  // namespace kwatt::controller
