#include "reconcilers/power_history.hpp"

namespace kwatt::reconcilers {

void PowerHistory::observe(const std::string& node,
                           const std::vector<telemetry::Reading>& readings) {
  auto found = nodes_.find(node);
  for (const telemetry::Reading& reading : readings) {
    if (!reading.has_utilization || !reading.power) continue;
    if (found == nodes_.end()) found = nodes_.try_emplace(node).first;
    Entry& entry = found->second;
    if (reading.at <= entry.seen) continue;
    entry.seen = reading.at;
    if (entry.whole_machine && !reading.whole_machine) continue;
    if (reading.whole_machine && !entry.whole_machine) {
      entry.whole_machine = true;
      entry.history = {};
    }
    entry.history.add({reading.utilization, *reading.power});
    entry.changed = true;
  }
}

std::shared_ptr<const models::PowerFit> PowerHistory::fit(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return nullptr;
  Entry& entry = found->second;
  if (entry.changed) {
    entry.changed = false;
    auto fitted = models::fit_power(entry.history.points());
    entry.fit = fitted ? std::make_shared<const models::PowerFit>(*fitted) : nullptr;
  }
  return entry.fit;
}

}  // namespace kwatt::reconcilers
