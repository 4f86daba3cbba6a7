#pragma once
// What a machine would draw with more CPU work than now: a few points, asked or calculated ahead of
// time, so that a scheduler's request only looks them up.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "models/learned_power.hpp"

namespace kwatt::models {

// Who answers, best first.
enum class WattsBasis {
  served,        // a model server of the operator's
  learned,       // learned_power.hpp, from the machine's own meter
  specified,     // the curve in NodePower.spec.model
  default_curve  // of a server of its time; power_curve.hpp
};
// "Served", "Learned", "Specified", "Default": for explanations, logs and metrics.
std::string_view to_string(WattsBasis basis);

using WattsPoints = std::vector<std::pair<Millicores, Milliwatts>>;

struct WattsTable {
  WattsBasis basis = WattsBasis::default_curve;
  // Of the whole machine with so much CPU work more than at `at`; sorted, the first is for 0, power
  // never falls. Empty for the curves, which every caller has at hand.
  WattsPoints at_extra;
  std::string by;    // "TFServing http://…/v1/models/konohana", "the learned model (error 4.3 %)"
  std::string note;  // why it is not a better basis, or why it is old; a sentence, or ""
  TimePoint at;      // of the load that 0 stands for
  std::int64_t error_permille = 0;  // of learned: expected relative error
};

// At how much more CPU work predictions are made: 0, then eighths of what is free of `all`, at
// least up to one core.
std::vector<Millicores> extra_steps(Millicores used, Millicores all);

// Points in which power never falls: more work does not take less.
WattsPoints never_falling(WattsPoints points);

// The learned model at the state of now and at each step: work comes on top at the machine's
// present ratio of utilization to busy time. Ends before the first state that was not learned from.
// Fewer than two points: nothing can be said.
WattsPoints learned_points(const LearnedPower& model, const MachineState& now, Millicores all,
                           const std::vector<Millicores>& steps);

}  // namespace kwatt::models
