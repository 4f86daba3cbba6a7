#pragma once
// What the meters of machines have taught, for when one falls silent. In memory: a controller that
// starts anew learns anew, and until then the models count.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/power_fit.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::reconcilers {

// Not thread-safe. About 2 KB for each machine that has a meter.
class PowerHistory {
 public:
  // Takes the readings that are newer than those of the last call and have both load and power.
  // Watts of CPU packages are taken only until something measures the whole machine.
  void observe(const std::string& node, const std::vector<telemetry::Reading>& readings);
  // nullptr: too little is known. The fit is made when it is asked for and something is new.
  std::shared_ptr<const models::PowerFit> fit(const std::string& node);
  void forget(const std::string& node) { nodes_.erase(node); }

 private:
  struct Entry {
    TimePoint seen{};
    bool whole_machine = false, changed = false;
    models::LoadHistory history;
    std::shared_ptr<const models::PowerFit> fit;
  };
  std::map<std::string, Entry, std::less<>> nodes_;
};

}  // namespace kwatt::reconcilers
