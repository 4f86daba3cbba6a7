// Isp: only sites of the network provider asked for.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class Isp final : public SitePlugin {
 public:
  std::string_view name() const override { return "Isp"; }
  bool filters() const override { return true; }
  Status pre_filter(const SiteRequest& request, Targets<SiteView>,
                    std::unique_ptr<CycleState>&) const override {
    return request.spec.isp.empty() ? Status::skip() : Status{};
  }
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    const std::string& own = view.site->spec.isp;
    if (own == request.spec.isp) return {};
    return Status::unresolvable(
        fmt::format(R"(its network provider is "{}", asked for is "{}")", own, request.spec.isp));
  }
};

}  // namespace

SitePluginPtr make_isp() {
  return std::make_shared<Isp>();
}

}  // namespace kwatt::placement::sites
