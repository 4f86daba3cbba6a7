#include <doctest/doctest.h>

#include "reconcilers/drivers.hpp"
#include "reconcilers/identifiers.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;

TEST_CASE("secret: data is base64-decoded, everything else is passed over") {
  const auto keys = decode_secret(
      R"({"kind":"Secret","type":"Opaque","data":{"username":"YWRtaW4=","password":"cMOkc3M="}})");
  REQUIRE(keys.has_value());
  CHECK(keys->at("username") == "admin");
  CHECK(keys->at("password") == "p\xC3\xA4ss");
}

TEST_CASE("secret: what is not a Secret is refused without showing its content") {
  struct Case {
    const char* name;
    const char* given;
    const char* want;
  };
  const Case cases[] = {
      {"not JSON", "<html>", "not a JSON object"},
      {"a list", "[]", "not a JSON object"},
      {"not base64", R"({"data":{"password":"%%%secret%%%"}})", "data.password"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const auto keys = decode_secret(c.given);
    REQUIRE_FALSE(keys.has_value());
    CHECK(keys.error().message.find(c.want) != std::string::npos);
    CHECK(keys.error().text().find("%%%secret%%%") == std::string::npos);
  }
}

TEST_CASE("secret: without data there are no keys") {
  const auto keys = decode_secret("{}");
  REQUIRE(keys.has_value());
  CHECK(keys->empty());
}

TEST_CASE("uuid: version 4, variant 1, never the same") {
  const std::string a = new_uuid(), b = new_uuid();
  CHECK(a.size() == 36);
  CHECK(a[14] == '4');
  CHECK(std::string("89ab").find(a[19]) != std::string::npos);
  CHECK(a != b);
}
