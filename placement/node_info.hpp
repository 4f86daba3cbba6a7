#pragma once
// What a placement of pods sees: plain values. A NodeInfo is built once per snapshot of the caches
// and shared by all requests until the next one; a PodInfo is built per request.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/core.hpp"
#include "base/units.hpp"
#include "models/power_curve.hpp"
#include "placement/framework.hpp"
#include "placement/node_face.hpp"

namespace kwatt::placement {

// Where a node's load comes from: its agent, Prometheus or metrics-server; or what its pods
// request.
enum class LoadSource { requested, measured };

// Room that a plan keeps on this node for a pod that moves here. Its amounts are part of
// NodeInfo::requested until the replacement is bound.
struct Reservation {
  std::string namespace_name;
  std::string owner_uid;  // the controlling owner of the pod that left, whose replacement comes
  std::string pod_uid;    // of the pod that left
  api::Resources need;
};

// A predictor's answers for this node, as its cache has them: watts of the whole machine with so
// many millicores more than now. Sorted by millicores, the first entry being 0.
struct PredictedWatts {
  std::vector<std::pair<Millicores, Milliwatts>> at_extra;
  std::string predictor;  // as it should be named in an explanation
  // Linear between the entries; nullopt beyond the last one, or without entries.
  std::optional<Milliwatts> at(Millicores extra) const;
};

// Temperatures and how high they may be. What is not known is not judged.
struct NodeThermal {
  std::optional<Millicelsius> ambient, cpu;
  std::optional<Millicelsius> ambient_limit, cpu_limit;
};

// What several plugins look at of every node comes first, in two lines of the cache: thousands of
// nodes are gone through several times for one pod.
struct alignas(64) NodeInfo {
  std::string name;
  bool awake = true;       // false: off or on its way; it must be woken first
  bool leaving = false;    // drained, powered off or held off: it takes no pods
  bool slow = false;       // kwatt.dev/frequency=low
  bool capped = false;     // kwatt.dev/capped=true
  bool idle_pool = false;  // kept as the last resort: kwatt.dev/pool=idle, or a candidate to go off
  std::vector<Reservation> reserved;
  NodeThermal thermal;

  api::Resources allocatable;
  api::Resources requested;  // by the pods that count here, reservations among them; pods: how many
  models::PowerModel model;  // whole curve with boot cost
  Millicores cores;          // what 100 % of the curve's load is; 0: allocatable.cpu
  Permille load;             // now; pods that were placed after it was measured are in it too
  LoadSource load_source = LoadSource::requested;
  std::shared_ptr<const PredictedWatts> predicted;  // null: the curve answers

  std::optional<std::int64_t> grams_per_kwh;  // CO2 of the node's electricity
  std::optional<std::int64_t> ops_per_joule;  // at full load, as its owner measured it

  std::shared_ptr<const api::Node> node;  // never null
  // Taints and cordon as they count; of a node that is not awake, as they will be once it is.
  // Points into `node`.
  NodeFace face;

  Millicores full_load() const { return cores.count() > 0 ? cores : allocatable.cpu; }
};
inline std::string_view name_of(const NodeInfo& node) {
  return node.name;
}

struct PodInfo {
  std::shared_ptr<const api::PodTemplate> spec;  // never null
  std::string namespace_name, name, uid;         // name and uid may be empty
  std::string owner_uid;                         // of the controlling owner; "": a bare pod
  Millicores expected;  // what it will use; its request if nothing better is known
};
// With its CPU request as the expected use.
PodInfo pod_info_of(const api::Pod& pod);

// The pod's replacement is what one of the node's reservations waits for: the same namespace and
// owner.
const Reservation* reservation_for(const PodInfo& pod, const NodeInfo& node);

using NodePlugin = Plugin<PodInfo, NodeInfo>;
using NodeFramework = Framework<PodInfo, NodeInfo>;
using NodeTargets = Targets<NodeInfo>;

}  // namespace kwatt::placement
