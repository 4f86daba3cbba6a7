// Carbon: grams of CO2 for each kWh at the site; less is better.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class Carbon final : public ValuePlugin {
 public:
  using ValuePlugin::ValuePlugin;
  std::string_view name() const override { return "Carbon"; }

 protected:
  Amount value(const SiteRequest&, const SiteView& view) const override { return view.carbon; }
  bool lower_is_better() const override { return true; }
  std::string describe(const SiteRequest&, const SiteView& view) const override {
    const std::string& zone = view.site->spec.carbon.zone;
    return fmt::format("{} g/kWh{}{}", *view.carbon.value, zone.empty() ? "" : " in zone ", zone);
  }
};

}  // namespace

SitePluginPtr make_carbon(bool weighed) {
  return std::make_shared<Carbon>(weighed);
}

}  // namespace kwatt::placement::sites
