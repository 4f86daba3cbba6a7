// Indicator: a plain value that people gave the sites, such as a cost factor. One plugin for each
// indicator that a request weighs.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class Indicator final : public ValuePlugin {
 public:
  Indicator(const std::string& indicator, api::Prefer prefer)
      : ValuePlugin(true),
        indicator_(indicator),
        name_("Indicator/" + indicator),
        prefer_(prefer) {}
  std::string_view name() const override { return name_; }

 protected:
  Amount value(const SiteRequest&, const SiteView& view) const override {
    for (const api::SiteIndicator& one : view.site->spec.indicators) {
      if (one.name == indicator_) return {one.value, {}};
    }
    return {std::nullopt, fmt::format("it has no indicator \"{}\"", indicator_)};
  }
  bool lower_is_better() const override { return prefer_ == api::Prefer::Low; }

 private:
  std::string indicator_, name_;
  api::Prefer prefer_;
};

}  // namespace

SitePluginPtr make_indicator(const std::string& indicator, api::Prefer prefer) {
  return std::make_shared<Indicator>(indicator, prefer);
}

}  // namespace kwatt::placement::sites
