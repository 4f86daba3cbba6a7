#pragma once
// The pass over all policies: snapshot → assign → plan → admit → intents for the machines → status.
// Runs on the leader only, never two at once.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "kube/events.hpp"
#include "planner/plan.hpp"
#include "reconcilers/cluster_view.hpp"
#include "reconcilers/energy_meter.hpp"
#include "reconcilers/machine_reconciler.hpp"
#include "reconcilers/migrations.hpp"
#include "reconcilers/policy_status.hpp"

namespace kwatt::reconcilers {

inline constexpr const char* kFinalizer = "kwatt.dev/release";

// What the pure half of a pass computes, off the controller's thread.
struct PassResult {
  struct PerPolicy {
    std::shared_ptr<const api::EnergyPolicy> policy;
    std::vector<std::string> problems;
    std::vector<planner::NodeName> selected;
    std::vector<planner::Assignment::Loss> lost;
    planner::Plan plan;
    std::vector<planner::Action> release;  // what must be given back
    bool holds_anything = false;  // something of this policy is still on a node or in flight
    Duration took{0};
  };
  std::vector<PerPolicy> policies;  // in order of precedence
};

// Pure: decisions of all policies from one snapshot.
PassResult decide(const planner::Snapshot& snapshot,
                  std::vector<std::shared_ptr<const api::EnergyPolicy>> policies);

struct PassOptions {
  std::int64_t carbon_grams_per_kwh = 0;  // constant intensity of the supply; 0: not known
  // What is wrong with telemetry sources right now, for the condition TelemetryAvailable.
  std::function<std::vector<std::string>()> telemetry_problems = [] {
    return std::vector<std::string>();
  };
  // Whether the carbon data of these zones can be relied on, for the condition
  // CarbonDataAvailable; asked for policies with a carbon source. No function: not known.
  std::function<telemetry::CarbonState(const api::CarbonSpec& carbon,
                                       const std::vector<std::string>& zones)>
      carbon_state = {};
};

class PolicyPass {
 public:
  // `planning` runs decide(); `enqueue` puts a node into the machines' work queue.
  PolicyPass(boost::asio::thread_pool& planning, kube::Client& client, ClusterView& view,
             MachineReconciler& machines, Migrations& migrations, kube::EventRecorder& events,
             Metrics& metrics, Fence fence, std::function<void(const std::string& node)> enqueue,
             PassOptions options);

  // One pass. Returns when the next one is due at the latest.
  kube::Task<Duration> run_once();

  // The newest thing done under a policy, for its status.
  void action_done(const std::string& policy, const std::string& sentence);
  // Energy of the selected nodes since the last call.
  std::vector<NodeEnergy> take_energy() { return meter_.take(); }

 private:
  using PerPolicy = PassResult::PerPolicy;
  kube::Task<void> visit(PerPolicy& result, planner::Snapshot& fresh);
  void act(PerPolicy& result, const std::vector<planner::Action>& actions,
           planner::Snapshot& fresh);
  void record_verdicts(const PerPolicy& result, const planner::Snapshot& fresh, bool enforcing);
  // Nodes that no policy has say so, too: nobody is to wonder why nothing happens there.
  void record_unselected(const PassResult& result, const planner::Snapshot& fresh);
  void warn_of_overrides(const PerPolicy& result, const planner::Snapshot& fresh);
  void tell_halted(const api::EnergyPolicy& policy, const api::EnergyPolicyStatus& next);
  void submit(const std::string& node, Intent intent);
  kube::Task<void> write_status(PerPolicy& result, const planner::Snapshot& snapshot,
                                bool enforcing);
  void measure(const PassResult& result, const planner::Snapshot& snapshot, Duration took);

  boost::asio::thread_pool& planning_;
  kube::Client& client_;
  ClusterView& view_;
  MachineReconciler& machines_;
  Migrations& migrations_;
  kube::EventRecorder& events_;
  Metrics& metrics_;
  Fence fence_;
  std::function<void(const std::string&)> enqueue_;
  PassOptions options_;
  std::map<std::string, std::string> last_actions_;      // by policy
  std::map<std::string, std::string> warned_overrides_;  // by node: the value an event told of
  std::map<std::string, EnergyAccount> accounts_;        // by uid of the policy, of its last pass
  EnergyMeter meter_;
  WriteOverlay<api::EnergyPolicy> policy_writes_;
};

}  // namespace kwatt::reconcilers
