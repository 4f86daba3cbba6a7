#pragma once
// EnergyPolicy (kwatt.dev/v1alpha1, cluster-scoped, short name enp). The default member values are
// the defaults of the CRD; a test compares them with crds/energypolicies.yaml field by field.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.hpp"
#include "base/time.hpp"

namespace kwatt::api {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

enum class Mode { Recommend, Enforce };
enum class WakeTest { Auto, Manual, Skip };
enum class MigrationStrategy { FewestPods, BestSaving };
enum class CapMethod { Auto, BMC, RAPL };
enum class PlacementStrategy {
  Default,
  FCFS,
  RoundRobin,
  MinMin,
  MaxMin,
  EnergyAware,
  ECSched,
  CarbonAware
};

struct HeadroomSpec {
  std::int64_t cpu_percent = 10, memory_percent = 10;
  bool operator==(const HeadroomSpec&) const = default;
};

struct PowerOnSpec {
  bool enabled = true;
  Duration pending_for = seconds{0};
  HeadroomSpec headroom;
  std::int64_t high_utilization_percent = 81;
  Duration high_for = minutes{5};
  std::int64_t max_per_minute = 300;
  Duration boot_timeout = minutes{15};
  bool operator==(const PowerOnSpec&) const = default;
};

struct PowerOffSpec {
  bool enabled = true;
  Duration idle_for = minutes{10};
  std::int64_t min_awake = 1, min_awake_per_zone = 1;
  Duration min_on_duration = minutes{30}, min_off_duration = minutes{10};
  std::int64_t max_cycles_per_day = 6;
  std::int64_t max_per_minute = 60;
  Duration soft_timeout = seconds{180};
  WakeTest wake_test = WakeTest::Auto;
  bool operator==(const PowerOffSpec&) const = default;
};

struct MigrationSpec {
  bool enabled = false;
  MigrationStrategy strategy = MigrationStrategy::BestSaving;
  std::int64_t max_nodes = 1;
  std::int64_t utilization_below_percent = 50;
  std::int64_t min_saving_score = 50;
  Duration drain_timeout = minutes{10}, eviction_retry = minutes{2};
  bool operator==(const MigrationSpec&) const = default;
};

// What a frequency level asks of the machine; 0 and "" leave the choice to the driver.
struct FrequencyLevel {
  std::string governor;
  std::int64_t max_frequency_mhz = 0;
  std::string energy_performance_preference;
  bool operator==(const FrequencyLevel&) const = default;
};

struct DvfsMigrationSpec {
  bool enabled = false;
  std::int64_t above_percent = 80, until_percent = 60, max_pods = 5;
  bool operator==(const DvfsMigrationSpec&) const = default;
};

struct DvfsSpec {
  bool enabled = false;
  std::int64_t low_utilization_percent = 30, high_utilization_percent = 60;
  Duration window = seconds{60};
  FrequencyLevel low{"powersave", 0, ""}, high{"performance", 0, ""};
  std::int64_t idle_nodes = 0;
  std::int64_t max_slowdown_percent = 5;
  DvfsMigrationSpec migration;
  bool operator==(const DvfsSpec&) const = default;
};

struct CappingMigrationSpec {
  bool enabled = false;
  std::int64_t max_pods = 3;
  bool operator==(const CappingMigrationSpec&) const = default;
};

struct CappingSpec {
  bool enabled = false;
  CapMethod method = CapMethod::Auto;
  std::int64_t above_percent_of_max = 90, cap_percent_of_max = 80, release_percent_of_max = 70;
  Duration window = seconds{60};
  std::int64_t budget_watts = 0;
  CappingMigrationSpec migration;
  bool operator==(const CappingSpec&) const = default;
};

struct PluginWeight {
  std::string name;
  std::int64_t weight = 1;
  bool operator==(const PluginWeight&) const = default;
};

struct PlacementSpec {
  PlacementStrategy strategy = PlacementStrategy::EnergyAware;
  std::vector<PluginWeight> plugins;
  bool operator==(const PlacementSpec&) const = default;
};

struct CarbonTier {
  std::int64_t below_grams_per_kwh = 0;
  std::string action;
  bool operator==(const CarbonTier&) const = default;
};

struct CarbonSpec {
  std::string source, zone;
  std::vector<CarbonTier> tiers;
  Duration stale_after = hours{1}, max_delay = hours{24};
  bool operator==(const CarbonSpec&) const = default;
};

// Karpenter's budget shape, plus timeZone and allow. `nodes` is "10%" or "3".
struct Budget {
  std::string name;
  std::string nodes = "10%";
  std::string schedule;  // cron; empty: always active, then duration must be 0 as well
  Duration duration{0};
  std::vector<std::string> reasons;
  std::string time_zone;
  bool allow = true;  // false: while active, nothing is allowed
  bool operator==(const Budget&) const = default;
};

struct DisruptionSpec {
  std::vector<Budget> budgets{Budget{}};
  bool respect_do_not_disrupt = true;
  std::int64_t min_replicas = 0;  // pods whose owner wants fewer replicas are not moved
  bool operator==(const DisruptionSpec&) const = default;
};

struct EnergyPolicySpec {
  Mode mode = Mode::Recommend;
  bool suspend = false;
  std::int64_t priority = 0;
  LabelSelector node_selector;
  bool include_control_plane = false;
  Duration interval = seconds{10};
  PowerOnSpec power_on;
  PowerOffSpec power_off;
  MigrationSpec migration;
  DvfsSpec dvfs;
  CappingSpec capping;
  PlacementSpec placement;
  CarbonSpec carbon;
  DisruptionSpec disruption;
  bool operator==(const EnergyPolicySpec&) const = default;
};

// ---- status: decisions of the last pass; lists bounded to kStatusListLimit, totals beside them.
inline constexpr std::size_t kStatusListLimit = 100;

struct NodeCounts {
  std::int64_t selected = 0, on = 0, off = 0, transitioning = 0, slow = 0, capped = 0, unready = 0;
  bool operator==(const NodeCounts&) const = default;
};

struct PowerSummary {
  std::int64_t measured_milliwatts = 0, estimated_milliwatts = 0, baseline_milliwatts = 0;
  std::int64_t saved_watt_hours = 0;  // boots and shutdowns counted; negative: they cost more
  std::optional<std::int64_t> saved_grams_co2;  // nullopt: the carbon intensity is not known
  std::string baseline;                         // one sentence: what the saving is compared with
  std::int64_t watts = 0;  // measured and estimated together, for the WATTS column
  bool operator==(const PowerSummary&) const = default;
};

struct MigrationStatus {
  std::string pod_name, namespace_name, from_node;
  std::string node_name;   // planned destination
  std::string bound_node;  // where the replacement came up
  std::string phase;       // Planned Evicting Evicted Bound Failed
  std::string reason;
  bool operator==(const MigrationStatus&) const = default;
};

struct DvfsStatus {
  std::string node_name, governor;
  std::int64_t max_frequency_mhz = 0;
  std::string reason;
  bool operator==(const DvfsStatus&) const = default;
};

struct CappingStatus {
  std::string node_name;
  std::int64_t cap_watts = 0;  // 0: the cap is released
  std::string reason;
  bool operator==(const CappingStatus&) const = default;
};

struct BudgetStatus {
  std::string name;
  std::int64_t allowed = 0, used = 0;
  bool binds = false;  // the strictest of those in force for some reason
  std::optional<TimePoint> active_until;
  bool operator==(const BudgetStatus&) const = default;
};

struct LastPass {
  std::optional<TimePoint> time;
  std::int64_t duration_milliseconds = 0, snapshot_age_milliseconds = 0;
  bool operator==(const LastPass&) const = default;
};

// What a policy must remember between passes and across restarts.
struct PolicyMemory {
  std::optional<TimePoint> high_since;       // awake nodes above highUtilizationPercent since then
  std::int64_t saved_milliwatt_seconds = 0;  // saved, but not yet a whole watt-hour
  std::int64_t saved_micrograms_co2 = 0;     // likewise, not yet a whole gram
  bool operator==(const PolicyMemory&) const = default;
};

struct EnergyPolicyStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  NodeCounts nodes;
  PowerSummary power;
  std::vector<std::string> power_on, power_off;
  std::vector<MigrationStatus> migrations;
  std::vector<DvfsStatus> dvfs;
  std::vector<CappingStatus> capping;
  std::int64_t power_on_total = 0, power_off_total = 0, migrations_total = 0, dvfs_total = 0,
               capping_total = 0;
  std::vector<BudgetStatus> budgets;
  PolicyMemory memory;
  LastPass last_pass;
  std::string last_action;  // the newest thing done, one short sentence (printer column)
  bool operator==(const EnergyPolicyStatus&) const = default;
};

struct EnergyPolicy {
  ObjectMeta meta;
  EnergyPolicySpec spec;
  EnergyPolicyStatus status;
};

// All semantic rules, those of the CRD's CEL among them. Empty: valid. Each entry names the field
// by its JSON path and says what to do: "spec.capping.releasePercentOfMax: 85 must be below …".
std::vector<std::string> validate(const EnergyPolicySpec& spec);

}  // namespace kwatt::api
