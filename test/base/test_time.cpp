#include <doctest/doctest.h>

#include "base/time.hpp"

using namespace kwatt;

TEST_CASE("duration: Go's text is understood, and nothing else") {
  struct Case {
    const char* text;
    std::optional<std::int64_t> milliseconds;
  };
  const Case cases[] = {
      {"0", 0},
      {"0s", 0},
      {"10m", 600'000},
      {"1h30m", 5'400'000},
      {"250ms", 250},
      {"1.5s", 1500},
      {".5s", 500},
      {"-5s", -5000},
      {"+5s", 5000},
      {"1500us", 1},
      {"1h2m3s4ms", 3'723'004},
      {"2562047h", 9'223'369'200'000},
      {"2562048h", std::nullopt},
      {"", std::nullopt},
      {"s", std::nullopt},
      {"5", std::nullopt},
      {"5 s", std::nullopt},
      {"5d", std::nullopt},
      {".s", std::nullopt},
      {"1h-5m", std::nullopt},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto parsed = parse_go_duration(c.text);
    REQUIRE(parsed.has_value() == c.milliseconds.has_value());
    if (parsed) CHECK(parsed->count() == *c.milliseconds);
  }
}

TEST_CASE("duration: what is written is read back as the same") {
  for (const std::int64_t ms : {0, 1, 999, 1000, 61'001, 3'600'000, 5'400'000, 86'400'000, -1500}) {
    CHECK(parse_go_duration(format_go_duration(Duration{ms})) == Duration{ms});
  }
  CHECK(format_go_duration(Duration{5'400'000}) == "1h30m");
  CHECK(format_go_duration(Duration{0}) == "0s");
}

TEST_CASE("time: RFC 3339 in and out") {
  struct Case {
    const char* text;
    const char* want;  // "": refused
  };
  const Case cases[] = {
      {"2026-11-20T21:44:03Z", "2026-11-20T21:44:03.000000Z"},
      {"2026-11-20T21:44:03.123456Z", "2026-11-20T21:44:03.123000Z"},
      {"2026-11-20T23:44:03+02:00", "2026-11-20T21:44:03.000000Z"},
      {"2026-11-20T19:14:03-02:30", "2026-11-20T21:44:03.000000Z"},
      {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
      {"2026-02-29T00:00:00Z", ""},
      {"2026-13-01T00:00:00Z", ""},
      {"2026-11-20T24:00:00Z", ""},
      {"2026-11-20 21:44:03Z", ""},
      {"2026-11-20T21:44:03", ""},
      {"2026-11-20T21:44:03Zx", ""},
      {"2026-11-20T21:44:03.Z", ""},
      {"", ""},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto parsed = parse_rfc3339(c.text);
    REQUIRE(parsed.has_value() == (c.want[0] != '\0'));
    if (parsed) CHECK(format_micro_time(*parsed) == c.want);
  }
  CHECK(format_rfc3339(*parse_rfc3339("1970-01-01T00:00:00Z")) == "1970-01-01T00:00:00Z");
}
