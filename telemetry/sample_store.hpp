#pragma once
// The newest samples of every machine, one stream for each source, thinned to one per `resolution`,
// bounded in time and number. Lost at a restart, which only delays: windows must fill again before
// anything is taken away.
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/source.hpp"

namespace kwatt::telemetry {

// What is believed of a machine at one moment: of utilization and of power the reading of the best
// source that had measured it at most three of its own periods before (30 s at least).
struct Reading {
  TimePoint at;
  Permille utilization, busy;
  bool has_utilization = false;
  Source utilization_source = Source::agent;
  TimePoint utilization_until;  // believed no longer than this
  std::optional<Milliwatts> power;
  Source power_source = Source::agent;
  bool whole_machine = false;  // of power
  TimePoint power_at, power_until;
  bool from_agent = false;  // the machine's own agent measured something at `at`
};

// Why a sample was not taken.
enum class Refusal {
  out_of_order,
  from_the_future,
  utilization_range,
  power_range,
  above_machine  // more than this machine can draw
};
std::string_view to_string(Refusal refusal);

struct SampleStoreOptions {
  Duration resolution = std::chrono::seconds{5};  // samples within one are averaged
  Duration keep = std::chrono::minutes{15};
  Duration future_tolerance = std::chrono::seconds{30};  // clocks differ
  Milliwatts implausible = watts(100'000);               // no single machine draws more
};

// Not thread-safe.
class SampleStore {
 public:
  explicit SampleStore(SampleStoreOptions options = {}) : options_(options) {}

  // nullopt: taken. A sample not newer than the last one of its source is out_of_order (pushes are
  // repeated after a lost reply); negative or implausible values are refused, never clamped, so are
  // jumps beyond one and a half times the machine's maximum, where that is known (a model is never
  // exact).
  std::optional<Refusal> add(const std::string& node, const Sample& sample, TimePoint now,
                             std::optional<Milliwatts> machine_maximum = std::nullopt);

  // Averages per resolution step of each source, laid over each other; oldest first. The newest
  // step may still be filling.
  std::vector<Reading> samples(const std::string& node) const;
  // When the newest sample was measured: of any source, or of this one.
  std::optional<TimePoint> newest(const std::string& node) const;
  std::optional<TimePoint> newest(const std::string& node, Source source) const;
  void forget(const std::string& node) { nodes_.erase(node); }
  std::size_t size() const { return nodes_.size(); }

 private:
  // Sums of the samples of one step.
  struct Step {
    TimePoint begin, newest;
    std::int64_t milliwatts = 0;
    std::int32_t count = 0, utilization = 0, busy = 0, power_count = 0;
    bool whole_machine = true;
  };
  struct Stream {
    Source source = Source::agent;
    Duration period{0};
    std::deque<Step> steps;  // never empty
    // Three of the source's own periods, 30 s at least.
    Duration believed_for() const;
  };
  Stream& stream_of(const std::string& node, Source source);

  SampleStoreOptions options_;
  std::map<std::string, std::vector<Stream>, std::less<>> nodes_;  // streams sorted by source
};

}  // namespace kwatt::telemetry
