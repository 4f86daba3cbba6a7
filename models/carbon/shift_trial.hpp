#pragma once
// What shifting would have saved in the past, against starting at once and against an oracle that
// knows the future. Each decision sees only hours that had ended when it was taken.
#include <string>
#include <vector>

#include "models/carbon/shift.hpp"

namespace kwatt::models::carbon {

struct ShiftTrial {
  std::string learner{kDefaultLearner};
  Duration length = std::chrono::hours{4};     // of each job
  Duration deadline = std::chrono::hours{24};  // from its arrival to its end
  bool decide_again = true;  // every hour while a job waits; false: once, when it arrives
  // Jobs arrive at each whole hour of [from, to) that leaves room for the deadline in the series.
  TimePoint from, to;
};

struct ShiftScore {
  std::size_t jobs = 0;
  // Mean grams per kWh over the jobs.
  double at_once = 0, chosen = 0, oracle = 0;
  double mean_wait_hours = 0;
  double saving() const { return at_once > 0 ? 1 - chosen / at_once : 0; }
  double oracle_saving() const { return at_once > 0 ? 1 - oracle / at_once : 0; }
  // Of what the oracle saves; 1 if there is nothing to save.
  double ratio() const { return oracle_saving() > 0 ? saving() / oracle_saving() : 1; }
};

// What was chosen for one job, for checks that the future changes nothing.
struct ShiftedJob {
  TimePoint arrival, start;
  bool operator==(const ShiftedJob&) const = default;
};

// Errors: invalid_argument (no such learner, a length or deadline that is no whole number of hours,
// a series with gaps in the time of the trial, no job at all).
Result<ShiftScore> try_shifting(const IntensitySeries& series, const ShiftTrial& trial,
                                std::vector<ShiftedJob>* jobs = nullptr);

}  // namespace kwatt::models::carbon
