#pragma once
// When, and where, a job should start so that it emits least: the choice of its start within a
// deadline, and among places. A job runs in one piece. Pure, deterministic: of equal starts the
// earliest counts, of equal places the first.
//
// The choice may be made anew every hour while the job waits, with the forecast of that hour:
// "wait" only says that some later start looks better than this moment. That is worth more than a
// better forecast, because the forecast of the hours that matter gets better as they come near.
#include <string>
#include <vector>

#include "models/carbon/forecast.hpp"

namespace kwatt::models::carbon {

struct ShiftableJob {
  TimePoint now;            // it could start at once
  Duration length;          // how long it runs, > 0
  TimePoint deadline;       // when it must have ended
  double energy_kwh = 1;    // what it uses, for grams
  double least_saving = 0;  // fraction of the emissions at once for which it is worth to wait
};

// Why the start is as it is. One word each, as conditions and logs show it.
enum class ShiftReason {
  cleaner_later,     // it waits: a later start emits less
  now_is_best,       // no start within the deadline is expected to be better
  not_worth_it,      // one is, by less than least_saving
  deadline_short,    // there is no time to wait
  no_forecast,       // the safe default: start at once
  cleaner_elsewhere  // it starts at once, in another place than the first
};
std::string_view to_string(ShiftReason reason);  // "CleanerLater", …

struct StartChoice {
  std::size_t place = 0;  // index of the place; 0 where there is one only
  TimePoint start;
  double grams_per_kwh = 0;  // expected mean while it runs
  double grams = 0;          // that, times the energy in this place
};

struct ShiftDecision {
  ShiftReason reason = ShiftReason::no_forecast;
  std::string message;  // a sentence with the figures
  bool start_now = true;
  StartChoice chosen;
  std::optional<StartChoice> at_once;  // in the first place; nullopt: its intensity is not known
  double saved_grams = 0;              // expected, against at_once; 0 if that is not known
  // The other starts considered, best first, at most kAlternatives.
  std::vector<StartChoice> alternatives;
  static constexpr std::size_t kAlternatives = 5;
};

// Errors: invalid_argument (a length or energy that is not positive, a least_saving outside 0..1).
// A deadline that leaves no choice and a forecast that is missing are decisions, not errors.
// Starts considered: now and each whole hour after it, as far as the forecast reaches.
Result<ShiftDecision> choose_start(const Forecast& forecast, const ShiftableJob& job);

struct Place {
  std::string name;  // a zone or a site, for messages
  Forecast forecast;
  double energy_factor = 1;  // what the job uses there, relative to energy_kwh
  double move_grams = 0;     // what it costs to take its data there
};

// The best of all places and starts. The first place is where the job is: what is saved is counted
// against starting there at once, and it stays there at once when nothing is known. A place without
// a usable forecast is not considered.
// Errors: those of choose_start(); invalid_argument without any place.
Result<ShiftDecision> choose_place_and_start(const std::vector<Place>& places,
                                             const ShiftableJob& job);

}  // namespace kwatt::models::carbon
