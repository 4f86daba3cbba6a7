#pragma once
// Asks the sources that do not push, each at its own pace, and keeps what they say in the sample
// store. What fails is counted and can be read as sentences; nothing else depends on it.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "telemetry/sample_store.hpp"
#include "telemetry/source.hpp"

namespace kwatt::controller {

// Single-threaded, on the controller's strand; what is passed in outlives it. Every replica asks,
// so that a new leader's windows are filled already.
class TelemetryPoll {
 public:
  using Directory = std::function<std::shared_ptr<const telemetry::NodeDirectory>()>;
  // What a machine can draw at most; nullopt: not known.
  using Maximum = std::function<std::optional<Milliwatts>(const std::string& node)>;
  TelemetryPoll(telemetry::SampleStore& samples, const Clock& clock, Metrics& metrics,
                Directory directory, Maximum maximum);

  void add(std::unique_ptr<telemetry::PollSource> source);
  bool empty() const { return sources_.empty(); }
  // Starts a loop for each source, until the executor ends.
  void start(const boost::asio::any_io_executor& executor);
  // One fetch of one source, by its position; a loop does nothing else.
  net::Task<void> poll_once(std::size_t position);

  // What is wrong with the sources as of their last fetches: "ipmi: …", sorted, at most one each.
  std::vector<std::string> problems() const;

 private:
  net::Task<void> run(std::size_t position);
  void take(const telemetry::PollSource& source, const telemetry::Fetched& fetched, TimePoint now);

  telemetry::SampleStore& samples_;
  const Clock& clock_;
  Metrics& metrics_;
  Directory directory_;
  Maximum maximum_;
  std::vector<std::unique_ptr<telemetry::PollSource>> sources_;
  std::map<telemetry::Source, std::string> problems_;
};

}  // namespace kwatt::controller
