#include "reconcilers/power_history.hpp"

namespace kwatt::reconcilers {
namespace {

// Learning costs a millisecond: not for every sample.
constexpr std::uint32_t kSamplesBetween = 32;

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

std::shared_ptr<const models::LearnedPower> PowerHistory::learned(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.whole_machine) return nullptr;
  Entry& entry = found->second;
  const std::uint32_t newest = entry.samples.sequence();
  const bool due = entry.learned == nullptr ? newest != entry.learned_from
                                            : newest >= entry.learned_from + kSamplesBetween;
  if (due) {
    entry.learned_from = newest;
    auto learned = models::learn_power(entry.samples.samples());
    entry.learned =
        learned ? std::make_shared<const models::LearnedPower>(std::move(*learned)) : nullptr;
  }
  return entry.learned;
}

}  // namespace kwatt::reconcilers
