#include "cli/reasons.hpp"

#include <array>

namespace kwatt::cli {
namespace {

constexpr std::size_t kReasonCount = [] {
  std::size_t number = 0;
#define KWATT_COUNT(name) ++number;
  KWATT_REASONS(KWATT_COUNT)
#undef KWATT_COUNT
  return number;
}();

// A line with the reason, one that completes "node a is on because …", one with what ends it.
constexpr std::string_view kText = R"(InUse
  {pods_run}
  It is considered when no workload pod has run on it for {idle_for}
Idle
  no workload pod had run on it for {idle_for}
  It is woken when pods fit nowhere else, when the load is high, or when headroom is missing
IdleWait
  no workload pod runs on it, but it has been idle only for {idle}
  It is considered after {idle_for} without workload pods
LowUtilization
  little of it is used{low}
  It changes when its load rises above the policy's high utilization
PendingPods
  {pending} waiting for room
  It is considered again when no pod is pending any more
HighLoad
  the load is high{high}
  It is considered again when the load has gone down
PowerHigh
  it draws {watts} W, more than {cap_above} % of its maximum{maximum}{share}
  The cap goes when it draws less than {cap_release} % of its maximum
Headroom
  less than {headroom_cpu} % of CPU or {headroom_memory} % of memory would be free without it
  It is considered again when more is free on the other nodes
Scheduled
  kube-scheduler has chosen it for a pod
  It may be slowed down again when a window of readings has the pod's load
Manual
  a person asked for it{override}
  "kubectl kwatt release {node}" undoes wake and hold; settings made by hand are undone by hand
Carbon
  of the carbon intensity of the electricity
  It changes with the carbon intensity
OverBudget
  the power budget of {budget_watts} W is used up{policy_watts}
  It changes when other nodes draw less, or capping.budgetWatts grows
NotSelected
  {unselected}
  A policy that selects it takes it up again
Excluded
  it is annotated kwatt.dev/exclude
  "kubectl kwatt include {node}" lets it take part again
ControlPlane
  it is a control-plane node, or the controller runs on it
  Such a node is never switched off
MinAwake
  without it fewer than {min_awake} ({min_awake_per_zone} per zone) would be awake
  It is considered again when another node is awake
MinOnTime
  it has been on for {on_for}, less than the {min_on} it must be on
  It is considered again after that time
MinOffTime
  it has been off for {off_for}, less than the {min_off} it must be off
  It may be woken after that time, or at once if pods need it
CycleLimit
  it was switched off {cycles} times today, and {max_cycles} times a day are allowed
  It is considered again after midnight UTC
CoolDown
  it is left alone {cool_down} after the last change
  It is considered again when the cool-down is over
RateLimited
  policy {policy} changes no more nodes at a time{rates}
  It is its turn when others are done
BudgetExhausted
  a disruption budget of policy {policy} allows no further node now{budgets}
  It is its turn when others are back, or when the budget grows
Window
  the disruption budget in force allows nothing at this time of day{budgets}
  It is considered again when the window ends
InProgress
  an operation on it is under way{operation}
  It is considered again when the operation is over
PodNotMovable
  {a_pod} would not be replaced elsewhere
  It is considered again when that pod is gone, or can be moved
NoDestination
  {a_pod} fits on no other node
  It is considered again when there is room elsewhere
PDBBlocked
  a PodDisruptionBudget allows no disruption of {a_pod} now
  It is considered again when the budget allows one
DoNotDisrupt
  it, or {a_pod}, is annotated not to be disrupted
  It is considered again when the annotation is gone
LocalStorage
  {a_pod} has local storage that would be lost
  It is considered again when that pod is gone, or is annotated safe-to-evict=true
NotWorthIt
  being off would save less than shutdown and boot cost{costs}
  It changes with the load, or with the power model in its NodePower
WakeNotVerified
  it has not been proved yet that its machine can be woken (wakeTest: {wake_test})
  "kubectl kwatt wake-test {node}" proves it
StaleTelemetry
  its newest sample is too old to be trusted{report_age}
  It is considered again when its agent sends samples
NotSynced
  the controller does not know the whole cluster yet
  It is considered when the controller's caches are complete
TooManyUnready
  so many nodes are unready{unready} that something else is wrong
  It is considered again when enough nodes are ready
NodeNotReady
  its Node is not Ready{not_ready}
  It is considered again when its Node is Ready
ForeignOwner
  somebody else holds it{foreign}
  It is considered again when the foreign cordon, taint or mark is gone
DrainTimeout
  it could not be emptied in {drain_timeout}
  It is tried again later
NoDriver
  {driver}
  Set spec.bmc.address of NodePower {node}
BMCError
  its management controller did not do what was asked{failures}
  It is tried again later
WakeFailed
  it did not come up within {boot_timeout}{failures}
  It is tried again later; another machine is taken meanwhile
OutOfRange
  its hardware does not offer the setting{range}
  Change the policy's settings, or see status.report of NodePower {node}
AgentStale
  no agent reports from it, or has done what was asked{report_age}
  It is considered again when its agent reports
LeverDisabled
  policy {policy} does not use the lever that would change it
  Switch powerOff, migration, dvfs or capping on in the policy
Suspended
  policy {policy} is suspended
  "kubectl kwatt resume {policy}" lets it work again
RecommendOnly
  policy {policy} only recommends
  mode: Enforce in the policy lets it act
PolicyDeleted
  policy {policy} is being deleted and gives back what it held
  It is over when everything is given back
Conflict
  {owner} has it
  The policy with the highest priority has a node
)";

// Cuts the text into its rows; what is amiss in it does not compile.
constexpr std::array<ReasonText, kReasonCount> parsed(std::string_view text) {
  std::array<ReasonText, kReasonCount> rows{};
  const auto line = [&text](std::string_view indent) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) throw "the text ends too early";
    const std::string_view whole = text.substr(0, end);
    if (!whole.starts_with(indent)) throw "a line is not indented as it should be";
    text.remove_prefix(end + 1);
    return whole.substr(indent.size());
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].reason = static_cast<api::Reason>(i);
    if (line("") != to_string(rows[i].reason)) throw "the order is that of api/reason.hpp";
    rows[i].because = line("  ");
    rows[i].change = line("  ");
  }
  if (!text.empty()) throw "there is a reason too many";
  return rows;
}

constexpr auto kTexts = parsed(kText);

}  // namespace

std::span<const ReasonText> reason_texts() {
  return kTexts;
}

const ReasonText& text_of(api::Reason reason) {
  return kTexts[static_cast<std::size_t>(reason)];
}

std::string fill(std::string_view text, const Values& values) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = text.find('}', open);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const auto found = values.find(name);
    out += found != values.end() ? found->second : "an unknown value";
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace kwatt::cli
