// Encoding and decoding of our own kinds.
#include <doctest/doctest.h>

#include "api/decode.hpp"
#include "api/encode.hpp"

namespace kwatt::api {
namespace {

template <class T>
bool read(std::string_view json, T& out) {
  const auto done = decode(json, out);
  if (!done) MESSAGE(done.error().text());
  return done.has_value();
}

std::string error_of(std::string_view json) {
  EnergyPolicy policy;
  const auto done = decode(json, policy);
  return done ? "" : done.error().message;
}

TEST_CASE("an empty policy has all defaults, and survives the way out and back") {
  EnergyPolicy policy;
  REQUIRE(read(R"({"metadata":{"name":"default"}})", policy));
  CHECK(policy.spec == EnergyPolicySpec{});
  const std::string text = encode(policy);
  CHECK(
      text.find(
          R"({"apiVersion":"kwatt.dev/v1alpha1","kind":"EnergyPolicy","metadata":{"name":"default"},"spec":{"mode":"Recommend","suspend":false)") ==
      0);
  CHECK(text.find("status") == std::string::npos);
  EnergyPolicy again;
  REQUIRE(read(text, again));
  CHECK(again.spec == policy.spec);
  CHECK(again.meta == policy.meta);
}

TEST_CASE("a policy with everything set survives the way out and back") {
  EnergyPolicy policy;
  policy.meta.name = "p";
  policy.meta.resource_version = "77";
  policy.meta.generation = 3;
  policy.meta.labels = {{"a", "b"}, {"c", "d\"\\\n"}};
  policy.meta.creation_timestamp = parse_rfc3339("2026-11-20T21:44:03Z");
  policy.spec.mode = Mode::Enforce;
  policy.spec.node_selector.match_labels = {{"pool", "x"}};
  policy.spec.node_selector.match_expressions = {{"zone", "In", {"a", "b"}}};
  policy.spec.power_off.idle_for = std::chrono::seconds{90};
  policy.spec.power_off.wake_test = WakeTest::Manual;
  policy.spec.placement.plugins = {{"Energy", 3}};
  policy.spec.carbon.tiers = {{200, "Normal"}};
  policy.spec.disruption.budgets = {};
  policy.status.observed_generation = 3;
  policy.status.conditions = {
      {"Ready", "True", "Running", "all well", 3, parse_rfc3339("2026-11-20T21:44:03Z")}};
  policy.status.nodes = {10, 8, 2, 0, 1, 0, 0};
  policy.status.power_off = {"node15"};
  policy.status.migrations = {{"web-1", "shop", "node15", "node2", "", "Planned", "Idle"}};
  policy.status.budgets = {{"night", 3, 1, true, parse_rfc3339("2026-11-21T06:00:00Z")}};
  policy.status.memory.high_since = parse_rfc3339("2026-11-20T20:00:00Z");
  EnergyPolicy again;
  REQUIRE(read(encode(policy), again));
  CHECK(again.meta == policy.meta);
  CHECK(again.spec == policy.spec);
  CHECK(again.status == policy.status);
}

TEST_CASE("a node power with everything set survives the way out and back") {
  NodePower machine;
  machine.meta.name = "node1";
  machine.spec.bmc = {"redfish+https://10.0.0.7/redfish/v1/Systems/1", {"bmc"}, {"ca"}};
  machine.spec.model.curve_milliwatts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  machine.spec.cap_range = {100, 300};
  const auto time = parse_rfc3339("2026-11-20T21:44:03Z");
  machine.status.power_state = PowerState::PoweringOff;
  machine.status.decision = {Desired::Off, "Idle", "idle for 10m", "default", time};
  machine.status.operation.id = "op-1";
  machine.status.operation.kind = OperationKind::PowerOff;
  machine.status.operation.deadline = time;
  machine.status.operation.moves = {{"shop", "web-1", "u1", "node2", "Evicting", time}};
  machine.status.operation.request.governor = "powersave";
  machine.status.operation.request.power_cap_watts = 0;
  machine.status.memory.idle_since = time;
  machine.status.memory.powered_off_by_us = true;
  machine.status.report.boot_id = "b";
  machine.status.report.original = {"b", "performance", "", 800, 3200, 0, {}};
  machine.status.report.available_governors = {"performance", "powersave"};
  machine.status.watts = 55;
  NodePower again;
  REQUIRE(read(encode(machine), again));
  CHECK(again.meta == machine.meta);
  CHECK(again.spec == machine.spec);
  CHECK(again.status == machine.status);
  // An optional that holds 0 is not the same as one that holds nothing.
  CHECK(again.status.operation.request.power_cap_watts == 0);
  CHECK_FALSE(again.status.operation.request.max_frequency_mhz.has_value());
}

TEST_CASE("status bodies carry only what their writer owns") {
  NodePower machine;
  machine.meta.name = "node1";
  machine.meta.resource_version = "9";
  machine.status.power_state = PowerState::On;
  machine.status.report.boot_id = "agent's";
  CHECK(apply_status(machine.meta, machine.status) ==
        R"({"apiVersion":"kwatt.dev/v1alpha1","kind":"NodePower",)"
        R"("metadata":{"name":"node1","resourceVersion":"9"},)"
        R"("status":{"powerState":"On","watts":0}})");
  AgentReport report;
  report.governor = "powersave";
  report.converged = true;
  CHECK(apply_report("node1", report) ==
        R"({"apiVersion":"kwatt.dev/v1alpha1","kind":"NodePower","metadata":{"name":"node1"},)"
        R"("status":{"report":{"governor":"powersave","converged":true}}})");
  CHECK(apply_report("node1", AgentReport{}) ==
        R"({"apiVersion":"kwatt.dev/v1alpha1","kind":"NodePower","metadata":{"name":"node1"},)"
        R"("status":{"report":{}}})");
}

TEST_CASE("counts that a column shows are written even when they are 0") {
  const std::string text = apply_status(ObjectMeta{}, EnergyPolicyStatus{});
  CHECK(text.find(R"("off":0)") != std::string::npos);
  CHECK(text.find(R"("savedWattHours":0)") != std::string::npos);
  CHECK(text.find("migrations") == std::string::npos);
}

TEST_CASE("what is wrong with a document is said by path") {
  struct Case {
    const char* json;
    const char* want;
  };
  const Case cases[] = {
      {R"({"spec":{"capping":{"capPercentOfMax":"80"}}})",
       "spec.capping.capPercentOfMax: expected integer, got string"},
      {R"({"spec":{"capping":{"capPercentOfMax":80.5}}})",
       "spec.capping.capPercentOfMax: expected integer, got 80.5"},
      {R"({"spec":{"priority":9223372036854775808}})",
       "spec.priority: expected integer, got 9223372036854775808"},
      {R"({"spec":{"mode":"Act"}})", "spec.mode: expected one of Recommend, Enforce, got \"Act\""},
      {R"({"spec":{"mode":true}})", "spec.mode: expected string, got true"},
      {R"({"spec":{"suspend":"yes"}})", "spec.suspend: expected true or false, got string"},
      {R"({"spec":{"interval":10}})",
       "spec.interval: expected a duration such as 90s or 10m, got number"},
      {R"({"spec":{"interval":"ten"}})",
       "spec.interval: expected a duration such as 90s or 10m, got \"ten\""},
      {R"({"spec":{"disruption":{"budgets":[{},{"nodes":3}]}}})",
       "spec.disruption.budgets[1].nodes: expected string, got number"},
      {R"({"spec":{"disruption":{"budgets":{}}}})",
       "spec.disruption.budgets: expected list, got object"},
      {R"({"spec":{"disruption":{"budgets":[{},null]}}})",
       "spec.disruption.budgets[1]: expected object, got null"},
      {R"({"spec":[]})", "spec: expected object, got list"},
      {R"({"metadata":{"labels":{"a":1}}})", "metadata.labels[a]: expected string, got number"},
      {R"({"metadata":{"labels":{"a":{}}}})", "metadata.labels[a]: expected string, got object"},
      {R"({"metadata":{"creationTimestamp":"soon"}})",
       "metadata.creationTimestamp: expected an RFC 3339 time, got \"soon\""},
      {R"([])", "expected object, got list"},
      {R"(3)", "expected object, got number"},
  };
  for (const Case& c : cases) {
    INFO(c.json);
    CHECK(error_of(c.json) == c.want);
  }
}

TEST_CASE("an integer may be written with a fraction of nothing, as the API server allows") {
  EnergyPolicy policy;
  REQUIRE(read(R"({"spec":{"priority":3.0}})", policy));
  CHECK(policy.spec.priority == 3);
  REQUIRE(read(R"({"spec":{"priority":-1e3}})", policy));
  CHECK(policy.spec.priority == -1000);
  CHECK(error_of(R"({"spec":{"priority":1e300}})") != "");
}

TEST_CASE("integers of every width are read") {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{2147483647}, std::int64_t{2147483648},
        std::int64_t{4294967295}, std::int64_t{4294967296}, std::int64_t{-2147483649},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    CAPTURE(value);
    EnergyPolicy policy;
    policy.spec.priority = value;
    policy.status.power.measured_milliwatts = value;
    EnergyPolicy again;
    REQUIRE(read(encode(policy), again));
    CHECK(again.spec.priority == value);
    CHECK(again.status.power.measured_milliwatts == value);
  }
}

TEST_CASE("malformed documents are refused with the place") {
  for (const char* json :
       {"", "{", "{\"a\":}", "{\"a\":1,}", "nul", "{} {}", "{\"a\":\"\\q\"}", "{\"a\":01}",
        "{\"a\":1e999}", "[1,2", "\"abc", "{\"spec\":{\"mode\":\"Enforce\"}"}) {
    INFO(json);
    CHECK(error_of(json) != "");
  }
  CHECK(error_of(std::string_view{"{}\0{}", 5}).find("a NUL character") != std::string::npos);
}

TEST_CASE("unknown members are skipped whatever they hold, null is absent") {
  EnergyPolicy policy;
  REQUIRE(read(R"({"x":{"spec":{"mode":1},"y":[[{"z":"]}"}],1.5e3,null,true]},
                     "spec":{"mode":null,"priority":null,"nodeSelector":null,
                             "future":[{}],"priority":7},
                     "metadata":{"managedFields":[{"f:a":{}}],"creationTimestamp":null}})",
               policy));
  CHECK(policy.spec.mode == Mode::Recommend);
  CHECK(policy.spec.priority == 7);
  CHECK_FALSE(policy.meta.creation_timestamp.has_value());
}

