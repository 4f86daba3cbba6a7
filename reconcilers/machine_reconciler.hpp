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
#include "reconcilers/bmc_calls.hpp"
#include "reconcilers/bmc_meter.hpp"
#include "reconcilers/cluster_view.hpp"

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
    BmcAnswers bmc;
    std::vector<planner::EvictionResult> evictions;
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
  BmcCalls calls_;
  BmcMeter meter_;
  kube::EventRecorder& events_;
  Metrics& metrics_;
  Fence fence_;
  MachineEvents callbacks_;
  std::map<std::string, Intent> intents_;
  std::map<std::string, Scratch> scratch_;
  std::map<std::string, MonotonicPoint> last_poll_;   // of machines without an operation
  std::map<std::string, MonotonicPoint> last_shown_;  // when another power was written
};

}  // namespace kwatt::reconcilers
