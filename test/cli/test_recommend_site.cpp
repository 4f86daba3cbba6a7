// recommend-site: from options to a request, and an answer as people look at it.
#include <doctest/doctest.h>

#include "cli/recommend_site.hpp"

namespace kwatt::cli {
namespace {

TEST_CASE("recommend-site: options become a request") {
  RecommendOptions options;
  options.region = "A";
  options.cpu = "1500m";
  options.memory = "1Gi";
  options.mbps = 50;
  options.workloads = 3;
  options.weights = {"X=10", "cost=100:low", "Carbon=2"};
  options.affinity = {"d"};
  options.normalize = "None";
  const auto spec = request_of(options);
  REQUIRE(spec.has_value());
  CHECK(spec->region == "A");
  CHECK(spec->resources == api::SiteResources{1500, 1024, 0, 0});
  CHECK(spec->bandwidth == std::vector<api::SiteFlow>{{"asked", 50}});
  CHECK(spec->weights == std::vector<api::SiteWeight>{{"", "X", 10, api::Prefer::High},
                                                      {"", "cost", 100, api::Prefer::Low},
                                                      {"Carbon", "", 2, api::Prefer::High}});
  CHECK(spec->normalize == api::Normalize::None);
  CHECK(request_of(RecommendOptions{}).value() == api::SiteRecommendationSpec{});
}

TEST_CASE("recommend-site: a wrong option is told") {
  struct Case {
    std::function<void(RecommendOptions&)> change;
    const char* says;
  };
  const Case cases[] = {
      {[](auto& o) { o.cpu = "two"; }, "--cpu two: must be a quantity"},
      {[](auto& o) { o.memory = "4GG"; }, "--memory 4GG: must be a quantity"},
      {[](auto& o) { o.weights = {"X"}; }, "--weight X: must be NAME=WEIGHT"},
      {[](auto& o) { o.weights = {"X=a"}; }, "--weight X=a: must be NAME=WEIGHT"},
      {[](auto& o) { o.weights = {"=3"}; }, "--weight =3: must be NAME=WEIGHT"},
      {[](auto& o) { o.weights = {"X=0"}; }, "spec.weights[0].weight: 0 must be within"},
      {[](auto& o) {
         o.weights = {"X=1", "X=2"};
       },
       "nothing may be weighed twice"},
      {[](auto& o) { o.cpu = "-1"; }, "spec.resources.cpuMillicores: -1000 must be within"},
      {[](auto& o) { o.count = 0; }, "spec.count: 0 must be within"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.says);
    RecommendOptions options;
    c.change(options);
    const auto spec = request_of(options);
    REQUIRE_FALSE(spec.has_value());
    CHECK(spec.error().message.find(c.says) != std::string::npos);
  }
}

TEST_CASE("recommend-site: the answer is a table of sites and one of exclusions") {
  api::SiteRecommendationStatus status;
  status.sites = {{"d", 220, true, true, {{"Indicator/X", 2, 2, 110, 220, "a value"}}},
                  {"b", 110, false, false, {{"Indicator/X", 1, 1, 110, 110, ""}}}};
  status.excluded = {{"c", "Taint", "it is tainted", 330}, {"e", "Region", "elsewhere", {}}};
  status.notes = {"Carbon is left out: nobody knows"};
  CHECK(text_of(status, false) ==
        "SITE   TOTAL   RECOMMENDED   AFFINITY   MADE OF\n"
        "d      220     yes           yes        Indicator/X 2×110\n"
        "b      110                              Indicator/X 1×110\n"
        "\n"
        "EXCLUDED   BY       WHY\n"
        "c          Taint    it is tainted (its total would be 330)\n"
        "e          Region   elsewhere\n"
        "\n"
        "Carbon is left out: nobody knows.\n");
  const std::string explained = text_of(status, true);
  CHECK(explained.find("SITE   SCORE         RAW   NORMALIZED   WEIGHT   WEIGHTED   WHY\n"
                       "d      Indicator/X   2     2            110      220        a value\n") !=
        std::string::npos);
  status.sites.clear();
  status.machines.emplace_back().site = "d";
  CHECK(text_of(status, true).starts_with("No site fits.\n"));
  CHECK(text_of(status, true).ends_with("The machine at d is not started.\n"));
}

}  // namespace
}  // namespace kwatt::cli
