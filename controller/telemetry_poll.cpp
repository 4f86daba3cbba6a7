#include "controller/telemetry_poll.hpp"

#include <algorithm>
#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/log.hpp"
#include "net/run.hpp"
#include "telemetry/dropped.hpp"

namespace kwatt::controller {
namespace {

using telemetry::Fetched;
using telemetry::PollSource;

constexpr std::size_t kLongestProblem = 300;
// Two answers about the same measurement differ by the time they travelled.
constexpr Duration kSameMeasurement{500};

std::string bounded(std::string text) {
  if (text.size() <= kLongestProblem) return text;
  // Not within a character: statuses are UTF-8.
  std::size_t end = kLongestProblem;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

}  // namespace

TelemetryPoll::TelemetryPoll(telemetry::SampleStore& samples, const Clock& clock, Metrics& metrics,
                             Directory directory, Maximum maximum)
    : samples_(samples),
      clock_(clock),
      metrics_(metrics),
      directory_(std::move(directory)),
      maximum_(std::move(maximum)) {}

void TelemetryPoll::add(std::unique_ptr<PollSource> source) {
  sources_.push_back(std::move(source));
}

void TelemetryPoll::start(const boost::asio::any_io_executor& executor) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    boost::asio::co_spawn(executor, run(i), boost::asio::detached);
  }
}

net::Task<void> TelemetryPoll::run(std::size_t position) {
  for (;;) {
    const MonotonicPoint started = clock_.monotonic();
    co_await poll_once(position);
    const auto took = std::chrono::ceil<Duration>(clock_.monotonic() - started);
    // A fetch that took longer than the period is not followed by another at once.
    const Duration period = sources_[position]->period();
    co_await net::sleep(std::max<Duration>(period - took, period / 4));
  }
}

net::Task<void> TelemetryPoll::poll_once(std::size_t position) {
  PollSource& source = *sources_[position];
  const std::string name(to_string(source.source()));
  const TimePoint now = clock_.now();
  Result<Fetched> fetched = fail(ErrorCode::internal, "not asked");
  try {
    fetched = co_await source.fetch(directory_(), now);
  } catch (const std::exception& error) {
    fetched = fail(ErrorCode::internal, error.what());
  }
  std::string problem;
  if (!fetched) {
    problem = bounded(fmt::format("{}: {}", name, fetched.error().text()));
  } else {
    take(source, *fetched, now);
    if (const std::size_t faulty = fetched->faulty(); faulty > 0) {
      problem = bounded(fmt::format("{}: {} readings not taken, for example: {}", name, faulty,
                                    fetched->example));
    } else if (fetched->readings.empty() && !fetched->rejected.empty()) {
      problem = bounded(fmt::format("{}: no reading is of a node of this cluster, for example: {}",
                                    name, fetched->example));
    }
  }
  const std::string result = fetched ? "ok" : std::string(to_string(fetched.error().code));
  metrics_.add("kwatt_telemetry_fetches_total", "Questions to telemetry sources, by result.",
               {{"source", name}, {"result", result}});
  metrics_.set("kwatt_telemetry_source_up", "1 if the last question was answered.",
               {{"source", name}}, fetched ? 1 : 0);
  std::string& standing = problems_[source.source()];
  if (problem != standing) {
    if (!problem.empty()) {
      log::warn("telemetry source", {{"source", name}, {"problem", problem}});
    } else {
      log::info("telemetry source is well again", {{"source", name}});
    }
    standing = std::move(problem);
  }
}

void TelemetryPoll::take(const PollSource& source, const Fetched& fetched, TimePoint now) {
  const std::string name(to_string(source.source()));
  std::size_t taken = 0;
  for (const telemetry::NodeReading& reading : fetched.readings) {
    const auto newest = samples_.newest(reading.node, reading.sample.source);
    if (newest && reading.sample.at < *newest + kSameMeasurement) continue;
    const auto maximum = maximum_(reading.node);
    if (const auto refusal = samples_.add(reading.node, reading.sample, now, maximum)) {
      telemetry::count_dropped(metrics_, *refusal);
    } else {
      ++taken;
    }
  }
  metrics_.add("kwatt_telemetry_readings_total", "Readings taken from telemetry sources.",
               {{"source", name}}, static_cast<double>(taken));
  for (const auto& [why, count] : fetched.rejected) {
    metrics_.add("kwatt_telemetry_rejected_total", "Readings that were not taken, by reason.",
                 {{"source", name}, {"reason", std::string(to_string(why))}},
                 static_cast<double>(count));
  }
}

std::vector<std::string> TelemetryPoll::problems() const {
  std::vector<std::string> out;
  for (const auto& [source, problem] : problems_) {
    if (!problem.empty()) out.push_back(problem);
  }
  return out;
}

}  // namespace kwatt::controller
