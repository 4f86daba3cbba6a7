#include <doctest/doctest.h>

#include "agent/desired.hpp"

namespace kwatt::agent {
namespace {

TEST_CASE("no annotation means the original settings") {
  const DesiredSettings settings = parse_desired({{"kwatt.dev/frequency", "low"}});
  CHECK((settings == DesiredSettings{}));
  CHECK(settings.empty());
}

TEST_CASE("each annotation is one setting") {
  const DesiredSettings settings = parse_desired(
      {{"kwatt.dev/governor", "powersave"},
       {"kwatt.dev/max-frequency-mhz", "1800"},
       {"kwatt.dev/epp", "balance_power"},
       {"kwatt.dev/power-cap-watts", "250"},
       {"kwatt.dev/max-uncore-mhz", "1600"},
       {"kwatt.dev/request",
        R"({"id":"r-7","time":"2026-11-20T21:44:03Z","policy":"default","keys":["governor"]})"}});
  CHECK(settings.governor == "powersave");
  CHECK(settings.max_frequency == Megahertz{1800});
  CHECK(settings.preference == "balance_power");
  CHECK(settings.power_cap == watts(250));
  CHECK(settings.max_uncore == Megahertz{1600});
  CHECK(settings.request_id == "r-7");
  CHECK_FALSE(settings.keep_cap);
  CHECK(settings.errors.empty());
}

TEST_CASE("0 and the empty text leave the choice to the driver") {
  const DesiredSettings settings = parse_desired({{"kwatt.dev/governor", ""},
                                                  {"kwatt.dev/max-frequency-mhz", "0"},
                                                  {"kwatt.dev/epp", ""},
                                                  {"kwatt.dev/max-uncore-mhz", "0"},
                                                  {"kwatt.dev/power-cap-watts", ""}});
  CHECK((settings == DesiredSettings{}));
}

TEST_CASE("what makes no sense is a sentence, and its setting stays as it is") {
  struct Case {
    std::string key, value;
    Lever lever;
  };
  const Case cases[] = {
      {"kwatt.dev/governor", "Power Save", Lever::governor},
      {"kwatt.dev/governor", "../../etc/passwd", Lever::governor},
      {"kwatt.dev/governor", std::string(33, 'a'), Lever::governor},
      {"kwatt.dev/governor", "powersave\n", Lever::governor},
      {"kwatt.dev/epp", "balance power", Lever::preference},
      {"kwatt.dev/max-frequency-mhz", "1.8GHz", Lever::frequency},
      {"kwatt.dev/max-frequency-mhz", "-1", Lever::frequency},
      {"kwatt.dev/max-frequency-mhz", "100001", Lever::frequency},
      {"kwatt.dev/max-uncore-mhz", "1.6GHz", Lever::uncore},
      {"kwatt.dev/power-cap-watts", "25O", Lever::cap},
      {"kwatt.dev/power-cap-watts", " 250", Lever::cap},
      {"kwatt.dev/power-cap-watts", "99999999999999999999", Lever::cap},
  };
  for (const Case& c : cases) {
    CAPTURE(c.key);
    CAPTURE(c.value);
    const DesiredSettings settings = parse_desired({{c.key, c.value}});
    CHECK(settings.empty());
    REQUIRE(settings.errors.size() == 1);
    CHECK(settings.errors.front().starts_with(c.key + ": "));
    REQUIRE(settings.unreadable.size() == 1);
    CHECK(settings.unreadable.front() == c.lever);
  }
}

TEST_CASE("a broken request costs only its id") {
  for (const std::string request : {"{", "[]", "{}", R"({"id":7})", "\"x\"", "null"}) {
    CAPTURE(request);
    const DesiredSettings settings =
        parse_desired({{"kwatt.dev/governor", "powersave"}, {"kwatt.dev/request", request}});
    CHECK(settings.governor == "powersave");
    CHECK(settings.request_id.empty());
    CHECK(settings.errors.size() == 1);
    CHECK(settings.unreadable.empty());
  }
}

TEST_CASE("without a controller only a cap that belongs to a budget stays") {
  DesiredSettings settings = parse_desired({{"kwatt.dev/governor", "powersave"},
                                            {"kwatt.dev/power-cap-watts", "250"},
                                            {"kwatt.dev/request", R"({"id":"r-1"})"}});
  CHECK((without_controller(settings) == DesiredSettings{}));
  settings = parse_desired({{"kwatt.dev/governor", "powersave"},
                            {"kwatt.dev/power-cap-watts", "250"},
                            {"kwatt.dev/request", R"({"id":"r-1","keepCap":true})"}});
  const DesiredSettings left = without_controller(settings);
  CHECK_FALSE(left.governor);
  CHECK(left.power_cap == watts(250));
}

}  // namespace
}  // namespace kwatt::agent
