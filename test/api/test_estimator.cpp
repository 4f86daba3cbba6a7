#include <doctest/doctest.h>
#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "api/estimator.hpp"

namespace kwatt::api {
namespace {

// The object that WAO-Estimator's users write, with every part.
constexpr std::string_view kWaoObject = R"({
  "apiVersion": "waofed.bitmedia.co.jp/v1beta1", "kind": "Estimator",
  "metadata": {"namespace": "default", "name": "default"},
  "spec": {
    "defaultNodeConfig": {
      "nodeMonitor": {"refreshInterval": "5s", "agents": [
        {"type": "IPMIExporter", "endpoint": "http://localhost:9290/metrics"},
        {"type": "DifferentialPressureAPI", "endpoint": "http://localhost:5000/api/sensor/101037B"}]},
      "powerConsumptionPredictor": {"type": "MLServer",
        "endpoint": "http://mlserver:8080/v2/models/model1/versions/v0.1.0/infer"}},
    "nodeConfigOverrides": {
      "controlplane0": {"nodeMonitor": {"agents": [{"type": "None"}]},
                        "powerConsumptionPredictor": {"type": "None"}},
      "worker0": {"nodeMonitor": {"agents": [
          {"type": "Redfish", "endpoint": "https://10.0.0.1/redfish/v1"}]}},
      "worker1": null}}})";

TEST_CASE("an Estimator of WAO's users is read whole, and merged as WAO merges it") {
  Estimator estimator;
  const auto done = decode(kWaoObject, estimator);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  CHECK(validate(estimator.spec).empty());
  REQUIRE(estimator.spec.node_config_overrides.size() == 3);

  const NodeConfig control = config_of(estimator.spec, "controlplane0");
  CHECK(control.power_consumption_predictor.type == "None");
  CHECK(control.node_monitor.agents == std::vector<NodeMonitorAgent>{{"None", ""}});
  CHECK(refresh_of(control) == std::chrono::seconds{5});

  const NodeConfig worker = config_of(estimator.spec, "worker0");
  CHECK(worker.power_consumption_predictor.type == "MLServer");
  CHECK(worker.node_monitor.agents.at(0).type == "Redfish");

  CHECK(config_of(estimator.spec, "worker1") == config_of(estimator.spec, "any other"));
}

TEST_CASE("an Estimator that says nothing places nothing, every 30 seconds") {
  const NodeConfig config = config_of(EstimatorSpec{}, "a");
  CHECK(config.power_consumption_predictor.type == "None");
  CHECK(config.node_monitor.agents.empty());
  CHECK(refresh_of(config) == kDefaultRefresh);
}

TEST_CASE("what is wrong with an Estimator is said with its place") {
  struct Case {
    const char* name;
    std::string spec;
    std::string want;
  };
  const Case cases[] = {
      {"unknown agent", R"({"defaultNodeConfig":{"nodeMonitor":{"agents":[{"type":"Snmp"}]}}})",
       R"(spec.defaultNodeConfig.nodeMonitor.agents[0].type: "Snmp" must be one of None, Fake, )"
       "MetricsAPI, DifferentialPressureAPI, IPMIExporter, Redfish, Agent"},
      {"unknown predictor",
       R"({"defaultNodeConfig":{"powerConsumptionPredictor":{"type":"Oracle"}}})",
       R"(spec.defaultNodeConfig.powerConsumptionPredictor.type: "Oracle" must be one of None, )"
       "Fake, MLServer, TFServing, Model"},
      {"no endpoint", R"({"defaultNodeConfig":{"powerConsumptionPredictor":{"type":"MLServer"}}})",
       R"(spec.defaultNodeConfig.powerConsumptionPredictor.endpoint: "" must be an http or https )"
       "URL, because type is MLServer"},
      {"another scheme",
       R"({"defaultNodeConfig":{"nodeMonitor":{"agents":[{"type":"Redfish","endpoint":"file:///etc"}]}}})",
       R"(spec.defaultNodeConfig.nodeMonitor.agents[0].endpoint: "file:///etc" must be an http or )"
       "https URL, because type is Redfish"},
      {"no duration",
       R"({"defaultNodeConfig":{"nodeMonitor":{"refreshInterval":"soon","agents":[]}}})",
       R"(spec.defaultNodeConfig.nodeMonitor.refreshInterval: "soon" must be a duration such as )"
       "30s or 1m"},
      {"too often",
       R"({"defaultNodeConfig":{"nodeMonitor":{"refreshInterval":"10ms","agents":[]}}})",
       "spec.defaultNodeConfig.nodeMonitor.refreshInterval: 10ms must be at least 1s"},
      {"an override that lacks the endpoint",
       R"({"nodeConfigOverrides":{"a":{"powerConsumptionPredictor":{"type":"TFServing"}}}})",
       R"(spec.nodeConfigOverrides[a].powerConsumptionPredictor.endpoint: "" must be an http or )"
       "https URL, because type is TFServing"}};
  for (const Case& c : cases) {
    CAPTURE(c.name);
    EstimatorSpec spec;
    REQUIRE(decode(c.spec, spec).has_value());
    const auto problems = validate(spec);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0] == c.want);
  }
}

TEST_CASE("an Estimator of the wrong shape is refused with its path") {
  EstimatorSpec spec;
  const auto done = decode(R"({"nodeConfigOverrides":{"a":[1]}})", spec);
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().text().find("nodeConfigOverrides[a]") != std::string::npos);
}

TEST_CASE("the status of an Estimator is written for the group that the object is of") {
  ObjectMeta meta;
  meta.name = "default";
  meta.namespace_name = "team-a";
  meta.resource_version = "7";
  EstimatorStatus status;
  status.nodes_total = 2;
  EstimatedNode& node = status.nodes.emplace_back();
  node.node_name = "a";
  node.milliwatts = 100'000;
  node.reason = "Tainted";
  const std::string body = apply_status(kWaoApiVersion, meta, status);
  CHECK(body == R"({"apiVersion":"waofed.bitmedia.co.jp/v1beta1","kind":"Estimator",)"
                R"("metadata":{"name":"default","namespace":"team-a","resourceVersion":"7"},)"
                R"("status":{"nodesTotal":2,"nodesUsable":0,"watts":0,"nodes":[{"nodeName":"a",)"
                R"("milliwatts":100000,"fullMilliwatts":0,"freeMillicores":0,"freePods":0,)"
                R"("reason":"Tainted"}]}})");
}

TEST_CASE("an Estimator is written as it was read") {
  Estimator first, second;
  REQUIRE(decode(kWaoObject, first).has_value());
  REQUIRE(decode(encode(first), second).has_value());
  CHECK(encode(first) == encode(second));
  CHECK(second.spec.node_config_overrides == first.spec.node_config_overrides);
}

}  // namespace
}  // namespace kwatt::api
