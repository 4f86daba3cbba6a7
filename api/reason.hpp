#pragma once
// The one list of reasons: always the same word in status, event, metric label, log and CLI.
#include <optional>
#include <string_view>

namespace kwatt::api {
// Otherwise clang-format nests the entries deeper and deeper.
// clang-format off
#define KWATT_REASONS(X)                                                                         \
  X(InUse)                                                                                       \
  X(Idle) X(IdleWait) X(LowUtilization) X(PendingPods) X(HighLoad) X(PowerHigh) X(Headroom)      \
      X(Scheduled) X(Manual) X(Carbon) X(OverBudget) X(NotSelected) X(Excluded) X(ControlPlane)  \
          X(MinAwake) X(MinOnTime) X(MinOffTime) X(CycleLimit) X(CoolDown) X(RateLimited)        \
              X(BudgetExhausted) X(Window) X(InProgress) X(PodNotMovable) X(NoDestination)       \
                  X(PDBBlocked) X(DoNotDisrupt) X(LocalStorage) X(NotWorthIt) X(WakeNotVerified) \
                      X(StaleTelemetry) X(NotSynced) X(TooManyUnready) X(NodeNotReady)           \
                          X(ForeignOwner) X(DrainTimeout) X(NoDriver) X(BMCError) X(WakeFailed)  \
                              X(OutOfRange) X(AgentStale) X(LeverDisabled) X(Suspended)          \
                                  X(RecommendOnly) X(PolicyDeleted) X(Conflict)
// clang-format on

enum class Reason {
#define KWATT_REASON_VALUE(name) name,
  KWATT_REASONS(KWATT_REASON_VALUE)
#undef KWATT_REASON_VALUE
};

constexpr std::string_view to_string(Reason reason) {
  switch (reason) {
#define KWATT_REASON_CASE(name) \
  case Reason::name:            \
    return #name;
    KWATT_REASONS(KWATT_REASON_CASE)
#undef KWATT_REASON_CASE
  }
  return "Unknown";
}

std::optional<Reason> parse_reason(std::string_view word);

}  // namespace kwatt::api
