// CPUOverload: the CPU load with the request counted stays below the site's own limit. Score: the
// load that is left to 100 %.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

// Percent, the request counted where the capacity is told.
Amount load_with(const SiteRequest& request, const SiteView& view) {
  if (!view.cpu_load.value) return view.cpu_load;
  const std::int64_t capacity = view.site->spec.capacity.cpu_millicores;
  const std::int64_t more = capacity == 0 ? 0 : request.resources().cpu_millicores * 100 / capacity;
  return {*view.cpu_load.value + more, {}};
}

class CpuOverload final : public ValuePlugin {
 public:
  using ValuePlugin::ValuePlugin;
  std::string_view name() const override { return "CPUOverload"; }
  bool filters() const override { return true; }
  // A load that nobody knows excludes nothing: ResourceMgmt judges what is asked for.
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    const Amount load = load_with(request, view);
    const std::int64_t limit = view.site->spec.cpu_overload_percent;
    if (!load.value || *load.value <= limit) return {};
    return Status::unschedulable(
        fmt::format("its CPU load would be {} %, above its limit of {} %", *load.value, limit));
  }

 protected:
  Amount value(const SiteRequest& request, const SiteView& view) const override {
    Amount load = load_with(request, view);
    if (!load.value) return load;
    return {100 - *load.value, {}};
  }
  std::string describe(const SiteRequest& request, const SiteView& view) const override {
    return fmt::format("the CPU load would be {} %", *load_with(request, view).value);
  }
};

}  // namespace

SitePluginPtr make_cpu_overload(bool weighed) {
  return std::make_shared<CpuOverload>(weighed);
}

}  // namespace kwatt::placement::sites
