#include <doctest/doctest.h>

#include "cli/estimate.hpp"
#include "test/cli/fake_api.hpp"

namespace kwatt::cli {
namespace {

const char* const kAnswer =
    "{\"cpu_milli\":500,\"num_workloads\":5,\"watt_increases\":[5,9,13.5,15,1.7976931348623157e+"
    "308]}\n";

struct Desk {
  FakeCluster cluster;
  ManualClock clock{*parse_rfc3339("2026-11-20T10:00:00Z")};
  Desk() { cluster.fetched = net::Response(200, {}, kAnswer); }
  Called call(const std::vector<std::string>& words) {
    std::vector<std::string> all{"estimate"};
    all.insert(all.end(), words.begin(), words.end());
    return cli::call(cluster, clock, all);
  }
};

TEST_CASE("estimate prints what WAO's CLI prints, with +Inf for what does not fit") {
  Desk desk;
  const Called called = desk.call({"-p", "500,5", "pc"});
  CHECK(called.err == "");
  CHECK(called.out == "[5 9 13.5 15 +Inf]\n");
  CHECK(called.status == kDone);
  CHECK(desk.cluster.sent.method == "POST");
  CHECK(desk.cluster.sent.target ==
        "/api/v1/namespaces/kwatt-system/services/http:kwatt-estimator:http/proxy"
        "/namespaces/default/estimators/default/values/powerconsumption");
  CHECK(desk.cluster.sent.body == R"({"cpu_milli":500,"num_workloads":5})");
  CHECK(desk.cluster.sent.headers.get("Content-Type") == "application/json");
}

TEST_CASE("estimate -o json prints the answer as it came") {
  Desk desk;
  CHECK(desk.call({"-o", "json", "pc"}).out == kAnswer);
}

TEST_CASE("estimate -v shows the curl line, and never a key") {
  Desk desk;
  const Called called =
      desk.call({"-v", "-H", "X-API-KEY: secret", "-n", "team-a/main", "-p", "250,3", "pc"});
  CHECK(called.status == kDone);
  CHECK(called.err ==
        "kubectl port-forward -n kwatt-system service/kwatt-estimator 5656:5656\n"
        "curl -X 'POST' -d '{\"cpu_milli\":250,\"num_workloads\":3}' "
        "-H 'Content-Type: application/json' -H \"X-API-KEY: $KEY\" "
        "'http://localhost:5656/namespaces/team-a/estimators/main/values/powerconsumption'\n");
  CHECK(desk.cluster.sent.headers.get("X-API-KEY") == "secret");
}

TEST_CASE("the curl line is WAO's own") {
  EstimateOptions options;
  CHECK(curl_line("http://localhost:5656", *estimate_ask(options), false) ==
        "curl -X 'POST' -d '{\"cpu_milli\":500,\"num_workloads\":5}' -H 'Content-Type: "
        "application/json' 'http://localhost:5656/namespaces/default/estimators/default/values/"
        "powerconsumption'");
}

TEST_CASE("estimate refuses what cannot be asked") {
  struct Case {
    std::vector<std::string> words;
    const char* want;
  };
  const Case cases[] = {
      {{"-p", "500", "pc"}, "error: -p 500: must be MILLICORES,WORKLOADS such as 500,5\n"},
      {{"-p", "a,b", "pc"}, "error: -p a,b: must be MILLICORES,WORKLOADS such as 500,5\n"},
      {{"-n", "default", "pc"}, "error: -n default: must be NAMESPACE/NAME of an Estimator\n"},
      {{"heat"}, "error: \"heat\" is not known: pc (power consumption) is\n"},
      {{"-H", "novalue", "pc"}, "error: --header must be such as \"X-API-KEY: …\"\n"}};
  for (const Case& c : cases) {
    Desk desk;
    const Called called = desk.call(c.words);
    CHECK(called.status == kFailed);
    CHECK(called.err == c.want);
  }
}

TEST_CASE("estimate tells what the estimator refused, and what is missing on the way") {
  Desk desk;
  desk.cluster.fetched = net::Response(
      404, {}, R"({"code":"ErrServerEstimatorNotFound","message":"estimator a/b not found"})");
  CHECK(desk.call({"pc"}).err == "error: ErrServerEstimatorNotFound: estimator a/b not found\n");
  desk.cluster.fetched = net::Response(
      404, {},
      R"({"kind":"Status","status":"Failure","reason":"NotFound","message":"services \"kwatt-estimator\" not found","code":404})");
  const Called called = desk.call({"pc"});
  CHECK(called.status == kFailed);
  CHECK(called.err.find("there is no Service kwatt-estimator with a port \"http\" in namespace "
                        "kwatt-system") != std::string::npos);
}

TEST_CASE("lists are printed as Go prints them") {
  CHECK(go_list({}) == "[]");
  CHECK(go_list({0.00001, 1e21, 0.0001, 2331.25}) == "[1e-05 1e+21 0.0001 2331.25]");
}

}  // namespace
}  // namespace kwatt::cli
