#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "cli/history.hpp"
#include "test/cli/fake_api.hpp"
#include "test/cli/samples.hpp"
#include "test/support/folder.hpp"

namespace kwatt::cli {
namespace {

using namespace telemetry;
using Words = std::vector<std::string>;

const TimePoint kHour = *parse_rfc3339("2026-11-21T14:00:00Z");
constexpr const char* kTokens =
    "/api/v1/namespaces/kwatt-system/serviceaccounts/kwatt-history-reader/token";
constexpr const char* kProxied =
    "/api/v1/namespaces/kwatt-system/services/https:kwatt-controller:ingest/proxy/history?";

struct Fixture {
  ManualClock clock{kNow};
  FakeCluster cluster;

  Fixture() {
    cluster.objects[kTokens] = R"({"kind":"TokenRequest","status":{"token":"short-lived"}})";
    answer({DecisionRow{kHour, "n1", "default", "Off", "Idle", "idle, \"very\""}});
  }
  void answer(std::vector<HistoryRow> rows, bool truncated = false) {
    const auto kind = static_cast<HistoryKind>(rows.front().index());
    cluster.fetched = net::Response(200, {}, history_json(kind, rows, truncated));
  }
  Called operator()(Words arguments) {
    arguments.insert(arguments.begin(), "history");
    return call(cluster, clock, arguments);
  }
};

TEST_SUITE("cli") {
  TEST_CASE_FIXTURE(Fixture, "history: asks with a short-lived token, through the API server") {
    const Called called = (*this)({});
    CHECK(called.err == "");
    CHECK(called.status == kDone);
    CHECK(called.out ==
          "TIME                   NODE   POLICY    ACTION   REASON   MESSAGE\n"
          "2026-11-21T14:00:00Z   n1     default   Off      Idle     idle, \"very\"\n");
    REQUIRE(cluster.posts.size() == 1);
    CHECK(cluster.posts[0].path == kTokens);
    CHECK(cluster.posts[0].body.find(R"("audiences":["kwatt"],"expirationSeconds":600)") !=
          std::string::npos);
    CHECK(cluster.fetches == Words{std::string(kProxied) + "kind=decisions&since=1h&limit=200"});
    CHECK(cluster.fetch_headers.get("Kwatt-Authorization") == "Bearer short-lived");
  }

  TEST_CASE_FIXTURE(Fixture, "history: what the options ask for") {
    struct Given {
      Words arguments;
      std::string query;
    };
    const Given cases[] = {
        {{"node/n1"}, "kind=decisions&node=n1&since=1h&limit=200"},
        {{"n1", "--kind", "operations", "--since", "24h"},
         "kind=operations&node=n1&since=24h&limit=200"},
        {{"--kind", "energy", "--policy", "enp/default", "--limit", "7"},
         "kind=energy&policy=default&since=1h&limit=7"},
        {{"--since", "2026-11-21T10:00:00Z", "--until", "5m"},
         "kind=decisions&since=2026-11-21T10%3A00%3A00Z&until=5m&limit=200"},
        {{"--kind", "samples", "-o", "csv"}, "kind=samples&since=1h&limit=200"},
    };
    for (const Given& given : cases) {
      CAPTURE(given.query);
      cluster.fetches.clear();
      CHECK((*this)(given.arguments).status == kDone);
      CHECK(cluster.fetches == Words{kProxied + given.query});
    }
    cluster.objects["/api/v1/namespaces/energy/serviceaccounts/kwatt-history-reader/token"] =
        cluster.objects[kTokens];
    cluster.fetches.clear();
    CHECK((*this)({"-n", "energy"}).status == kDone);
    REQUIRE(cluster.fetches.size() == 1);
    CHECK(cluster.fetches[0].starts_with("/api/v1/namespaces/energy/services/"));
  }

  TEST_CASE_FIXTURE(Fixture, "history: as a table, as JSON, as CSV, and as a CSV file") {
    answer(
        {SampleRow{kHour, "n1", Milliwatts{122'600}, Milliwatts{130'000}, Permille{125}, "agent"},
         SampleRow{kHour, "n2", std::nullopt, std::nullopt, Permille{5}, "none"}});
    const std::string csv =
        "time,node,meanMilliwatts,maxMilliwatts,utilizationPermille,source\n"
        "2026-11-21T14:00:00Z,n1,122600,130000,125,agent\n"
        "2026-11-21T14:00:00Z,n2,,,5,none\n";
    CHECK((*this)({"--kind", "samples"}).out ==
          "TIME                   NODE   WATTS   MAX   UTILIZATION   SOURCE\n"
          "2026-11-21T14:00:00Z   n1     123     130   12.5 %        agent\n"
          "2026-11-21T14:00:00Z   n2     -       -     0.5 %         none\n");
    CHECK((*this)({"-o", "csv"}).out == csv);
    CHECK((*this)({"-o", "json"}).out.starts_with("{\n  \"kind\": \"samples\",\n  \"rows\": ["));

    const test::Folder folder;
    const std::string name = folder.path("metrics_20261121T150000Z.csv");
    const Called saved = (*this)({"--out-dir", std::filesystem::path(name).parent_path().string()});
    CHECK(saved.status == kDone);
    CHECK(saved.out == name + "\n");
    std::ifstream file(name);
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == csv);
    CHECK_FALSE(std::filesystem::exists(name + ".partial"));

    answer({EnergyRow{kHour, "n1", "default", Millijoules{360'000}, Millijoules{7'200'000},
                      minutes{60}, minutes{5}}});
    CHECK((*this)({"--kind", "energy"}).out ==
          "HOUR                   NODE   POLICY    USED-WH   BASELINE-WH   SAVED-WH   SEEN   "
          "MEASURED\n"
          "2026-11-21T14:00:00Z   n1     default   0.1       2.0           1.9        1 h    "
          "5 min\n");
    answer({OperationRow{kHour, "n1", "", "op-1", "PowerOff", "failed", "BMCError", "HTTP 503"}});
    CHECK((*this)({"--kind", "operations"}).out ==
          "TIME                   NODE   POLICY   OPERATION   PHASE    REASON     MESSAGE\n"
          "2026-11-21T14:00:00Z   n1     -        PowerOff    failed   BMCError   HTTP 503\n");
  }

  TEST_CASE_FIXTURE(Fixture, "history: nothing recorded is no error; what was cut off is said") {
    cluster.fetched.body = history_json(HistoryKind::decisions, {}, false);
    const Called none = (*this)({});
    CHECK(none.status == kDone);
    CHECK(none.out == "Nothing is recorded for that time.\n");
    answer({DecisionRow{kHour, "n1", "p", "Keep", "InUse", "3 pods"}}, true);
    const Called cut = (*this)({"-o", "csv"});
    CHECK(cut.status == kDone);
    CHECK(cut.err ==
          "warning: only the newest 1 rows: there may be older ones (--limit, --until)\n");
  }

  TEST_CASE_FIXTURE(Fixture, "history: mistakes in the command line") {
    const Words cases[] = {
        {"--kind", "watts"},
        {"--since", "yesterday"},
        {"--until=-5m"},
        {"--limit", "0"},
        {"--limit", "10001"},
        {"-o", "yaml"},
        {"--out-dir", "/does/not/exist"},
        {"--out-dir", "/tmp", "-o", "json"},
        {"--ca", "ca.crt"},
        {"n1", "n2"},
    };
    for (const Words& words : cases) {
      CAPTURE(words.front() + " " + words.back());
      const Called called = (*this)(words);
      CHECK(called.status == kUsage);
      CHECK(called.out == "");
      CHECK_FALSE(called.err.empty());
    }
    CHECK((*this)({"pod/a"}).err.find("is not a node") != std::string::npos);
    CHECK((*this)({"--policy", "node/a"}).status == kFailed);
    CHECK((*this)({"--controller", "http://127.0.0.1:1"}).err.find("must be https") !=
          std::string::npos);
    CHECK(cluster.fetches.empty());
  }

  TEST_CASE_FIXTURE(Fixture, "history: what stands in the way is said, with what to do") {
    const auto status = [](int code, const std::string& reason, const std::string& message) {
      return net::Response(code, {},
                           R"({"kind":"Status","status":"Failure","message":")" + message +
                               R"(","reason":")" + reason + R"(","code":)" + std::to_string(code) +
                               "}");
    };
    struct Given {
      net::Response response;
      std::string said;
    };
    const Given cases[] = {
        {status(404, "NotFound", "services \\\"kwatt-controller\\\" not found"),
         "error: there is no Service kwatt-controller with a port \"ingest\" in namespace "
         "kwatt-system; --controller asks without it"},
        {status(403, "Forbidden", "User \\\"jo\\\" cannot get services/proxy"),
         "error: you may not use the proxy to Service kwatt-controller: the Role "
         "kwatt-history-user in namespace kwatt-system gives the right to it"},
        {status(503, "ServiceUnavailable", "no endpoints available"), "no endpoints available"},
        {net::Response(404, {}, "here is POST /metrics-ingest\n"),
         "error: the controller keeps no history: start it with --history-file\n"},
        {net::Response(403, {}, "jo may not get /history"), "jo may not get /history"},
        {net::Response(400, {}, "samples belong to no policy"), "samples belong to no policy"},
        {net::Response(200, {}, "<html>"), "the history is no JSON object"},
    };
    for (const Given& given : cases) {
      CAPTURE(given.said);
      cluster.fetched = given.response;
      const Called called = (*this)({});
      CHECK(called.status == kFailed);
      CHECK(called.out == "");
      CHECK(called.err.find(given.said) != std::string::npos);
    }
    cluster.objects.erase(kTokens);
    CHECK((*this)({}).err.find("apply manifests/history-rbac.yaml") != std::string::npos);
    cluster.failure = fail(ErrorCode::forbidden, "POST", "User \"jo\" cannot create");
    const Called forbidden = (*this)({});
    CHECK(forbidden.err.find("the Role kwatt-history-user in namespace kwatt-system") !=
          std::string::npos);
    CHECK(forbidden.err.find("User \"jo\" cannot create") != std::string::npos);
  }
}

}  // namespace
}  // namespace kwatt::cli
