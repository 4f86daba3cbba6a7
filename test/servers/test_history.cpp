#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include "servers/history.hpp"
#include "servers/routes.hpp"
#include "telemetry/history_format.hpp"
#include "test/support/folder.hpp"
#include "test/support/run_task.hpp"
#include "test/support/stub_client.hpp"

TEST_SUITE("telemetry") {
  using namespace kwatt;
  using namespace kwatt::servers;
  using std::chrono::minutes;
  using std::chrono::seconds;

  namespace {
  const TimePoint kNow = *parse_rfc3339("2026-11-20T10:00:00Z");

  // Knows the tokens "reader" and "agent"; only the reader may get /history.
  class ReviewClient final : public test::StubClient {
   public:
    int token_reviews = 0, access_reviews = 0;
    std::optional<ErrorCode> broken_tokens, broken_accesses;
    std::string last_access;
    Task<Text> create(const kube::Resource& resource, std::string, std::string body) override {
      const bool of_token = resource.plural == "tokenreviews";
      if (const auto& broken = of_token ? broken_tokens : broken_accesses; broken) {
        co_return fail(*broken, "POST", "what the API server says of our request");
      }
      if (of_token) {
        ++token_reviews;
        for (const std::string name : {"reader", "agent"}) {
          if (body.find("\"" + name + "\"") == std::string::npos) continue;
          co_return R"({"status":{"authenticated":true,"audiences":["kwatt"],"user":{"username":")" +
              name + R"(","groups":["system:authenticated"]}}})";
        }
        co_return std::string(R"({"status":{"authenticated":false}})");
      }
      ++access_reviews;
      last_access = body;
      const bool allowed = body.find("\"reader\"") != std::string::npos;
      co_return std::string(allowed ? R"({"status":{"allowed":true}})"
                                    : R"({"status":{"allowed":false,"reason":"no RBAC rule"}})");
    }
  };

  struct Room {
    test::Folder folder;
    ManualClock clock{kNow};
    Metrics metrics;
    ReviewClient client;
    telemetry::History history{options(), clock, metrics};
    TokenReviewer tokens{client, clock};
    AccessReviewer access{client, clock};
    net::Handler handler = history_handler({tokens, access, history, clock});
    boost::asio::io_context io;

    // The file is there only once the history's own thread has made it.
    Room() {
      telemetry::OperationRow row;
      row.at = kNow;
      row.node = "n0";
      history.add(std::move(row));
      REQUIRE(history.flush(seconds{30}));
    }
    telemetry::HistoryOptions options() {
      telemetry::HistoryOptions o;
      o.path = folder.path("history.db");
      o.batch = Duration{1};
      return o;
    }
    net::Response get(const std::string& target, const std::string& token = "reader",
                      const std::string& header = "Authorization",
                      const std::string& method = "GET") {
      net::Request request(method, target);
      if (!token.empty()) request.headers.set(header, "Bearer " + token);
      return test::run_task(io, handler(std::move(request)));
    }
  };
  }  // namespace

  TEST_CASE("history server: only a caller with the right to it is answered") {
    Room room;
    REQUIRE(room.get("/history").status == 200);
    CHECK(room.get("/history", "").status == 401);
    CHECK(room.get("/history", "unknown").status == 401);
    const net::Response forbidden = room.get("/history", "agent");
    CHECK(forbidden.status == 403);
    CHECK(forbidden.body.find("kwatt-history-reader") != std::string::npos);
    CHECK(room.get("/history", "reader", "Kwatt-Authorization").status == 200);
    CHECK(room.get("/history", "reader", "Authorization", "POST").status == 405);
    CHECK(room.client.last_access.find(R"("path":"/history")") != std::string::npos);
    CHECK(room.client.last_access.find(R"("groups":["system:authenticated"])") !=
          std::string::npos);
    // Answers are remembered for a while; a right that was taken away ends then.
    CHECK(room.client.access_reviews == 2);
    room.clock.advance(seconds{31});
    room.get("/history");
    CHECK(room.client.access_reviews == 3);
  }

  TEST_CASE("history server: what the API server holds against us is not held against the caller") {
    for (const ErrorCode code :
         {ErrorCode::unavailable, ErrorCode::timeout, ErrorCode::invalid_argument,
          ErrorCode::unauthorized, ErrorCode::forbidden, ErrorCode::internal}) {
      const std::string word(to_string(code));
      CAPTURE(word);
      Room room;
      room.client.broken_accesses = code;
      CHECK(room.get("/history").status == 503);
      room.client.broken_tokens = code;
      CHECK(room.get("/history", "agent").status == 503);
      // Nothing of that is remembered.
      room.client.broken_accesses = room.client.broken_tokens = std::nullopt;
      CHECK(room.get("/history").status == 200);
      CHECK(room.get("/history", "agent").status == 403);
    }
  }

  TEST_CASE("history server: rows as JSON and as a CSV file to save") {
    Room room;
    for (int i = 0; i < 5; ++i) {
      room.history.add(telemetry::DecisionRow{kNow - minutes{10 * i}, "n1", "p", "Off", "Idle",
                                              "message " + std::to_string(i)});
    }
    REQUIRE(room.history.flush(seconds{10}));
    const net::Response json = room.get("/history?kind=decisions&since=25m&node=n1");
    CHECK(json.headers.get("Content-Type") == "application/json");
    const auto answer = telemetry::parse_history_json(json.body);
    REQUIRE(answer.has_value());
    CHECK(answer->rows.size() == 3);
    CHECK_FALSE(answer->truncated);
    const auto two = telemetry::parse_history_json(room.get("/history?limit=2").body);
    CHECK(two->rows.size() == 2);
    CHECK(two->truncated);

    const net::Response csv = room.get("/history?kind=samples&format=csv");
    CHECK(csv.headers.get("Content-Disposition") ==
          "attachment; filename=\"metrics_20261120T100000Z.csv\"");
    CHECK(csv.body == telemetry::csv_header(telemetry::HistoryKind::samples));
    CHECK(room.get("/history?kind=samples&policy=p").status == 400);
  }

  TEST_CASE("history server: the query is read strictly") {
    struct Case {
      const char *target, *problem;  // "" : understood
    };
    const char* all =
        "/history?kind=energy&node=n%2D1&policy=p&since=1h30m&until=2026-11-20T09:00:00Z&limit=10";
    const Case cases[] = {
        {"/history", ""},
        {"/history?", ""},
        {all, ""},
        {"/history?kind=watts", "kind=watts: must be samples"},
        {"/history?kind=samples&", " is not known"},
        {"/history?node=", "node=: must be a name"},
        {"/history?since=yesterday", "since=yesterday: must be a time"},
        {"/history?since=-5m", "since=-5m: must be a time"},
        {"/history?limit=0", "limit=0: must be 1 to 10000"},
        {"/history?limit=10001", "limit=10001"},
        {"/history?limit=5x", "limit=5x"},
        {"/history?format=xml", "format=xml"},
        {"/history?what=now", "what is not known"},
        {"/history?node=a&node=b", "node is given twice"},
        {"/history?node=%zz", "not understood"},
    };
    for (const Case& c : cases) {
      INFO(c.target);
      const auto request = parse_history_target(c.target, kNow);
      if (*c.problem == '\0') {
        CHECK(request.has_value());
        continue;
      }
      REQUIRE_FALSE(request.has_value());
      CHECK(request.error().code == ErrorCode::invalid_argument);
      CHECK(request.error().message.find(c.problem) != std::string::npos);
    }
    const auto request = parse_history_target(all, kNow);
    CHECK(request->query.node == "n-1");
    CHECK(request->query.since == kNow - minutes{90});
    CHECK(request->query.limit == 10);
  }

  TEST_CASE("access review: only a clear yes is one") {
    struct Case {
      const char* given;
      bool allowed;
      ErrorCode code;
    };
    const Case cases[] = {
        {R"({"status":{"allowed":true}})", true, {}},
        {R"({"status":{"allowed":false}})", false, ErrorCode::forbidden},
        {R"({"status":{"allowed":true,"denied":true}})", false, ErrorCode::forbidden},
        {R"({"status":{"allowed":"true"}})", false, ErrorCode::forbidden},
        {R"({"status":{}})", false, ErrorCode::forbidden},
        {R"({})", false, ErrorCode::parse},
        {"oops", false, ErrorCode::parse}};
    for (const Case& c : cases) {
      INFO(c.given);
      const auto answer = read_access_review(c.given, Caller{}, "/history");
      CHECK(answer.has_value() == c.allowed);
      if (!answer) CHECK(answer.error().code == c.code);
    }
  }

  TEST_CASE("routes: the path decides, the query does not") {
    const auto says = [](const char* text) -> net::Handler {
      return [text](net::Request) -> net::Task<net::Response> {
        co_return net::Response(200, {}, text);
      };
    };
    const net::Handler handler = routes({{"/a", says("a")}, {"/b", says("b")}}, says("other"));
    boost::asio::io_context io;
    struct Case {
      const char *target, *want;
    };
    for (const Case& c : {Case{"/a", "a"}, Case{"/b?x=/a", "b"}, Case{"/a/b", "other"},
                          Case{"/", "other"}, Case{"/ab", "other"}}) {
      CHECK(test::run_task(io, handler(net::Request("GET", c.target))).body == c.want);
    }
  }
}
