#include <doctest/doctest.h>

#include "telemetry/carbon_state.hpp"

namespace kwatt::telemetry {
namespace {

using models::carbon::Missing;

const TimePoint kNow = *parse_rfc3339("2026-11-22T10:20:30Z");

std::string said(const CarbonState& state) {
  return state.status + " " + state.reason + ": " + state.message;
}

ZoneKnowledge known(Missing missing, std::string message = "") {
  ZoneKnowledge out;
  out.zone = "DE";
  out.answered = true;
  out.newest = models::carbon::Reading{*parse_rfc3339("2026-11-22T09:00:00Z"), 299.6};
  out.missing = missing;
  out.message = std::move(message);
  return out;
}

}  // namespace

TEST_CASE("carbon state: the words of the condition CarbonDataAvailable") {
  struct Case {
    const char* name;
    ZoneKnowledge known;
    const char* want;
  };
  ZoneKnowledge first;
  first.zone = "DE";
  ZoneKnowledge nothing = known(Missing::no_data, "no carbon intensity has been read");
  nothing.newest.reset();
  ZoneKnowledge refused = nothing;
  refused.failure = "maps: HTTP 404: no such zone or address";
  ZoneKnowledge ahead = known(Missing::no_data);
  ahead.published_until = kNow + std::chrono::hours{12};
  ZoneKnowledge failing = ahead;
  failing.failure = "maps: no answer";
  ZoneKnowledge old_failing = known(Missing::none);
  old_failing.failure = "maps: no answer";
  ZoneKnowledge stale = known(Missing::stale, "the newest carbon intensity is of yesterday");
  stale.failure = "maps: no answer";
  const Case cases[] = {
      {"not asked before", first, "Unknown NotRead: zone \"DE\" is being read for the first time"},
      {"nothing came", nothing, "False NoData: zone \"DE\": no carbon intensity has been read"},
      {"refused", refused,
       "False NoData: zone \"DE\": no carbon intensity has been read; maps: HTTP 404: no such zone "
       "or address"},
      {"short", known(Missing::too_short, "3 hours of carbon intensity are known, 24 are needed"),
       "False TooShort: zone \"DE\": 3 hours of carbon intensity are known, 24 are needed"},
      {"old", stale,
       "False Stale: zone \"DE\": the newest carbon intensity is of yesterday; maps: no answer"},
      {"gaps", known(Missing::gaps, "of the last 24 hours only 7 are known"),
       "False Gaps: zone \"DE\": of the last 24 hours only 7 are known"},
      {"forecast here", known(Missing::none),
       "True Forecast: 300 g/kWh in zone \"DE\" at 2026-11-22T09:00:00Z"},
      {"published ahead", ahead,
       "True Published: 300 g/kWh in zone \"DE\" at 2026-11-22T09:00:00Z, published until "
       "2026-11-22T22:20:30Z"},
      {"published ahead, no longer answering", failing,
       "True Failing: 300 g/kWh in zone \"DE\" at 2026-11-22T09:00:00Z, published until "
       "2026-11-22T22:20:30Z; maps: no answer"},
      {"forecast, no longer answering", old_failing,
       "True Failing: 300 g/kWh in zone \"DE\" at 2026-11-22T09:00:00Z; maps: no answer"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(said(carbon_state(c.known)) == c.want);
  }
}

TEST_CASE("carbon state: of several zones the worst is said, with the sentences of all like it") {
  const CarbonState good{"True", "Published", "a"}, failing{"True", "Failing", "b"};
  const CarbonState unread{"Unknown", "NotRead", "c"};
  const CarbonState stale{"False", "Stale", "d"}, none{"False", "NoData", "e"};
  struct Case {
    std::vector<CarbonState> zones;
    const char* want;
  };
  const Case cases[] = {
      {{good}, "True Published: a"},
      {{good, good}, "True Published: a; a"},
      {{good, failing}, "True Failing: b"},
      {{failing, unread, good}, "Unknown NotRead: c"},
      {{good, stale, unread, none}, "False Stale: d; e"},
      {{good, good, good, good, good}, "True Published: a; a; a; and 2 more zones"},
      {{},
       "Unknown NoZone: spec.carbon.zone is empty, and no node is selected whose zone could be "
       "asked for"},
  };
  for (const Case& c : cases) CHECK(said(combined(c.zones)) == c.want);
}

TEST_CASE("carbon state: a source that nobody has is named, with those that there are") {
  CHECK(said(no_such_source("oracle", {"file", "maps"})) ==
        "False NoSource: there is no carbon source \"oracle\": --carbon-sources has file, maps");
  CHECK(said(no_such_source("oracle", {})) ==
        "False NoSource: there is no carbon source \"oracle\": the controller runs without "
        "--carbon-sources");
}

}  // namespace kwatt::telemetry
