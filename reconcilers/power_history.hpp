#pragma once
// What the meters of machines have taught, for when one falls silent. In memory: a controller that
// starts anew learns anew, and until then the models count.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/learned_power.hpp"
#include "models/power_fit.hpp"
#include "telemetry/environment.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::reconcilers {

// A reading as power models take it, with what is known of the temperatures (null: nothing).
models::MachineState state_of(const telemetry::Reading& reading,
                              const telemetry::Environment* environment);

// Not thread-safe. About 8 KB for each machine that has a meter.
class PowerHistory {
 public:
  // Takes the readings that are newer than those of the last call and have both load and power.
  // Watts of CPU packages are taken only until something measures the whole machine.
  // `environment`: what is known of the machine's temperatures now; null: nothing.
  void observe(const std::string& node, const std::vector<telemetry::Reading>& readings,
               const telemetry::Environment* environment = nullptr);
  // nullptr: too little is known. The fit is made when it is asked for and something is new.
  std::shared_ptr<const models::PowerFit> fit(const std::string& node);
  // A model of more than the load, with held-out errors. nullptr: too little is known, or only CPU
  // packages are measured. As it was learned last: costs nothing.
  std::shared_ptr<const models::LearnedPower> learned(const std::string& node) const;
  // Learns anew where a quarter more has been seen than last time, or a thousand samples more; two
  // milliseconds then, so not for all nodes in one go.
  std::shared_ptr<const models::LearnedPower> learn(const std::string& node);
  void forget(const std::string& node) { nodes_.erase(node); }

 private:
  struct Entry {
    TimePoint seen{};
    bool whole_machine = false, changed = false;
    models::LoadHistory history;
    models::PowerSamples samples;
    std::uint32_t learned_from = 0;  // PowerSamples::sequence() of `learned`
    std::shared_ptr<const models::LearnedPower> learned;
    std::shared_ptr<const models::PowerFit> fit;
  };
  std::map<std::string, Entry, std::less<>> nodes_;
};

}  // namespace kwatt::reconcilers
