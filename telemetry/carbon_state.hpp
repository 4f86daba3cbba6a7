#pragma once
// Whether the carbon data of a policy's zones can be relied on: the condition CarbonDataAvailable.
// Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/carbon/forecast.hpp"

namespace kwatt::telemetry {

// As the condition says it. False keeps the safe default: nothing waits for clean electricity.
struct CarbonState {
  std::string status;   // "True", "False", "Unknown"
  std::string reason;   // Published, Forecast, Failing (True, but the last question failed);
                        // NoData, TooShort, Stale, Gaps, NoSource; NotRead, NoZone (Unknown)
  std::string message;  // a sentence, with the last error where there is one
  bool operator==(const CarbonState&) const = default;
};

// What is known of one zone at a moment.
struct ZoneKnowledge {
  std::string zone;
  bool answered = false;  // the source has answered, or failed, at least once
  std::optional<models::carbon::Reading> newest;  // the value in force, or the last one that was
  std::optional<TimePoint> published_until;       // beginning of the last step published ahead
  // Of the forecast made here, where nothing is published ahead.
  models::carbon::Missing missing = models::carbon::Missing::no_data;
  std::string message;
  std::string failure;  // of the last question; "": it was answered
};

CarbonState carbon_state(const ZoneKnowledge& known);
// Of several zones: the worst, and the sentences of all that are as bad.
CarbonState combined(const std::vector<CarbonState>& zones);
// The policy names a source that is none of `names`.
CarbonState no_such_source(std::string_view name, const std::vector<std::string>& names);

}  // namespace kwatt::telemetry
