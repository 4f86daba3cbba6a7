#pragma once
// A plan as stable text: for golden files, for `kubectl kwatt plan`, and for people in logs. JSON
// with one action or verdict per line, keys in fixed order, so that a diff reads well.
#include <string>

#include "planner/plan.hpp"

namespace kwatt::planner {

// The word of an action: PowerOn, PowerOff, Migrate, SetFrequency, SetCap, Release.
std::string_view word(const What& what);
std::string render(const Action& action);
std::string render(const Plan& plan);

}  // namespace kwatt::planner
