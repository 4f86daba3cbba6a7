#pragma once
// What goes into the history, and when: decisions and operations as they happen, samples once a
// minute, energy sums with them.
#include "base/clock.hpp"
#include "reconcilers/machine_reconciler.hpp"
#include "reconcilers/policy_pass.hpp"
#include "telemetry/history.hpp"

namespace kwatt::controller {

// A minute is written this long after its end: samples come some seconds late.
inline constexpr Duration kSamplesLate = std::chrono::seconds{30};

// Single-threaded, on the controller's strand. Does nothing without a history (nullptr).
class HistoryFeed {
 public:
  HistoryFeed(telemetry::History* history, const kube::Store<api::Node>& nodes,
              const telemetry::SampleStore& samples, const Clock& clock);

  void decided(const std::string& node, const api::NodeDecision& decision);
  void operation(const std::string& node, const api::Operation& operation,
                 const reconcilers::OperationEvent& event);

  // Writes the minutes as they end, and what `take_energy` gives, until the executor ends.
  kube::Task<void> run(std::function<std::vector<reconcilers::NodeEnergy>()> take_energy);
  void energy(const std::vector<reconcilers::NodeEnergy>& sums);

 private:
  void samples(TimePoint minute);

  telemetry::History* history_;
  const kube::Store<api::Node>& nodes_;
  const telemetry::SampleStore& samples_;
  const Clock& clock_;
};

}  // namespace kwatt::controller
