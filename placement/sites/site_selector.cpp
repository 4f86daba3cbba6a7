// SiteSelector: only sites with the labels asked for.
#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class SiteSelector final : public SitePlugin {
 public:
  std::string_view name() const override { return "SiteSelector"; }
  bool filters() const override { return true; }
  Status pre_filter(const SiteRequest& request, Targets<SiteView>,
                    std::unique_ptr<CycleState>&) const override {
    return request.spec.site_selector.empty() ? Status::skip() : Status{};
  }
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    if (api::matches(request.spec.site_selector, view.labels)) return {};
    return Status::unresolvable("its labels do not match siteSelector");
  }
};

}  // namespace

SitePluginPtr make_site_selector() {
  return std::make_shared<SiteSelector>();
}

}  // namespace kwatt::placement::sites
