// The JSON shape of Estimator. crds/estimators.yaml says the same; a test compares them.
#include "api/describe_meta.hpp"
#include "api/estimator.hpp"

namespace kwatt::api {

template <>
struct Describe<NodeMonitorAgent> {
  static constexpr std::string_view name = "NodeMonitorAgent";
  static constexpr auto fields = std::array{written<&NodeMonitorAgent::type>("type"),
                                            field<&NodeMonitorAgent::endpoint>("endpoint")};
};

template <>
struct Describe<NodeMonitor> {
  static constexpr std::string_view name = "NodeMonitor";
  static constexpr auto fields =
      std::array{field<&NodeMonitor::refresh_interval>("refreshInterval"),
                 field<&NodeMonitor::agents>("agents")};
};

template <>
struct Describe<PowerConsumptionPredictor> {
  static constexpr std::string_view name = "PowerConsumptionPredictor";
  static constexpr auto fields =
      std::array{field<&PowerConsumptionPredictor::type>("type"),
                 field<&PowerConsumptionPredictor::endpoint>("endpoint")};
};

template <>
struct Describe<NodeConfig> {
  static constexpr std::string_view name = "NodeConfig";
  static constexpr auto fields =
      std::array{field<&NodeConfig::node_monitor>("nodeMonitor"),
                 field<&NodeConfig::power_consumption_predictor>("powerConsumptionPredictor")};
};

template <>
struct Describe<EstimatorSpec> {
  static constexpr std::string_view name = "EstimatorSpec";
  static constexpr auto fields =
      std::array{field<&EstimatorSpec::default_node_config>("defaultNodeConfig"),
                 field<&EstimatorSpec::node_config_overrides>("nodeConfigOverrides")};
};

template <>
struct Describe<EstimatedNode> {
  static constexpr std::string_view name = "EstimatedNode";
  static constexpr auto fields =
      std::array{written<&EstimatedNode::node_name>("nodeName"),
                 written<&EstimatedNode::milliwatts>("milliwatts"),
                 written<&EstimatedNode::full_milliwatts>("fullMilliwatts"),
                 written<&EstimatedNode::free_millicores>("freeMillicores"),
                 written<&EstimatedNode::free_pods>("freePods"),
                 field<&EstimatedNode::reason>("reason"),
                 field<&EstimatedNode::message>("message")};
};

template <>
struct Describe<EstimatorStatus> {
  static constexpr std::string_view name = "EstimatorStatus";
  static constexpr auto fields =
      std::array{field<&EstimatorStatus::observed_generation>("observedGeneration"),
                 field<&EstimatorStatus::conditions>("conditions"),
                 written<&EstimatorStatus::nodes_total>("nodesTotal"),
                 written<&EstimatorStatus::nodes_usable>("nodesUsable"),
                 written<&EstimatorStatus::watts>("watts"),
                 field<&EstimatorStatus::nodes>("nodes"),
                 field<&EstimatorStatus::refreshed_at>("refreshedAt")};
};

template <>
struct Describe<Estimator> {
  static constexpr std::string_view name = "Estimator";
  static constexpr std::string_view api_version = kKwattApiVersion;
  static constexpr std::string_view object_kind = "Estimator";
  static constexpr auto fields =
      std::array{field<&Estimator::meta>("metadata"), field<&Estimator::spec>("spec"),
                 field<&Estimator::status>("status")};
};

template const TypeInfo& type_of<EstimatorSpec>();
template const TypeInfo& type_of<EstimatorStatus>();
template const TypeInfo& type_of<Estimator>();

}  // namespace kwatt::api
