#include "models/carbon/shift.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kwatt::models::carbon {
namespace {

constexpr Duration kHour = std::chrono::hours{1};

Result<void> check(const std::vector<Place>& places, const ShiftableJob& job) {
  const auto bad = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  if (places.empty()) return bad("a job needs at least one place to run");
  if (job.length <= Duration{0}) {
    return bad(
        fmt::format("a job's length must be positive, not {}", format_go_duration(job.length)));
  }
  if (!std::isfinite(job.energy_kwh) || job.energy_kwh <= 0) {
    return bad(fmt::format("a job's energy must be positive, not {} kWh", job.energy_kwh));
  }
  if (!(job.least_saving >= 0 && job.least_saving <= 1)) {
    return bad(fmt::format("the least saving must be within 0 and 1, not {}", job.least_saving));
  }
  for (const Place& place : places) {
    if (!std::isfinite(place.energy_factor) || place.energy_factor <= 0 ||
        !std::isfinite(place.move_grams) || place.move_grams < 0) {
      return bad(
          fmt::format("place \"{}\": its energy factor must be positive and its move must "
                      "not cost less than nothing",
                      place.name));
    }
  }
  return {};
}

// All starts in one place that meet the deadline and that its forecast covers.
void add_starts(const std::vector<Place>& places, std::size_t index, const ShiftableJob& job,
                std::vector<StartChoice>& out) {
  const Place& place = places[index];
  if (!place.forecast.usable()) return;
  TimePoint start = job.now;
  while (true) {
    // At once is a choice even if the deadline cannot be met.
    if (start != job.now && job.length > job.deadline - start) return;
    const auto mean = place.forecast.mean(start, job.length);
    if (!mean) return;
    const double grams = *mean * job.energy_kwh * place.energy_factor + place.move_grams;
    out.push_back({index, start, *mean, grams});
    start = std::chrono::floor<std::chrono::hours>(start) + kHour;
  }
}

std::string in_place(const std::vector<Place>& places, std::size_t index) {
  return places[index].name.empty() ? "" : " in " + places[index].name;
}

ShiftDecision without_forecast(const std::vector<Place>& places, const ShiftableJob& job) {
  ShiftDecision out;
  out.reason = ShiftReason::no_forecast;
  out.chosen.start = job.now;
  const Forecast& forecast = places.front().forecast;
  out.message = fmt::format(
      "starts at once: {}",
      forecast.usable() ? "the forecast does not reach the end of the job" : forecast.message);
  return out;
}

}  // namespace

std::string_view to_string(ShiftReason reason) {
  switch (reason) {
    case ShiftReason::cleaner_later:
      return "CleanerLater";
    case ShiftReason::now_is_best:
      return "NowIsBest";
    case ShiftReason::not_worth_it:
      return "NotWorthIt";
    case ShiftReason::deadline_short:
      return "DeadlineShort";
    case ShiftReason::no_forecast:
      return "NoForecast";
    case ShiftReason::cleaner_elsewhere:
      break;
  }
  return "CleanerElsewhere";
}

Result<ShiftDecision> choose_place_and_start(const std::vector<Place>& places,
                                             const ShiftableJob& job) {
  if (auto good = check(places, job); !good) return good.error();
  std::vector<StartChoice> starts;
  for (std::size_t i = 0; i < places.size(); ++i) add_starts(places, i, job, starts);
  if (starts.empty()) return without_forecast(places, job);
  // Stable: what comes first of equals is the first place's, and the earliest.
  std::stable_sort(starts.begin(), starts.end(), [](const StartChoice& a, const StartChoice& b) {
    if (a.grams != b.grams) return a.grams < b.grams;
    return a.start < b.start;
  });
  ShiftDecision out;
  const auto home = std::find_if(starts.begin(), starts.end(), [&](const StartChoice& one) {
    return one.place == 0 && one.start == job.now;
  });
  if (home != starts.end()) out.at_once = *home;
  out.chosen = starts.front();
  const bool moves = out.chosen.place != 0, waits = out.chosen.start > job.now;
  out.reason = waits   ? ShiftReason::cleaner_later
               : moves ? ShiftReason::cleaner_elsewhere
                       : ShiftReason::now_is_best;
  if (out.at_once && (moves || waits)) {
    // A forecast that is off by more than what is promised is no reason to wait.
    const double saved = out.at_once->grams - out.chosen.grams;
    if (saved < job.least_saving * out.at_once->grams) {
      out.chosen = *out.at_once;
      out.reason = ShiftReason::not_worth_it;
    }
  }
  if (job.length > job.deadline - job.now && out.reason == ShiftReason::now_is_best) {
    out.reason = ShiftReason::deadline_short;
  }
  out.start_now = out.chosen.start == job.now;
  if (out.at_once) out.saved_grams = out.at_once->grams - out.chosen.grams;
  for (const StartChoice& one : starts) {
    if (one.place == out.chosen.place && one.start == out.chosen.start) continue;
    if (out.alternatives.size() == ShiftDecision::kAlternatives) break;
    out.alternatives.push_back(one);
  }
  out.message = fmt::format(
      "{}{}: {:.0f} g/kWh{}",
      out.start_now ? "starts at once" : "waits until " + format_rfc3339(out.chosen.start),
      in_place(places, out.chosen.place), out.chosen.grams_per_kwh,
      out.at_once && out.saved_grams > 0 ? fmt::format(" instead of {:.0f}, saves {:.1f} g of CO2",
                                                       out.at_once->grams_per_kwh, out.saved_grams)
                                         : "");
  if (out.reason == ShiftReason::deadline_short) {
    out.message +=
        fmt::format("; its deadline {} leaves no time to wait", format_rfc3339(job.deadline));
  }
  return out;
}

Result<ShiftDecision> choose_start(const Forecast& forecast, const ShiftableJob& job) {
  return choose_place_and_start({Place{"", forecast, 1, 0}}, job);
}

}  // namespace kwatt::models::carbon
