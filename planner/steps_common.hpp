#pragma once
// What the step machines share. Internal to planner/steps*.cpp.
#include <string>
#include <string_view>

#include "planner/request.hpp"
#include "planner/steps.hpp"

namespace kwatt::planner::steps {

// Names of steps as they stand in NodePower.status.operation.step.
inline constexpr std::string_view kCordon = "Cordon";
inline constexpr std::string_view kTaint = "Taint";
inline constexpr std::string_view kEvict = "Evict";
inline constexpr std::string_view kWaitEmpty = "WaitEmpty";
inline constexpr std::string_view kEvacuate = "Evacuate";
inline constexpr std::string_view kSoftOff = "SoftOff";
inline constexpr std::string_view kHardOff = "HardOff";
inline constexpr std::string_view kVerify = "Verify";
inline constexpr std::string_view kUndo = "Undo";
inline constexpr std::string_view kWake = "Wake";
inline constexpr std::string_view kWaitLease = "WaitLease";
inline constexpr std::string_view kWaitReady = "WaitReady";
inline constexpr std::string_view kUncordon = "Uncordon";
inline constexpr std::string_view kAnnotate = "Annotate";
inline constexpr std::string_view kWaitApplied = "WaitApplied";
inline constexpr std::string_view kLabel = "Label";
inline constexpr std::string_view kSetLimit = "SetLimit";
inline constexpr std::string_view kWaitLimit = "WaitLimit";
inline constexpr std::string_view kRestore = "Restore";

// Fixed times of safety.md and of this file; what a policy may choose comes from its spec.
inline constexpr Duration kCoolDownAfterWake = std::chrono::minutes{10};
inline constexpr Duration kCoolDownAfterFailure = std::chrono::minutes{3};
inline constexpr Duration kFirstBackoff = std::chrono::minutes{1};
inline constexpr Duration kLongestBackoff = std::chrono::minutes{8 * 60 + 30};
inline constexpr Duration kDaemonGrace = std::chrono::seconds{60};  // for DaemonSet pods to end
inline constexpr Duration kHardOffPatience = std::chrono::minutes{2};
inline constexpr Duration kBmcPatience = std::chrono::seconds{30};  // errors before we give up
inline constexpr Duration kVerifyPatience = std::chrono::seconds{60};
inline constexpr Duration kAgentPatience = std::chrono::seconds{60};
inline constexpr Duration kLimitPatience = std::chrono::seconds{60};
// Longer than any node-monitor-grace-period in use: a Ready older than this is not a leftover.
inline constexpr Duration kReadyIsCurrent = std::chrono::seconds{60};
inline constexpr Duration kLook{1000};  // when an event is expected to come first
inline constexpr Duration kLookSlowly{5000};

// One call of next_step().
struct Context {
  const api::NodePowerStatus& status;
  const Observation& seen;
  const api::EnergyPolicySpec& spec;

  const api::Node& node() const { return *seen.node->node; }
  const api::Operation& operation() const { return status.operation; }
  TimePoint now() const { return seen.now; }
  Duration in_step() const;       // since the step began
  Duration in_operation() const;  // since the operation began
  bool past_deadline() const;
};

// Same record, these effects.
Step stay(const Context& context, Duration again_after, std::vector<Effect> effects = {});
// The next step is committed; then its effects are performed.
Step go(const Context& context, std::string_view step, std::vector<Effect> effects = {},
        std::string message = {});
// The operation is over. `next` of the caller's choice, its operation is emptied here.
Step finish(api::NodePowerStatus next, const NodeView& node, Reason reason, std::string message,
            bool failed = false);

// "since" moves only with desired or reason.
void decide(api::NodePowerStatus& status, api::Desired desired, Reason reason, std::string message,
            TimePoint now);
// One more failure: no new attempt until the backoff is over.
void back_off(api::NodeMemory& memory, TimePoint now);
// One more power cycle of this UTC day.
void count_cycle(api::NodeMemory& memory, TimePoint now);

bool has_taint(const api::Node& node, std::string_view key);
// The first pod that keeps the machine in use and is not leaving; nullptr: none.
const api::Pod* workload_pod(const NodeView& node, bool leaving_too);
// Our taints, cordon (if it is ours) and labels of an interrupted or finished operation.
PatchNode clean_patch(const Context& context, bool cordon_is_ours);
// Would the patch change anything that we can see?
bool is_so(const api::Node& node, const PatchNode& patch);

// Nobody wants this operation any more, or somebody has taken the node: why; nullopt: go on.
std::optional<Verdict> called_off(const Context& context);

// Step Evict of both machines that have one: evicts what is due, takes in the results of the last
// round, and goes on to WaitEmpty when none is left to be asked for. Who is held back by a budget
// is named in the decision (with `desired`), and said once.
Step evict_round(const Context& context, api::Desired desired);

// The BMC's part of SetCap (steps SetLimit and WaitLimit), and of Release: nullopt when nothing of
// ours is left there.
Step limit_step(const Context& context);
std::optional<Step> restore_limit(const Context& context);
// Ends a SetFrequency or SetCap with this decision.
Step end_setting(const Context& context, Reason reason, std::string message, bool failed);

// One machine per kind of operation.
Step power_off_step(const Context& context);
Step power_on_step(const Context& context);
Step migrate_step(const Context& context);
Step settings_step(const Context& context);
Step release_step(const Context& context);

}  // namespace kwatt::planner::steps
