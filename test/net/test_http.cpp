#include <doctest/doctest.h>

#include "net/encode.hpp"
#include "net/http.hpp"

using namespace kwatt;
using net::Headers;
using net::parse_url;

TEST_CASE("header names compare without case and the first one counts") {
  Headers headers{{"Content-Type", "text/plain"}, {"X-A", "1"}, {"x-a", "2"}};
  CHECK(headers.get("content-TYPE") == "text/plain");
  CHECK(headers.get("X-a") == "1");
  CHECK(headers.get("absent").empty());
  headers.set("CONTENT-type", "application/json");
  CHECK(headers.get("Content-Type") == "application/json");
  headers.erase("X-A");
  CHECK(headers.get("x-a").empty());
  headers.add("Via", "a");
  headers.add("Via", "b");
  CHECK(std::distance(headers.begin(), headers.end()) == 3);
}

TEST_CASE("the authority has brackets and a port only where needed") {
  struct Case {
    net::Origin origin;
    std::string want;
  };
  const Case cases[] = {
      {{true, "example.com", 443}, "example.com"}, {{true, "example.com", 80}, "example.com:80"},
      {{false, "example.com", 80}, "example.com"}, {{true, "::1", 6443}, "[::1]:6443"},
      {{true, "fe80::2", 443}, "[fe80::2]"},
  };
  for (const Case& c : cases) CHECK(c.origin.authority() == c.want);
}

TEST_CASE("a URL is split into origin and path") {
  struct Case {
    std::string text;
    bool tls;
    std::string host;
    std::uint16_t port;
    std::string path;
  };
  const Case cases[] = {
      {"https://10.0.0.7:8000/redfish/v1", true, "10.0.0.7", 8000, "/redfish/v1"},
      {"http://bmc", false, "bmc", 80, "/"},
      {"HTTPS://bmc.example.com/", true, "bmc.example.com", 443, "/"},
      {"https://[2001:db8::7]:8443/a%20b?x=1&y=%2F", true, "2001:db8::7", 8443, "/a%20b?x=1&y=%2F"},
      {"http://h?q", false, "h", 80, "/?q"},
      {"http://node_1.local:1/", false, "node_1.local", 1, "/"},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto url = parse_url(c.text);
    REQUIRE(url.has_value());
    CHECK(url->origin.tls == c.tls);
    CHECK(url->origin.host == c.host);
    CHECK(url->origin.port == c.port);
    CHECK(url->path == c.path);
  }
}

TEST_CASE("a URL that cannot be meant is refused with a reason") {
  struct Case {
    std::string text;
    std::string reason;
  };
  const Case cases[] = {
      {"", "not a URL"},
      {"bmc:8000", "http and https"},
      {"/redfish", "not a URL"},
      {"https://", "no valid host"},
      {"https://:443/", "no valid host"},
      {"ftp://host/", "http and https"},
      {"https://admin:secret@host/", "user name"},
      {"https://host:0/", "1..65535"},
      {"https://host:65536/", "1..65535"},
      {"https://host:x/", "no valid port"},
      {"https://host:8x/", "no valid port"},
      {"https://host/#part", "fragment"},
      {"https://ho%00st/", "no valid host"},
      {"https://host /", "not a URL"},
      {"https://[::1/", "not a URL"},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto url = parse_url(c.text);
    REQUIRE(url.has_error());
    CHECK(url.error().code == ErrorCode::parse);
    CHECK(url.error().message.find(c.reason) != std::string::npos);
    CHECK(url.error().message.find("secret") == std::string::npos);
  }
}

TEST_CASE("percent encoding leaves only unreserved bytes") {
  CHECK(net::percent_encode("aZ09-._~") == "aZ09-._~");
  CHECK(net::percent_encode("a b/c?d=e&f%") == "a%20b%2Fc%3Fd%3De%26f%25");
  CHECK(net::percent_encode("\xC3\xA4\n") == "%C3%A4%0A");
}
