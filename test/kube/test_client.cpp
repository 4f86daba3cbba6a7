// The client against the fake API server: paths, headers, credentials, retries, eviction.
#include <doctest/doctest.h>

#include "test/kube/api_fixture.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;
using test::run_task;

namespace {

struct ClientFixture : test::ApiFixture {
  ClientFixture() { connect(); }
  std::string request(std::size_t i = 0) { return server.peer().requests().at(i); }
  bool sent(const std::string& text, std::size_t i = 0) {
    return request(i).find(text) != std::string::npos;
  }
  Result<std::string> get(const std::string& name = "n1") {
    return run_task(io, client->get(resources::nodes(), Name{"", name}));
  }
};

}  // namespace

TEST_CASE("paths: groups, namespaces, names and subresources") {
  CHECK(path_of(resources::nodes(), "") == "/api/v1/nodes");
  CHECK(path_of(resources::nodes(), "ignored", "n1") == "/api/v1/nodes/n1");
  CHECK(path_of(resources::pods(), "") == "/api/v1/pods");
  CHECK(path_of(resources::pods(), "ns", "p", "eviction") ==
        "/api/v1/namespaces/ns/pods/p/eviction");
  CHECK(path_of(resources::energy_policies(), "", "x", "status") ==
        "/apis/kwatt.dev/v1alpha1/energypolicies/x/status");
  CHECK(path_of(resources::nodes(), "", "../a?b") == "/api/v1/nodes/..%2Fa%3Fb");
}

TEST_CASE_FIXTURE(ClientFixture, "requests name us and what we understand") {
  server.raw(test::json_response(200, "{}"));
  CHECK(get().value() == "{}");
  CHECK(sent("GET /api/v1/nodes/n1 HTTP/1.1"));
  CHECK(sent("User-Agent: kwatt"));
  CHECK(sent("Accept: application/json"));
  CHECK(request().find("Authorization") == std::string::npos);
  CHECK(shows(R"(rest_client_requests_total{code="200",method="GET"} 1)"));
}

TEST_CASE_FIXTURE(ClientFixture, "a path prefix of the server goes before every path") {
  Config with = config();
  with.path_prefix = "/k8s/clusters/a";
  connect(with);
  server.raw(test::json_response(200, "{}"));
  CHECK(get().has_value());
  CHECK(sent("GET /k8s/clusters/a/api/v1/nodes/n1 "));
}

TEST_CASE_FIXTURE(ClientFixture, "patches carry their type, their manager and the subresource") {
  using Type = Client::PatchType;
  struct Case {
    Type type;
    const char* subresource;
    const char* target;
    const char* content;
  };
  const Case cases[] = {
      {Type::json, "", "/nodes/n1?fieldManager=kwatt-controller", "application/json-patch+json"},
      {Type::merge, "", "/nodes/n1?fieldManager=kwatt-controller", "application/merge-patch+json"},
      {Type::apply, "status", "/nodes/n1/status?fieldManager=kwatt-controller&force=true",
       "application/apply-patch+yaml"},
  };
  std::size_t i = 0;
  for (const Case& c : cases) {
    server.raw(test::json_response(200, "{}"));
    CHECK(run_task(io, client->patch(resources::nodes(), Name{"", "n1"}, c.type, "kwatt-controller",
                                     c.subresource, "{\"a\":1}"))
              .has_value());
    CHECK(sent(std::string("PATCH /api/v1") + c.target + " HTTP/1.1", i));
    CHECK(sent(std::string("Content-Type: ") + c.content, i));
    CHECK(sent("{\"a\":1}", i));
    ++i;
  }
}

TEST_CASE_FIXTURE(ClientFixture, "create, replace, replace_status and remove") {
  for (int i = 0; i < 4; ++i) server.raw(test::json_response(i == 0 ? 201 : 200, "{}"));
  const Name lease{"ns", "l"};
  CHECK(run_task(io, client->create(resources::leases(), "ns", "body")).has_value());
  CHECK(run_task(io, client->replace(resources::leases(), lease, "body")).has_value());
  CHECK(run_task(io, client->replace_status(resources::leases(), lease, "body")).has_value());
  CHECK(run_task(io, client->remove(resources::leases(), lease, "u-1")).has_value());
  const std::string path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
  CHECK(sent("POST " + path + " HTTP", 0));
  CHECK(sent("PUT " + path + "/l HTTP", 1));
  CHECK(sent("PUT " + path + "/l/status HTTP", 2));
  CHECK(sent("DELETE " + path + "/l HTTP", 3));
  CHECK(sent("\"uid\":\"u-1\"", 3));
}

TEST_CASE_FIXTURE(ClientFixture, "a refusal becomes an error with the server's words apart") {
  server.status(404, "NotFound");
  const auto answer = get();
  REQUIRE(answer.has_error());
  CHECK(answer.error().code == ErrorCode::not_found);
  CHECK(answer.error().message == "GET /api/v1/nodes/n1: HTTP 404 NotFound");
  CHECK(answer.error().server_text == "no: NotFound");
}

TEST_CASE_FIXTURE(ClientFixture, "429 with Retry-After is repeated, and what came before is told") {
  server.status(429, "TooManyRequests", {{"Retry-After", "0"}})
      .status(503, "ServiceUnavailable", {{"Retry-After", "0"}})
      .raw(test::json_response(200, "{}"));
  CHECK(get().has_value());
  CHECK(server.targets().size() == 3);
  server.status(429, "TooManyRequests", {{"Retry-After", "0"}}).status(500, "InternalError");
  const auto answer = get();
  REQUIRE(answer.has_error());
  CHECK(answer.error().code == ErrorCode::internal);
  CHECK(answer.error().message.find("after 1 retries") != std::string::npos);
}

