// The choice of a site: the worked case of the reference exactly, each plugin by its table, and
// what normalization, ties and unknown values do.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "placement/sites/recommend.hpp"
#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const TimePoint kNow = *parse_rfc3339("2026-11-22T02:00:00Z");

api::Site named(const std::string& name) {
  api::Site site;
  site.meta.name = name;
  return site;
}

SiteView view(const api::Site& site) {
  return view_of(std::make_shared<const api::Site>(site), kNow);
}

std::vector<SiteView> views(const std::vector<api::Site>& sites) {
  std::vector<SiteView> out;
  for (const api::Site& site : sites) out.push_back(view(site));
  return out;
}

SiteAnswer answer(const api::SiteRecommendationSpec& spec, const std::vector<api::Site>& sites) {
  auto result = recommend(SiteRequest(spec), views(sites));
  REQUIRE_MESSAGE(result.has_value(), result.error().text());
  return std::move(*result);
}

// "d=220 b=220 a=110 | c Taint"
std::string summary(const SiteAnswer& answer) {
  std::string out;
  for (const auto& site : answer.sites) out += fmt::format("{}={} ", site.name, site.total);
  out += "|";
  for (const auto& site : answer.excluded) out += fmt::format(" {} {}", site.name, site.plugin);
  return out;
}

// Region A has a, b, c (tainted) and d, with X = Y = 1, 2, 3, 2; region B has one that is better.
std::vector<api::Site> worked_sites() {
  std::vector<api::Site> sites;
  const std::pair<const char*, std::int64_t> values[] = {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 2}};
  for (const auto& [name, value] : values) {
    api::Site site = named(name);
    site.spec.region = "A";
    site.spec.indicators = {{"X", value}, {"Y", value}};
    if (site.meta.name == "c") site.spec.taints = {{"maintenance", "", {}}};
    sites.push_back(site);
  }
  api::Site other = named("e");
  other.spec.region = "B";
  other.spec.indicators = {{"X", 9}, {"Y", 9}};
  sites.push_back(other);
  return sites;
}

api::SiteRecommendationSpec worked_request() {
  api::SiteRecommendationSpec spec;
  spec.region = "A";
  spec.affinity.sites = {"d"};
  spec.weights = {{"", "X", 10, {}}, {"", "Y", 100, {}}};
  spec.normalize = api::Normalize::None;
  return spec;
}

TEST_CASE("sites: the worked case comes out exactly") {
  const SiteAnswer got = answer(worked_request(), worked_sites());
  CHECK(summary(got) == "d=220 b=220 a=110 | c Taint e Region");
  CHECK(got.sites[0].recommended);
  CHECK(got.sites[0].affinity);
  CHECK_FALSE(got.sites[1].recommended);
  CHECK(got.sites[0].scores == std::vector<api::SiteScore>{{"Indicator/X", 2, 2, 10, 20, ""},
                                                           {"Indicator/Y", 2, 2, 100, 200, ""}});
  CHECK(got.excluded[0].reason ==
        "it has the taint maintenance:NoSchedule, which is not tolerated");
  CHECK(got.excluded[0].total_if_tolerated == 330);
  CHECK(got.excluded[1].reason == "it is in region \"B\", asked for is \"A\"");
  CHECK_FALSE(got.excluded[1].total_if_tolerated);
  CHECK(got.weights == std::vector<api::ClusterWeight>{{"d", "", 100}});
}

