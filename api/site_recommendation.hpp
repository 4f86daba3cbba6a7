#pragma once
// SiteRecommendation (kwatt.dev/v1alpha1, namespaced, short name srec): a question, which site is
// best for a workload, and its answer with all its reasons.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.hpp"
#include "api/site.hpp"
#include "base/time.hpp"

namespace kwatt::api {

enum class TolerationOperator { Equal, Exists };
enum class Prefer { High, Low };
enum class Normalize { MinMax, Sum, None };
enum class SiteAction { Recommend, Create };
enum class PropagationWrite { PropagationPolicy, OverridePolicy };
enum class CreatePhase { Intended, Started, Failed };

// Longer lists are cut in status, with the total beside them.
inline constexpr std::size_t kSiteListLimit = 100;

struct SiteToleration {
  std::string key;  // "": every key; then with Exists
  TolerationOperator op = TolerationOperator::Equal;
  std::string value;
  std::string effect;  // "": every effect
  bool operator==(const SiteToleration&) const = default;
};

struct SiteFlow {
  std::string name;
  std::int64_t mbps = 0;  // of one workload
  bool operator==(const SiteFlow&) const = default;
};

struct SiteAffinity {
  std::vector<std::string> sites;
  LabelSelector site_selector;
  bool operator==(const SiteAffinity&) const = default;
};

// Either a scoring plugin or an indicator of the sites.
struct SiteWeight {
  std::string plugin;     // a word of kSiteScorers, or ""
  std::string indicator;  // or ""
  std::int64_t weight = 1;
  Prefer prefer = Prefer::High;  // of an indicator; a plugin knows what is better
  bool operator==(const SiteWeight&) const = default;
};

// A resource of Karmada's control plane that a policy is about.
struct ResourceSelector {
  std::string api_version, kind, name;
  bool operator==(const ResourceSelector&) const = default;
};

struct PropagationSpec {
  std::vector<PropagationWrite> write;
  std::string name;  // of the policies; "": that of the recommendation
  std::vector<ResourceSelector> resource_selectors;
  bool operator==(const PropagationSpec&) const = default;
};

struct SiteRecommendationSpec {
  std::string region, isp;
  LabelSelector site_selector;
  SiteResources resources;          // of one workload
  std::vector<SiteFlow> bandwidth;  // of one workload
  std::int64_t workloads = 1;       // so many on each site
  std::vector<SiteToleration> tolerations;
  SiteAffinity affinity;
  std::int64_t count = 1;  // sites to recommend
  std::vector<SiteWeight> weights{{"EnergyIncrease", "", 3, Prefer::High},
                                  {"Carbon", "", 2, Prefer::High},
                                  {"ResourceMgmt", "", 1, Prefer::High},
                                  {"NetworkFlow", "", 1, Prefer::High}};
  Normalize normalize = Normalize::MinMax;
  SiteAction action = SiteAction::Recommend;
  PropagationSpec propagation;
  Duration interval = std::chrono::minutes{5};
  bool operator==(const SiteRecommendationSpec&) const = default;
};

// One plugin's or indicator's part of a site's total.
struct SiteScore {
  std::string name;  // of the plugin, or "Indicator/NAME"
  std::int64_t raw = 0, normalized = 0, weight = 0, weighted = 0;
  std::string message;  // where the raw value comes from, or why there is none
  bool operator==(const SiteScore&) const = default;
};

struct RankedSite {
  std::string name;
  std::int64_t total = 0;
  bool recommended = false, affinity = false;
  std::vector<SiteScore> scores;
  bool operator==(const RankedSite&) const = default;
};

struct ExcludedSite {
  std::string name, plugin, reason;
  // Of a site that only a taint keeps out: its total if the taint were tolerated.
  std::optional<std::int64_t> total_if_tolerated;
  bool operator==(const ExcludedSite&) const = default;
};

struct ClusterWeight {
  std::string site, cluster;
  std::int64_t weight = 0;
  bool operator==(const ClusterWeight&) const = default;
};

// The commit point of a creation: written before the hook is called.
struct CreatedMachine {
  std::string site;
  std::string operation_id;  // the same whenever the hook is called again
  CreatePhase phase = CreatePhase::Intended;
  std::string machine_id;  // as the hook says
  std::string message;
  std::int64_t attempts = 0;
  std::optional<TimePoint> intended_at, started_at, next_attempt;
  bool operator==(const CreatedMachine&) const = default;
};

struct SiteRecommendationStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;  // Ready, Accepted, Created, Propagated
  std::optional<TimePoint> evaluated_at;
  std::string site;  // the best one; "": none fits
  std::int64_t total = 0;
  std::vector<RankedSite> sites;  // best first
  std::int64_t sites_total = 0;
  std::vector<ExcludedSite> excluded;  // by name
  std::int64_t excluded_total = 0;
  std::vector<ClusterWeight> weights;  // of the recommended sites
  std::vector<CreatedMachine> machines;
  std::vector<std::string> notes;
  bool operator==(const SiteRecommendationStatus&) const = default;
};

struct SiteRecommendation {
  ObjectMeta meta;
  SiteRecommendationSpec spec;
  SiteRecommendationStatus status;
};

std::string_view to_string(Normalize normalize);

std::vector<std::string> validate(const SiteRecommendationSpec& spec);

}  // namespace kwatt::api
