#pragma once
// What one machine draws now, and what it would draw if kwatt had left it alone: the two sides of
// every saving that is claimed.
#include "models/energy_account.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::planner {

// Where `actual` comes from, best first.
enum class DrawSource { meter, report, model };

struct Draw {
  models::PowerPair power;
  DrawSource source = DrawSource::model;
  bool measured() const { return source != DrawSource::model; }
};

// Actual: a reading that is fresh and belongs to the present power state, else the agent's report
// under the same condition, else the model (off: standby; booting: boot energy ÷ boot time, at
// least idle; shutting down: idle; on: the curve at the fresh load, or idle).
//
// Baseline, only where kwatt has a hand in it, and then never more than can be argued for:
//   switched off by us, or booting after it     idle
//   slowed down or capped by us, fresh load     the specified curve at that load, at least actual
//   anything else                               actual: it saves nothing
// A machine that somebody else switched off is not our saving; a slow machine without a power model
// of its own claims nothing, because the default curve's error would be larger than the saving.
Draw draw_of(const NodeView& node, TimePoint now);

}  // namespace kwatt::planner
