// The bodies we send, each with every member set, as golden files. test_bodies_on_apiserver.py
// sends the same files to a real API server, which must store all of them unchanged.
//
// After a wanted change: KWATT_UPDATE_GOLDEN=1 test_api -tc="*golden*"
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "api/decode.hpp"
#include "api/encode.hpp"
#include "test/support/source_dir.hpp"

namespace kwatt::api {
namespace {

// Gives every member below `value` something to say: lists an element, optionals a value.
class Filler {
 public:
  void fill(const TypeInfo& type, void* value, std::string_view name) {
    ++count_;
    switch (type.kind) {
      case TypeKind::boolean:
      case TypeKind::presence:
        *static_cast<bool*>(value) = true;
        break;
      case TypeKind::integer:
        *static_cast<std::int64_t*>(value) = count_;
        break;
      case TypeKind::string:
        *static_cast<std::string*>(value) = std::string{name} + "-" + std::to_string(count_);
        break;
      case TypeKind::enumeration:
        type.set_word(value, type.words.size() - 1);
        break;
      case TypeKind::duration:
        *static_cast<Duration*>(value) = minutes{1} + Duration{count_};
        break;
      case TypeKind::timestamp:
        *static_cast<TimePoint*>(value) = *parse_rfc3339("2026-11-20T21:44:03Z") + seconds{count_};
        break;
      case TypeKind::string_map:
        static_cast<StringMap*>(value)->set("key", "value");
        break;
      case TypeKind::list:
        type.clear(value);
        fill(type.element(), type.append(value), name);
        break;
      case TypeKind::object_map:
        fill(type.element(), type.place(value, "key"), name);
        break;
      case TypeKind::optional:
        fill(type.element(), type.append(value), name);
        break;
      case TypeKind::object:
        for (const FieldInfo& field : type.fields) {
          fill(field.type(), field.member(value), field.name);
        }
        break;
    }
  }

 private:
  int count_ = 0;
};

template <class T>
T filled() {
  T out;
  Filler{}.fill(type_of<T>(), &out, "x");
  return out;
}

ObjectMeta named(const char* name) {
  ObjectMeta meta;
  meta.name = name;
  return meta;
}

void check_golden(const std::string& file, const std::string& body) {
  const std::string path = test::source_path("test/golden/bodies/" + file);
  if (std::getenv("KWATT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << body << '\n';
  std::ifstream stream(path);
  REQUIRE_MESSAGE(stream.good(), path);
  std::ostringstream want;
  want << stream.rdbuf();
  CHECK(body + "\n" == want.str());
}

TEST_CASE("golden: the whole status of a policy") {
  auto status = filled<EnergyPolicyStatus>();
  status.conditions[0].status = "True";
  status.conditions[0].reason = "Golden";
  check_golden("energypolicy-status.json", apply_status(named("golden"), status));
}

TEST_CASE("golden: the controller's part of the status of a machine") {
  check_golden("nodepower-status.json", apply_status(named("golden"), filled<NodePowerStatus>()));
}

TEST_CASE("golden: the agent's part of the status of a machine") {
  check_golden("nodepower-report.json", apply_report("golden", filled<NodePowerStatus>().report));
}

TEST_CASE("golden: the whole status of a site and of a recommendation") {
  auto site = filled<SiteStatus>();
  site.conditions[0].status = "True";
  site.conditions[0].reason = "Golden";
  check_golden("site-status.json", apply_status(named("golden"), site));
  auto recommendation = filled<SiteRecommendationStatus>();
  recommendation.conditions = site.conditions;
  check_golden("siterecommendation-status.json", apply_status(named("golden"), recommendation));
}

TEST_CASE("golden: whole objects, as they are created") {
  EnergyPolicy policy;
  policy.meta = named("golden-whole");
  policy.spec.node_selector = {{{"pool", "x"}}, {{"zone", "In", {"a"}}}};
  policy.spec.placement.plugins = {{"Spread", 2}};
  policy.spec.carbon.tiers = {{200, "Normal"}};
  policy.spec.disruption.budgets.push_back(
      {"night", "50%", "0 22 * * *", hours{8}, {"Idle"}, "Europe/Berlin", false});
  check_golden("energypolicy.json", encode(policy));
  NodePower machine;
  machine.meta = named("golden-whole");
  machine.spec.model.curve_milliwatts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  check_golden("nodepower.json", encode(machine));
  Site site;
  site.meta = named("golden-whole");
  site.spec.region = "eu";
  site.spec.partition_labels = {{"row", "7"}};
  site.spec.taints = {{"maintenance", "", TaintEffect::PreferNoSchedule}};
  site.spec.indicators = {{"cost", 3}};
  site.spec.metrics = {{SiteMetricValue::BandwidthUsedMbps, "sum(rate(x[1m]))"}};
  site.spec.cluster = {"member1", ClusterAccess::KarmadaProxy, {}};
  site.spec.estimator = {
      "kwatt-system", "pc", "", {"kwatt-system", "estimator", 5656, ServiceAccess::Proxy}, {}};
  check_golden("site.json", encode(site));
  SiteRecommendation recommendation;
  recommendation.meta = named("golden-whole");
  recommendation.spec.bandwidth = {{"uplink", 10}};
  recommendation.spec.tolerations = {{"", TolerationOperator::Exists, "", "NoSchedule"}};
  recommendation.spec.affinity.sites = {"golden-whole"};
  recommendation.spec.weights = {{"", "cost", 10, Prefer::Low}};
  recommendation.spec.propagation = {{PropagationWrite::OverridePolicy}, "web", {}};
  recommendation.spec.propagation.resource_selectors = {{"apps/v1", "Deployment", "web"}};
  check_golden("siterecommendation.json", encode(recommendation));
}

TEST_CASE("golden: what we write to Kubernetes' own kinds") {
  Lease lease;
  lease.meta = named("golden");
  lease.meta.namespace_name = "default";
  lease.holder_identity = "me";
  lease.lease_duration_seconds = 15;
  lease.lease_transitions = 2;
  lease.acquire_time = "2026-11-20T21:44:03.000000Z";
  lease.renew_time = "2026-11-20T21:44:13.123000Z";
  check_golden("lease.json", encode(lease));
  EventBody event;
  event.name = "golden.17a2";
  event.regarding_api_version = "kwatt.dev/v1alpha1";
  event.regarding_kind = "EnergyPolicy";
  event.regarding_name = "golden-whole";
  event.regarding_uid = "6f1d0c5e";
  event.type = "Warning";
  event.reason = "PDBBlocked";
  event.action = "Drain";
  event.note = "pod shop/web-1 may not be evicted: \"web\" allows no disruption";
  event.reporting_instance = "kwatt-controller-0";
  event.time = *parse_rfc3339("2026-11-20T21:44:03.5Z");
  event.series_count = 3;
  event.series_last = *parse_rfc3339("2026-11-20T21:45:03Z");
  check_golden("event.json", encode(event));
}

}  // namespace
}  // namespace kwatt::api
