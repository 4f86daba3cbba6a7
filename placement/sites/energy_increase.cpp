// EnergyIncrease: how much more power the site would draw with the workloads, as its estimator
// says; less is better. A site whose estimator says that they do not fit is excluded.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

class EnergyIncrease final : public ValuePlugin {
 public:
  using ValuePlugin::ValuePlugin;
  std::string_view name() const override { return "EnergyIncrease"; }
  bool filters() const override { return true; }
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    if (view.energy.fits) return {};
    return Status::unschedulable(fmt::format("{} says that {} such workloads do not fit",
                                             view.energy.source, request.spec.workloads));
  }

 protected:
  // Milliwatts.
  Amount value(const SiteRequest&, const SiteView& view) const override {
    return {view.energy.increase_milliwatts, view.energy.source};
  }
  bool lower_is_better() const override { return true; }
  std::string describe(const SiteRequest&, const SiteView& view) const override {
    const std::int64_t milliwatts = *view.energy.increase_milliwatts;
    return fmt::format("{:.3f} W more, says {}", static_cast<double>(milliwatts) / 1000,
                       view.energy.source);
  }
};

}  // namespace

SitePluginPtr make_energy_increase(bool weighed) {
  return std::make_shared<EnergyIncrease>(weighed);
}

}  // namespace kwatt::placement::sites
