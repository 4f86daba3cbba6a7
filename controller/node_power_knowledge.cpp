#include "controller/node_power_knowledge.hpp"

#include <algorithm>
#include <cmath>

#include "telemetry/predictor_choice.hpp"

namespace kwatt::controller {
namespace {

std::optional<Millicelsius> hottest(std::optional<Millicelsius> a, std::optional<Millicelsius> b) {
  return a && b ? std::max(*a, *b) : (a ? a : b);
}
std::optional<Millicelsius> lowest(std::optional<Millicelsius> a, std::optional<Millicelsius> b) {
  return a && b ? std::min(*a, *b) : (a ? a : b);
}

// A label that is not understood is told by the predictions; here it sets no limit.
std::optional<Millicelsius> limit(const api::ObjectMeta& node, std::string_view sensor) {
  const auto range = telemetry::temperature_range(node, sensor);
  if (!range || !*range) return std::nullopt;
  return Millicelsius{std::llround((*range)->highest_celsius * 1000)};
}

}  // namespace

void add_knowledge(placement::NodeInfo& node, const PredictionPoll& predictions,
                   std::int64_t grams_per_kwh, TimePoint now) {
  if (grams_per_kwh > 0) node.grams_per_kwh = grams_per_kwh;
  const auto table = predictions.table(node.name);
  if (table != nullptr && !table->at_extra.empty()) {
    auto predicted = std::make_shared<placement::PredictedWatts>();
    predicted->at_extra = table->at_extra;
    predicted->predictor = table->by;
    node.predicted = std::move(predicted);
  }
  if (const auto* air = predictions.environment().find(node.name, now)) {
    node.thermal.ambient = air->ambient;
    node.thermal.cpu = hottest(air->cpu1, air->cpu2);
  }
  const api::ObjectMeta& meta = node.node->meta;
  node.thermal.ambient_limit = limit(meta, "ambient");
  node.thermal.cpu_limit = lowest(limit(meta, "cpu1"), limit(meta, "cpu2"));
}

telemetry::LocalPower own_power(models::PowerCurve curve,
                                std::shared_ptr<const models::LearnedPower> learned,
                                std::optional<models::MachineState> now) {
  return [curve, learned = std::move(learned),
          now](const telemetry::PredictionPoint& point) -> Result<Milliwatts> {
    const Permille load{std::llround(point.cpu_usage() * 1000)};
    if (learned != nullptr && now) {
      // More work comes at the machine's present ratio of utilization to busy time.
      models::MachineState state = *now;
      const std::int64_t busy = std::max<std::int64_t>(1, now->busy.count());
      state.utilization = Permille{now->utilization.count() * load.count() / busy};
      state.busy = load;
      const models::LearnedEstimate estimate = learned->at(state);
      if (estimate.in_range) return estimate.power;
    }
    return curve.at(load);
  };
}

}  // namespace kwatt::controller
