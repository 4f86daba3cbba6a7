#pragma once
// The API objects that the planner sees of a simulated cluster. Internal to simulator/planned.cpp.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/snapshot.hpp"
#include "planner/steps.hpp"
#include "simulator/simulation.hpp"

namespace kwatt::simulator {

inline constexpr const char* kGpuResource = "kwatt.dev/gpu-milli";

// One simulated machine as its Node and NodePower, and what its BMC and agent have said.
struct PlannedNode {
  MachineId id = 0;
  api::Node node;
  api::NodePower machine;
  std::vector<planner::TelemetrySample> samples;
  std::string zone;
  models::PowerModel model;
  bool ready = true;
  std::int64_t boots = 0;  // so many times it has come up; part of the boot id
  // Of the operation under way.
  std::optional<api::PowerState> read;
  std::optional<planner::SeenLimit> limit;
  std::vector<planner::EvictionResult> evictions;
  bool reset_sent = false, lease_renewed = false;
  TimePoint look_at = TimePoint::max();

  // What was built of them for the last snapshot; null: changed since.
  std::shared_ptr<const api::Node> shown_node;
  std::shared_ptr<const api::NodePower> shown_machine;
};

// `policy` is the one that has switched it off, if it is off.
PlannedNode make_node(const Simulation& simulation, MachineId id, const std::string& policy);
api::PowerState power_state(MachineState state);
void apply(api::Node& node, const planner::PatchNode& patch, TimePoint now);
// The settings of a node that an agent would apply: 0 is none.
struct AppliedSettings {
  std::int64_t mhz = 0, cap_watts = 0;
};
AppliedSettings settings_of(const api::Node& node, const MachineSpec& machine);

// Pods of the work that is here, made once and again when something about it changes.
class PodBook {
 public:
  using Pods = std::vector<std::shared_ptr<const api::Pod>>;
  // One per task. `node`: names by machine; empty: not placed.
  const Pods& pods_of(const Simulation& simulation, WorkId id);
  // The work a pod stands for; nullopt: it is gone.
  std::optional<WorkId> work_of(const Simulation& simulation, const std::string& uid) const;
  // Forgets work that is gone; call now and then.
  void tidy(const Simulation& simulation);

 private:
  struct Entry {
    std::uint64_t serial = 0;
    Simulation::Work::Phase phase = Simulation::Work::Phase::gone;
    std::int64_t queued_ms = 0;
    MachineId machine = 0;
    Pods pods;
  };
  std::shared_ptr<const api::PodTemplate> template_of(const Amount& need);
  Pods make(const Simulation& simulation, WorkId id);

  std::unordered_map<WorkId, Entry> entries_;
  std::unordered_map<std::string, WorkId> by_uid_;
  std::map<std::array<std::int64_t, 3>, std::shared_ptr<const api::PodTemplate>> templates_;
};

}  // namespace kwatt::simulator
