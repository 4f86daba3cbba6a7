#include "reconcilers/estimator_status.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/energy_policy.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr std::size_t kLongestMessage = 1'024;

api::EstimatedNode status_of(const EstimatorOutcome& outcome) {
  api::EstimatedNode out;
  out.node_name = outcome.node.name;
  out.free_millicores = outcome.node.free.count();
  out.free_pods = outcome.node.free_pods;
  out.reason = outcome.reason;
  out.message = outcome.message.substr(0, kLongestMessage);
  if (outcome.node.draw.empty()) return out;
  out.milliwatts = outcome.node.draw.front().draw.count();
  const auto all = placement::increases_of(outcome.node, outcome.node.free, 1);
  out.full_milliwatts =
      out.milliwatts + (all.empty() ? 0 : static_cast<std::int64_t>(all[0]) / 1000);
  return out;
}

bool usable(const EstimatorOutcome& outcome) {
  return outcome.reason.empty();
}

void put(api::EstimatorStatus& status, const api::Estimator& estimator, const char* type, bool good,
         std::string reason, std::string message, TimePoint now) {
  api::Condition condition;
  condition.type = type;
  condition.status = good ? "True" : "False";
  condition.reason = std::move(reason);
  condition.message = std::move(message);
  condition.observed_generation = estimator.meta.generation;
  api::set_condition(status.conditions, std::move(condition), now);
}

}  // namespace

api::EstimatorStatus estimator_status(const api::Estimator& estimator,
                                      const EstimatorResult& result, TimePoint now) {
  api::EstimatorStatus status;
  status.conditions = estimator.status.conditions;
  status.observed_generation = estimator.meta.generation;
  status.refreshed_at = now;
  status.nodes_total = static_cast<std::int64_t>(result.nodes.size());
  std::int64_t milliwatts = 0, failed = 0;
  const EstimatorOutcome* first_failed = nullptr;
  for (const EstimatorOutcome& outcome : result.nodes) {
    if (outcome.predictor_failed && failed++ == 0) first_failed = &outcome;
    if (!usable(outcome)) continue;
    ++status.nodes_usable;
    milliwatts += outcome.node.draw.front().draw.count();
  }
  status.watts = (milliwatts + 500) / 1000;
  for (const bool wanted : {false, true}) {
    for (const EstimatorOutcome& outcome : result.nodes) {
      if (status.nodes.size() == api::kStatusListLimit) break;
      if (usable(outcome) == wanted) status.nodes.push_back(status_of(outcome));
    }
  }

  const bool accepted = result.problems.empty();
  put(status, estimator, "Accepted", accepted, accepted ? "Valid" : result.problem_reason,
      accepted ? "the spec is understood and its endpoints are allowed"
               : fmt::format("{}", fmt::join(result.problems, "; ")).substr(0, kLongestMessage),
      now);
  if (failed > 0) {
    put(status, estimator, "PredictorsAvailable", false, "PredictorFailed",
        fmt::format("{} of {} nodes without a new prediction, for example {}: {}", failed,
                    result.nodes.size(), first_failed->node.name, first_failed->predictor_error)
            .substr(0, kLongestMessage),
        now);
  } else {
    put(status, estimator, "PredictorsAvailable", true, "Answering", "every predictor answers",
        now);
  }
  if (status.nodes_usable > 0) {
    put(status, estimator, "Ready", true, "Estimating",
        fmt::format("{} of {} nodes can take workloads", status.nodes_usable, status.nodes_total),
        now);
  } else if (!accepted) {
    put(status, estimator, "Ready", false, "NotAccepted", "see the condition Accepted", now);
  } else {
    put(status, estimator, "Ready", false, status.nodes_total == 0 ? "NoNodes" : "NoUsableNodes",
        status.nodes.empty() ? "the cluster has no nodes"
                             : fmt::format("no node can take workloads, for example {}: {}",
                                           status.nodes[0].node_name, status.nodes[0].message),
        now);
  }
  return status;
}

bool worth_writing(const api::EstimatorStatus& written, const api::EstimatorStatus& next,
                   Duration refresh) {
  const auto told = [](const api::EstimatorStatus& status) {
    std::vector<std::string> out;
    for (const auto& node : status.nodes) out.push_back(node.node_name + " " + node.reason);
    return out;
  };
  if (written.observed_generation != next.observed_generation ||
      written.conditions != next.conditions || written.nodes_total != next.nodes_total ||
      written.nodes_usable != next.nodes_usable || told(written) != told(next)) {
    return true;
  }
  if (written.nodes == next.nodes && written.watts == next.watts) return false;
  return !written.refreshed_at || *next.refreshed_at - *written.refreshed_at >= refresh;
}

}  // namespace kwatt::reconcilers
