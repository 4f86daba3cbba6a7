// Sites as far as they need no API server: what estimators, hooks, Services and Prometheus say,
// what becomes a status, and the bodies of Karmada's policies.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "api/karmada.hpp"
#include "reconcilers/site_estimators.hpp"
#include "reconcilers/site_hooks.hpp"
#include "reconcilers/site_recommendation.hpp"
#include "reconcilers/site_reconciler.hpp"

namespace kwatt::reconcilers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const TimePoint kNow = *parse_rfc3339("2026-11-22T02:00:00Z");

TEST_CASE("sites: an estimator's answer is the last of its cumulative increases") {
  struct Case {
    const char* json;
    std::int64_t workloads;
    const char* says;  // "": good
    bool fits;
    std::int64_t milliwatts;
  };
  const Case cases[] = {
      {R"({"watt_increases":[5,9,13,15,16]})", 5, "", true, 16'000},
      {R"({"watt_increases":[0.0004]})", 1, "", true, 0},
      {R"({"watt_increases":[12.3456]})", 1, "", true, 12'346},
      {R"({"watt_increases":[5,1.7976931348623157e308]})", 2, "", false, 0},
      {R"({"watt_increases":[5]})", 2, "has 1 watt_increases, asked for were 2", true, 0},
      {R"({"watt_increases":[]})", 1, "has 0 watt_increases", true, 0},
      {R"({"watt_increases":["5"]})", 1, "is not a number", true, 0},
      {R"({"watt_increases":[null]})", 1, "is not a number", true, 0},
      {R"({"watt_increases":[-1]})", 1, "less than nothing", true, 0},
      {R"({"watt_increases":5})", 1, "has no watt_increases", true, 0},
      {R"([])", 1, "has no watt_increases", true, 0},
      {R"({"watt_increases":[NaN]})", 1, "is not JSON", true, 0},
      {"", 1, "is not JSON", true, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    const auto got = parse_estimator_answer(c.json, {500, c.workloads});
    if (std::string_view(c.says).empty()) {
      REQUIRE(got.has_value());
      CHECK(got->fits == c.fits);
      CHECK(got->increase_milliwatts == c.milliwatts);
    } else {
      REQUIRE_FALSE(got.has_value());
      CHECK(got.error().code == ErrorCode::protocol);
      CHECK(got.error().message.find(c.says) != std::string::npos);
    }
  }
  CHECK(estimator_body({500, 5}) == R"({"cpu_milli":500,"num_workloads":5})");
}

TEST_CASE("sites: a Service is reached under the name that external-dns publishes") {
  const auto service = [](const std::string& annotations) {
    return R"({"kind":"Service","metadata":{"annotations":)" + annotations + "}}";
  };
  const auto name = [&](const std::string& text) {
    const auto got = external_dns_name(
        service(R"({"external-dns.alpha.kubernetes.io/hostname":")" + text + "\"}"));
    return got ? *got : "error: " + got.error().message;
  };
  CHECK(name("pc.example.org") == "pc.example.org");
  CHECK(name("pc.example.org , other.example.org") == "pc.example.org");
  CHECK(name("") ==
        "error: the Service's annotation external-dns.alpha.kubernetes.io/hostname is "
        "no host name");
  CHECK(name("a/b?c").starts_with("error"));
  CHECK(name("user@host").starts_with("error"));
  CHECK(external_dns_name(service("{}")).error().code == ErrorCode::not_found);
  CHECK(external_dns_name(service("null")).error().code == ErrorCode::not_found);
  CHECK_FALSE(external_dns_name("<html>").has_value());
}

TEST_CASE("sites: a ServiceExport that is in conflict or not valid is not used") {
  const auto with = [](const char* conditions) {
    return check_service_export(fmt::format(R"({{"status":{{"conditions":[{}]}}}})", conditions));
  };
  CHECK(with("").has_value());
  CHECK(check_service_export("{}").has_value());
  CHECK(with(R"({"type":"Valid","status":"True"})").has_value());
  const auto invalid = with(R"({"type":"Valid","status":"False","message":"no such Service"})");
  CHECK(invalid.error().text().find("not valid") != std::string::npos);
  CHECK(invalid.error().server_text == "no such Service");
  CHECK(with(R"({"type":"Conflict","status":"True"})").error().code == ErrorCode::conflict);
}

TEST_CASE("sites: a hook's answer is an id, not yet, a refusal, or a failure") {
  struct Case {
    int exit_code;
    const char* out;
    const char* want;  // id, "later", or the code of the error
    bool refusal;
  };
  const Case cases[] = {{0, "vm-7\n", "vm-7", false},      {6, "", "later", false},
                        {0, "", "protocol", false},        {0, "two words", "protocol", false},
                        {0, "a\nb", "protocol", false},    {3, "", "unsupported", true},
                        {5, "", "out_of_range", true},     {4, "", "unauthorized", false},
                        {1, "vm-7", "unavailable", false}, {137, "", "unavailable", false}};
  for (const Case& c : cases) {
    CAPTURE(c.exit_code);
    CAPTURE(c.out);
    const auto got = parse_hook_output({c.exit_code, c.out, "said"});
    if (got) {
      CHECK((got->ready ? got->machine_id : "later") == c.want);
    } else {
      CHECK(to_string(got.error().code) == c.want);
      CHECK(is_refusal(got.error()) == c.refusal);
    }
  }
  const Case responses[] = {{200, R"({"machineID":"vm-7"})", "vm-7", false},
                            {201, R"({"machineID":"vm-7"})", "vm-7", false},
                            {202, "", "later", false},
                            {200, "{}", "protocol", false},
                            {200, "vm-7", "protocol", false},
                            {400, "", "unsupported", true},
                            {422, "", "unsupported", true},
                            {409, "", "out_of_range", true},
                            {401, "", "unauthorized", false},
                            {302, "", "unavailable", false},
                            {500, "", "unavailable", false}};
  for (const Case& c : responses) {
    CAPTURE(c.exit_code);
    const auto got = parse_hook_response(net::Response(c.exit_code, {}, c.out));
    if (got) {
      CHECK((got->ready ? got->machine_id : "later") == c.want);
    } else {
      CHECK(to_string(got.error().code) == c.want);
      CHECK(is_refusal(got.error()) == c.refusal);
    }
  }
}

TEST_CASE("sites: one number is read from Prometheus, or it is said what came instead") {
  const auto series = [](std::vector<double> values) {
    std::vector<telemetry::Series> out;
    for (const double value : values) out.emplace_back().value = value;
    return one_number(out);
  };
  CHECK(series({99.5}).value() == 100);
  CHECK(series({0}).value() == 0);
  CHECK(series({1, 2}).error().message == "gives 2 series, wanted is one: sum() or max() it");
  CHECK_FALSE(series({}).has_value());
  CHECK_FALSE(series({std::numeric_limits<double>::quiet_NaN()}).has_value());
  CHECK_FALSE(series({std::numeric_limits<double>::infinity()}).has_value());
  CHECK_FALSE(series({-1}).has_value());
  CHECK_FALSE(series({1e15}).has_value());
}

TEST_CASE("sites: the status of a site keeps what a failing query gave before, and says so") {
  api::Site site;
  site.meta.generation = 3;
  site.spec.capacity.cpu_millicores = 4000;
  site.spec.bandwidth.total_mbps = 1000;
  site.spec.metrics = {{api::SiteMetricValue::CpuAllocatedMillicores, "a"},
                       {api::SiteMetricValue::BandwidthUsedMbps, "b"}};
  site.status = site_status(site,
                            {{api::SiteMetricValue::BandwidthUsedMbps, 100, kNow},
                             {api::SiteMetricValue::CpuAllocatedMillicores, 1000, kNow}},
                            {}, kNow);
  CHECK(site.status.free.cpu_millicores == 3000);
  CHECK(site.status.free_bandwidth_mbps == 900);
  CHECK(site.status.cpu_load_percent == 25);
  CHECK(api::find_condition(site.status.conditions, "Ready")->status == "True");
  CHECK(site.status.observed_generation == 3);

  const TimePoint later = kNow + seconds{30};
  auto next = site_status(site, {{api::SiteMetricValue::BandwidthUsedMbps, 100, later}},
                          {"the query of CpuAllocatedMillicores: no"}, later);
  REQUIRE(next.readings.size() == 2);
  CHECK(next.readings[0].time == kNow);
  CHECK(next.free.cpu_millicores == 3000);
  CHECK(api::find_condition(next.conditions, "MetricsAvailable")->message ==
        "the query of CpuAllocatedMillicores: no");
  // Too old to be believed: nothing is free that nobody knows of.
  const TimePoint much_later = kNow + minutes{6};
  next = site_status(site, {}, {"no"}, much_later);
  CHECK(next.free.cpu_millicores == 0);
  CHECK(next.free_bandwidth_mbps == 0);

  // A reading alone is written every minute, a new value at once.
  const auto read = [&](std::int64_t mbps, Duration after) {
    return site_status(site,
                       {{api::SiteMetricValue::BandwidthUsedMbps, mbps, kNow + after},
                        {api::SiteMetricValue::CpuAllocatedMillicores, 1000, kNow + after}},
                       {}, kNow + after);
  };
  CHECK_FALSE(worth_writing(site.status, site.status));
  CHECK_FALSE(worth_writing(site.status, read(100, seconds{59})));
  CHECK(worth_writing(site.status, read(100, seconds{60})));
  CHECK(worth_writing(site.status, read(101, seconds{1})));
}

api::SiteRecommendation asked(api::SiteAction action = api::SiteAction::Recommend) {
  api::SiteRecommendation out;
  out.meta.name = "web";
  out.meta.namespace_name = "shop";
  out.meta.uid = "u-1";
  out.spec.action = action;
  out.spec.count = 2;
  out.spec.propagation.resource_selectors = {{"apps/v1", "Deployment", "web"}};
  return out;
}

placement::sites::SiteAnswer two_sites() {
  placement::sites::SiteAnswer answer;
  for (const char* name : {"d", "b"}) {
    api::RankedSite& site = answer.sites.emplace_back();
    site.name = name;
    site.total = 220;
    site.recommended = true;
  }
  answer.weights = {{"d", "member-d", 75}, {"b", "member-b", 25}};
  return answer;
}

TEST_CASE("sites: with Create every recommended site gets an intent, once") {
  int ids = 0;
  const auto id = [&] { return fmt::format("op-{}", ++ids); };
  auto recommendation = asked(api::SiteAction::Create);
  recommendation.status = answered(recommendation, two_sites(), kNow, id);
  REQUIRE(recommendation.status.machines.size() == 2);
  CHECK(recommendation.status.machines[0].site == "d");
  CHECK(recommendation.status.machines[0].operation_id == "op-1");
  CHECK(recommendation.status.machines[1].operation_id == "op-2");
  CHECK(decided(recommendation));
  CHECK(api::find_condition(recommendation.status.conditions, "Created")->reason == "Starting");
  // Asked again it keeps them.
  CHECK(answered(recommendation, two_sites(), kNow, id).machines == recommendation.status.machines);
  CHECK(ids == 2);
  recommendation.status.machines[0].phase = api::CreatePhase::Failed;
  recommendation.status.machines[0].message = "no room";
  show_machines(recommendation, recommendation.status, kNow);
  CHECK(api::find_condition(recommendation.status.conditions, "Created")->message ==
        "1 of 2 machines are refused, at d: no room");
  for (auto& machine : recommendation.status.machines) machine.phase = api::CreatePhase::Started;
  show_machines(recommendation, recommendation.status, kNow);
  CHECK(api::find_condition(recommendation.status.conditions, "Created")->status == "True");
}

TEST_CASE("sites: an unchanged answer is the same status, an error keeps the last one") {
  auto recommendation = asked();
  const auto id = [] { return std::string("never"); };
  recommendation.status = answered(recommendation, two_sites(), kNow, id);
  CHECK(recommendation.status.evaluated_at == kNow);
  CHECK(recommendation.status.machines.empty());
  CHECK(answered(recommendation, two_sites(), kNow + minutes{5}, id) == recommendation.status);
  const auto failed =
      answered(recommendation, fail(ErrorCode::unavailable, "not listed"), kNow + minutes{6}, id);
  CHECK(failed.site == "d");
  CHECK(failed.evaluated_at == kNow);
  CHECK(api::find_condition(failed.conditions, "Ready")->reason == "NoAnswer");
  const auto none = answered(recommendation, placement::sites::SiteAnswer{}, kNow, id);
  CHECK(api::find_condition(none.conditions, "Ready")->reason == "NoSiteFits");
  CHECK(none.site.empty());
  recommendation.spec.count = 0;
  const auto invalid = answered(recommendation, two_sites(), kNow, id);
  CHECK(api::find_condition(invalid.conditions, "Accepted")->status == "False");
  CHECK(api::find_condition(invalid.conditions, "Ready")->message ==
        "spec.count: 0 must be within 1 and 100");
}

TEST_CASE(
    "sites: Karmada's policies divide replicas by the weights, and name the site in each copy") {
  auto weights = two_sites().weights;
  weights.push_back({"room", "", 10});  // no cluster: not in a policy
  CHECK(api::propagation_policy(asked(), weights) ==
        R"({"apiVersion":"policy.karmada.io/v1alpha1","kind":"PropagationPolicy","metadata":)"
        R"({"name":"web","namespace":"shop","labels":{"app.kubernetes.io/managed-by":"kwatt"},)"
        R"("ownerReferences":[{"apiVersion":"kwatt.dev/v1alpha1","kind":"SiteRecommendation",)"
        R"("name":"web","uid":"u-1","controller":true}]},"spec":{"resourceSelectors":[)"
        R"({"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web"}],)"
        R"("placement":{"clusterAffinity":{"clusterNames":["member-d","member-b"]},)"
        R"("replicaScheduling":{"replicaSchedulingType":"Divided","replicaDivisionPreference":)"
        R"("Weighted","weightPreference":{"staticWeightList":[{"targetCluster":{"clusterNames":)"
        R"(["member-d"]},"weight":75},{"targetCluster":{"clusterNames":["member-b"]},)"
        R"("weight":25}]}}}}})");
  auto named = asked();
  named.spec.propagation.name = "other";
  const std::string override_body = api::override_policy(named, weights);
  CHECK(override_body.find(R"("name":"other")") != std::string::npos);
  CHECK(override_body.find(
            R"("overrideRules":[{"targetCluster":{"clusterNames":["member-d"]},"overriders":)"
            R"({"annotationsOverrider":[{"operator":"add","value":{"kwatt.dev/site":"d"}}]}},)") !=
        std::string::npos);
}

TEST_CASE("sites: a member's kubeconfig must be complete in itself") {
  const auto config = [](const std::string& user, const std::string& cluster = "") {
    return parse_member_kubeconfig(fmt::format(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "clusters: [{{name: a, cluster: {{server: \"https://10.0.0.1:6443\"{}}}}}]\n"
        "users: [{{name: a, user: {{{}}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: "
        "a}}}}]\n",
        cluster, user));
  };
  CHECK(config("token: abc").has_value());
  for (const char* user : {"tokenFile: /var/run/token", "client-certificate: /x, client-key: /y",
                           "client-certificate-data: eA==, client-key: /y"}) {
    const auto got = config(user);
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().code == ErrorCode::forbidden);
    CHECK(got.error().message.find("names a file in") != std::string::npos);
  }
  CHECK_FALSE(config("token: abc", ", certificate-authority: /ca.crt").has_value());
  CHECK_FALSE(parse_member_kubeconfig("not: [a kubeconfig").has_value());
}

}  // namespace
}  // namespace kwatt::reconcilers
