#include <doctest/doctest.h>

#include "servers/token_reviewer.hpp"

using namespace kwatt;
using namespace kwatt::servers;

TEST_CASE("token review: the node of the token is read from its claim") {
  const auto caller = read_token_review(
      R"({"status":{"authenticated":true,"audiences":["kwatt"],"user":{
          "username":"system:serviceaccount:kwatt-system:kwatt-agent",
          "extra":{"authentication.kubernetes.io/node-name":["n1"]}}}})",
      "kwatt");
  REQUIRE(caller.has_value());
  CHECK(caller->user == "system:serviceaccount:kwatt-system:kwatt-agent");
  CHECK(caller->node_name == "n1");
}

TEST_CASE("token review: what proves nothing is refused") {
  struct Case {
    const char* name;
    const char* given;
    ErrorCode want;
  };
  const Case cases[] = {
      {"not JSON", "oops", ErrorCode::parse},
      {"no status", "{}", ErrorCode::parse},
      {"not authenticated", R"({"status":{"authenticated":false,"error":"expired"}})",
       ErrorCode::unauthorized},
      {"authenticated is no boolean",
       R"({"status":{"authenticated":"true","audiences":["kwatt"]}})", ErrorCode::unauthorized},
      {"another audience", R"({"status":{"authenticated":true,"audiences":["api"],"user":{}}})",
       ErrorCode::unauthorized},
      {"an API server without audiences", R"({"status":{"authenticated":true,"user":{}}})",
       ErrorCode::unauthorized},
      {"no user", R"({"status":{"authenticated":true,"audiences":["kwatt"]}})", ErrorCode::parse},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const auto caller = read_token_review(c.given, "kwatt");
    REQUIRE_FALSE(caller.has_value());
    CHECK(caller.error().code == c.want);
  }
}

TEST_CASE("token review: a token without a node, or with two, has none") {
  for (const char* extra : {"{}", R"({"authentication.kubernetes.io/node-name":["a","b"]})",
                            R"({"authentication.kubernetes.io/node-name":"a"})"}) {
    const auto caller = read_token_review(
        std::string(
            R"({"status":{"authenticated":true,"audiences":["kwatt"],"user":{"username":"u","extra":)") +
            extra + "}}}",
        "kwatt");
    REQUIRE(caller.has_value());
    CHECK(caller->node_name.empty());
  }
}
