// The rules of our kinds, by the tables of test/golden/policies, which an API server judges as well
// (test_crds_on_apiserver.py).
#include <doctest/doctest.h>
#include <yaml-cpp/yaml.h>

#include "api/decode.hpp"
#include "api/estimator.hpp"
#include "test/api/yaml_json.hpp"
#include "test/support/source_dir.hpp"

namespace kwatt::api {
namespace {

// All that the C++ side has against the spec.
template <class Kind>
std::vector<std::string> verdict(const YAML::Node& spec) {
  Kind object;
  const auto done = decode("{\"spec\":" + test::to_json(spec) + "}", object);
  if (!done) return {done.error().message};
  return validate(object.spec);
}

template <class Kind>
void run(const std::string& file) {
  const YAML::Node cases = YAML::LoadFile(test::source_path("test/golden/policies/" + file));
  REQUIRE(cases.size() > 10);
  for (const YAML::Node& c : cases) {
    const auto name = c["name"].as<std::string>();
    CAPTURE(name);
    const std::vector<std::string> problems = verdict<Kind>(c["spec"]);
    std::string all;
    for (const std::string& problem : problems) all += problem + "\n";
    CAPTURE(all);
    if (!c["refused"]) {
      CHECK(problems.empty());
      continue;
    }
    CHECK_FALSE(problems.empty());
    const auto says = (c["says_cpp"] ? c["says_cpp"] : c["says"]).as<std::string>();
    const auto field = c["field"].as<std::string>();
    bool found = false;
    for (const std::string& problem : problems) {
      found = found || (problem.rfind(field, 0) == 0 && problem.find(says) != std::string::npos);
    }
    CHECK_MESSAGE(found, "no sentence begins with ", field, " and says ", says);
  }
}

TEST_CASE("an EnergyPolicy is refused for the right reason, or accepted") {
  run<EnergyPolicy>("energypolicies.yaml");
}

TEST_CASE("a NodePower is refused for the right reason, or accepted") {
  run<NodePower>("nodepowers.yaml");
}

TEST_CASE("a Site is refused for the right reason, or accepted") {
  run<Site>("sites.yaml");
}

TEST_CASE("a SiteRecommendation is refused for the right reason, or accepted") {
  run<SiteRecommendation>("siterecommendations.yaml");
}

TEST_CASE("an Estimator is refused for the right reason, or accepted") {
  run<Estimator>("estimators.yaml");
}

TEST_CASE("all that is wrong is said at once") {
  EnergyPolicySpec spec;
  spec.interval = Duration{0};
  spec.capping.release_percent_of_max = 95;
  spec.disruption.budgets = {{"", "lots", "", Duration{0}, {}, "", true}};
  CHECK(validate(spec) ==
        std::vector<std::string>{
            "spec.interval: 0s must be at least 1s",
            "spec.capping.releasePercentOfMax: 95 must be below capPercentOfMax (80), or a capped "
            "node is released at once",
            "spec.disruption.budgets[0].nodes: \"lots\" must be a number of nodes such as 3, or a "
            "percentage such as 10%"});
}

}  // namespace
}  // namespace kwatt::api
