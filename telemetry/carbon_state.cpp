#include "telemetry/carbon_state.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kwatt::telemetry {
namespace {

constexpr std::size_t kTold = 3;  // zones of a policy that are told one by one

int badness(const CarbonState& state) {
  if (state.status == "False") return 3;
  if (state.status == "Unknown") return 2;
  return state.reason == "Failing" ? 1 : 0;
}

}  // namespace

CarbonState carbon_state(const ZoneKnowledge& known) {
  if (!known.answered) {
    return {"Unknown", "NotRead",
            fmt::format("zone \"{}\" is being read for the first time", known.zone)};
  }
  const auto told = [&](const std::string& sentence) {
    return known.failure.empty() ? sentence : sentence + "; " + known.failure;
  };
  const bool usable = known.missing == models::carbon::Missing::none || known.published_until;
  if (!usable || !known.newest) {
    return {"False", std::string(to_string(known.missing)),
            told(fmt::format("zone \"{}\": {}", known.zone, known.message))};
  }
  std::string sentence =
      fmt::format("{:.0f} g/kWh in zone \"{}\" at {}", known.newest->grams_per_kwh, known.zone,
                  format_rfc3339(known.newest->at));
  if (known.published_until) {
    sentence += ", published until " + format_rfc3339(*known.published_until);
  }
  const char* reason = !known.failure.empty()  ? "Failing"
                       : known.published_until ? "Published"
                                               : "Forecast";
  return {"True", reason, told(sentence)};
}

CarbonState combined(const std::vector<CarbonState>& zones) {
  if (zones.empty()) {
    return {"Unknown", "NoZone",
            "spec.carbon.zone is empty, and no node is selected whose zone could be asked for"};
  }
  const auto worst = std::max_element(
      zones.begin(), zones.end(),
      [](const CarbonState& a, const CarbonState& b) { return badness(a) < badness(b); });
  std::vector<std::string> sentences;
  std::size_t more = 0;
  for (const CarbonState& one : zones) {
    if (badness(one) != badness(*worst)) continue;
    if (sentences.size() < kTold) {
      sentences.push_back(one.message);
    } else {
      ++more;
    }
  }
  CarbonState out{worst->status, worst->reason, fmt::format("{}", fmt::join(sentences, "; "))};
  if (more > 0) out.message += fmt::format("; and {} more zones", more);
  return out;
}

CarbonState no_such_source(std::string_view name, const std::vector<std::string>& names) {
  return {"False", "NoSource",
          names.empty()
              ? fmt::format("there is no carbon source \"{}\": the controller runs without "
                            "--carbon-sources",
                            name)
              : fmt::format("there is no carbon source \"{}\": --carbon-sources has {}", name,
                            fmt::join(names, ", "))};
}

}  // namespace kwatt::telemetry
