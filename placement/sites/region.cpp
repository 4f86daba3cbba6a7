// Region: only sites of the region asked for.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class Region final : public SitePlugin {
 public:
  std::string_view name() const override { return "Region"; }
  bool filters() const override { return true; }
  Status pre_filter(const SiteRequest& request, Targets<SiteView>,
                    std::unique_ptr<CycleState>&) const override {
    return request.spec.region.empty() ? Status::skip() : Status{};
  }
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    const std::string& own = view.site->spec.region;
    if (own == request.spec.region) return {};
    return Status::unresolvable(
        fmt::format(R"(it is in region "{}", asked for is "{}")", own, request.spec.region));
  }
};

}  // namespace

SitePluginPtr make_region() {
  return std::make_shared<Region>();
}

}  // namespace kwatt::placement::sites
