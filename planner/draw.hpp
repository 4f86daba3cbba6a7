#pragma once
// What one machine draws now, and what it would draw if kwatt had left it alone: the two sides of
// every saving that is claimed.
#include "models/energy_account.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::planner {

struct Draw {
  models::PowerPair power;
  api::PowerBasis basis = api::PowerBasis::None;  // of `actual`
  // Measured: by whom, in the words of Newest::meter, and when.
  std::string_view meter = {};
  std::optional<TimePoint> at;
  std::int64_t error_permille = 0;  // of Fitted
  bool measured() const { return basis == api::PowerBasis::Measured; }
};

// Actual, by the ladder of api::PowerBasis: a reading that may be believed and belongs to the
// present power state, else the agent's report under the same condition, else a model. Off: standby
// power, None if that is not given either; booting: boot energy ÷ boot time, at least idle; else
// what the meter has taught (the learned model where it has seen such a state, else the fitted
// curve), or the curve, says of the load, which is the measured one or that of the pods' CPU
// requests.
//
// Baseline, only where kwatt has a hand in it, and then never more than can be argued for:
//   switched off by us, or booting after it     idle
//   slowed down or capped by us, fresh load,    the specified curve at that load, at least actual
//   the whole machine is measured
//   anything else                               actual: it saves nothing
// A machine that somebody else switched off is not our saving; a slow machine without a power model
// of its own claims nothing, because the default curve's error would be larger than the saving, and
// neither does one of which only the CPU packages are measured.
Draw draw_of(const NodeView& node, TimePoint now);

}  // namespace kwatt::planner
