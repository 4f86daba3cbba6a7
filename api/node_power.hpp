#pragma once
// NodePower (kwatt.dev/v1alpha1, cluster-scoped, short name npw): one machine, named like its Node.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.hpp"
#include "base/time.hpp"

namespace kwatt::api {

enum class PowerState { Unknown, On, Off, PoweringOn, PoweringOff, Draining, WakeFailed };
enum class Desired { None, On, Off };
// Who enforces a power cap: the machine's controller, or the agent with RAPL.
enum class CapBy { None, BMC, RAPL };
enum class OperationKind { None, PowerOff, PowerOn, Migrate, SetFrequency, SetCap, Release };

struct BmcSpec {
  std::string address;  // redfish+https://…, lab+http://…, later ipmi, wol, command, metal3
  SecretReference credentials_secret_ref, ca_secret_ref;
  bool operator==(const BmcSpec&) const = default;
};

struct PowerModelSpec {
  std::vector<std::int64_t> curve_milliwatts;  // 11 points at 0, 10 … 100 % load, or empty
  std::int64_t idle_milliwatts = 0, max_milliwatts = 0;
  std::int64_t boot_seconds = 0, boot_joules = 0, shutdown_seconds = 0, ops_per_joule = 0;
  std::int64_t standby_milliwatts = 0;  // while it is off: BMC and power supply
  bool operator==(const PowerModelSpec&) const = default;
};

struct CapRange {
  std::int64_t min_watts = 0, max_watts = 0;  // 0: not given
  bool operator==(const CapRange&) const = default;
};

struct NodePowerSpec {
  BmcSpec bmc;
  PowerModelSpec model;
  CapRange cap_range;
  bool operator==(const NodePowerSpec&) const = default;
};

// Why the machine is as it is. `reason` is a word of api/reason.hpp.
struct NodeDecision {
  Desired desired = Desired::None;
  std::string reason, message, policy;
  std::optional<TimePoint> since;  // changes only with desired or reason
  bool operator==(const NodeDecision&) const = default;
};

struct PodMove {
  std::string namespace_name, pod_name, uid;
  std::string node_name;  // reserved destination
  std::string phase;      // "" Evicting Evicted
  std::optional<TimePoint> next_attempt;
  bool operator==(const PodMove&) const = default;
};

// What an operation asks the agent for; absent keys are not touched by us.
struct AgentRequest {
  std::optional<std::string> governor, epp;
  std::optional<std::int64_t> max_frequency_mhz, power_cap_watts;
  bool operator==(const AgentRequest&) const = default;
};

// The commit point of every multi-step action: written with resourceVersion before any side effect.
struct Operation {
  std::string id;  // "" : none in progress
  OperationKind kind = OperationKind::None;
  std::string step;  // see planner/steps.hpp
  std::string policy, reason;
  std::optional<TimePoint> started_at, step_started_at, deadline;
  bool cordoned_by_us = false;
  bool then_wake = false;  // a wake test: power on again as soon as Off is verified
  std::vector<PodMove> moves;
  AgentRequest request;
  CapBy cap_by = CapBy::None;  // of a SetCap; BMC: request.powerCapWatts is for the BMC
  bool operator==(const Operation&) const = default;
};

// Hysteresis and cool-downs: goes into the planner and comes out of it explicitly.
struct NodeMemory {
  std::optional<TimePoint> idle_since, last_on, last_off, cool_down_until, next_attempt,
      wake_verified_at;
  std::int64_t cycles_today = 0;
  std::string cycles_day;  // the UTC day cyclesToday counts, "2026-11-20"
  std::int64_t failure_count = 0;
  bool powered_off_by_us = false;
  bool cordoned_by_us = false;  // outlives the operation: the cordon of a node that is off
  std::string owner_policy;     // the policy under which we hold anything on this node
  bool operator==(const NodeMemory&) const = default;
};

struct OriginalSettings {
  std::string boot_id, governor, epp;
  std::int64_t min_mhz = 0, max_mhz = 0, cap_watts = 0;
  std::string exact;  // the same per CPU policy and power zone, unrounded; the agent's own notation
  bool operator==(const OriginalSettings&) const = default;
};

// Written by the node's agent only (field manager kwatt-agent).
struct AgentReport {
  std::string boot_id;
  std::optional<TimePoint> time;
  std::string agent_version;
  std::int64_t watts = 0;
  std::string watts_source;
  std::int64_t cpu_utilization_percent = 0;
  std::string governor;
  std::int64_t min_mhz = 0, max_mhz = 0, current_mhz = 0;
  std::int64_t max_uncore_mhz = 0;
  std::string applied_request;  // id of the newest request that was applied and read back
  std::int64_t requested_cap_watts = 0, effective_cap_watts = 0;
  bool converged = false;
  OriginalSettings original;
  std::vector<std::string> errors;
  // What the hardware offers, so that the planner can refuse with OutOfRange.
  std::vector<std::string> available_governors;
  std::int64_t hardware_min_mhz = 0, hardware_max_mhz = 0, cap_min_watts = 0, cap_max_watts = 0;
  bool can_power_off = false;  // the agent has a --power-off-command
  bool operator==(const AgentReport&) const = default;
};

// The power limit of the machine's own controller (BMC): what it offers, and what of it is ours.
struct BmcStatus {
  bool power_limit = false;                           // it takes one
  std::int64_t cap_min_watts = 0, cap_max_watts = 0;  // 0: it does not say
  std::int64_t requested_cap_watts = 0;               // by us; 0: none
  std::int64_t effective_cap_watts = 0;               // as last read back, whoever set it; 0: none
  // Recorded before our first write, gone once it is in force again: while it is known, the BMC
  // holds something of ours, or may.
  bool original_known = false;
  std::int64_t original_cap_watts = 0;  // 0: there was no limit
  // The last attempt to set or restore a limit failed.
  std::int64_t failure_count = 0;
  std::optional<TimePoint> next_attempt;
  std::string error;
  bool operator==(const BmcStatus&) const = default;
};

// How the machine's power is known, best first: a meter; what its meter taught about it before it
// fell silent; spec.model; the model of a machine with so many CPUs. None: not known yet, or off.
enum class PowerBasis { None, Measured, Fitted, Specified, Default };

// Power of the machine now.
struct MachinePower {
  std::int64_t milliwatts = 0;
  PowerBasis source = PowerBasis::None;
  // Measured: who measures. "hwmon", "rapl", "rapl-psys": the agent; "redfish", "ipmi" …: the BMC;
  // others by the words of telemetry::Source.
  std::string meter;
  std::optional<TimePoint> time;  // Measured: when
  // Fitted: mean error of the fit over what it was made from; 0: less than half a percent.
  std::int64_t error_percent = 0;
  bool operator==(const MachinePower&) const = default;
};

struct NodePowerStatus {
  PowerState power_state = PowerState::Unknown;
  std::optional<TimePoint> power_state_since;
  NodeDecision decision;
  Operation operation;
  NodeMemory memory;
  AgentReport report;
  BmcStatus bmc;
  std::int64_t watts = 0;  // shown in the WATTS column: `power` in whole watts
  MachinePower power;
  bool operator==(const NodePowerStatus&) const = default;
};

struct NodePower {
  ObjectMeta meta;
  NodePowerSpec spec;
  NodePowerStatus status;
};

std::vector<std::string> validate(const NodePowerSpec& spec);

}  // namespace kwatt::api
