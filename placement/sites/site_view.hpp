#pragma once
// What the choice of a site sees: the request, and each Site with what was measured of it. Values,
// made before the choice; nothing here asks anybody.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/site_recommendation.hpp"
#include "base/time.hpp"

namespace kwatt::placement::sites {

// Readings of Prometheus count for so long. Then the value is not known: what a query stands for is
// not taken from the object instead.
inline constexpr Duration kReadingMaxAge = std::chrono::minutes{5};

// A number that may not be known; then `why` says so.
struct Amount {
  std::optional<std::int64_t> value;
  std::string why;
};

// What a site's estimator says about the request.
struct EnergyAnswer {
  // For all workloads of the request together; nullopt: not known.
  std::optional<std::int64_t> increase_milliwatts;
  bool fits = true;    // false: the estimator says that there is no room for them
  std::string source;  // who said it, or why nobody did
};

struct SiteView {
  std::shared_ptr<const api::Site> site;  // never null
  api::StringMap labels;                  // of the object, with partitionLabels over them
  Amount cpu_allocated, memory_allocated, gpus_allocated, ips_allocated;
  Amount bandwidth_total, bandwidth_used;  // megabits per second
  Amount cpu_load;                         // percent, without the request
  Amount carbon;                           // grams of CO2 per kWh
  EnergyAnswer energy{std::nullopt, true, "the site has no estimator"};

  const std::string& name() const { return site->meta.name; }
};
inline std::string_view name_of(const SiteView& view) {
  return view.name();
}

// The view of a site at `now`. Without an energy answer.
SiteView view_of(std::shared_ptr<const api::Site> site, TimePoint now);

// Capacity less what is allocated, for status: 0 where one of the two is not known.
api::SiteResources free_of(const SiteView& view);

struct SiteRequest {
  explicit SiteRequest(api::SiteRecommendationSpec given) : spec(std::move(given)) {}
  api::SiteRecommendationSpec spec;  // valid (api::validate)

  // Of all its workloads together.
  api::SiteResources resources() const;
  std::int64_t bandwidth_mbps() const;
};

// Does the request's affinity name the site?
bool prefers(const SiteRequest& request, const SiteView& view);
// The site's taints that the request does not tolerate, of the given effects.
std::vector<const api::SiteTaint*> untolerated(const SiteRequest& request, const SiteView& view,
                                               bool soft);

}  // namespace kwatt::placement::sites
