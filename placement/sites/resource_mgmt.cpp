// ResourceMgmt: CPU, memory, GPUs and addresses asked for are free. Score: what is left afterwards
// of the scarcest of them, in percent of the capacity; of CPU and memory if nothing is asked for.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "placement/sites/site_plugin.hpp"

namespace kwatt::placement::sites {
namespace {

struct Row {
  std::string_view what, unit;
  std::int64_t asked = 0, capacity = 0;
  const Amount* allocated = nullptr;
};

std::array<Row, 4> rows(const SiteRequest& request, const SiteView& view) {
  const api::SiteResources asked = request.resources();
  const api::SiteResources& capacity = view.site->spec.capacity;
  return {
      {{"CPU", "m", asked.cpu_millicores, capacity.cpu_millicores, &view.cpu_allocated},
       {"memory", "Mi", asked.memory_mebibytes, capacity.memory_mebibytes, &view.memory_allocated},
       {"GPUs", "", asked.gpus, capacity.gpus, &view.gpus_allocated},
       {"IP addresses", "", asked.ips, capacity.ips, &view.ips_allocated}}};
}

struct Scarcest {
  Amount percent;
  std::string_view what;
};
Scarcest scarcest(const SiteRequest& request, const SiteView& view) {
  const auto all = rows(request, view);
  const bool anything =
      std::any_of(all.begin(), all.end(), [](const Row& r) { return r.asked > 0; });
  Scarcest out{{std::nullopt, "its capacity is not told"}, {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Row& row = all[i];
    if (row.capacity == 0 || (anything ? row.asked == 0 : i > 1)) continue;
    if (!row.allocated->value) return {*row.allocated, {}};
    const std::int64_t left =
        (row.capacity - *row.allocated->value - row.asked) * 100 / row.capacity;
    if (!out.percent.value || left < *out.percent.value) out = {{left, {}}, row.what};
  }
  return out;
}

class ResourceMgmt final : public ValuePlugin {
 public:
  using ValuePlugin::ValuePlugin;
  std::string_view name() const override { return "ResourceMgmt"; }
  bool filters() const override { return true; }
  Status filter(const SiteRequest& request, const SiteView& view,
                const CycleState*) const override {
    for (const Row& row : rows(request, view)) {
      if (row.asked == 0) continue;
      if (!row.allocated->value) {
        return Status::unschedulable(fmt::format("{}{} of {} are asked for, and {}", row.asked,
                                                 row.unit, row.what, row.allocated->why));
      }
      const std::int64_t free = row.capacity - *row.allocated->value;
      if (free >= row.asked) continue;
      return Status::unschedulable(fmt::format("{}: {}{} are asked for, {}{} of {}{} are free",
                                               row.what, row.asked, row.unit, free, row.unit,
                                               row.capacity, row.unit));
    }
    return {};
  }

 protected:
  Amount value(const SiteRequest& request, const SiteView& view) const override {
    return scarcest(request, view).percent;
  }
  std::string describe(const SiteRequest& request, const SiteView& view) const override {
    const Scarcest found = scarcest(request, view);
    return fmt::format("{} % of the {} are left", *found.percent.value, found.what);
  }
};

}  // namespace

SitePluginPtr make_resource_mgmt(bool weighed) {
  return std::make_shared<ResourceMgmt>(weighed);
}

}  // namespace kwatt::placement::sites
