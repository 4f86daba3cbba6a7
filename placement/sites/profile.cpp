// The registry: a new plugin is a file and a line here.
#include <algorithm>

#include <fmt/format.h>

#include "api/words.hpp"
#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {

Result<std::vector<Framework<SiteRequest, SiteView>::Enabled>> site_profile(
    const std::vector<api::SiteWeight>& weights) {
  const auto weight = [&](std::string_view plugin) -> std::int64_t {
    for (const api::SiteWeight& one : weights) {
      if (one.plugin == plugin) return one.weight;
    }
    return 0;
  };
  std::vector<Framework<SiteRequest, SiteView>::Enabled> out;
  const auto add = [&](SitePluginPtr plugin) { out.push_back({std::move(plugin), 1}); };
  const auto add_weighed = [&](std::string_view name, SitePluginPtr (*make)(bool)) {
    const std::int64_t given = weight(name);
    out.push_back({make(given > 0), std::max<std::int64_t>(given, 1)});
  };
  add(make_available());
  add(make_site_selector());
  add(make_region());
  add(make_isp());
  add_weighed("NetworkFlow", make_network_flow);
  add_weighed("ResourceMgmt", make_resource_mgmt);
  add_weighed("CPUOverload", make_cpu_overload);
  add_weighed("EnergyIncrease", make_energy_increase);
  add_weighed("Taint", make_taint);
  add_weighed("Carbon", make_carbon);
  for (const api::SiteWeight& one : weights) {
    if (!one.indicator.empty()) {
      out.push_back({make_indicator(one.indicator, one.prefer), one.weight});
    } else if (std::find(api::kSiteScorers.begin(), api::kSiteScorers.end(), one.plugin) ==
               api::kSiteScorers.end()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("no plugin \"{}\" scores sites: {} do", one.plugin,
                              fmt::join(api::kSiteScorers, ", ")));
    }
  }
  return out;
}

}  // namespace kwatt::placement::sites
