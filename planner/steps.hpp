#pragma once
// The state machines of multi-step actions: one pure step at a time, resumable from the record
// alone.
//
// The executor's loop for one node: observe → next_step() → if the record changed, commit it to
// NodePower.status with resourceVersion (409: start over) → only then perform the effects → come
// back after `again_after` or when something changes. Effects are idempotent: after a crash the
// same step is computed again from the record and the observation, and repeats only what is not yet
// so.
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/plan.hpp"

namespace kwatt::planner {

// What the executor saw just now. `machine` is the driver's answer, nullopt if not asked or no
// answer; `bmc_error` its sentence. `evictions` are the results of the last EvictPods, by pod uid.
struct EvictionResult {
  std::string uid;
  enum class Outcome { accepted, blocked_by_budget, failed } outcome = Outcome::accepted;
  std::string message;
};
// The BMC's power limit in whole watts; 0: none, or for the range: it does not say.
struct SeenLimit {
  std::int64_t watts = 0, lowest = 0, highest = 0;
};
// Into the status, as what the BMC has in force and takes.
void take_in(const SeenLimit& seen, api::BmcStatus& bmc);
struct Observation {
  TimePoint now;
  const NodeView* node = nullptr;  // never null
  bool lease_renewed_since_start =
      false;  // the kubelet's Lease moved after operation.stepStartedAt
  std::optional<api::PowerState> machine;  // On Off PoweringOn PoweringOff, from the driver
  std::string bmc_error;
  std::vector<EvictionResult> evictions;
  bool reset_sent = false;  // the last ResetMachine of this step was accepted by the BMC
  // The BMC refused the last command for good (Retry would be refused as well): OutOfRange, or
  // BMCError for what it does not offer.
  std::optional<Reason> bmc_refusal;
  std::optional<SeenLimit> limit;  // from the driver, after ReadPowerLimit
};

// Side effects, all idempotent.
struct PatchNode {
  std::optional<bool> unschedulable;
  std::vector<api::Taint> add_taints;
  std::vector<std::string> remove_taints;  // by key
  api::StringMap set_annotations, set_labels;
  std::vector<std::string> remove_annotations, remove_labels;
  std::optional<bool> suspended_condition;  // Node condition Suspended
  bool empty() const;
};
struct EvictPods {
  std::vector<api::PodMove> pods;
};
struct ResetMachine {
  enum class Kind { on, graceful_shutdown, force_off } kind = Kind::on;
};
struct ReadMachine {};  // ask the driver for the state and come back
struct SetPowerLimit {
  std::int64_t watts = 0;  // 0: none
};
struct ReadPowerLimit {};
using Effect =
    std::variant<PatchNode, EvictPods, ResetMachine, ReadMachine, SetPowerLimit, ReadPowerLimit>;

// What the record becomes, what to do after it is committed, and when to look again.
struct Step {
  api::NodePowerStatus next;  // operation, memory, decision and powerState updated
  std::vector<Effect> effects;
  Duration again_after{1000};
  bool finished = false;  // the operation is over (next.operation is empty)
  bool failed = false;
  Reason reason = Reason::InProgress;
  std::string message;  // for event and log when something was reached or went wrong
};

// Starts the operation of an admitted action: the record to commit first. `id` is unique (uuid).
api::NodePowerStatus begin(const NodeView& node, const Action& action,
                           const std::string& policy_name, const api::EnergyPolicySpec& spec,
                           const std::string& id, TimePoint now);

// The next step of the operation in `status` (which must have one).
Step next_step(const api::NodePowerStatus& status, const Observation& observation,
               const api::EnergyPolicySpec& spec);

}  // namespace kwatt::planner
