#pragma once
// Strategies: which queued jobs start now, and where. One small file each, its paper cited there;
// registry.hpp names them. The same objects serve the live queue and the simulator.
//
// A decision takes values (jobs in arrival order, the cluster, forecasts, now) and gives values.
// It never waits and reads no clock; randomness comes from the seed alone. Ties go to the node that
// is first in the cluster's list, which callers sort by name.
//
// Incremental: a Cluster lives as long as the simulation. decide() starts in it what it assigns;
// the caller calls cluster.finish() for each assignment when the member ends, and set_state() when
// a machine is switched. Jobs that were refused before (Batch::seen) are looked at again only where
// room came free, so a call costs what has changed and not the length of the queue times nodes.
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "placement/strategies/cluster.hpp"

namespace kwatt::placement::strategies {

// A job is one or more members with the same request. Members start together or not at all (MPI).
struct Job {
  std::uint64_t id = 0;  // the caller's; strategies do not look at it
  Request request;       // of each member
  std::uint32_t members = 1;
  TimePoint arrival{};
  Duration expected{0};                       // how long it will run; 0: not known
  TimePoint deadline = TimePoint::max();      // to be finished by; max(): none
  TimePoint latest_start = TimePoint::max();  // never held back beyond (maxDelay); max(): no limit
  BitSet zones = kAny;                        // zones it may run in
  BitSet gpu_models = kAny;
};

// What is expected of a zone's electricity: values in gCO2eq/kWh, one every `step` from `start` on.
// Before the first the first counts, after the last the last; without values it is not known, and
// nothing waits for it. The caller keeps the values.
struct CarbonForecast {
  TimePoint start{};
  Duration step = std::chrono::hours{1};
  std::span<const double> grams_per_kwh;
};

struct Batch {
  std::span<const Job> jobs;  // in order of arrival
  TimePoint now{};
  std::span<const CarbonForecast> forecasts;  // by zone number; may be shorter or empty
  // So many jobs at the front were refused by the last call of this very object, in this order
  // among themselves; 0 when in doubt.
  std::size_t seen = 0;
};

struct Assignment {
  std::uint32_t job = 0;     // position in Batch::jobs
  std::uint32_t member = 0;  // 0..members-1
  NodeIndex node = 0;
  GpuSet gpus = 0;
  // Now, or when the node is awake if it is booting or must be woken; members of a job start
  // together, with the last of them.
  TimePoint start{};
};

// Why a job does not start. Values stable: they are written to logs and CSV.
enum class Waits : std::uint8_t {
  no_fit,            // no allowed node has that much room now
  never_fits,        // no allowed node would have it even if empty: the request cannot be met here
  gang_incomplete,   // some members would fit, not all
  waits_for_carbon,  // there is room, but a later start within the deadline is cleaner
  behind_others,     // its turn has not come: an older job that does not fit is first
};
std::string_view to_string(Waits reason);  // "NoFit" "NeverFits" "GangIncomplete" …

struct Waiting {
  std::uint32_t job = 0;
  Waits reason = Waits::no_fit;
  // waits_for_carbon: when it is meant to start. A caller may leave the job out of its batches
  // until then, unless forecasts change. Else the batch's now.
  TimePoint not_before{};
};

// Every job of the batch is in exactly one of the lists, but for those of Batch::seen to which
// nothing has changed: they keep the reason that they had.
struct Decision {
  std::vector<Assignment> assigned;  // members of a job stand together; jobs in the order chosen
  std::vector<Waiting> waiting;      // ascending by job
  // Nodes that were off and must be woken for what is assigned to them, in the order of the
  // assignments; decide() has set them to booting in the cluster.
  std::vector<NodeIndex> wake;
  void clear() {
    assigned.clear();
    waiting.clear();
    wake.clear();
  }
};

struct Settings {
  std::uint64_t seed = 1;
  // Over how long a boot's energy is counted, where energy is compared.
  Duration boot_over = std::chrono::minutes{10};
  // How many nodes the flow strategies consider for each job.
  std::size_t arcs_per_job = 20;
};

// An object keeps what it must remember between calls (where the round has come to, the state of
// its generator, which work it has seen); a new one starts anew. Not for several threads at once.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;
  // `out` is cleared first; its memory is kept for the next call. Cannot fail: what cannot be
  // placed has a reason.
  virtual void decide(const Batch& batch, Cluster& cluster, Decision& out) = 0;
};

}  // namespace kwatt::placement::strategies
