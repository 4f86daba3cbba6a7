#pragma once
// Asks the BMCs of running machines what they draw and how they are limited, each in its turn.
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/metrics.hpp"
#include "planner/snapshot.hpp"
#include "reconcilers/drivers.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::reconcilers {

// How often each BMC is asked, and how many at the same time (a slow BMC may keep a worker for
// minutes; the others go on).
struct MeterOptions {
  Duration interval = std::chrono::seconds{30};
  std::size_t at_once = 8;
};

// Single-threaded, on the controller's strand; all references outlive it.
class BmcMeter {
 public:
  // Readings go to `samples`.
  BmcMeter(Drivers& drivers, telemetry::SampleStore& samples, MeterOptions options,
           Metrics& metrics, const Clock& clock);

  // Asks for what is due: the reading, where nobody else measures the whole machine, and the limit,
  // which goes into `status`. A BMC that does not answer is left alone for longer and longer. True:
  // there is a new reading.
  kube::Task<bool> read(std::shared_ptr<const api::NodePower> machine,
                        const planner::NodeView& node, api::NodePowerStatus& status);
  // Is there anything to ask this machine for, now and then?
  static bool of_use(const planner::NodeView& node, const api::NodePowerStatus& status,
                     TimePoint now);
  Duration interval() const { return options_.interval; }
  void forget(const std::string& machine);

 private:
  // When a BMC is asked again, and how often it failed in a row.
  struct Due {
    std::string address;  // that of another BMC starts anew
    MonotonicPoint reading{}, limit{};
    int failures = 0;
  };
  // Takes note of a reading's result; true: it was one.
  bool note(const api::NodePower& machine, const Result<void>& result, Due& due);
  // False: the reading cannot be true, or is not new.
  bool keep(const planner::NodeView& node, Milliwatts power);
  kube::Task<void> read_limit(std::shared_ptr<hardware::PowerDriver> driver, Due& due,
                              api::BmcStatus& bmc);

  Drivers& drivers_;
  telemetry::SampleStore& samples_;
  MeterOptions options_;
  Metrics& metrics_;
  const Clock& clock_;
  std::map<std::string, Due> due_;
  std::size_t reading_ = 0;  // BMCs being read now
};

}  // namespace kwatt::reconcilers
