#pragma once
// When a disruption budget is in force. Same input, same answer: the time is a parameter, and the
// only outside knowledge is the system's time zone database.
#include <optional>
#include <string>

#include "api/energy_policy.hpp"
#include "base/result.hpp"

namespace kwatt::api {

struct WindowState {
  bool active = true;
  std::optional<TimePoint> until;  // of an active window with an end
};

// Without a schedule a budget is always in force. With one, it is from each time the schedule names
// (in the budget's time zone, UTC if empty) for `duration`. invalid_argument: the schedule or time
// zone is none (validate() says the same).
Result<WindowState> window_state(const Budget& budget, TimePoint now);

// "Europe/Berlin", "UTC": a name of the time zone database ("" is UTC).
bool time_zone_exists(const std::string& name);

}  // namespace kwatt::api
