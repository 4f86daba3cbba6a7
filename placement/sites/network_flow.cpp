// NetworkFlow: the headroom of the site's link covers the sum of the flows asked for. Score: what
// is left of the link afterwards, in percent.
#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

// Megabits per second.
Amount headroom(const SiteView& view) {
  if (!view.bandwidth_total.value) return view.bandwidth_total;
  if (!view.bandwidth_used.value) return view.bandwidth_used;
  return {*view.bandwidth_total.value - *view.bandwidth_used.value, {}};
}

class NetworkFlow final : public ValuePlugin {
 public:
  using ValuePlugin::ValuePlugin;
  std::string_view name() const override { return "NetworkFlow"; }
  bool filters() const override { return true; }
  Status pre_filter(const SiteRequest& request, Targets<SiteView>,
                    std::unique_ptr<CycleState>&) const override {
    return request.bandwidth_mbps() == 0 ? Status::skip() : Status{};
  }
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    const Amount free = headroom(view);
    const std::int64_t asked = request.bandwidth_mbps();
    if (!free.value) {
      return Status::unschedulable(fmt::format("{} Mbit/s are asked for, and {}", asked, free.why));
    }
    if (*free.value >= asked) return {};
    return Status::unschedulable(fmt::format("{} Mbit/s are asked for, {} of {} are free", asked,
                                             *free.value, *view.bandwidth_total.value));
  }

 protected:
  Amount value(const SiteRequest& request, const SiteView& view) const override {
    Amount free = headroom(view);
    if (!free.value) return free;
    if (*view.bandwidth_total.value <= 0) return {std::nullopt, "its bandwidth is not told"};
    return {(*free.value - request.bandwidth_mbps()) * 100 / *view.bandwidth_total.value, {}};
  }
  std::string describe(const SiteRequest&, const SiteView& view) const override {
    return fmt::format("{} of {} Mbit/s are free", *headroom(view).value,
                       *view.bandwidth_total.value);
  }
};

}  // namespace

SitePluginPtr make_network_flow(bool weighed) {
  return std::make_shared<NetworkFlow>(weighed);
}

}  // namespace kwatt::placement::sites
