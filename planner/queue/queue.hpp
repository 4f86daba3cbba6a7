#pragma once
// The job queue's decision: which gated jobs start now, on which nodes, and why the others wait.
// The strategy, the cluster and the forecasts are those of placement/strategies, so the same call
// serves the live queue and the simulator. Pure.
//
// In the order of precedence a job starts because
//   Begun      members of it were released before (a gang is never left half started),
//   Asked      somebody wants everything released (POST /dispatch),
//   MaxDelay   it has waited for as long as it may: whatever room there is, the scheduler's own
//              queue has it from now on,
//   Chosen     the strategy chose it: there is room, and no cleaner start within its time.
// A gang that is not all there yet waits, but not beyond its latest start.
#include <string>
#include <vector>

#include "placement/strategies/strategy.hpp"

namespace kwatt::planner::queue {

namespace strategies = placement::strategies;

struct QueuedJob {
  std::string name;           // for sentences
  strategies::Job job;        // members: those to be released; id is not looked at
  std::uint32_t missing = 0;  // members of its gang that are not there yet
  bool begun = false;         // others of its gang were released before
};

// Values stable: they are written to annotations, events, history and CSV.
enum class Why : std::uint8_t {
  // starts
  chosen,
  max_delay,
  begun,
  asked,
  // waits
  no_fit,
  never_fits,
  gang_incomplete,
  members_missing,
  waits_for_carbon,
  behind_others,
  // waits whatever the strategy says; see gate.hpp
  malformed,
  no_policy,
  suspended,
  recommend_only,
};
std::string_view to_string(Why why);  // "Chosen" "MaxDelay" … "WaitsForCarbon" "BehindOthers"

struct Verdict {
  bool starts = false;
  Why why = Why::no_fit;
  std::string sentence;  // without the job's name
  // starts: the node of each member, as the strategy chose; empty: none was chosen.
  std::vector<strategies::NodeIndex> nodes;
  // waits: when to look again even if nothing changes: the start that is meant, or the end of its
  // delay. max(): no such time.
  TimePoint look_again = TimePoint::max();
  // Of the zone where it starts, or would start first; negative: not known.
  double grams_per_kwh = -1;
};

struct Question {
  TimePoint now{};
  std::span<const strategies::CarbonForecast> forecasts;  // by zone number
  bool release_all = false;
};

// One verdict for each job, in their order; `jobs` in the order of arrival. Starts in `cluster`
// what is assigned. `strategy` is asked once; it holds back for carbon itself, see carbon_hold().
std::vector<Verdict> decide(const std::vector<QueuedJob>& jobs, const Question& question,
                            strategies::Strategy& strategy, strategies::Cluster& cluster);

}  // namespace kwatt::planner::queue
