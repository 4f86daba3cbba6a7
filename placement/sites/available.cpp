// Available: a site that takes new workloads at all.
#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class Available final : public SitePlugin {
 public:
  std::string_view name() const override { return "Available"; }
  bool filters() const override { return true; }
  Status filter(const SiteRequest&, const SiteView& view, const CycleState*) const override {
    if (view.site->meta.deletion_timestamp) return Status::unresolvable("it is being deleted");
    if (!view.site->spec.available) {
      return Status::unresolvable("it takes no new workloads (spec.available is false)");
    }
    return {};
  }
};

}  // namespace

SitePluginPtr make_available() {
  return std::make_shared<Available>();
}

}  // namespace kwatt::placement::sites
