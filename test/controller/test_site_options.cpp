// The options of sites.
#include <vector>

#include <doctest/doctest.h>

#include "controller/options.hpp"

namespace kwatt::controller {
namespace {

std::optional<Options> parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "kwatt-controller");
  std::vector<char*> argv;
  argv.reserve(arguments.size());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int status = 0;
  return parse_options(static_cast<int>(argv.size()), argv.data(), status);
}

TEST_CASE("options: sites ask nobody and start nothing unless it is said") {
  const auto options = parse({});
  REQUIRE(options.has_value());
  CHECK(options->sites.hooks.empty());
  CHECK_FALSE(options->sites.metrics);
  CHECK_FALSE(options->sites.allowed.may("127.0.0.1", true));
  CHECK(options->sites.cluster_set_domain == "clusterset.local");
}

TEST_CASE("options: hooks are programs or URLs by name, Prometheus may serve sites alone") {
  const auto options =
      parse({"--site-hook", "vms=/bin/sh", "--site-hook", "cloud=https://vms.example.org/create",
             "--site-allow", "http://10.0.0.0/8,estimator.example.org", "--prometheus-url",
             "http://127.0.0.1:9090", "--site-metrics", "--site-metrics-interval", "30s"});
  REQUIRE(options.has_value());
  CHECK(options->sites.hooks ==
        std::map<std::string, std::string>{{"cloud", "https://vms.example.org/create"},
                                           {"vms", "/bin/sh"}});
  CHECK(options->sites.allowed.may("10.1.2.3", false));
  CHECK_FALSE(options->sites.allowed.may("10.1.2.3", true));
  CHECK(options->sites.allowed.may("estimator.example.org", true));
  // Its name alone does not tell whether it lies in 10.0.0.0/8.
  CHECK_FALSE(options->sites.allowed.filter("estimator.example.org", false)("192.0.2.1"));
}

TEST_CASE("options: what cannot work for sites is refused at the start") {
  const std::vector<std::string> cases[] = {
      {"--site-metrics"},
      {"--site-hook", "vms"},
      {"--site-hook", "=https://vms.example.org"},
      {"--site-hook", "vms=/no/such/program"},
      {"--site-hook", "vms=relative"},
      {"--site-hook", "vms=/bin/sh", "--site-hook", "vms=https://vms.example.org"},
      {"--site-hook", "vms=https://user:pw@vms.example.org"},
      {"--site-allow", "ftp://x"},
      {"--site-metrics-interval", "0s"},
  };
  for (const auto& arguments : cases) {
    CAPTURE(arguments.back());
    CHECK_FALSE(parse(arguments).has_value());
  }
}

}  // namespace
}  // namespace kwatt::controller
