#pragma once
// What the planner knows: one immutable value, built by reconcilers/ (live) or simulator/ (traces).
// It points into the stores only through shared_ptr<const T>, and never changes after it is built.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/core.hpp"
#include "api/energy_policy.hpp"
#include "api/node_power.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "models/learned_power.hpp"
#include "models/power_curve.hpp"
#include "models/power_fit.hpp"

namespace kwatt::planner {

using NodeName = std::string;

// One reading of a machine. `utilization` is frequency-invariant (busy fraction × average frequency
// ÷ maximum frequency); `busy` is the plain busy fraction. `power` is measured watts, or zero with
// has_power false where the machine has no meter. Both may come from different sources.
struct TelemetrySample {
  TimePoint at;
  Permille utilization, busy;
  Milliwatts power;
  bool has_power = false;
  bool has_utilization = true;
  bool from_agent = true;  // the node's agent spoke at `at`; false: others about it, on or off
};

// Two of the words of telemetry::Source.
inline constexpr std::string_view kAgentMeter = "agent", kBmcMeter = "bmc";

// What the newest sample does not say of itself: of the newest utilization and the newest power,
// where they come from and how long they may be believed, which is three of their source's own
// periods. nullopt: three times the distance of the samples.
struct Newest {
  std::optional<TimePoint> utilization_until, power_until;
  std::optional<TimePoint> power_at;  // when it was measured; nullopt: at its sample's time
  std::string_view meter = {};        // who measured the power, a static word; "": the agent
  bool whole_machine = true;          // false: CPU packages only
};

// How far the caches behind the snapshot can be trusted.
struct SyncState {
  bool synced = false;  // every store has completed a consistent list and seen our own last writes
  Duration age{0};      // of the oldest cache
};

struct NodeView {
  std::shared_ptr<const api::Node> node;              // never null
  std::shared_ptr<const api::NodePower> machine;      // null: no NodePower object yet
  std::vector<std::shared_ptr<const api::Pod>> pods;  // bound here, sorted by key(), all phases
  std::vector<TelemetrySample> samples;  // sorted by time, newest last, at most 15 minutes
  Newest newest;                         // of the samples
  models::PowerModel model;              // whole curve with boot and shutdown cost
  // What its meter taught, while that is silent; null: nothing.
  std::shared_ptr<const models::PowerFit> fit;
  // What its meter taught about more than the load; null: too little. Also while it is measured.
  std::shared_ptr<const models::LearnedPower> learned;
  std::string zone;              // topology.kubernetes.io/zone, "" if unlabelled
  bool ready = false;            // condition Ready is True
  bool control_plane = false;    // role label or taint
  bool own_node = false;         // this controller's own pod runs here
  bool has_driver = false;       // spec.bmc.address is set, understood and allowed
  std::string driver_problem;    // why not, in a sentence; "": there is no address
  bool can_go_off = true;        // false: its driver can only wake it (wake-on-LAN)
  bool volume_attached = false;  // a VolumeAttachment names it
  std::string maintenance;       // who holds a node maintenance lease on it, "" nobody
  std::string health_check;      // a NodeHealthCheck that would remediate it, "" none

  const NodeName& name() const { return node->meta.name; }
  // The machine's recorded state; a node without NodePower is what its Ready condition says.
  api::PowerState power_state() const;
  const api::Operation& operation() const;  // an empty one if there is none
  const api::NodeMemory& memory() const;
};

struct Snapshot {
  TimePoint now;
  std::uint64_t seq = 0;  // grows with each build
  SyncState sync;
  std::map<NodeName, NodeView> nodes;                    // sorted: deterministic
  std::vector<std::shared_ptr<const api::Pod>> unbound;  // pods without a node, sorted by key()
  std::vector<std::shared_ptr<const api::PodDisruptionBudget>> budgets;
  std::map<std::string, std::shared_ptr<const api::PersistentVolumeClaim>> claims;  // "ns/name"
  std::map<std::string, std::shared_ptr<const api::PersistentVolume>> volumes;
  std::map<std::string, std::int64_t> replicas;  // wanted replicas by owner uid, where known
};

}  // namespace kwatt::planner
