#pragma once
// Which site is best for a request, with all reasons. Pure: the same request and sites give the
// same answer, byte by byte.
#include <vector>

#include "base/result.hpp"
#include "placement/sites/site_view.hpp"

namespace kwatt::placement::sites {

// The lists are whole; status shows the first api::kSiteListLimit of each.
struct SiteAnswer {
  std::vector<api::RankedSite> sites;       // best first; ties by affinity, then by name
  std::vector<api::ExcludedSite> excluded;  // by name
  std::vector<api::ClusterWeight> weights;  // of the recommended ones, in their order
  std::vector<std::string> notes;           // plugins that had nothing to say, and why
};

// Filters, scores, normalizes, weighs and sorts. Errors: invalid_argument (a weight of no plugin),
// internal (a sum beyond 64 bits).
Result<SiteAnswer> recommend(const SiteRequest& request, std::vector<SiteView> sites);

// Puts an answer into a status; conditions, machines and times are left as they are.
void show(const SiteAnswer& answer, api::SiteRecommendationStatus& status);

}  // namespace kwatt::placement::sites