TEST_CASE("nesting is limited, in what is read and in what is skipped") {
  const auto nested = [](const std::string& key, std::size_t depth) {
    return "{\"" + key + "\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(error_of(nested("x", 63)) == "");
  CHECK(error_of(nested("x", 64)) == "nested deeper than 64 levels");
  CHECK(error_of(nested("x", 2'000'000)) == "nested deeper than 64 levels");
}

TEST_CASE("a list that is given replaces the default, and a repeated key the first one") {
  EnergyPolicy policy;
  REQUIRE(read(R"({"spec":{"disruption":{"budgets":[]}}})", policy));
  CHECK(policy.spec.disruption.budgets.empty());
  REQUIRE(read(R"({"spec":{"disruption":{"budgets":[{"nodes":"1"},{}],"budgets":[{}]}}})", policy));
  CHECK(policy.spec.disruption.budgets == std::vector<Budget>{Budget{}});
}

TEST_CASE("kubectl's copy of the object is dropped from the annotations") {
  EnergyPolicy policy;
  REQUIRE(read(R"({"metadata":{"annotations":{"a":"1",
                     "kubectl.kubernetes.io/last-applied-configuration":"{}"}}})",
               policy));
  CHECK(policy.meta.annotations == StringMap{{"a", "1"}});
}

