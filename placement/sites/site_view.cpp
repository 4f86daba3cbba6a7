#include "placement/sites/site_view.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::placement::sites {
namespace {

using api::SiteMetricValue;

// The reading of `value` if a query stands for it, else `own`.
Amount amount_of(const api::Site& site, SiteMetricValue value, Amount own, TimePoint now) {
  const auto& metrics = site.spec.metrics;
  const bool asked = std::any_of(metrics.begin(), metrics.end(),
                                 [&](const auto& metric) { return metric.value == value; });
  if (!asked) return own;
  for (const api::SiteReading& reading : site.status.readings) {
    if (reading.value != value || !reading.time) continue;
    const Duration age = now - *reading.time;
    if (age <= kReadingMaxAge) return {reading.amount, {}};
    return {std::nullopt, fmt::format("{} was read {} ago, which is too old", api::to_string(value),
                                      format_go_duration(age))};
  }
  return {std::nullopt, fmt::format("{} has not been read", api::to_string(value))};
}

Amount known_unless_zero(std::int64_t value, const char* why) {
  if (value == 0) return {std::nullopt, why};
  return {value, {}};
}

// By what is allocated, where nothing measures it.
Amount load_by_allocation(const SiteView& view) {
  const std::int64_t capacity = view.site->spec.capacity.cpu_millicores;
  if (capacity == 0) return {std::nullopt, "the CPU capacity is not told"};
  if (!view.cpu_allocated.value) return view.cpu_allocated;
  return {*view.cpu_allocated.value * 100 / capacity, {}};
}

std::int64_t left(std::int64_t capacity, const Amount& allocated) {
  return allocated.value ? std::max<std::int64_t>(0, capacity - *allocated.value) : 0;
}

bool tolerates(const api::SiteToleration& toleration, const api::SiteTaint& taint) {
  if (!toleration.effect.empty() && toleration.effect != api::to_string(taint.effect)) return false;
  if (toleration.key.empty()) return toleration.op == api::TolerationOperator::Exists;
  if (toleration.key != taint.key) return false;
  return toleration.op == api::TolerationOperator::Exists || toleration.value == taint.value;
}

}  // namespace

SiteView view_of(std::shared_ptr<const api::Site> site, TimePoint now) {
  SiteView view;
  const api::SiteSpec& spec = site->spec;
  view.labels = site->meta.labels;
  for (const auto& [label, value] : spec.partition_labels) view.labels.set(label, value);
  const auto read = [&](SiteMetricValue value, Amount own) {
    return amount_of(*site, value, std::move(own), now);
  };
  view.cpu_allocated =
      read(SiteMetricValue::CpuAllocatedMillicores, {spec.allocated.cpu_millicores, {}});
  view.memory_allocated =
      read(SiteMetricValue::MemoryAllocatedMebibytes, {spec.allocated.memory_mebibytes, {}});
  view.gpus_allocated = read(SiteMetricValue::GpusAllocated, {spec.allocated.gpus, {}});
  view.ips_allocated = read(SiteMetricValue::IpsAllocated, {spec.allocated.ips, {}});
  view.bandwidth_total =
      read(SiteMetricValue::BandwidthTotalMbps,
           known_unless_zero(spec.bandwidth.total_mbps, "its bandwidth is not told"));
  view.bandwidth_used = read(SiteMetricValue::BandwidthUsedMbps, {spec.bandwidth.used_mbps, {}});
  view.carbon =
      read(SiteMetricValue::CarbonGramsPerKWh,
           known_unless_zero(spec.carbon.grams_per_kwh, "its carbon intensity is not told"));
  view.site = std::move(site);
  view.cpu_load =
      amount_of(*view.site, SiteMetricValue::CpuUtilizationPercent, load_by_allocation(view), now);
  // A load that nobody can read now is judged by what is allocated.
  if (!view.cpu_load.value) view.cpu_load = load_by_allocation(view);
  return view;
}

api::SiteResources free_of(const SiteView& view) {
  const api::SiteResources& capacity = view.site->spec.capacity;
  return {left(capacity.cpu_millicores, view.cpu_allocated),
          left(capacity.memory_mebibytes, view.memory_allocated),
          left(capacity.gpus, view.gpus_allocated), left(capacity.ips, view.ips_allocated)};
}

api::SiteResources SiteRequest::resources() const {
  const api::SiteResources& one = spec.resources;
  return {one.cpu_millicores * spec.workloads, one.memory_mebibytes * spec.workloads,
          one.gpus * spec.workloads, one.ips * spec.workloads};
}

std::int64_t SiteRequest::bandwidth_mbps() const {
  std::int64_t sum = 0;
  for (const api::SiteFlow& flow : spec.bandwidth) sum += flow.mbps;
  return sum * spec.workloads;
}

bool prefers(const SiteRequest& request, const SiteView& view) {
  const api::SiteAffinity& affinity = request.spec.affinity;
  if (std::find(affinity.sites.begin(), affinity.sites.end(), view.name()) !=
      affinity.sites.end()) {
    return true;
  }
  return !affinity.site_selector.empty() && api::matches(affinity.site_selector, view.labels);
}

std::vector<const api::SiteTaint*> untolerated(const SiteRequest& request, const SiteView& view,
                                               bool soft) {
  std::vector<const api::SiteTaint*> out;
  const auto& tolerations = request.spec.tolerations;
  for (const api::SiteTaint& taint : view.site->spec.taints) {
    if ((taint.effect == api::TaintEffect::PreferNoSchedule) != soft) continue;
    const bool tolerated = std::any_of(tolerations.begin(), tolerations.end(),
                                       [&](const auto& one) { return tolerates(one, taint); });
    if (!tolerated) out.push_back(&taint);
  }
  return out;
}

}  // namespace kwatt::placement::sites