TEST_CASE_FIXTURE(ClientFixture, "429 is repeated ten times at most") {
  for (int i = 0; i < 20; ++i) server.status(429, "TooManyRequests", {{"Retry-After", "0"}});
  CHECK(get().error().code == ErrorCode::too_many_requests);
  CHECK(server.targets().size() == 11);
}

TEST_CASE_FIXTURE(ClientFixture, "every retry passes the rate limiter again") {
  connect(config(), {.queries_per_second = 20, .burst = 1});
  for (int i = 0; i < 3; ++i) server.status(429, "TooManyRequests", {{"Retry-After", "0"}});
  server.raw(test::json_response(200, "{}"));
  const auto began = std::chrono::steady_clock::now();
  CHECK(get().has_value());
  CHECK(std::chrono::steady_clock::now() - began >= 140ms);
}

TEST_CASE_FIXTURE(ClientFixture, "without Retry-After, and for a POST, nothing is repeated") {
  server.status(503, "ServiceUnavailable");
  CHECK(get().error().code == ErrorCode::unavailable);
  server.status(429, "TooManyRequests", {{"Retry-After", "1"}});
  const auto created = run_task(io, client->create(resources::leases(), "ns", "{}"));
  CHECK(created.error().code == ErrorCode::too_many_requests);
  CHECK(created.error().retry_after == 1s);
  server.raw(test::Script{}.reset());
  CHECK(run_task(io, client->create(resources::leases(), "ns", "{}")).error().code ==
        ErrorCode::unavailable);
  CHECK(server.targets().size() == 3);
}

TEST_CASE_FIXTURE(ClientFixture, "a silent server is given up after the request timeout") {
  connect(config(), {.request_timeout = 50ms});
  server.raw(test::Script{}.stall());
  CHECK(get().error().code == ErrorCode::timeout);
}

TEST_CASE_FIXTURE(ClientFixture, "401 drops the token, the next request reads the file again") {
  const test::Folder folder;
  folder.write("token", "old\n");
  Config with = config();
  with.token_file = folder.path("token");
  connect(with);
  server.raw(test::json_response(200, "{}"));
  CHECK(get().has_value());
  CHECK(sent("Authorization: Bearer old", 0));
  folder.write("token", "new\n");
  server.status(401, "Unauthorized");
  CHECK(get().error().code == ErrorCode::unauthorized);
  CHECK(sent("Authorization: Bearer old", 1));
  server.raw(test::json_response(200, "{}"));
  CHECK(get().has_value());
  CHECK(sent("Authorization: Bearer new", 2));
}

TEST_CASE_FIXTURE(ClientFixture, "credentials that cannot be read are an error of the request") {
  Config with = config();
  with.token_file = "/nowhere/token";
  connect(with);
  const auto answer = get();
  REQUIRE(answer.has_error());
  CHECK(answer.error().code == ErrorCode::io);
  CHECK(answer.error().message.find("/nowhere/token") != std::string::npos);
  CHECK(server.targets().empty());
}

TEST_CASE_FIXTURE(ClientFixture, "eviction: what the answers mean") {
  const auto evict = [&] { return run_task(io, client->evict(Name{"ns", "p"}, "u-1")); };
  SUBCASE("accepted") {
    for (const int code : {200, 201}) {
      server.raw(test::json_response(code, "{}"));
      CHECK(evict().has_value());
    }
    CHECK(sent("POST /api/v1/namespaces/ns/pods/p/eviction HTTP"));
    CHECK(sent("\"policy/v1\""));
    CHECK(sent("\"uid\":\"u-1\""));
  }
  SUBCASE("gone already") {
    server.status(404, "NotFound");
    CHECK(evict().has_value());
  }
  SUBCASE("a budget forbids it now: never repeated by the client itself") {
    server.status(429, "TooManyRequests", {{"Retry-After", "0"}});
    CHECK(evict().error().code == ErrorCode::too_many_requests);
    CHECK(server.targets().size() == 1);
  }
  SUBCASE("several budgets") {
    server.status(500, "InternalError");
    CHECK(evict().error().code == ErrorCode::internal);
    CHECK(server.targets().size() == 1);
  }
  SUBCASE("another pod of that name: ours is gone") {
    server.status(409, "Conflict").raw(test::json_response(200, test::pod_json("p", "9")));
    CHECK(evict().has_value());
    CHECK(sent("GET /api/v1/namespaces/ns/pods/p HTTP", 1));
  }
  SUBCASE("another pod of that name was gone when we looked") {
    server.status(409, "Conflict").status(404, "NotFound");
    CHECK(evict().has_value());
  }
  SUBCASE("a conflict about the very pod stays a conflict") {
    auto same = test::pod_json("p", "9");
    same.replace(same.find("uid-p"), 5, "u-1");
    server.status(409, "Conflict").raw(test::json_response(200, same));
    CHECK(evict().error().code == ErrorCode::conflict);
  }
}

TEST_CASE_FIXTURE(ClientFixture, "a stream is returned whatever its status is") {
  server.status(410, "Expired");
  const auto opened = run_task(io, client->open("/api/v1/pods?watch=1"));
  REQUIRE(opened.has_value());
  CHECK((*opened)->status() == 410);
}

TEST_CASE_FIXTURE(ClientFixture, "a stream that stays open does not block other requests") {
  server.watch({});
  const auto stream = run_task(io, client->open("/api/v1/pods?watch=1"));
  REQUIRE(stream.has_value());
  server.raw(test::json_response(200, "{}"));
  CHECK(get().has_value());
}
