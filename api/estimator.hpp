#pragma once
// Estimator: which machines a power estimate covers, who tells their state and who predicts what
// they would draw. Served at /namespaces/<ns>/estimators/<name>/values/powerconsumption.
//
// The same spec comes under two groups: kwatt.dev/v1alpha1, and waofed.bitmedia.co.jp/v1beta1 as
// WAO-Estimator's users have it. WAO's schema knows neither enumerations nor patterns, so words and
// durations are text here, and validate() says what is wrong with them.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta.hpp"
#include "base/time.hpp"

namespace kwatt::api {

inline constexpr std::string_view kKwattApiVersion = "kwatt.dev/v1alpha1";
inline constexpr std::string_view kWaoApiVersion = "waofed.bitmedia.co.jp/v1beta1";

// Who tells the state of a machine.
inline constexpr std::array<std::string_view, 7> kAgentTypes{
    "None", "Fake", "MetricsAPI", "DifferentialPressureAPI", "IPMIExporter", "Redfish", "Agent"};
// Who predicts its power.
inline constexpr std::array<std::string_view, 5> kPredictorTypes{"None", "Fake", "MLServer",
                                                                 "TFServing", "Model"};
inline constexpr Duration kDefaultRefresh = std::chrono::seconds{30};
inline constexpr Duration kLeastRefresh = std::chrono::seconds{1};

struct NodeMonitorAgent {
  std::string type;      // a word of kAgentTypes
  std::string endpoint;  // URL; None, Fake, MetricsAPI and Agent ignore it
  bool operator==(const NodeMonitorAgent&) const = default;
};

struct NodeMonitor {
  std::string refresh_interval;  // a Go duration, "": as the default says
  std::vector<NodeMonitorAgent> agents;
  bool operator==(const NodeMonitor&) const = default;
};

struct PowerConsumptionPredictor {
  std::string type;      // a word of kPredictorTypes, "": as the default says
  std::string endpoint;  // URL of MLServer and TFServing
  bool operator==(const PowerConsumptionPredictor&) const = default;
};

struct NodeConfig {
  NodeMonitor node_monitor;
  PowerConsumptionPredictor power_consumption_predictor;
  bool operator==(const NodeConfig&) const = default;
};

struct EstimatorSpec {
  NodeConfig default_node_config;
  std::map<std::string, NodeConfig> node_config_overrides;  // by the name of the Node
};

// One machine as the estimator sees it.
struct EstimatedNode {
  std::string node_name;
  std::int64_t milliwatts = 0;       // as it is now
  std::int64_t full_milliwatts = 0;  // with all its free CPU in use
  std::int64_t free_millicores = 0;
  std::int64_t free_pods = 0;
  std::string reason;   // why nothing can be placed there, one word; "": it can
  std::string message;  // the same in a sentence
  bool operator==(const EstimatedNode&) const = default;
};

struct EstimatorStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;  // Accepted, PredictorsAvailable, Ready
  std::int64_t nodes_total = 0, nodes_usable = 0;
  std::int64_t watts = 0;            // of the usable ones, now
  std::vector<EstimatedNode> nodes;  // those that cannot be used first; bounded to 100
  std::optional<TimePoint> refreshed_at;
};

struct Estimator {
  ObjectMeta meta;
  EstimatorSpec spec;
  EstimatorStatus status;
};

// What is wrong, as "<path>: <sentence>". Empty: nothing. Not whether endpoints are allowed.
std::vector<std::string> validate(const EstimatorSpec& spec);

// What counts for a node: the default with what its override names laid over it, as WAO merges
// (agents as a whole list, the predictor's type and endpoint one by one), and no word empty:
// without any, type None. Of a valid spec.
NodeConfig config_of(const EstimatorSpec& spec, const std::string& node);
Duration refresh_of(const NodeConfig& config);

// Server-side apply body of the status subresource, with the resourceVersion as a guard.
// `api_version`: which of the two kinds the object is of.
std::string apply_status(std::string_view api_version, const ObjectMeta& meta,
                         const EstimatorStatus& status);

}  // namespace kwatt::api
