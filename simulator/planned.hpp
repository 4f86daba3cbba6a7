#pragma once
// The controller, simulated: an EnergyPolicy drives the machines of a Simulation through the very
// code that drives those of a cluster. Each pass builds a planner::Snapshot of the simulated state,
// planner::plan() decides, admit() checks again, and the step machines of planner/steps.hpp carry
// the actions out, with the simulated machines as their BMC and agents.
//
// What is played here, and how: a node is Ready while its machine is on; an agent applies settings
// at once; the pods of a job have the owner kind Job, those of a service ReplicaSet; an evicted
// pod's replacement goes to the reserved node if there is room when it comes. A GPU is a thousand
// of the extended resource kwatt.dev/gpu-milli.
#include <functional>
#include <memory>
#include <string>

#include "planner/plan.hpp"
#include "simulator/simulation.hpp"

namespace kwatt::simulator {

// An action that was begun.
struct Acted {
  TimePoint at;
  const planner::Action& action;
};
using OnActed = std::function<void(const Acted&)>;

// For simulation.set_controller(). `spec` must be valid; its mode is taken as Enforce. Errors:
// invalid_argument: the policy selects none of the machines (their labels are
// kubernetes.io/hostname and topology.kubernetes.io/zone).
Result<std::unique_ptr<Controller>> make_planned(const Simulation& simulation,
                                                 const std::string& policy_name,
                                                 const api::EnergyPolicySpec& spec,
                                                 OnActed on_acted = {});

}  // namespace kwatt::simulator
