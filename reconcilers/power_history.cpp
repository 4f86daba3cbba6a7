#include "reconcilers/power_history.hpp"

#include <algorithm>

namespace kwatt::reconcilers {
namespace {

constexpr std::uint32_t kFewestSamplesMore = 8, kMostSamplesMore = 1000;

}  // namespace

models::MachineState state_of(const telemetry::Reading& reading,
                              const telemetry::Environment* environment) {
  models::MachineState state;
  state.utilization = reading.utilization;
  state.busy = reading.busy;
  if (environment == nullptr) return state;
  state.ambient = environment->ambient;
  state.cpu = environment->cpu1;
  if (environment->cpu2 && (!state.cpu || *environment->cpu2 > *state.cpu)) {
    state.cpu = environment->cpu2;
  }
  return state;
}

void PowerHistory::observe(const std::string& node, const std::vector<telemetry::Reading>& readings,
                           const telemetry::Environment* environment) {
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
      entry.samples = {};
      entry.learned_from = 0;
    }
    entry.history.add({reading.utilization, *reading.power});
    entry.samples.add(state_of(reading, environment), *reading.power, reading.at);
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

std::shared_ptr<const models::LearnedPower> PowerHistory::learned(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second.learned;
}

std::shared_ptr<const models::LearnedPower> PowerHistory::learn(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.whole_machine) return nullptr;
  Entry& entry = found->second;
  const std::uint32_t more =
      std::clamp(entry.learned_from / 4, kFewestSamplesMore, kMostSamplesMore);
  if (entry.samples.sequence() >= entry.learned_from + more) {
    entry.learned_from = entry.samples.sequence();
    auto learned = models::learn_power(entry.samples.samples());
    entry.learned =
        learned ? std::make_shared<const models::LearnedPower>(std::move(*learned)) : nullptr;
  }
  return entry.learned;
}

}  // namespace kwatt::reconcilers
