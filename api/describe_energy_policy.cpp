// The JSON shape of EnergyPolicy. crds/energypolicies.yaml says the same; a test compares them.
#include "api/describe_meta.hpp"
#include "api/energy_policy.hpp"
#include "api/state_words.hpp"

namespace kwatt::api {

template <>
struct Words<Mode> {
  static constexpr std::array<std::string_view, 2> words{"Recommend", "Enforce"};
};

std::string_view to_string(Mode mode) {
  return word_of(mode);
}

template <>
struct Words<WakeTest> {
  static constexpr std::array<std::string_view, 3> words{"Auto", "Manual", "Skip"};
};

std::string_view to_string(WakeTest test) {
  return word_of(test);
}

template <>
struct Words<MigrationStrategy> {
  static constexpr std::array<std::string_view, 2> words{"FewestPods", "BestSaving"};
};
template <>
struct Words<CapMethod> {
  static constexpr std::array<std::string_view, 3> words{"Auto", "BMC", "RAPL"};
};
template <>
struct Words<PlacementStrategy> {
  static constexpr std::array<std::string_view, 8> words{
      "Default", "FCFS", "RoundRobin", "MinMin", "MaxMin", "EnergyAware", "ECSched", "CarbonAware"};
};

// ---- spec: every setting is written.
template <>
struct Describe<HeadroomSpec> {
  static constexpr std::string_view name = "HeadroomSpec";
  static constexpr auto fields =
      std::array{written<&HeadroomSpec::cpu_percent>("cpuPercent"),
                 written<&HeadroomSpec::memory_percent>("memoryPercent")};
};

template <>
struct Describe<PowerOnSpec> {
  static constexpr std::string_view name = "PowerOnSpec";
  static constexpr auto fields =
      std::array{written<&PowerOnSpec::enabled>("enabled"),
                 written<&PowerOnSpec::pending_for>("pendingFor"),
                 written<&PowerOnSpec::headroom>("headroom"),
                 written<&PowerOnSpec::high_utilization_percent>("highUtilizationPercent"),
                 written<&PowerOnSpec::high_for>("highFor"),
                 written<&PowerOnSpec::max_per_minute>("maxPerMinute"),
                 written<&PowerOnSpec::boot_timeout>("bootTimeout")};
};

template <>
struct Describe<PowerOffSpec> {
  static constexpr std::string_view name = "PowerOffSpec";
  static constexpr auto fields =
      std::array{written<&PowerOffSpec::enabled>("enabled"),
                 written<&PowerOffSpec::idle_for>("idleFor"),
                 written<&PowerOffSpec::min_awake>("minAwake"),
                 written<&PowerOffSpec::min_awake_per_zone>("minAwakePerZone"),
                 written<&PowerOffSpec::min_on_duration>("minOnDuration"),
                 written<&PowerOffSpec::min_off_duration>("minOffDuration"),
                 written<&PowerOffSpec::max_cycles_per_day>("maxCyclesPerDay"),
                 written<&PowerOffSpec::max_per_minute>("maxPerMinute"),
                 written<&PowerOffSpec::soft_timeout>("softTimeout"),
                 written<&PowerOffSpec::wake_test>("wakeTest")};
};

template <>
struct Describe<MigrationSpec> {
  static constexpr std::string_view name = "MigrationSpec";
  static constexpr auto fields =
      std::array{written<&MigrationSpec::enabled>("enabled"),
                 written<&MigrationSpec::strategy>("strategy"),
                 written<&MigrationSpec::max_nodes>("maxNodes"),
                 written<&MigrationSpec::utilization_below_percent>("utilizationBelowPercent"),
                 written<&MigrationSpec::min_saving_score>("minSavingScore"),
                 written<&MigrationSpec::drain_timeout>("drainTimeout"),
                 written<&MigrationSpec::eviction_retry>("evictionRetry")};
};

template <>
struct Describe<FrequencyLevel> {
  static constexpr std::string_view name = "FrequencyLevel";
  static constexpr auto fields = std::array{
      written<&FrequencyLevel::governor>("governor"),
      written<&FrequencyLevel::max_frequency_mhz>("maxFrequencyMHz"),
      written<&FrequencyLevel::energy_performance_preference>("energyPerformancePreference")};
};

template <>
struct Describe<DvfsMigrationSpec> {
  static constexpr std::string_view name = "DvfsMigrationSpec";
  static constexpr auto fields =
      std::array{written<&DvfsMigrationSpec::enabled>("enabled"),
                 written<&DvfsMigrationSpec::above_percent>("abovePercent"),
                 written<&DvfsMigrationSpec::until_percent>("untilPercent"),
                 written<&DvfsMigrationSpec::max_pods>("maxPods")};
};

template <>
struct Describe<DvfsSpec> {
  static constexpr std::string_view name = "DvfsSpec";
  static constexpr auto fields =
      std::array{written<&DvfsSpec::enabled>("enabled"),
                 written<&DvfsSpec::low_utilization_percent>("lowUtilizationPercent"),
                 written<&DvfsSpec::high_utilization_percent>("highUtilizationPercent"),
                 written<&DvfsSpec::window>("window"),
                 written<&DvfsSpec::low>("low"),
                 written<&DvfsSpec::high>("high"),
                 written<&DvfsSpec::idle_nodes>("idleNodes"),
                 written<&DvfsSpec::max_slowdown_percent>("maxSlowdownPercent"),
                 written<&DvfsSpec::migration>("migration")};
};

template <>
struct Describe<CappingMigrationSpec> {
  static constexpr std::string_view name = "CappingMigrationSpec";
  static constexpr auto fields = std::array{written<&CappingMigrationSpec::enabled>("enabled"),
                                            written<&CappingMigrationSpec::max_pods>("maxPods")};
};

template <>
struct Describe<CappingSpec> {
  static constexpr std::string_view name = "CappingSpec";
  static constexpr auto fields =
      std::array{written<&CappingSpec::enabled>("enabled"),
                 written<&CappingSpec::method>("method"),
                 written<&CappingSpec::above_percent_of_max>("abovePercentOfMax"),
                 written<&CappingSpec::cap_percent_of_max>("capPercentOfMax"),
                 written<&CappingSpec::release_percent_of_max>("releasePercentOfMax"),
                 written<&CappingSpec::window>("window"),
                 written<&CappingSpec::budget_watts>("budgetWatts"),
                 written<&CappingSpec::migration>("migration")};
};

template <>
struct Describe<PluginWeight> {
  static constexpr std::string_view name = "PluginWeight";
  static constexpr auto fields =
      std::array{written<&PluginWeight::name>("name"), written<&PluginWeight::weight>("weight")};
};

template <>
struct Describe<PlacementSpec> {
  static constexpr std::string_view name = "PlacementSpec";
  static constexpr auto fields = std::array{written<&PlacementSpec::strategy>("strategy"),
                                            written<&PlacementSpec::plugins>("plugins")};
};

template <>
struct Describe<CarbonTier> {
  static constexpr std::string_view name = "CarbonTier";
  static constexpr auto fields =
      std::array{written<&CarbonTier::below_grams_per_kwh>("belowGramsPerKWh"),
                 written<&CarbonTier::action>("action")};
};

template <>
struct Describe<CarbonSpec> {
  static constexpr std::string_view name = "CarbonSpec";
  static constexpr auto fields = std::array{
      written<&CarbonSpec::source>("source"), written<&CarbonSpec::zone>("zone"),
      written<&CarbonSpec::tiers>("tiers"), written<&CarbonSpec::stale_after>("staleAfter"),
      written<&CarbonSpec::max_delay>("maxDelay")};
};

template <>
struct Describe<Budget> {
  static constexpr std::string_view name = "Budget";
  static constexpr auto fields =
      std::array{written<&Budget::name>("name"),         written<&Budget::nodes>("nodes"),
                 written<&Budget::schedule>("schedule"), written<&Budget::duration>("duration"),
                 written<&Budget::reasons>("reasons"),   written<&Budget::time_zone>("timeZone"),
                 written<&Budget::allow>("allow")};
};

template <>
struct Describe<DisruptionSpec> {
  static constexpr std::string_view name = "DisruptionSpec";
  static constexpr auto fields =
      std::array{written<&DisruptionSpec::budgets>("budgets"),
                 written<&DisruptionSpec::respect_do_not_disrupt>("respectDoNotDisrupt"),
                 written<&DisruptionSpec::min_replicas>("minReplicas")};
};

template <>
struct Describe<EnergyPolicySpec> {
  static constexpr std::string_view name = "EnergyPolicySpec";
  static constexpr auto fields =
      std::array{written<&EnergyPolicySpec::mode>("mode"),
                 written<&EnergyPolicySpec::suspend>("suspend"),
                 written<&EnergyPolicySpec::priority>("priority"),
                 written<&EnergyPolicySpec::node_selector>("nodeSelector"),
                 written<&EnergyPolicySpec::include_control_plane>("includeControlPlane"),
                 written<&EnergyPolicySpec::interval>("interval"),
                 written<&EnergyPolicySpec::power_on>("powerOn"),
                 written<&EnergyPolicySpec::power_off>("powerOff"),
                 written<&EnergyPolicySpec::migration>("migration"),
                 written<&EnergyPolicySpec::dvfs>("dvfs"),
                 written<&EnergyPolicySpec::capping>("capping"),
                 written<&EnergyPolicySpec::placement>("placement"),
                 written<&EnergyPolicySpec::carbon>("carbon"),
                 written<&EnergyPolicySpec::disruption>("disruption")};
};

// ---- status: what says nothing is left out, but the counts and watts that columns show.
template <>
struct Describe<NodeCounts> {
  static constexpr std::string_view name = "NodeCounts";
  static constexpr auto fields = std::array{written<&NodeCounts::selected>("selected"),
                                            written<&NodeCounts::on>("on"),
                                            written<&NodeCounts::off>("off"),
                                            written<&NodeCounts::transitioning>("transitioning"),
                                            written<&NodeCounts::slow>("slow"),
                                            written<&NodeCounts::capped>("capped"),
                                            written<&NodeCounts::unready>("unready")};
};

template <>
struct Describe<PowerSummary> {
  static constexpr std::string_view name = "PowerSummary";
  static constexpr auto fields =
      std::array{written<&PowerSummary::measured_milliwatts>("measuredMilliwatts"),
                 written<&PowerSummary::estimated_milliwatts>("estimatedMilliwatts"),
                 written<&PowerSummary::baseline_milliwatts>("baselineMilliwatts"),
                 written<&PowerSummary::saved_watt_hours>("savedWattHours"),
                 field<&PowerSummary::saved_grams_co2>("savedGramsCO2"),
                 field<&PowerSummary::baseline>("baseline"),
                 written<&PowerSummary::watts>("watts")};
};

// The five members of its key are always written: the API server refuses a map entry without.
template <>
struct Describe<MigrationStatus> {
  static constexpr std::string_view name = "MigrationStatus";
  static constexpr auto fields = std::array{written<&MigrationStatus::pod_name>("podName"),
                                            written<&MigrationStatus::namespace_name>("namespace"),
                                            field<&MigrationStatus::from_node>("fromNode"),
                                            field<&MigrationStatus::node_name>("nodeName"),
                                            field<&MigrationStatus::bound_node>("boundNode"),
                                            field<&MigrationStatus::phase>("phase"),
                                            field<&MigrationStatus::reason>("reason")};
};

template <>
struct Describe<DvfsStatus> {
  static constexpr std::string_view name = "DvfsStatus";
  static constexpr auto fields = std::array{
      written<&DvfsStatus::node_name>("nodeName"), field<&DvfsStatus::governor>("governor"),
      field<&DvfsStatus::max_frequency_mhz>("maxFrequencyMHz"),
      field<&DvfsStatus::reason>("reason")};
};

template <>
struct Describe<CappingStatus> {
  static constexpr std::string_view name = "CappingStatus";
  static constexpr auto fields = std::array{written<&CappingStatus::node_name>("nodeName"),
                                            written<&CappingStatus::cap_watts>("capWatts"),
                                            field<&CappingStatus::reason>("reason")};
};

template <>
struct Describe<BudgetStatus> {
  static constexpr std::string_view name = "BudgetStatus";
  static constexpr auto fields =
      std::array{written<&BudgetStatus::name>("name"), written<&BudgetStatus::allowed>("allowed"),
                 written<&BudgetStatus::used>("used"), field<&BudgetStatus::binds>("binds"),
                 field<&BudgetStatus::active_until>("activeUntil")};
};

template <>
struct Describe<LastPass> {
  static constexpr std::string_view name = "LastPass";
  static constexpr auto fields =
      std::array{field<&LastPass::time>("time"),
                 field<&LastPass::duration_milliseconds>("durationMilliseconds"),
                 field<&LastPass::snapshot_age_milliseconds>("snapshotAgeMilliseconds")};
};

template <>
struct Describe<PolicyMemory> {
  static constexpr std::string_view name = "PolicyMemory";
  static constexpr auto fields =
      std::array{field<&PolicyMemory::high_since>("highSince"),
                 field<&PolicyMemory::saved_milliwatt_seconds>("savedMilliwattSeconds"),
                 field<&PolicyMemory::saved_micrograms_co2>("savedMicrogramsCO2")};
};

template <>
struct Describe<EnergyPolicyStatus> {
  static constexpr std::string_view name = "EnergyPolicyStatus";
  static constexpr auto fields =
      std::array{field<&EnergyPolicyStatus::observed_generation>("observedGeneration"),
                 field<&EnergyPolicyStatus::conditions>("conditions"),
                 written<&EnergyPolicyStatus::nodes>("nodes"),
                 written<&EnergyPolicyStatus::power>("power"),
                 field<&EnergyPolicyStatus::power_on>("powerOn"),
                 field<&EnergyPolicyStatus::power_off>("powerOff"),
                 field<&EnergyPolicyStatus::migrations>("migrations"),
                 field<&EnergyPolicyStatus::dvfs>("dvfs"),
                 field<&EnergyPolicyStatus::capping>("capping"),
                 field<&EnergyPolicyStatus::power_on_total>("powerOnTotal"),
                 field<&EnergyPolicyStatus::power_off_total>("powerOffTotal"),
                 field<&EnergyPolicyStatus::migrations_total>("migrationsTotal"),
                 field<&EnergyPolicyStatus::dvfs_total>("dvfsTotal"),
                 field<&EnergyPolicyStatus::capping_total>("cappingTotal"),
                 field<&EnergyPolicyStatus::budgets>("budgets"),
                 field<&EnergyPolicyStatus::memory>("memory"),
                 field<&EnergyPolicyStatus::last_pass>("lastPass"),
                 field<&EnergyPolicyStatus::last_action>("lastAction")};
};

template <>
struct Describe<EnergyPolicy> {
  static constexpr std::string_view name = "EnergyPolicy";
  static constexpr std::string_view api_version = "kwatt.dev/v1alpha1";
  static constexpr std::string_view object_kind = "EnergyPolicy";
  static constexpr auto fields =
      std::array{field<&EnergyPolicy::meta>("metadata"), written<&EnergyPolicy::spec>("spec"),
                 field<&EnergyPolicy::status>("status")};
};

template const TypeInfo& type_of<EnergyPolicySpec>();
template const TypeInfo& type_of<EnergyPolicyStatus>();
template const TypeInfo& type_of<EnergyPolicy>();

}  // namespace kwatt::api
