#pragma once
// What the plugins for sites share: the framework's contract (placement/framework.hpp) with one
// rule more. A value that is not known counts as the worst one that is, and says so; if nobody's is
// known, the plugin is skipped for the request.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/framework.hpp"
#include "placement/sites/site_view.hpp"

namespace kwatt::placement::sites {

// Sums of products of 64-bit numbers.
__extension__ using Wide = __int128;

class SitePlugin : public Plugin<SiteRequest, SiteView> {
 public:
  // A sentence about the raw score of the site, for status; "": the number says it all.
  virtual std::string explain(const SiteRequest&, const SiteView&) const { return {}; }
};

// A plugin that scores by one value of each site. One that filters, too, overrides filters() and
// filter(), and is made with `weighed` false where the request does not weigh it.
class ValuePlugin : public SitePlugin {
 public:
  explicit ValuePlugin(bool weighed) : weighed_(weighed) {}

  bool scores() const final { return weighed_; }
  Status pre_score(const SiteRequest& request, Targets<SiteView> feasible,
                   std::unique_ptr<CycleState>& state) const final;
  Status score(const SiteRequest& request, const SiteView& view, const CycleState* state,
               std::int64_t& out) const final;
  Status normalize(const SiteRequest& request, ScoreRange range,
                   std::span<std::int64_t> scores) const final;
  std::string explain(const SiteRequest& request, const SiteView& view) const final;

 protected:
  // The site's value and, if there is none, why.
  virtual Amount value(const SiteRequest& request, const SiteView& view) const = 0;
  virtual bool lower_is_better() const { return false; }
  // About a value that is known.
  virtual std::string describe(const SiteRequest&, const SiteView&) const { return {}; }

 private:
  bool weighed_;
};

// Makes scores comparable: MinMax and Sum into `range` (0..100), None leaves the numbers. Higher is
// better afterwards; with None what is better low is negated.
void normalize_scores(api::Normalize how, bool lower_is_better, ScoreRange range,
                      std::span<std::int64_t> scores);
// The range that goes with it.
ScoreRange range_of(api::Normalize how);

// One function for each plugin, in the file of its name. The filters among them run in this order;
// Taint is the last, so that a site which it excludes would do otherwise.
using SitePluginPtr = std::shared_ptr<const SitePlugin>;
SitePluginPtr make_available();
SitePluginPtr make_site_selector();
SitePluginPtr make_region();
SitePluginPtr make_isp();
SitePluginPtr make_network_flow(bool weighed);
SitePluginPtr make_resource_mgmt(bool weighed);
SitePluginPtr make_cpu_overload(bool weighed);
SitePluginPtr make_energy_increase(bool weighed);
SitePluginPtr make_taint(bool weighed);
SitePluginPtr make_carbon(bool weighed);
SitePluginPtr make_indicator(const std::string& indicator, api::Prefer prefer);

// What a request is asked with: all filters, and what it weighs. Errors: invalid_argument (a weight
// of a plugin that does not exist).
Result<std::vector<Framework<SiteRequest, SiteView>::Enabled>> site_profile(
    const std::vector<api::SiteWeight>& weights);

}  // namespace kwatt::placement::sites
