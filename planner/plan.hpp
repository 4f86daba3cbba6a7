#pragma once
// What the planner decides: values that the executor, the status writer and the simulator read.
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/reason.hpp"
#include "planner/snapshot.hpp"

namespace kwatt::planner {

using api::Reason;

struct PowerOn {
  bool operator==(const PowerOn&) const = default;
};
// Off, after every pod of `moves` was evicted; each move carries its reserved destination.
struct PowerOff {
  std::vector<api::PodMove> moves;
  bool wake_test = false;  // on again at once, to prove that the machine can be woken
  bool operator==(const PowerOff&) const = default;
};
// Some pods leave, the node stays on.
struct Migrate {
  std::vector<api::PodMove> moves;
  bool operator==(const Migrate&) const = default;
};
struct SetFrequency {
  api::FrequencyLevel level;
  bool low = false;
  bool operator==(const SetFrequency&) const = default;
};
struct SetCap {
  std::optional<std::int64_t> watts;  // nullopt: release
  api::CapBy by = api::CapBy::RAPL;
  bool operator==(const SetCap&) const = default;
};
// Give back everything we hold on the node: wake it if we powered it off, remove our cordon, taints
// and annotations. Policy deleted, left Enforce, or no longer selects the node.
struct Release {
  bool operator==(const Release&) const = default;
};

using What = std::variant<PowerOn, PowerOff, Migrate, SetFrequency, SetCap, Release>;

// True only for the state the decision was made from; admit() checks it again on a newer snapshot.
struct Precondition {
  std::string node_uid;
  std::string machine_version;  // NodePower resourceVersion
  std::uint64_t snapshot_seq = 0;
  bool operator==(const Precondition&) const = default;
};

struct Action {
  NodeName node;
  What what;
  Reason reason = Reason::Idle;
  std::string message;  // a sentence with numbers, for people
  Precondition pre;
  Milliwatts expected_saving;
};

// Why a selected node is left as it is, or must not be touched.
struct Verdict {
  Reason reason = Reason::InUse;
  std::string message;
};

struct BudgetUse {
  std::string name;
  std::int64_t allowed = 0, used = 0;
  bool binds = false;  // no other budget in force is stricter, for some reason at least
  std::optional<TimePoint> active_until;
};

// The outcome of one pass over one policy. Every selected node is either in `actions` (once) or in
// `verdicts`. Same input, byte-identical output: sorted iteration, ties broken by name.
struct Plan {
  std::vector<Action> actions;  // in the order they should be started
  std::map<NodeName, Verdict> verdicts;
  std::map<NodeName, api::NodeMemory> memory;  // only of nodes whose memory changed
  api::PolicyMemory policy_memory;
  std::vector<BudgetUse> budgets;
  std::optional<Reason> halted;       // a guard stops all actions that take capacity away …
  std::string halted_message;         // … and why, in a sentence
  std::vector<std::string> pending;   // pods for which off nodes were considered, "ns/name"
  std::optional<Duration> next_wake;  // when the plan may change without any event
};

// Which policy has each node: highest priority, then oldest, then name. Policies being deleted and
// invalid ones take part in nothing.
struct Assignment {
  struct Loss {
    NodeName node;
    std::string winner;
  };
  std::map<std::string, std::vector<NodeName>> selected;  // by policy name, sorted
  std::map<std::string, std::vector<Loss>> lost;          // by policy name, sorted by node
};
Assignment assign(const Snapshot& snapshot,
                  const std::vector<std::shared_ptr<const api::EnergyPolicy>>& policies);

// One pass for one policy over its nodes. `spec` must be valid. Room that actions in flight and
// earlier policies of the same pass have reserved is in `reserved` (by destination); the moves of
// this plan are added to it. Never throws; bad input becomes verdicts.
// Mode is the caller's business: Recommend decides the same, and nobody acts on it (admit() refuses
// with RecommendOnly). Gates, in this order: a cache that is not synced → verdicts NotSynced only;
// no selected node Ready → nothing at all; suspend → verdicts only; too many unready (`halted`) →
// nothing that takes capacity away, and idle timers start anew. Then the levers: power_on, capping,
// power_off, migrate, dvfs; the first that acts on a node wins.
using Reserved = std::map<NodeName, std::vector<std::shared_ptr<const api::Pod>>>;
Plan plan(const Snapshot& snapshot, const std::string& policy_name,
          const api::EnergyPolicySpec& spec, const api::PolicyMemory& memory,
          const std::vector<NodeName>& selected, Reserved& reserved);

// What must be given back: nodes on which `policy_name` still holds something although it may not.
std::vector<Action> release(const Snapshot& snapshot, const std::string& policy_name,
                            const std::vector<NodeName>& keep, Reason reason);

// Is `action` still right on this newer snapshot? nullopt: yes; else why not. Checks uid, state,
// pods (none but those of the moves), vetoes, minAwake and budgets again.
std::optional<Verdict> admit(const Snapshot& snapshot, const Action& action,
                             const std::string& policy_name, const api::EnergyPolicySpec& spec,
                             const std::vector<NodeName>& selected);

// The annotation keys and the fixed names that steps and planner share (api.md).
namespace names {
inline constexpr std::string_view kCandidateTaint = "kwatt.dev/candidate";
inline constexpr std::string_view kPowerOffTaint = "kwatt.dev/power-off";
inline constexpr std::string_view kRequest = "kwatt.dev/request";
inline constexpr std::string_view kGovernor = "kwatt.dev/governor";
inline constexpr std::string_view kMaxFrequency = "kwatt.dev/max-frequency-mhz";
inline constexpr std::string_view kEpp = "kwatt.dev/epp";
inline constexpr std::string_view kPowerCap = "kwatt.dev/power-cap-watts";
inline constexpr std::string_view kPowerState = "kwatt.dev/power-state";
inline constexpr std::string_view kPowerOffBoot = "kwatt.dev/power-off-boot";
inline constexpr std::string_view kWakeTest = "kwatt.dev/wake-test";
inline constexpr std::string_view kExclude = "kwatt.dev/exclude";
inline constexpr std::string_view kOverride = "kwatt.dev/override";
// On pods that do not exist: room that a CapacityBuffer wants, its "namespace/name" the value.
inline constexpr std::string_view kBuffer = "kwatt.dev/capacity-buffer";
// Asks that a slow or capped node get its full speed back for a pod that is about to be bound.
inline constexpr std::string_view kRestore = "kwatt.dev/restore";
inline constexpr std::string_view kReleasedBy = "kwatt.dev/released-by";
inline constexpr std::string_view kLabelFrequency = "kwatt.dev/frequency";
inline constexpr std::string_view kLabelCapped = "kwatt.dev/capped";
inline constexpr std::string_view kLabelPower = "kwatt.dev/power";
inline constexpr std::string_view kSuspendedCondition = "Suspended";
}  // namespace names

}  // namespace kwatt::planner
