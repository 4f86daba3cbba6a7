#pragma once
// Pods behind the scheduling gate kwatt.dev/queue, as the jobs they make together. Pure.
//
// A pod is in the queue that its label (or annotation) kwatt.dev/queue names: an EnergyPolicy. Pods
// with kwatt.dev/gang-size start together: those of one namespace with the same kwatt.dev/gang, or,
// without that, of the same controlling owner (a Job). All else is one job for each pod.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/queue/queue.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::planner::queue {

namespace names {
inline constexpr std::string_view kQueue = "kwatt.dev/queue";  // the gate's name as well
inline constexpr std::string_view kGang = "kwatt.dev/gang";
inline constexpr std::string_view kGangSize = "kwatt.dev/gang-size";
// How long it will run, a duration; without it an hour is assumed.
inline constexpr std::string_view kExpected = "kwatt.dev/expected-duration";
inline constexpr std::string_view kDeadline = "kwatt.dev/deadline";   // to be done by, RFC 3339
inline constexpr std::string_view kMaxDelay = "kwatt.dev/max-delay";  // less than the policy's
// Ours: the node that the strategy chose, and why the pod waits or started.
inline constexpr std::string_view kAssignedNode = "kwatt.dev/assigned-node";
inline constexpr std::string_view kDecision = "kwatt.dev/queue-decision";
}  // namespace names

inline constexpr Duration kExpectedWithoutWord = std::chrono::hours{1};
inline constexpr std::uint32_t kLargestGang = 10'000;

struct GatedJob {
  std::string queue;                                  // the policy's name
  std::string namespace_name, name;                   // of the pod, or of the gang
  std::vector<std::shared_ptr<const api::Pod>> pods;  // behind the gate, sorted by key(); not empty
  QueuedJob job;          // its times without a policy: latest_start is that of the job's own wish
  std::string malformed;  // what is wrong with its annotations; "": nothing
};

// Pods that were released already but that the caches still show behind the gate: uid → the node
// that was chosen, "" for none.
using Released = std::map<std::string, std::string>;

// In the order of arrival: the oldest pod's creation, then namespace and name.
std::vector<GatedJob> gated_jobs(const Snapshot& snapshot, const Released& released);

// The node that a released pod without a node is on its way to; "": none, or it is not ours.
std::string on_its_way_to(const api::Pod& pod, const Released& released);

// What its pod takes of a node: cpu, memory and whole GPUs (nvidia.com/gpu, amd.com/gpu,
// gpu.intel.com/i915, each unit 1000). At least a millicore, so that a strategy has something to
// place.
strategies::Request request_of(const api::Resources& resources);

}  // namespace kwatt::planner::queue
