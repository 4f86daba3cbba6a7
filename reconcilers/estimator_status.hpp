#pragma once
// From what an Estimator's refresh came to, to its status. Pure.
#include <string>
#include <vector>

#include "api/estimator.hpp"
#include "placement/estimator_nodes.hpp"

namespace kwatt::reconcilers {

// One machine after a refresh.
struct EstimatorOutcome {
  placement::EstimatorNode node;  // without points where nothing can be placed
  std::string reason, message;    // why not
  bool predictor_failed = false;  // it was asked, and did not answer; older points may still count
  std::string predictor_error;
};

struct EstimatorResult {
  std::vector<std::string>
      problems;                // of validate(), endpoints, a namesake; not empty: not accepted
  std::string problem_reason;  // Invalid, EndpointNotAllowed or Conflict
  std::vector<EstimatorOutcome> nodes;  // sorted by name
};

// The complete next status, starting from what stands now (transition times).
api::EstimatorStatus estimator_status(const api::Estimator& estimator,
                                      const EstimatorResult& result, TimePoint now);

// True when `next` is worth a write: conditions, counts or reasons changed, or anything else did
// and the last write is older than `refresh`.
bool worth_writing(const api::EstimatorStatus& written, const api::EstimatorStatus& next,
                   Duration refresh);

}  // namespace kwatt::reconcilers
