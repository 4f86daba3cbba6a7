#pragma once
// One machine at a time: the only writer of NodePower.status (but for the agent's report) and the
// executor of operations. Level-triggered: called again whenever anything about the node changes.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "kube/controller_loop.hpp"
#include "kube/events.hpp"
#include "planner/steps.hpp"
#include "reconcilers/cluster_view.hpp"
#include "reconcilers/drivers.hpp"

namespace kwatt::reconcilers {

// What a pass wants of one node. Replaced by the next pass, so only the newest counts.
struct Intent {
  std::string policy;
  std::shared_ptr<const api::EnergyPolicySpec> spec;
  api::NodeDecision decision;             // `since` is filled in here
  std::optional<planner::Action> action;  // admitted, to be committed and begun
  std::optional<api::NodeMemory> memory;  // next memory …
  api::NodeMemory memory_before;          // … if it still is this one
};

// May a destructive call start now? Asked right before each: leading, and far enough from the end
// of the lease (design: fencing).
using Fence = std::function<bool()>;

// What became of an operation, in the words of logs and events.
struct OperationEvent {
  std::string kind;   // "PowerOff" …
  std::string phase;  // "begun" "ended" "failed"
  std::string reason, message;
};

// How the reconciler tells others what was reached: status line, migration tracker, a new pass,
// history.
struct MachineEvents {
  std::function<void(const std::string& policy, const std::string& sentence)> action_done;
  std::function<void(const std::string& node, const api::Operation& operation)> evicted;
  std::function<void()> pass_wanted;
  // The node's written decision became another one.
  std::function<void(const std::string& node, const api::NodeDecision& decision)> decided;
  std::function<void(const std::string& node, const api::Operation& operation,
                     const OperationEvent& event)>
      operation;
};

// Readings of machines' BMCs: how often each is asked, and how many at the same time (a slow BMC
// may keep a worker for minutes; the others go on).
struct MeterOptions {
  Duration interval = std::chrono::seconds{30};
  std::size_t at_once = 8;
};

class MachineReconciler {
 public:
  // BMCs' readings go to `samples`.
  MachineReconciler(kube::Client& client, ClusterView& view, Drivers& drivers,
                    telemetry::SampleStore& samples, MeterOptions meter_options,
                    kube::EventRecorder& events, Metrics& metrics, Fence fence,
                    MachineEvents callbacks);

  // From a pass; the caller puts the node into the work queue afterwards.
  void submit(const std::string& node, Intent intent);
  // True while an admitted action has not been committed (or dropped): no new pass then.
  bool commits_pending() const;

  kube::Task<Result<kube::ReconcileResult>> reconcile(std::string node);

 private:
  // What the last effects of a node's operation brought, fed into the next step.
  struct Scratch {
    std::string operation_id, step;
    std::optional<api::PowerState> machine;
    std::string bmc_error;
    std::vector<planner::EvictionResult> evictions;
    std::optional<planner::Reason> bmc_refusal;
    std::optional<planner::SeenLimit> limit;
    bool reset_sent = false;
    std::string lease_at_step;  // renewTime of the kubelet's Lease when the step began
    // Forgets what belongs to an earlier operation or step.
    void follow(const api::Operation& operation);
  };

  kube::Task<Result<kube::ReconcileResult>> reconcile_known(
      std::shared_ptr<const api::NodePower> machine, std::unique_ptr<planner::NodeView> node);
  kube::Task<Result<void>> create(std::string node);
  // Takes the notes of wakes that are over from a node that sent magic packets for others.
  kube::Task<Result<void>> tidy_relay(const planner::NodeView& relay);
  // Writes the status with the version it was read from; the result carries the new version.
  kube::Task<Result<std::shared_ptr<const api::NodePower>>> write(
      std::shared_ptr<const api::NodePower> machine, api::NodePowerStatus status);
  // The status after the pending intent; takes the intent.
  api::NodePowerStatus merged(const api::NodePower& machine, const planner::NodeView& node);
  kube::Task<Result<kube::ReconcileResult>> operate(std::shared_ptr<const api::NodePower> machine,
                                                    planner::NodeView node);
  kube::Task<Result<kube::ReconcileResult>> observe(std::shared_ptr<const api::NodePower> machine,
                                                    const planner::NodeView& node);
  kube::Task<Result<void>> perform(planner::Effect effect, api::Operation operation,
                                   std::shared_ptr<const api::NodePower> machine, Scratch& scratch);
  kube::Task<Result<void>> reset(planner::ResetMachine reset, api::Operation operation,
                                 std::shared_ptr<const api::NodePower> machine, Scratch& scratch);
  kube::Task<void> set_limit(planner::SetPowerLimit limit,
                             std::shared_ptr<const api::NodePower> machine, Scratch& scratch);
  kube::Task<void> read_limit(std::shared_ptr<const api::NodePower> machine, Scratch& scratch);
  // Asks the BMC what the machine draws and how it is limited, if that is due. True: there is a new
  // reading.
  kube::Task<bool> read_meter(std::shared_ptr<const api::NodePower> machine,
                              const planner::NodeView& node, api::NodePowerStatus& status);
  // False: the reading cannot be true, or is not new.
  bool keep_reading(const planner::NodeView& node, Milliwatts power);
  void failed(const std::string& node, const Error& error, Scratch& scratch);
  kube::Task<void> read_machine(std::shared_ptr<const api::NodePower> machine, Scratch& scratch);
  kube::Task<std::string> lease_renewed(std::string node);
  kube::Task<void> answer_wake_test(std::shared_ptr<const api::NodePower> machine);
  // Records an event about the Node. Its uid is its name there, as the kubelet's own events have
  // it.
  void tell(const api::NodePower& machine, bool warning, std::string reason,
            api::OperationKind kind, std::string note);
  void announce(const api::NodePower& machine, const api::Operation& operation,
                const planner::Step& step);
  std::shared_ptr<const api::EnergyPolicySpec> spec_of(const std::string& policy) const;

  kube::Client& client_;
  ClusterView& view_;
  Drivers& drivers_;
  telemetry::SampleStore& samples_;
  MeterOptions meter_options_;
  kube::EventRecorder& events_;
  Metrics& metrics_;
  Fence fence_;
  MachineEvents callbacks_;
  std::map<std::string, Intent> intents_;
  std::map<std::string, Scratch> scratch_;
  // When a BMC is asked for its reading and its limit again, and how often it failed in a row.
  struct MeterDue {
    MonotonicPoint reading{}, limit{};
    int failures = 0;
  };
  std::map<std::string, MeterDue> meter_due_;
  std::size_t reading_ = 0;                           // BMCs being read now
  std::map<std::string, MonotonicPoint> last_poll_;   // of machines without an operation
  std::map<std::string, MonotonicPoint> last_shown_;  // when another power was written
};

}  // namespace kwatt::reconcilers
