#include <stdexcept>

#include <doctest/doctest.h>

#include "controller/telemetry_poll.hpp"
#include "test/support/run_task.hpp"

namespace kwatt::controller {
namespace {

using std::chrono::seconds;
using telemetry::Fetched;
using telemetry::Rejection;
using telemetry::Source;

const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

// Answers what it is told to.
class FakeSource final : public telemetry::PollSource {
 public:
  explicit FakeSource(std::function<Result<Fetched>(TimePoint)> answer)
      : answer_(std::move(answer)) {}
  Source source() const override { return Source::ipmi_exporter; }
  Duration period() const override { return seconds{15}; }
  net::Task<Result<Fetched>> fetch(std::shared_ptr<const telemetry::NodeDirectory>,
                                   TimePoint now) override {
    co_return answer_(now);
  }

 private:
  std::function<Result<Fetched>(TimePoint)> answer_;
};

Fetched reading(TimePoint at, std::int64_t of_watts) {
  telemetry::Sample sample;
  sample.at = at;
  sample.power = watts(of_watts);
  sample.source = Source::ipmi_exporter;
  sample.has_utilization = false;
  Fetched fetched;
  fetched.readings.push_back({"n1", sample});
  return fetched;
}

struct Fixture {
  ManualClock clock{kStart};
  telemetry::SampleStore samples;
  Metrics metrics;
  boost::asio::io_context io;
  Result<Fetched> next = Fetched{};
  std::optional<Milliwatts> maximum;
  TelemetryPoll poll{samples, clock, metrics,
                     [] { return std::make_shared<const telemetry::NodeDirectory>(); },
                     [this](const std::string&) { return maximum; }};

  Fixture() {
    poll.add(std::make_unique<FakeSource>([this](TimePoint) { return next; }));
  }
  void once(Result<Fetched> answer) {
    next = std::move(answer);
    test::run_task(io, poll.poll_once(0));
  }
};

TEST_SUITE("telemetry") {
  TEST_CASE_FIXTURE(Fixture, "poll: what a source says is kept, and counted") {
    once(reading(kStart, 100));
    CHECK(*samples.samples("n1").back().power == watts(100));
    CHECK(poll.problems().empty());
    CHECK(metrics.render().find("kwatt_telemetry_readings_total{source=\"ipmi-exporter\"} 1") !=
          std::string::npos);
    CHECK(metrics.render().find("kwatt_telemetry_source_up{source=\"ipmi-exporter\"} 1") !=
          std::string::npos);
  }

  TEST_CASE_FIXTURE(Fixture, "poll: the same measurement twice is one sample") {
    once(reading(kStart, 100));
    once(reading(kStart + Duration{40}, 100));
    CHECK(samples.samples("n1").size() == 1);
    CHECK(metrics.render().find("kwatt_samples_dropped_total") == std::string::npos);
  }

  TEST_CASE_FIXTURE(Fixture, "poll: a failure is a sentence and a count until the source is well") {
    once(fail(ErrorCode::unavailable, "connection refused"));
    REQUIRE(poll.problems().size() == 1);
    CHECK(poll.problems().front() == "ipmi-exporter: connection refused");
    const std::string text = metrics.render();
    CHECK(text.find("result=\"unavailable\"") != std::string::npos);
    CHECK(text.find("kwatt_telemetry_source_up{source=\"ipmi-exporter\"} 0") != std::string::npos);
    CHECK(samples.size() == 0);
    once(reading(kStart, 100));
    CHECK(poll.problems().empty());
  }

  TEST_CASE_FIXTURE(Fixture,
                    "poll: rejected readings are named; machines of others alone are too") {
    Fetched fetched = reading(kStart, 100);
    fetched.reject(Rejection::several_series, "2 series for node n2: none is believed");
    fetched.reject(Rejection::unknown_node, "\"x\" names no node");
    once(fetched);
    REQUIRE(poll.problems().size() == 1);
    CHECK(
        poll.problems().front() ==
        "ipmi-exporter: 1 readings not taken, for example: 2 series for node n2: none is believed");
    CHECK(metrics.render().find("reason=\"several_series\"") != std::string::npos);
    Fetched others = reading(kStart + seconds{15}, 100);
    others.reject(Rejection::unknown_node, "\"x\" names no node");
    once(others);
    CHECK(poll.problems().empty());
    others.readings.clear();
    once(others);
    CHECK(poll.problems().front().find("no reading is of a node of this cluster") !=
          std::string::npos);
  }

  TEST_CASE_FIXTURE(Fixture, "poll: an exception of a source is a failure like any other") {
    poll.add(std::make_unique<FakeSource>(
        [](TimePoint) -> Result<Fetched> { throw std::runtime_error("bug"); }));
    test::run_task(io, poll.poll_once(1));
    REQUIRE(poll.problems().size() == 1);
    CHECK(poll.problems().front() == "ipmi-exporter: bug");
  }

  TEST_CASE_FIXTURE(Fixture, "poll: a value that no machine draws is dropped by the store") {
    once(reading(kStart, 200'000));
    CHECK(samples.samples("n1").empty());
    CHECK(metrics.render().find("kwatt_samples_dropped_total{reason=\"power_range\"} 1") !=
          std::string::npos);
    maximum = watts(300);
    once(reading(kStart, 451));
    CHECK(samples.samples("n1").empty());
    CHECK(metrics.render().find("kwatt_samples_dropped_total{reason=\"above_machine\"} 1") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace kwatt::controller
