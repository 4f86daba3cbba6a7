#include "cli/reasons.hpp"

#include <array>

namespace kwatt::cli {
namespace {

using R = api::Reason;

constexpr std::array kTexts{
    ReasonText{R::InUse, "{pods_run}",
               "It is considered when no workload pod has run on it for {idle_for}"},
    ReasonText{R::Idle, "no workload pod had run on it for {idle_for}",
               "It is woken when pods fit nowhere else, when the load is high, or when headroom is "
               "missing"},
    ReasonText{R::IdleWait, "no workload pod runs on it, but it has been idle only for {idle}",
               "It is considered after {idle_for} without workload pods"},
    ReasonText{R::LowUtilization, "little of it is used",
               "It changes when its load rises above the policy's high utilization"},
    ReasonText{R::PendingPods, "pods are waiting for room",
               "It is considered again when no pod is pending any more"},
    ReasonText{R::HighLoad, "the load has been high for {high_for}",
               "It is considered again when the load has gone down"},
    ReasonText{R::PowerHigh, "it draws {watts} W, more than {cap_above} % of its maximum",
               "The cap goes when it draws less than {cap_release} % of its maximum"},
    ReasonText{R::Headroom,
               "without it less than {headroom_cpu} % of the CPUs or {headroom_memory} % of the "
               "memory of the awake nodes would be free",
               "It is considered again when more is free on the other nodes"},
    ReasonText{R::Scheduled, "a schedule says so", "It changes when the schedule says so"},
    ReasonText{R::Manual, "a person asked for it{override}",
               "\"kubectl kwatt release {node}\" undoes wake and hold; settings made by hand are "
               "undone by hand"},
    ReasonText{R::Carbon, "of the carbon intensity of the electricity",
               "It changes with the carbon intensity"},
    ReasonText{R::OverBudget, "the power budget of {budget_watts} W is used up",
               "It changes when other nodes draw less, or capping.budgetWatts grows"},
    ReasonText{R::NotSelected, "policy {policy} does not select it any more",
               "A policy that selects it takes it up again"},
    ReasonText{R::Excluded, "it is annotated kwatt.dev/exclude",
               "\"kubectl kwatt include {node}\" lets it take part again"},
    ReasonText{R::ControlPlane, "it is a control-plane node, or the controller runs on it",
               "Such a node is never switched off"},
    ReasonText{R::MinAwake,
               "without it fewer than {min_awake} ({min_awake_per_zone} per zone) would be awake",
               "It is considered again when another node is awake"},
    ReasonText{R::MinOnTime, "it has been on for {on_for}, less than the {min_on} it must be on",
               "It is considered again after that time"},
    ReasonText{R::MinOffTime,
               "it has been off for {off_for}, less than the {min_off} it must be off",
               "It may be woken after that time, or at once if pods need it"},
    ReasonText{R::CycleLimit,
               "it was switched off {cycles} times today, and {max_cycles} times a day are allowed",
               "It is considered again after midnight UTC"},
    ReasonText{R::CoolDown, "it is left alone for a while after the last change",
               "It is considered again when the cool-down is over"},
    ReasonText{R::RateLimited, "as many nodes as policy {policy} allows are being changed already",
               "It is its turn when others are done"},
    ReasonText{R::BudgetExhausted,
               "a disruption budget of policy {policy} allows no further node now{budgets}",
               "It is its turn when others are back, or when the budget grows"},
    ReasonText{R::Window, "the disruption budget in force allows nothing at this time of day",
               "It is considered again when the window ends"},
    ReasonText{R::InProgress, "an operation on it is under way{operation}",
               "It is considered again when the operation is over"},
    ReasonText{R::PodNotMovable, "a pod on it would not be replaced elsewhere",
               "It is considered again when that pod is gone, or can be moved"},
    ReasonText{R::NoDestination, "a pod on it fits on no other node",
               "It is considered again when there is room elsewhere"},
    ReasonText{R::PDBBlocked, "a PodDisruptionBudget allows no disruption of a pod on it now",
               "It is considered again when the budget allows one"},
    ReasonText{R::DoNotDisrupt, "it, or a pod on it, is annotated not to be disrupted",
               "It is considered again when the annotation is gone"},
    ReasonText{R::LocalStorage, "a pod on it has local storage that would be lost",
               "It is considered again when that pod is gone, or is annotated "
               "cluster-autoscaler.kubernetes.io/safe-to-evict=true"},
    ReasonText{R::NotWorthIt, "being off would save less than shutdown and boot cost",
               "It changes with the load, or with the power model in its NodePower"},
    ReasonText{R::WakeNotVerified, "it has not been proved yet that its machine can be woken",
               "\"kubectl kwatt wake-test {node}\" proves it"},
    ReasonText{R::StaleTelemetry, "its newest sample is too old to be trusted{report_age}",
               "It is considered again when its agent sends samples"},
    ReasonText{R::NotSynced, "the controller does not know the whole cluster yet",
               "It is considered when the controller's caches are complete"},
    ReasonText{R::TooManyUnready, "so many nodes are unready that something else is wrong",
               "It is considered again when enough nodes are ready"},
    ReasonText{R::NodeNotReady, "its Node is not Ready{not_ready}",
               "It is considered again when its Node is Ready"},
    ReasonText{R::ForeignOwner, "somebody else holds it{cordon}",
               "It is considered again when the foreign cordon, taint or mark is gone"},
    ReasonText{R::DrainTimeout, "it could not be emptied in {drain_timeout}",
               "It is tried again later"},
    ReasonText{R::NoDriver, "its NodePower names no way to switch it on",
               "Set spec.bmc.address of NodePower {node}"},
    ReasonText{R::BMCError, "its management controller did not do what was asked{failures}",
               "It is tried again later"},
    ReasonText{R::WakeFailed, "it did not come up within {boot_timeout}{failures}",
               "It is tried again later; another machine is taken meanwhile"},
    ReasonText{R::OutOfRange, "its hardware does not offer the setting",
               "Change the policy's settings, or see status.report of NodePower {node}"},
    ReasonText{R::AgentStale, "no agent reports from it, or has done what was asked",
               "It is considered again when its agent reports"},
    ReasonText{R::LeverDisabled, "policy {policy} does not use the lever that would change it",
               "Switch powerOff, migration, dvfs or capping on in the policy"},
    ReasonText{R::Suspended, "policy {policy} is suspended",
               "\"kubectl kwatt resume {policy}\" lets it work again"},
    ReasonText{R::RecommendOnly, "policy {policy} only recommends",
               "mode: Enforce in the policy lets it act"},
    ReasonText{R::PolicyDeleted, "policy {policy} is being deleted and gives back what it held",
               "It is over when everything is given back"},
    ReasonText{R::Conflict, "another policy has it",
               "The policy with the highest priority has a node"},
};

constexpr std::size_t kReasonCount = [] {
  std::size_t number = 0;
#define KWATT_COUNT(name) ++number;
  KWATT_REASONS(KWATT_COUNT)
#undef KWATT_COUNT
  return number;
}();
static_assert(kTexts.size() == kReasonCount, "every reason has one row");
static_assert(
    [] {
      for (std::size_t i = 0; i < kTexts.size(); ++i) {
        if (kTexts[i].reason != static_cast<R>(i)) return false;
      }
      return true;
    }(),
    "the rows are in the order of api/reason.hpp");

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
