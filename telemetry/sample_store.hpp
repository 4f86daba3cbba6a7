#pragma once
// The newest samples of every machine, thinned to one per `resolution`, bounded in time and number.
// Lost at a restart, which only delays: windows must fill again before anything is taken away.
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"

namespace kwatt::telemetry {

// One reading as it arrives. Utilization is frequency-invariant, `busy` the plain busy fraction.
struct Sample {
  TimePoint at;
  Permille utilization, busy;
  std::optional<Milliwatts> power;
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

  // nullopt: taken. A sample not newer than the last one is out_of_order (pushes are repeated after
  // a lost reply); negative or implausible values are refused, never clamped, so are jumps beyond
  // one and a half times the machine's maximum, where that is known (a model is never exact).
  std::optional<Refusal> add(const std::string& node, const Sample& sample, TimePoint now,
                             std::optional<Milliwatts> machine_maximum = std::nullopt);

  // Averages per resolution step, oldest first. The newest step may still be filling.
  std::vector<Sample> samples(const std::string& node) const;
  std::optional<TimePoint> newest(const std::string& node) const;
  void forget(const std::string& node) { nodes_.erase(node); }
  std::size_t size() const { return nodes_.size(); }

 private:
  // Sums of the samples of one step.
  struct Step {
    TimePoint begin, newest;
    std::int64_t count = 0, utilization = 0, busy = 0, power_count = 0, milliwatts = 0;
  };
  SampleStoreOptions options_;
  std::map<std::string, std::deque<Step>, std::less<>> nodes_;
};

}  // namespace kwatt::telemetry
