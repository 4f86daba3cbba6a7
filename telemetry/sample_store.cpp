#include "telemetry/sample_store.hpp"

namespace kwatt::telemetry {

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::out_of_order:
      return "out_of_order";
    case Refusal::from_the_future:
      return "from_the_future";
    case Refusal::utilization_range:
      return "utilization_range";
    case Refusal::power_range:
      return "power_range";
    case Refusal::above_machine:
      return "above_machine";
  }
  return "unknown";
}

std::optional<Refusal> SampleStore::add(const std::string& node, const Sample& sample,
                                        TimePoint now, std::optional<Milliwatts> machine_maximum) {
  const auto in_range = [](Permille p) { return p >= Permille{0} && p <= Permille{1000}; };
  if (!in_range(sample.utilization) || !in_range(sample.busy)) return Refusal::utilization_range;
  if (sample.power && (*sample.power < Milliwatts{0} || *sample.power > options_.implausible)) {
    return Refusal::power_range;
  }
  if (sample.power && machine_maximum && *sample.power > *machine_maximum * 3 / 2) {
    return Refusal::above_machine;
  }
  if (sample.at > now + options_.future_tolerance) return Refusal::from_the_future;

  std::deque<Step>& steps = nodes_[node];
  if (!steps.empty() && sample.at <= steps.back().newest) return Refusal::out_of_order;
  if (steps.empty() || sample.at >= steps.back().begin + options_.resolution) {
    const auto offset = sample.at.time_since_epoch() % options_.resolution;
    steps.push_back(Step{.begin = sample.at - offset, .newest = sample.at});
  }
  Step& step = steps.back();
  step.newest = sample.at;
  step.count += 1;
  step.utilization += sample.utilization.count();
  step.busy += sample.busy.count();
  if (sample.power) {
    step.power_count += 1;
    step.milliwatts += sample.power->count();
  }
  while (steps.front().newest + options_.keep < now) steps.pop_front();
  return std::nullopt;
}

std::vector<Sample> SampleStore::samples(const std::string& node) const {
  std::vector<Sample> out;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return out;
  out.reserve(found->second.size());
  for (const Step& step : found->second) {
    Sample sample{.at = step.newest,
                  .utilization = Permille{step.utilization / step.count},
                  .busy = Permille{step.busy / step.count},
                  .power = std::nullopt};
    if (step.power_count > 0) sample.power = Milliwatts{step.milliwatts / step.power_count};
    out.push_back(sample);
  }
  return out;
}

std::optional<TimePoint> SampleStore::newest(const std::string& node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.empty()) return std::nullopt;
  return found->second.back().newest;
}

}  // namespace kwatt::telemetry
