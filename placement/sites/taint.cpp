// Taint: every NoSchedule and NoExecute taint of the site is tolerated. Score: the number of
// PreferNoSchedule taints that are not; less is better.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class Taint final : public ValuePlugin {
 public:
  using ValuePlugin::ValuePlugin;
  std::string_view name() const override { return "Taint"; }
  bool filters() const override { return true; }
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    const auto hard = untolerated(request, view, false);
    if (hard.empty()) return {};
    const api::SiteTaint& taint = *hard.front();
    return Status::unresolvable(fmt::format("it has the taint {}{}{}:{}, which is not tolerated",
                                            taint.key, taint.value.empty() ? "" : "=", taint.value,
                                            api::to_string(taint.effect)));
  }

 protected:
  Amount value(const SiteRequest& request, const SiteView& view) const override {
    return {static_cast<std::int64_t>(untolerated(request, view, true).size()), {}};
  }
  bool lower_is_better() const override { return true; }
};

}  // namespace

SitePluginPtr make_taint(bool weighed) {
  return std::make_shared<Taint>(weighed);
}

}  // namespace kwatt::placement::sites