TEST_CASE("a Status says what the API server refused and when to come back") {
  Status status;
  REQUIRE(read(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
                     "message":"Too large resource version: 5, current: 3","reason":"Timeout",
                     "details":{"causes":[{"reason":"ResourceVersionTooLarge",
                     "message":"Too large resource version"}],"retryAfterSeconds":1},"code":504})",
               status));
  CHECK(status.is_status());
  CHECK(status.code == 504);
  CHECK(status.reason == "Timeout");
  CHECK(status.details.retry_after_seconds == 1);
  CHECK(status.has_cause("ResourceVersionTooLarge"));
  CHECK_FALSE(status.has_cause("Other"));
}

TEST_CASE("what we write to Kubernetes' own kinds") {
  Lease lease;
  lease.meta.name = "kwatt";
  lease.meta.namespace_name = "kwatt-system";
  lease.holder_identity = "me";
  lease.lease_duration_seconds = 15;
  lease.renew_time = "2026-11-20T21:44:03.000000Z";
  CHECK(encode(lease) ==
        R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"kwatt",)"
        R"("namespace":"kwatt-system"},"spec":{"holderIdentity":"me","leaseDurationSeconds":15,)"
        R"("leaseTransitions":0,"renewTime":"2026-11-20T21:44:03.000000Z"}})");
  CHECK(eviction("ns", "pod", "u") ==
        R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"pod",)"
        R"("namespace":"ns"},"deleteOptions":{"preconditions":{"uid":"u"}}})");
  CHECK(delete_options("u") ==
        R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"}})");
  EventBody event;
  event.name = "node1.1";
  event.regarding_kind = "Node";
  event.note = std::string(1023, 'a') + "\xC3\xA9";  // é across the limit
  const std::string text = encode(event);
  CHECK(text.find("\"note\":\"" + std::string(1023, 'a') + "\"") != std::string::npos);
  CHECK(text.find("series") == std::string::npos);
}

}  // namespace
}  // namespace kwatt::api
