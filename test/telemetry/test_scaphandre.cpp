#include <doctest/doctest.h>

#include "telemetry/scaphandre.hpp"

namespace kwatt::telemetry {
namespace {

TEST_SUITE("telemetry") {
  TEST_CASE("the host's power is found among Scaphandre's metrics") {
    const auto power = read_host_power(
        "# HELP scaph_host_power_microwatts Power measurement on the whole host, in microwatts.\n"
        "# TYPE scaph_host_power_microwatts gauge\n"
        "scaph_host_power_microwatts 42500900\n"
        "\r\n"
        "scaph_socket_power_microwatts{socket_id=\"0\"} 30000000\n"
        "scaph_process_power_consumption_microwatts{cmdline=\"a} \\\" b\",exe=\"x\"} 12\n");
    REQUIRE(power.has_value());
    CHECK(*power == Milliwatts{42'501});
    CHECK(*read_host_power("scaph_host_power_microwatts{a=\"}\\\"}\",b=\"\"} 1e6 1763674000000") ==
          Milliwatts{1000});
    CHECK(*read_host_power("scaph_host_power_microwatts\t0") == Milliwatts{0});
  }

  TEST_CASE("what says no power of a host is refused with its line") {
    struct Case {
      const char *text, *message;
      ErrorCode code = ErrorCode::parse;
    };
    const Case cases[] = {
        {"", "no line says", ErrorCode::not_found},
        {"# nothing\nup 1\n", "no line says", ErrorCode::not_found},
        {"scaph_host_power_microwatts_total 5\n", "no line says", ErrorCode::not_found},
        {"<html>\n", "line 1"},
        {"up 1\nscaph_host_power_microwatts\n", "line 2"},
        {"scaph_host_power_microwatts NaN", "line 1"},
        {"scaph_host_power_microwatts +Inf", "line 1"},
        {"scaph_host_power_microwatts -1", "line 1"},
        {"scaph_host_power_microwatts 4e18", "line 1"},
        {"scaph_host_power_microwatts x", "line 1"},
        {"scaph_host_power_microwatts{a=\"} 5", "labels without an end"},
        {"scaph_host_power_microwatts 5\n\nscaph_host_power_microwatts 6\n", "line 3"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.text);
      const auto power = read_host_power(c.text);
      REQUIRE_FALSE(power.has_value());
      CHECK(power.error().code == c.code);
      CHECK_MESSAGE(power.error().message.find(c.message) != std::string::npos,
                    power.error().message);
    }
  }
}

}  // namespace
}  // namespace kwatt::telemetry
