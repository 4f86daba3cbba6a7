#pragma once
// What operations ask of a machine's BMC, and what came of it. A BMC that does not do as it is told
// is no error of the caller: its sentence goes into the answers, for the next step to judge.
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "planner/steps.hpp"
#include "reconcilers/drivers.hpp"
#include "reconcilers/effects.hpp"

namespace kwatt::reconcilers {

struct BmcAnswers {
  std::optional<api::PowerState> machine;
  std::optional<planner::SeenLimit> limit;
  std::string error;                       // what went wrong last
  std::optional<planner::Reason> refusal;  // … if trying again would not change it
  bool reset_sent = false;
};

// Single-threaded, on the controller's strand; all references outlive it.
class BmcCalls {
 public:
  BmcCalls(kube::Client& client, Drivers& drivers, Metrics& metrics, Fence fence);

  // Errors are not the BMC's: cancelled (not the leader any more), unavailable (a machine that runs
  // pods is not switched off), and those of the API server.
  kube::Task<Result<void>> reset(planner::ResetMachine change,
                                 std::shared_ptr<const api::NodePower> machine,
                                 BmcAnswers& answers);
  kube::Task<void> set_limit(planner::SetPowerLimit limit,
                             std::shared_ptr<const api::NodePower> machine, BmcAnswers& answers);
  kube::Task<void> read_limit(std::shared_ptr<const api::NodePower> machine, BmcAnswers& answers);
  kube::Task<void> read_state(std::shared_ptr<const api::NodePower> machine, BmcAnswers& answers);

 private:
  // nullptr: there is none, and the answers say why.
  kube::Task<std::shared_ptr<hardware::PowerDriver>> driver_of(
      std::shared_ptr<const api::NodePower> machine, BmcAnswers& answers);
  void failed(const std::string& node, const Error& error, BmcAnswers& answers);
  // The log line ("reset=On", "limit=324 W") and the metric of a command.
  void note(const api::NodePower& machine, const std::string& command, const std::string& value,
            const Result<void>& done);

  kube::Client& client_;
  Drivers& drivers_;
  Metrics& metrics_;
  Fence fence_;
};

// In whole watts, rounded against us: a cap that is in force by a hair is not.
planner::SeenLimit seen_of(const hardware::PowerLimit& limit);

}  // namespace kwatt::reconcilers
