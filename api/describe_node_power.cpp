// The JSON shape of NodePower. crds/nodepowers.yaml says the same; a test compares them.
#include "api/describe_meta.hpp"
#include "api/node_power.hpp"
#include "api/state_words.hpp"

namespace kwatt::api {

template <>
struct Words<PowerState> {
  static constexpr std::array<std::string_view, 7> words{
      "Unknown", "On", "Off", "PoweringOn", "PoweringOff", "Draining", "WakeFailed"};
};
template <>
struct Words<Desired> {
  static constexpr std::array<std::string_view, 3> words{"Keep", "On", "Off"};
};
template <>
struct Words<CapBy> {
  static constexpr std::array<std::string_view, 3> words{"None", "BMC", "RAPL"};
};
template <>
struct Words<OperationKind> {
  static constexpr std::array<std::string_view, 7> words{
      "None", "PowerOff", "PowerOn", "Migrate", "SetFrequency", "SetCap", "Release"};
};
template <>
struct Words<PowerBasis> {
  static constexpr std::array<std::string_view, 5> words{"None", "Measured", "Fitted", "Specified",
                                                         "Default"};
};

std::string_view to_string(PowerState state) {
  return word_of(state);
}
std::string_view to_string(Desired desired) {
  return word_of(desired);
}
std::string_view to_string(OperationKind kind) {
  return word_of(kind);
}

// ---- spec: every setting is written.
template <>
struct Describe<BmcSpec> {
  static constexpr std::string_view name = "BmcSpec";
  static constexpr auto fields =
      std::array{written<&BmcSpec::address>("address"),
                 written<&BmcSpec::credentials_secret_ref>("credentialsSecretRef"),
                 written<&BmcSpec::ca_secret_ref>("caSecretRef")};
};

template <>
struct Describe<PowerModelSpec> {
  static constexpr std::string_view name = "PowerModelSpec";
  static constexpr auto fields =
      std::array{written<&PowerModelSpec::curve_milliwatts>("curveMilliwatts"),
                 written<&PowerModelSpec::idle_milliwatts>("idleMilliwatts"),
                 written<&PowerModelSpec::max_milliwatts>("maxMilliwatts"),
                 written<&PowerModelSpec::boot_seconds>("bootSeconds"),
                 written<&PowerModelSpec::boot_joules>("bootJoules"),
                 written<&PowerModelSpec::shutdown_seconds>("shutdownSeconds"),
                 written<&PowerModelSpec::ops_per_joule>("opsPerJoule"),
                 written<&PowerModelSpec::standby_milliwatts>("standbyMilliwatts")};
};

template <>
struct Describe<CapRange> {
  static constexpr std::string_view name = "CapRange";
  static constexpr auto fields = std::array{written<&CapRange::min_watts>("minWatts"),
                                            written<&CapRange::max_watts>("maxWatts")};
};

template <>
struct Describe<NodePowerSpec> {
  static constexpr std::string_view name = "NodePowerSpec";
  static constexpr auto fields =
      std::array{written<&NodePowerSpec::bmc>("bmc"), written<&NodePowerSpec::model>("model"),
                 written<&NodePowerSpec::cap_range>("capRange")};
};

// ---- status: what says nothing is left out, but state and watts, which columns show.
template <>
struct Describe<NodeDecision> {
  static constexpr std::string_view name = "NodeDecision";
  static constexpr auto fields =
      std::array{written<&NodeDecision::desired>("desired"), field<&NodeDecision::reason>("reason"),
                 field<&NodeDecision::message>("message"), field<&NodeDecision::policy>("policy"),
                 field<&NodeDecision::since>("since")};
};

template <>
struct Describe<PodMove> {
  static constexpr std::string_view name = "PodMove";
  static constexpr auto fields = std::array{written<&PodMove::namespace_name>("namespace"),
                                            written<&PodMove::pod_name>("podName"),
                                            field<&PodMove::uid>("uid"),
                                            field<&PodMove::node_name>("nodeName"),
                                            field<&PodMove::phase>("phase"),
                                            field<&PodMove::next_attempt>("nextAttempt")};
};

template <>
struct Describe<AgentRequest> {
  static constexpr std::string_view name = "AgentRequest";
  static constexpr auto fields =
      std::array{field<&AgentRequest::governor>("governor"), field<&AgentRequest::epp>("epp"),
                 field<&AgentRequest::max_frequency_mhz>("maxFrequencyMHz"),
                 field<&AgentRequest::power_cap_watts>("powerCapWatts")};
};

template <>
struct Describe<Operation> {
  static constexpr std::string_view name = "Operation";
  static constexpr auto fields = std::array{field<&Operation::id>("id"),
                                            field<&Operation::kind>("kind"),
                                            field<&Operation::step>("step"),
                                            field<&Operation::policy>("policy"),
                                            field<&Operation::reason>("reason"),
                                            field<&Operation::started_at>("startedAt"),
                                            field<&Operation::step_started_at>("stepStartedAt"),
                                            field<&Operation::deadline>("deadline"),
                                            field<&Operation::cordoned_by_us>("cordonedByUs"),
                                            field<&Operation::then_wake>("thenWake"),
                                            field<&Operation::moves>("moves"),
                                            field<&Operation::request>("request"),
                                            field<&Operation::cap_by>("capBy")};
};

template <>
struct Describe<NodeMemory> {
  static constexpr std::string_view name = "NodeMemory";
  static constexpr auto fields = std::array{field<&NodeMemory::idle_since>("idleSince"),
                                            field<&NodeMemory::last_on>("lastOn"),
                                            field<&NodeMemory::last_off>("lastOff"),
                                            field<&NodeMemory::cool_down_until>("coolDownUntil"),
                                            field<&NodeMemory::next_attempt>("nextAttempt"),
                                            field<&NodeMemory::wake_verified_at>("wakeVerifiedAt"),
                                            field<&NodeMemory::cycles_today>("cyclesToday"),
                                            field<&NodeMemory::cycles_day>("cyclesDay"),
                                            field<&NodeMemory::failure_count>("failureCount"),
                                            field<&NodeMemory::powered_off_by_us>("poweredOffByUs"),
                                            field<&NodeMemory::cordoned_by_us>("cordonedByUs"),
                                            field<&NodeMemory::owner_policy>("ownerPolicy")};
};

template <>
struct Describe<OriginalSettings> {
  static constexpr std::string_view name = "OriginalSettings";
  static constexpr auto fields = std::array{
      field<&OriginalSettings::boot_id>("bootID"), field<&OriginalSettings::governor>("governor"),
      field<&OriginalSettings::epp>("epp"),        field<&OriginalSettings::min_mhz>("minMHz"),
      field<&OriginalSettings::max_mhz>("maxMHz"), field<&OriginalSettings::cap_watts>("capWatts"),
      field<&OriginalSettings::exact>("exact")};
};

template <>
struct Describe<AgentReport> {
  static constexpr std::string_view name = "AgentReport";
  static constexpr auto fields =
      std::array{field<&AgentReport::boot_id>("bootID"),
                 field<&AgentReport::time>("time"),
                 field<&AgentReport::agent_version>("agentVersion"),
                 field<&AgentReport::watts>("watts"),
                 field<&AgentReport::watts_source>("wattsSource"),
                 field<&AgentReport::cpu_utilization_percent>("cpuUtilizationPercent"),
                 field<&AgentReport::governor>("governor"),
                 field<&AgentReport::min_mhz>("minMHz"),
                 field<&AgentReport::max_mhz>("maxMHz"),
                 field<&AgentReport::current_mhz>("currentMHz"),
                 field<&AgentReport::max_uncore_mhz>("maxUncoreMHz"),
                 field<&AgentReport::applied_request>("appliedRequest"),
                 field<&AgentReport::requested_cap_watts>("requestedCapWatts"),
                 field<&AgentReport::effective_cap_watts>("effectiveCapWatts"),
                 field<&AgentReport::converged>("converged"),
                 field<&AgentReport::original>("original"),
                 field<&AgentReport::errors>("errors"),
                 field<&AgentReport::available_governors>("availableGovernors"),
                 field<&AgentReport::hardware_min_mhz>("hardwareMinMHz"),
                 field<&AgentReport::hardware_max_mhz>("hardwareMaxMHz"),
                 field<&AgentReport::cap_min_watts>("capMinWatts"),
                 field<&AgentReport::cap_max_watts>("capMaxWatts"),
                 field<&AgentReport::can_power_off>("canPowerOff")};
};

template <>
struct Describe<BmcStatus> {
  static constexpr std::string_view name = "BmcStatus";
  static constexpr auto fields =
      std::array{field<&BmcStatus::power_limit>("powerLimit"),
                 field<&BmcStatus::cap_min_watts>("capMinWatts"),
                 field<&BmcStatus::cap_max_watts>("capMaxWatts"),
                 field<&BmcStatus::requested_cap_watts>("requestedCapWatts"),
                 field<&BmcStatus::effective_cap_watts>("effectiveCapWatts"),
                 field<&BmcStatus::original_known>("originalKnown"),
                 field<&BmcStatus::original_cap_watts>("originalCapWatts"),
                 field<&BmcStatus::failure_count>("failureCount"),
                 field<&BmcStatus::next_attempt>("nextAttempt"),
                 field<&BmcStatus::error>("error")};
};

template <>
struct Describe<MachinePower> {
  static constexpr std::string_view name = "MachinePower";
  static constexpr auto fields = std::array{
      field<&MachinePower::milliwatts>("milliwatts"), field<&MachinePower::source>("source"),
      field<&MachinePower::meter>("meter"), field<&MachinePower::time>("time"),
      field<&MachinePower::error_percent>("errorPercent")};
};

template <>
struct Describe<NodePowerStatus> {
  static constexpr std::string_view name = "NodePowerStatus";
  static constexpr auto fields =
      std::array{written<&NodePowerStatus::power_state>("powerState"),
                 field<&NodePowerStatus::power_state_since>("powerStateSince"),
                 field<&NodePowerStatus::decision>("decision"),
                 field<&NodePowerStatus::operation>("operation"),
                 field<&NodePowerStatus::memory>("memory"),
                 field<&NodePowerStatus::report>("report"),
                 field<&NodePowerStatus::bmc>("bmc"),
                 written<&NodePowerStatus::watts>("watts"),
                 field<&NodePowerStatus::power>("power")};
};

template <>
struct Describe<NodePower> {
  static constexpr std::string_view name = "NodePower";
  static constexpr std::string_view api_version = "kwatt.dev/v1alpha1";
  static constexpr std::string_view object_kind = "NodePower";
  static constexpr auto fields =
      std::array{field<&NodePower::meta>("metadata"), written<&NodePower::spec>("spec"),
                 field<&NodePower::status>("status")};
};

template const TypeInfo& type_of<NodePowerSpec>();
template const TypeInfo& type_of<NodePowerStatus>();
template const TypeInfo& type_of<AgentReport>();
template const TypeInfo& type_of<NodePower>();

}  // namespace kwatt::api
