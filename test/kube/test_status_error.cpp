// What the API server's refusals mean, and when a request is repeated.
#include <doctest/doctest.h>

#include "kube/rate_limiter.hpp"
#include "kube/retry.hpp"
#include "kube/status_error.hpp"

using namespace kwatt;
using namespace kwatt::kube;
using namespace std::chrono_literals;

namespace {

std::string status(int code, const std::string& reason, const std::string& details = "{}") {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"told",)"
         R"("reason":")" +
         reason + R"(","details":)" + details + R"(,"code":)" + std::to_string(code) + "}";
}

}  // namespace

TEST_CASE("status: the reason decides, then the code") {
  struct Case {
    int http;
    const char* reason;
    ErrorCode want;
  };
  const Case cases[] = {
      {401, "Unauthorized", ErrorCode::unauthorized},
      {403, "Forbidden", ErrorCode::forbidden},
      {404, "NotFound", ErrorCode::not_found},
      {409, "AlreadyExists", ErrorCode::already_exists},
      {409, "Conflict", ErrorCode::conflict},
      {410, "Gone", ErrorCode::expired},
      {410, "Expired", ErrorCode::expired},
      {422, "Invalid", ErrorCode::invalid_argument},
      {400, "BadRequest", ErrorCode::invalid_argument},
      {429, "TooManyRequests", ErrorCode::too_many_requests},
      {405, "MethodNotAllowed", ErrorCode::unsupported},
      {415, "UnsupportedMediaType", ErrorCode::unsupported},
      {500, "InternalError", ErrorCode::internal},
      {500, "ServerTimeout", ErrorCode::timeout},
      {503, "ServiceUnavailable", ErrorCode::unavailable},
      {504, "Timeout", ErrorCode::timeout},
      {409, "", ErrorCode::conflict},
      {409, "Novelty", ErrorCode::conflict},
      {413, "", ErrorCode::invalid_argument},
      {502, "", ErrorCode::unavailable},
      {418, "", ErrorCode::protocol},
      {599, "", ErrorCode::internal},
  };
  for (const Case& c : cases) {
    CAPTURE(c.http);
    CAPTURE(c.reason);
    const auto read = status_of_response(c.http, "", status(c.http, c.reason));
    CHECK(code_of(read) == c.want);
    const Error error = to_error(read, "GET /x");
    CHECK(error.code == c.want);
    CHECK(error.server_text == "told");
    CHECK(error.message.starts_with("GET /x: HTTP " + std::to_string(c.http)));
  }
}

TEST_CASE("status: a body that is none becomes one with the HTTP code and the text") {
  for (const char* body : {"upstream connect error", "", "{", "[]", R"({"kind":"Pod"})",
                           R"({"kind":7})", "{\"kind\":\"Status\""}) {
    CAPTURE(body);
    const auto made = status_of_response(503, "", body);
    CHECK(made.code == 503);
    CHECK(made.message == body);
    CHECK(code_of(made) == ErrorCode::unavailable);
  }
}

TEST_CASE("status: long foreign text is cut") {
  CHECK(
      to_error(status_of_response(500, "", std::string(100'000, 'x')), "GET").server_text.size() ==
      4096);
}

TEST_CASE("status: when to come back, by header, else by body, an hour at most") {
  const std::string body = status(429, "TooManyRequests", R"({"retryAfterSeconds":7})");
  CHECK(to_error(status_of_response(429, "", body), "").retry_after == 7s);
  CHECK(to_error(status_of_response(429, "3", body), "").retry_after == 3s);
  CHECK(to_error(status_of_response(429, "999999999", body), "").retry_after == 1h);
  CHECK(to_error(status_of_response(429, "Wed, 21 Oct", body), "").retry_after == 7s);
  CHECK_FALSE(to_error(status_of_response(429, "", status(429, "")), "").retry_after);
  CHECK_FALSE(parse_retry_after("-1"));
  CHECK_FALSE(parse_retry_after("99999999999999999999"));
}

TEST_CASE("status: a version that is too large is known by its cause, not by its text") {
  const auto large = status(
      504, "Timeout",
      R"({"causes":[{"reason":"Other"},{"reason":"ResourceVersionTooLarge","message":"x"}]})");
  CHECK(resource_version_too_large(status_of_response(504, "", large)));
  CHECK_FALSE(resource_version_too_large(
      status_of_response(504, "", R"({"kind":"Status","message":"Too large resource version"})")));
}

TEST_CASE("retry: only when the server says so") {
  struct Case {
    const char* name;
    int attempt;
    const char* method;
    int status;
    const char* header;
    std::optional<Duration> want;
  };
  const Case cases[] = {
      {"429 with a time", 0, "GET", 429, "1", 1s},
      {"503 with a time", 0, "PATCH", 503, "2", 2s},
      {"500 with a time", 0, "PUT", 500, "0", 0s},
      {"429 without", 0, "GET", 429, "", std::nullopt},
      {"503 without", 0, "DELETE", 503, "", std::nullopt},
      {"404 with a time", 0, "GET", 404, "1", std::nullopt},
      {"a POST", 0, "POST", 429, "1", std::nullopt},
      {"the tenth retry", 9, "GET", 429, "1", 1s},
      {"the eleventh", 10, "GET", 429, "1", std::nullopt},
      {"a wait the caller should know of", 0, "GET", 429, "31", std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(retry_pause(c.attempt, c.method, c.status, c.header) == c.want);
  }
}

TEST_CASE("rate limit: a burst, then evenly") {
  RateLimiter limiter(10, 3);
  MonotonicPoint now{1h};
  for (int i = 0; i < 3; ++i) CHECK(limiter.reserve(now) == 0s);
  CHECK(limiter.reserve(now) == 100ms);
  CHECK(limiter.reserve(now) == 200ms);
  now += 200ms;
  CHECK(limiter.reserve(now) == 100ms);
  now += 1h;
  for (int i = 0; i < 3; ++i) CHECK(limiter.reserve(now) == 0s);
  CHECK(limiter.reserve(now) == 100ms);
}

TEST_CASE("rate limit: trying takes nothing when there is nothing, and time never goes back") {
  RateLimiter limiter(1, 1);
  const MonotonicPoint now{1h};
  CHECK(limiter.try_take(now));
  CHECK_FALSE(limiter.try_take(now));
  CHECK_FALSE(limiter.try_take(now - 10s));
  CHECK_FALSE(limiter.try_take(now + 999ms));
  CHECK(limiter.try_take(now + 1001ms));
}
