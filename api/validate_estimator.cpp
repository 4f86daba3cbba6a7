// The rules of Estimator: those of crds/estimators.yaml once more, and how its parts are merged.
#include "api/estimator.hpp"
#include "api/problems.hpp"

namespace kwatt::api {
namespace {

constexpr std::size_t kAgentLimit = 8;
constexpr std::size_t kOverrideLimit = 10'000;
constexpr std::size_t kEndpointLimit = 1024;

bool needs_endpoint(std::string_view type) {
  return type == "DifferentialPressureAPI" || type == "IPMIExporter" || type == "Redfish" ||
         type == "MLServer" || type == "TFServing";
}

void check_endpoint(const std::string& path, std::string_view type, const std::string& endpoint,
                    Problems& out) {
  out.length(path + ".endpoint", endpoint, kEndpointLimit);
  const bool url = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  if (needs_endpoint(type) && !url) {
    out.add(path + ".endpoint", "\"{}\" must be an http or https URL, because type is {}", endpoint,
            type);
  }
}

void check(const NodeConfig& config, const std::string& path, Problems& out) {
  const NodeMonitor& monitor = config.node_monitor;
  const std::string agents = path + ".nodeMonitor.agents";
  out.size(agents, monitor.agents.size(), kAgentLimit);
  for (std::size_t i = 0; i < monitor.agents.size(); ++i) {
    const NodeMonitorAgent& agent = monitor.agents[i];
    const std::string where = fmt::format("{}[{}]", agents, i);
    out.one_of(where + ".type", agent.type, kAgentTypes);
    check_endpoint(where, agent.type, agent.endpoint, out);
  }
  if (!monitor.refresh_interval.empty()) {
    const std::string where = path + ".nodeMonitor.refreshInterval";
    const auto interval = parse_go_duration(monitor.refresh_interval);
    if (!interval) {
      out.add(where, "\"{}\" must be a duration such as 30s or 1m", monitor.refresh_interval);
    } else {
      out.at_least(where, *interval, kLeastRefresh);
      out.at_most(where, *interval, std::chrono::hours{24});
    }
  }
  const PowerConsumptionPredictor& predictor = config.power_consumption_predictor;
  const std::string where = path + ".powerConsumptionPredictor";
  if (!predictor.type.empty()) out.one_of(where + ".type", predictor.type, kPredictorTypes);
  out.length(where + ".endpoint", predictor.endpoint, kEndpointLimit);
}

}  // namespace

std::vector<std::string> validate(const EstimatorSpec& spec) {
  Problems out;
  check(spec.default_node_config, "spec.defaultNodeConfig", out);
  out.size("spec.nodeConfigOverrides", spec.node_config_overrides.size(), kOverrideLimit);
  const auto& predictor = spec.default_node_config.power_consumption_predictor;
  check_endpoint("spec.defaultNodeConfig.powerConsumptionPredictor", predictor.type,
                 predictor.endpoint, out);
  for (const auto& [node, config] : spec.node_config_overrides) {
    const std::string path = fmt::format("spec.nodeConfigOverrides[{}]", node);
    check(config, path, out);
    // Either of type and endpoint may come from the default.
    const auto merged = config_of(spec, node).power_consumption_predictor;
    if (config.power_consumption_predictor != PowerConsumptionPredictor{}) {
      check_endpoint(path + ".powerConsumptionPredictor", merged.type, merged.endpoint, out);
    }
  }
  return out.take();
}

NodeConfig config_of(const EstimatorSpec& spec, const std::string& node) {
  NodeConfig merged = spec.default_node_config;
  const auto found = spec.node_config_overrides.find(node);
  if (found != spec.node_config_overrides.end()) {
    const NodeConfig& own = found->second;
    if (!own.node_monitor.refresh_interval.empty()) {
      merged.node_monitor.refresh_interval = own.node_monitor.refresh_interval;
    }
    if (!own.node_monitor.agents.empty()) merged.node_monitor.agents = own.node_monitor.agents;
    const PowerConsumptionPredictor& predictor = own.power_consumption_predictor;
    if (!predictor.type.empty()) merged.power_consumption_predictor.type = predictor.type;
    if (!predictor.endpoint.empty()) {
      merged.power_consumption_predictor.endpoint = predictor.endpoint;
    }
  }
  if (merged.power_consumption_predictor.type.empty()) {
    merged.power_consumption_predictor.type = "None";
  }
  return merged;
}

Duration refresh_of(const NodeConfig& config) {
  return parse_go_duration(config.node_monitor.refresh_interval).value_or(kDefaultRefresh);
}

}  // namespace kwatt::api
