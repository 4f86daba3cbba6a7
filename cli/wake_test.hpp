#pragma once
// How far a wake test has come, from the status before the request and the status now. Pure.
#include <string>

#include "api/node_power.hpp"

namespace kwatt::cli {

struct WakeTestView {
  enum class Outcome { waiting, passed, failed } outcome = Outcome::waiting;
  std::string sentence;
};
// `requested`: the annotation is still there; the controller removes it with the result. `begun`:
// when the request was made.
WakeTestView view_of(const api::NodePowerStatus& before, const api::NodePowerStatus& now,
                     bool requested, TimePoint begun);

}  // namespace kwatt::cli
