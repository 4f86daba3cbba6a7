// POST /apis/sites/recommendations: who may ask, and what is said of a wrong request.
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "servers/sites.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

namespace kwatt::servers {
namespace {

const TimePoint kNow = *parse_rfc3339("2026-11-22T02:00:00Z");

// Knows the tokens "asker" and "agent"; only the asker has the right.
class ReviewClient final : public test::StubClient {
 public:
  std::string last_access;
  Task<Text> create(const kube::Resource& resource, std::string, std::string body) override {
    if (resource.plural == "tokenreviews") {
      for (const std::string name : {"asker", "agent"}) {
        if (body.find("\"" + name + "\"") == std::string::npos) continue;
        co_return R"({"status":{"authenticated":true,"audiences":["kwatt"],"user":{"username":")" +
            name + R"("}}})";
      }
      co_return std::string(R"({"status":{"authenticated":false}})");
    }
    last_access = body;
    co_return std::string(body.find("\"asker\"") != std::string::npos
                              ? R"({"status":{"allowed":true}})"
                              : R"({"status":{"allowed":false}})");
  }
};

struct Room {
  ManualClock clock{kNow};
  ReviewClient client;
  TokenReviewer tokens{client, clock};
  AccessReviewer access{client, clock};
  std::optional<Error> broken;
  std::string seen_region;
  boost::asio::io_context io;
  net::Handler handler = sites_handler(
      {tokens, access, [this](api::SiteRecommendationSpec spec) { return advise(std::move(spec)); },
       clock});

  net::Task<Result<placement::sites::SiteAnswer>> advise(api::SiteRecommendationSpec spec) {
    if (broken) co_return *broken;
    seen_region = spec.region;
    placement::sites::SiteAnswer answer;
    answer.sites.emplace_back().name = "d";
    answer.sites.back().total = 220;
    co_return answer;
  }
  net::Response post(const std::string& body, const std::string& token = "asker",
                     const std::string& method = "POST") {
    net::Request request(method, kSitesPath);
    if (!token.empty()) request.headers.set("Authorization", "Bearer " + token);
    request.body = body;
    return test::run_task(io, handler(std::move(request)));
  }
};

TEST_CASE("sites server: the fields of a spec are answered with those of a status") {
  Room room;
  const net::Response response = room.post(R"({"region":"A","affinity":{"sites":["d"]}})");
  REQUIRE(response.status == 200);
  CHECK(response.headers.get("Content-Type") == "application/json");
  CHECK(response.body == R"({"evaluatedAt":"2026-11-22T02:00:00Z","site":"d","total":220,)"
                         R"("sites":[{"name":"d","total":220}],"sitesTotal":1,"excludedTotal":0})");
  CHECK(room.seen_region == "A");
  CHECK(room.client.last_access.find(R"("path":"/apis/sites/recommendations")") !=
        std::string::npos);
  CHECK(room.client.last_access.find(R"("verb":"post")") != std::string::npos);
}

TEST_CASE("sites server: only a caller with the right to it is answered") {
  Room room;
  CHECK(room.post("{}", "").status == 401);
  CHECK(room.post("{}", "unknown").status == 401);
  const net::Response forbidden = room.post("{}", "agent");
  CHECK(forbidden.status == 403);
  CHECK(forbidden.body.find("ClusterRole kwatt-site-recommender") != std::string::npos);
  CHECK(room.post("{}", "asker", "GET").status == 405);
  CHECK(room.post(std::string(kSitesBody + 1, ' ')).status == 413);
  room.broken = fail(ErrorCode::unavailable, "the sites are not listed yet");
  const net::Response later = room.post("{}");
  CHECK(later.status == 503);
  CHECK(later.headers.get("Retry-After") == "1");
}

TEST_CASE("sites server: a wrong request is told what and where") {
  struct Case {
    const char* body;
    const char* says;
  };
  const Case cases[] = {
      {"", "malformed JSON"},
      {"[]", "expected"},
      {R"({"regoin":"A"})", "regoin: there is no such field"},
      {R"({"weights":[{"plugin":"Carbon"},{"wieght":1}]})", "weights[1].wieght: there is no such"},
      {R"({"count":"1"})", "count: expected"},
      {R"({"count":0,"workloads":-5})",
       "spec.workloads: -5 must be within 1 and 1000; spec.count: 0 must be within 1 and 100"},
      {R"({"weights":[{"plugin":"Region"}]})", "must be one of"},
      {R"({"action":"Create"})", "make a SiteRecommendation"},
      {R"({"propagation":{"write":["PropagationPolicy"],"resourceSelectors":[{"apiVersion":"v1","kind":"Pod"}]}})",
       "make a SiteRecommendation"},
      {R"({"region":null})", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.body);
    const auto got = parse_site_request(c.body);
    if (std::string_view(c.says).empty()) {
      CHECK(got.has_value());
      continue;
    }
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(got.error().message.find(c.says) != std::string::npos, got.error().message);
  }
  const std::string deep(200, '[');
  CHECK_FALSE(parse_site_request(deep).has_value());
}

}  // namespace
}  // namespace kwatt::servers