TEST_CASE("sites: what the worked case turns on") {
  struct Case {
    const char* name;
    std::function<void(api::SiteRecommendationSpec&, std::vector<api::Site>&)> change;
    const char* want;
  };
  const Case cases[] = {
      {"without affinity the name decides", [](auto& spec, auto&) { spec.affinity = {}; },
       "b=220 d=220 a=110 | c Taint e Region"},
      {"affinity breaks ties only", [](auto& spec, auto&) { spec.affinity.sites = {"a"}; },
       "b=220 d=220 a=110 | c Taint e Region"},
      {"affinity by label",
       [](auto& spec, auto& sites) {
         sites[3].spec.partition_labels = {{"owner", "us"}};
         spec.affinity = {};
         spec.affinity.site_selector.match_labels = {{"owner", "us"}};
       },
       "d=220 b=220 a=110 | c Taint e Region"},
      {"a tolerated taint does not exclude",
       [](auto& spec, auto&) {
         spec.tolerations = {{"maintenance", api::TolerationOperator::Exists, "", ""}};
       },
       "c=330 d=220 b=220 a=110 | e Region"},
      {"a toleration of another effect is none",
       [](auto& spec, auto&) {
         spec.tolerations = {{"maintenance", api::TolerationOperator::Exists, "", "NoExecute"}};
       },
       "d=220 b=220 a=110 | c Taint e Region"},
      {"a toleration of another value is none",
       [](auto& spec, auto&) {
         spec.tolerations = {{"maintenance", api::TolerationOperator::Equal, "x", ""}};
       },
       "d=220 b=220 a=110 | c Taint e Region"},
      {"every taint is tolerated by an empty key",
       [](auto& spec, auto&) {
         spec.tolerations = {{"", api::TolerationOperator::Exists, "", ""}};
       },
       "c=330 d=220 b=220 a=110 | e Region"},
      {"any region", [](auto& spec, auto&) { spec.region = ""; },
       "e=990 d=220 b=220 a=110 | c Taint"},
      {"min-max: the worst is 0, the best 100 of each",
       [](auto& spec, auto&) { spec.normalize = api::Normalize::MinMax; },
       "d=11000 b=11000 a=0 | c Taint e Region"},
      {"sum: each has its share of 100, rounded",
       [](auto& spec, auto&) { spec.normalize = api::Normalize::Sum; },
       "d=4400 b=4400 a=2200 | c Taint e Region"},
      {"low is better, unnormalized: negated",
       [](auto& spec, auto&) { spec.weights[1].prefer = api::Prefer::Low; },
       "a=-90 d=-180 b=-180 | c Taint e Region"},
      {"low is better, by sum: turned around between the same ends",
       [](auto& spec, auto&) {
         spec.weights = {{"", "X", 1, api::Prefer::Low}};
         spec.normalize = api::Normalize::Sum;
       },
       "a=50 d=25 b=25 | c Taint e Region"},
      {"nobody fits", [](auto& spec, auto&) { spec.isp = "none"; },
       "| a Isp b Isp c Isp d Isp e Region"},
      {"there are no sites", [](auto&, auto& sites) { sites.clear(); }, "|"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    auto spec = worked_request();
    auto sites = worked_sites();
    c.change(spec, sites);
    CHECK(summary(answer(spec, sites)) == c.want);
  }
}

TEST_CASE("sites: each filter excludes with its own sentence") {
  struct Case {
    const char* name;
    std::function<void(api::SiteRecommendationSpec&, api::Site&)> change;
    const char* plugin;
    const char* reason;
  };
  const auto reading = [](api::SiteMetricValue value, std::int64_t amount, Duration age) {
    return api::SiteReading{value, amount, kNow - age};
  };
  using Value = api::SiteMetricValue;
  const Case cases[] = {
      {"a plain site takes a plain request", [](auto&, auto&) {}, "", ""},
      {"not available", [](auto&, auto& site) { site.spec.available = false; }, "Available",
       "it takes no new workloads (spec.available is false)"},
      {"being deleted", [](auto&, auto& site) { site.meta.deletion_timestamp = kNow; }, "Available",
       "it is being deleted"},
      {"labels",
       [](auto& spec, auto&) {
         spec.site_selector.match_labels = {{"a", "b"}};
       },
       "SiteSelector", "its labels do not match siteSelector"},
      {"labels of the partition win",
       [](auto& spec, auto& site) {
         spec.site_selector.match_labels = {{"a", "b"}};
         site.meta.labels = {{"a", "c"}};
         site.spec.partition_labels = {{"a", "b"}};
       },
       "", ""},
      {"bandwidth that nobody told",
       [](auto& spec, auto&) {
         spec.bandwidth = {{"up", 1}};
       },
       "NetworkFlow", "1 Mbit/s are asked for, and its bandwidth is not told"},
      {"the sum of the flows, for all workloads, does not fit",
       [](auto& spec, auto& site) {
         spec.bandwidth = {{"up", 10}, {"down", 15}};
         spec.workloads = 4;
         site.spec.bandwidth = {1000, 901};
       },
       "NetworkFlow", "100 Mbit/s are asked for, 99 of 1000 are free"},
      {"the sum just fits",
       [](auto& spec, auto& site) {
         spec.bandwidth = {{"up", 10}, {"down", 15}};
         spec.workloads = 4;
         site.spec.bandwidth = {1000, 900};
       },
       "", ""},
      {"a reading goes before the object",
       [&](auto& spec, auto& site) {
         spec.bandwidth = {{"up", 10}};
         site.spec.bandwidth = {1000, 0};
         site.spec.metrics = {{Value::BandwidthUsedMbps, "q"}};
         site.status.readings = {reading(Value::BandwidthUsedMbps, 995, seconds{10})};
       },
       "NetworkFlow", "10 Mbit/s are asked for, 5 of 1000 are free"},
      {"an old reading is none",
       [&](auto& spec, auto& site) {
         spec.bandwidth = {{"up", 10}};
         site.spec.bandwidth = {1000, 0};
         site.spec.metrics = {{Value::BandwidthUsedMbps, "q"}};
         site.status.readings = {reading(Value::BandwidthUsedMbps, 0, minutes{6})};
       },
       "NetworkFlow",
       "10 Mbit/s are asked for, and BandwidthUsedMbps was read 6m ago, which is too old"},
      {"a reading of a query that is gone does not count",
       [&](auto& spec, auto& site) {
         spec.bandwidth = {{"up", 10}};
         site.spec.bandwidth = {1000, 0};
         site.status.readings = {reading(Value::BandwidthUsedMbps, 1000, seconds{1})};
       },
       "", ""},
      {"CPU",
       [](auto& spec, auto& site) {
         spec.resources.cpu_millicores = 600;
         spec.workloads = 2;
         site.spec.capacity.cpu_millicores = 4000;
         site.spec.allocated.cpu_millicores = 3000;
       },
       "ResourceMgmt", "CPU: 1200m are asked for, 1000m of 4000m are free"},
      {"a GPU where there is none", [](auto& spec, auto&) { spec.resources.gpus = 1; },
       "ResourceMgmt", "GPUs: 1 are asked for, 0 of 0 are free"},
      {"addresses",
       [](auto& spec, auto& site) {
         spec.resources.ips = 2;
         site.spec.capacity.ips = 10;
         site.spec.allocated.ips = 9;
       },
       "ResourceMgmt", "IP addresses: 2 are asked for, 1 of 10 are free"},
      {"memory that cannot be read",
       [](auto& spec, auto& site) {
         spec.resources.memory_mebibytes = 1;
         site.spec.capacity.memory_mebibytes = 100;
         site.spec.metrics = {{Value::MemoryAllocatedMebibytes, "q"}};
       },
       "ResourceMgmt",
       "1Mi of memory are asked for, and MemoryAllocatedMebibytes has not been read"},
      {"overload by what is allocated",
       [](auto& spec, auto& site) {
         spec.resources.cpu_millicores = 500;
         site.spec.capacity.cpu_millicores = 10'000;
         site.spec.allocated.cpu_millicores = 8'900;
       },
       "CPUOverload", "its CPU load would be 94 %, above its limit of 90 %"},
      {"overload as measured",
       [&](auto&, auto& site) {
         site.spec.metrics = {{Value::CpuUtilizationPercent, "q"}};
         site.spec.cpu_overload_percent = 50;
         site.status.readings = {reading(Value::CpuUtilizationPercent, 51, seconds{1})};
       },
       "CPUOverload", "its CPU load would be 51 %, above its limit of 50 %"},
      {"a soft taint does not exclude",
       [](auto&, auto& site) {
         site.spec.taints = {{"old", "", api::TaintEffect::PreferNoSchedule}};
       },
       "", ""},
      {"a taint with a value",
       [](auto&, auto& site) {
         site.spec.taints = {{"k", "v", api::TaintEffect::NoExecute}};
       },
       "Taint", "it has the taint k=v:NoExecute, which is not tolerated"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    api::SiteRecommendationSpec spec;
    api::Site site = named("s");
    c.change(spec, site);
    REQUIRE(api::validate(spec).empty());
    REQUIRE(api::validate(site.spec).empty());
    const SiteAnswer got = answer(spec, {site});
    if (std::string_view(c.plugin).empty()) {
      CHECK(summary(got) == fmt::format("s={} |", got.sites.empty() ? -1 : got.sites[0].total));
      continue;
    }
    REQUIRE(got.excluded.size() == 1);
    CHECK(got.excluded[0].plugin == c.plugin);
    CHECK(got.excluded[0].reason == c.reason);
  }
}

TEST_CASE("sites: each scoring plugin's raw value and sentence") {
  struct Case {
    const char* plugin;
    std::function<void(api::SiteRecommendationSpec&, SiteView&, api::Site&)> change;
    std::int64_t raw;
    const char* message;
  };
  const Case cases[] = {
      {"NetworkFlow",
       [](auto& spec, auto&, auto& site) {
         spec.bandwidth = {{"up", 100}};
         site.spec.bandwidth = {1000, 400};
       },
       50, "600 of 1000 Mbit/s are free"},
      {"ResourceMgmt",
       [](auto& spec, auto&, auto& site) {
         spec.resources = {1000, 10, 0, 0};
         site.spec.capacity = {4000, 100, 0, 0};
         site.spec.allocated = {1000, 10, 0, 0};
       },
       50, "50 % of the CPU are left"},
      {"CPUOverload",
       [](auto& spec, auto&, auto& site) {
         spec.resources = {400, 0, 0, 0};
         site.spec.capacity = {4000, 0, 0, 0};
         site.spec.allocated = {1000, 0, 0, 0};
       },
       65, "the CPU load would be 35 %"},
      {"Taint",
       [](auto&, auto&, auto& site) {
         site.spec.taints = {{"a", "", api::TaintEffect::PreferNoSchedule},
                             {"b", "", api::TaintEffect::PreferNoSchedule}};
       },
       2, ""},
      {"Carbon",
       [](auto&, auto&, auto& site) {
         site.spec.carbon = {"DE", 380};
       },
       380, "380 g/kWh in zone DE"},
      {"EnergyIncrease",
       [](auto&, auto& seen, auto&) {
         seen.energy = {12'345, true, "the estimator a/pc"};
       },
       12'345, "12.345 W more, says the estimator a/pc"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.plugin);
    api::SiteRecommendationSpec spec;
    spec.weights = {{c.plugin, "", 1, {}}};
    api::Site site = named("s");
    SiteView unused = view(site);
    c.change(spec, unused, site);
    SiteView seen = view(site);
    c.change(spec, seen, site);
    auto got = recommend(SiteRequest(spec), {seen});
    REQUIRE(got.has_value());
    REQUIRE(got->sites.size() == 1);
    REQUIRE(got->sites[0].scores.size() == 1);
    CHECK(got->sites[0].scores[0].raw == c.raw);
    CHECK(got->sites[0].scores[0].message == c.message);
  }
}

TEST_CASE("sites: a value that is not known counts as the worst, and says so") {
  api::SiteRecommendationSpec spec;
  spec.weights = {{"EnergyIncrease", "", 2, {}}, {"Carbon", "", 1, {}}};
  std::vector<SiteView> sites = views({named("a"), named("b"), named("c")});
  sites[0].energy = {5'000, true, "est/a"};
  sites[1].energy = {9'000, true, "est/b"};
  sites[2].energy = {std::nullopt, true, "no answer in time"};
  auto got = recommend(SiteRequest(spec), sites);
  REQUIRE(got.has_value());
  CHECK(summary(*got) == "a=200 b=0 c=0 |");
  CHECK(got->sites[2].scores[0].message == "no answer in time: counts as the worst that is known");
  // Nobody's carbon intensity is known: the plugin has no say, and that is said.
  CHECK(got->sites[0].scores.size() == 1);
  CHECK(got->notes == std::vector<std::string>{"Carbon is left out: not known of any site: its "
                                               "carbon intensity is not told"});
}

TEST_CASE("sites: where the estimator says that nothing fits, nothing is recommended") {
  std::vector<SiteView> sites = views({named("a")});
  sites[0].energy = {std::nullopt, false, "est/a"};
  api::SiteRecommendationSpec spec;
  spec.workloads = 3;
  auto got = recommend(SiteRequest(spec), sites);
  REQUIRE(got.has_value());
  CHECK(summary(*got) == "| a EnergyIncrease");
  CHECK(got->excluded[0].reason == "est/a says that 3 such workloads do not fit");
}

TEST_CASE("sites: the weights of the recommended sites are their shares of 100") {
  struct Case {
    std::vector<std::int64_t> totals;
    std::vector<std::int64_t> want;
  };
  const Case cases[] = {{{75, 25}, {75, 25}},
                        {{1'000, 1}, {100, 1}},
                        {{0, 0}, {50, 50}},
                        {{-10, -109}, {99, 1}},
                        {{1'000'000'000, 1'000'000'000, 1'000'000'000}, {33, 33, 33}}};
  for (const Case& c : cases) {
    api::SiteRecommendationSpec spec;
    spec.count = static_cast<std::int64_t>(c.totals.size());
    spec.weights = {{"", "X", 1, {}}};
    spec.normalize = api::Normalize::None;
    std::vector<api::Site> sites;
    for (std::size_t i = 0; i < c.totals.size(); ++i) {
      sites.push_back(named(fmt::format("s{}", i)));
      sites.back().spec.cluster.name = fmt::format("member{}", i);
      sites.back().spec.indicators = {{"X", c.totals[i]}};
    }
    const SiteAnswer got = answer(spec, sites);
    std::vector<std::int64_t> weights;
    for (const auto& weight : got.weights) weights.push_back(weight.weight);
    CHECK(weights == c.want);
    CHECK(got.weights.front().cluster == "member0");
  }
}

TEST_CASE(
    "sites: the order of the sites given does not matter, and long answers are cut in status") {
  std::vector<api::Site> sites;
  for (int i = 0; i < 300; ++i) {
    sites.push_back(named(fmt::format("s{:03}", i)));
    sites.back().spec.indicators = {{"X", i % 7}};
    if (i % 2 == 0) sites.back().spec.taints = {{"k", "", {}}};
  }
  api::SiteRecommendationSpec spec;
  spec.weights = {{"", "X", 1, {}}};
  const SiteAnswer one = answer(spec, sites);
  std::reverse(sites.begin(), sites.end());
  const SiteAnswer two = answer(spec, sites);
  CHECK(one.sites == two.sites);
  CHECK(one.excluded == two.excluded);
  api::SiteRecommendationStatus status;
  status.machines.emplace_back().site = "s001";
  show(one, status);
  CHECK(status.sites.size() == api::kSiteListLimit);
  CHECK(status.sites_total == 150);
  CHECK(status.excluded.size() == api::kSiteListLimit);
  CHECK(status.excluded_total == 150);
  CHECK(status.site == one.sites[0].name);
  CHECK(status.machines.size() == 1);
}

}  // namespace
}  // namespace kwatt::placement::sites
