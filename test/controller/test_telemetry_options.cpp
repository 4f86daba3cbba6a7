#include <vector>

#include <doctest/doctest.h>

#include "controller/options.hpp"

namespace kwatt::controller {
namespace {

std::optional<Options> parse(std::vector<std::string> arguments) {
  std::string program = "kwatt-controller";
  std::vector<char*> argv{program.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int status = 0;
  return parse_options(static_cast<int>(argv.size()), argv.data(), status);
}

TEST_SUITE("telemetry") {
  TEST_CASE("options: no source is asked unless it is named") {
    const auto options = parse({});
    REQUIRE(options.has_value());
    CHECK(options->prometheus.url.empty());
    CHECK_FALSE(options->metrics_api);
  }

  TEST_CASE("options: exporters, labels and the operator's own query") {
    const auto options =
        parse({"--prometheus-url", "https://prometheus.example.com/base", "--prometheus-exporter",
               "ipmi-exporter", "--prometheus-exporter", "kepler", "--prometheus-query", "my_watts",
               "--prometheus-node-labels", "host,instance", "--prometheus-interval", "30s",
               "--prometheus-token-file", "/token", "--metrics-api"});
    REQUIRE(options.has_value());
    CHECK(options->prometheus.exporters == std::vector<std::string>{"ipmi-exporter", "kepler"});
    CHECK(options->prometheus.labels == std::vector<std::string>{"host", "instance"});
    CHECK(options->prometheus.interval == std::chrono::seconds{30});
    CHECK(options->metrics_api);
  }

  TEST_CASE("options: predictors are asked on hosts that are allowed, by both protocols") {
    const auto options = parse({"--endpoint-allow", "10.0.0.0/8,https://models.example.com",
                                "--prediction-interval", "1m", "--prediction-timeout", "2s"});
    REQUIRE(options.has_value());
    CHECK(options->endpoint_allow.may("10.1.2.3", false));
    CHECK(options->endpoint_allow.may("10.1.2.3", true));
    CHECK(options->endpoint_allow.may("models.example.com", true));
    CHECK_FALSE(options->endpoint_allow.may("192.0.2.1", false));
    CHECK(options->prediction_interval == std::chrono::minutes{1});
    CHECK(options->prediction_timeout == std::chrono::seconds{2});
    CHECK_FALSE(parse({})->endpoint_allow.may("10.1.2.3", true));
    CHECK_FALSE(parse({"--endpoint-allow", "10.0.0.0/40"}).has_value());
  }

  TEST_CASE("options: what cannot work, or would give the token away, is refused at the start") {
    const std::string url = "https://prometheus.example.com";
    const std::vector<std::string> cases[] = {
        {"--prometheus-url", url},
        {"--prometheus-exporter", "ipmi-exporter"},
        {"--prometheus-token-file", "/token"},
        {"--prometheus-url", url, "--prometheus-exporter", "no-such-exporter"},
        {"--prometheus-url", "prometheus:9090", "--prometheus-exporter", "ipmi-exporter"},
        {"--prometheus-url", "https://user:pw@host", "--prometheus-exporter", "ipmi-exporter"},
        {"--prometheus-url", url + "/?x=1", "--prometheus-exporter", "ipmi-exporter"},
        {"--prometheus-url", "http://prometheus.example.com", "--prometheus-exporter",
         "ipmi-exporter", "--prometheus-token-file", "/token"},
        {"--prometheus-url", url, "--prometheus-exporter", "ipmi-exporter", "--prometheus-interval",
         "0s"},
    };
    for (const auto& arguments : cases) {
      CAPTURE(arguments.back());
      CHECK_FALSE(parse(arguments).has_value());
    }
    CHECK(parse({"--prometheus-url", "http://127.0.0.1:9090", "--prometheus-exporter",
                 "ipmi-exporter", "--prometheus-token-file", "/token"}));
  }
}

}  // namespace
}  // namespace kwatt::controller
