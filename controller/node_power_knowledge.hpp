#pragma once
// What predictions and sensors add to what the stores know of a node. All of it is looked up;
// nobody is asked.
#include <cstdint>

#include "controller/prediction_poll.hpp"
#include "models/power_curve.hpp"
#include "placement/node_info.hpp"
#include "telemetry/predictor.hpp"

namespace kwatt::controller {

// Fills in the predicted watts, the temperatures with the limits that WAO's labels set
// (ambient/max, and the lower of cpu1/max and cpu2/max), and the carbon intensity (0: not known).
void add_knowledge(placement::NodeInfo& node, const PredictionPoll& predictions,
                   std::int64_t grams_per_kwh, TimePoint now);

// kwatt's own model of one machine for estimates: what was learned from its meter while the state
// asked about lies in what was learned from, else the curve.
telemetry::LocalPower own_power(models::PowerCurve curve,
                                std::shared_ptr<const models::LearnedPower> learned,
                                std::optional<models::MachineState> now);

}  // namespace kwatt::controller
