#include "reconcilers/site_reconciler.hpp"

#include <algorithm>
#include <cmath>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "api/encode.hpp"
#include "reconcilers/effects.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr Duration kReadingsEvery = std::chrono::minutes{1};
constexpr double kMost = 1e12;

void set(api::SiteStatus& status, const api::Site& site, TimePoint now, const char* type,
         const char* value, const char* reason, std::string message) {
  api::Condition condition;
  condition.type = type;
  condition.status = value;
  condition.reason = reason;
  condition.message = std::move(message);
  condition.observed_generation = site.meta.generation;
  api::set_condition(status.conditions, std::move(condition), now);
}

}  // namespace

Result<std::int64_t> one_number(const std::vector<telemetry::Series>& series) {
  if (series.empty()) {
    return fail(ErrorCode::not_found,
                "the query gives no series: is the exporter there, and scraped?");
  }
  if (series.size() != 1) {
    return fail(ErrorCode::protocol,
                fmt::format("gives {} series, wanted is one: sum() or max() it", series.size()));
  }
  const double value = series.front().value;
  if (!series.front().is_number || !std::isfinite(value)) {
    return fail(ErrorCode::protocol, "gives no number");
  }
  if (value < 0 || value > kMost) {
    return fail(ErrorCode::protocol, fmt::format("gives {}, which no site has", value));
  }
  return std::llround(value);
}

api::SiteStatus site_status(const api::Site& site, std::vector<api::SiteReading> readings,
                            const std::vector<std::string>& problems, TimePoint now) {
  api::SiteStatus status = site.status;
  status.observed_generation = site.meta.generation;
  for (const api::SiteReading& old : site.status.readings) {
    const bool wanted = std::any_of(site.spec.metrics.begin(), site.spec.metrics.end(),
                                    [&](const auto& metric) { return metric.value == old.value; });
    const bool known = std::any_of(readings.begin(), readings.end(),
                                   [&](const auto& reading) { return reading.value == old.value; });
    if (wanted && !known) readings.push_back(old);
  }
  std::sort(readings.begin(), readings.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  status.readings = std::move(readings);

  auto seen = std::make_shared<api::Site>(site);
  seen->status.readings = status.readings;
  const placement::sites::SiteView view = placement::sites::view_of(seen, now);
  status.free = placement::sites::free_of(view);
  status.free_bandwidth_mbps =
      view.bandwidth_total.value && view.bandwidth_used.value
          ? std::max<std::int64_t>(0, *view.bandwidth_total.value - *view.bandwidth_used.value)
          : 0;
  status.cpu_load_percent = view.cpu_load.value.value_or(0);

  const auto invalid = api::validate(site.spec);
  const std::string troubles = fmt::format("{}", fmt::join(problems, "; "));
  if (site.spec.metrics.empty()) {
    set(status, site, now, "MetricsAvailable", "True", "NotAsked", "spec.metrics is empty");
  } else if (problems.empty()) {
    set(status, site, now, "MetricsAvailable", "True", "Read",
        fmt::format("{} queries answered", site.spec.metrics.size()));
  } else {
    set(status, site, now, "MetricsAvailable", "False", "QueryFailed", troubles);
  }
  if (!invalid.empty()) {
    set(status, site, now, "Ready", "False", "Invalid",
        fmt::format("{}", fmt::join(invalid, "; ")));
  } else if (!site.spec.available) {
    set(status, site, now, "Ready", "False", "NotAvailable", "spec.available is false");
  } else if (!problems.empty()) {
    set(status, site, now, "Ready", "False", "QueryFailed", troubles);
  } else {
    set(status, site, now, "Ready", "True", "Available", "the site can be recommended");
  }
  return status;
}

bool worth_writing(const api::SiteStatus& written, const api::SiteStatus& next) {
  if (written == next) return false;
  api::SiteStatus same_times = next;
  for (api::SiteReading& reading : same_times.readings) {
    for (const api::SiteReading& old : written.readings) {
      if (old.value != reading.value || !old.time || !reading.time) continue;
      if (*reading.time - *old.time >= kReadingsEvery) return true;
      reading.time = old.time;
    }
  }
  return same_times != written;
}

SiteReconciler::SiteReconciler(kube::Client& client, const kube::Store<api::Site>& sites,
                               telemetry::PrometheusClient* prometheus, Duration interval,
                               const Clock& clock)
    : client_(client), sites_(sites), prometheus_(prometheus), interval_(interval), clock_(clock) {}

kube::Task<Result<std::int64_t>> SiteReconciler::read(api::SiteMetric metric) {
  if (prometheus_ == nullptr) {
    co_return fail(ErrorCode::unavailable,
                   "no Prometheus answers queries of sites: start kwatt-controller with "
                   "--prometheus-url and --site-metrics");
  }
  auto series = co_await prometheus_->query(metric.query, {});
  if (!series) co_return series.error();
  co_return one_number(*series);
}

kube::Task<Result<kube::ReconcileResult>> SiteReconciler::reconcile(std::string name) {
  kube::ReconcileResult result;
  const auto site = sites_.get({"", name});
  if (site == nullptr || site->meta.deletion_timestamp) co_return result;
  std::vector<api::SiteReading> readings;
  std::vector<std::string> problems;
  for (const api::SiteMetric& metric : site->spec.metrics) {
    auto value = co_await read(metric);
    if (value) {
      readings.push_back({metric.value, *value, clock_.now()});
    } else {
      problems.push_back(
          fmt::format("the query of {}: {}", api::to_string(metric.value), value.error().text()));
    }
  }
  if (!site->spec.metrics.empty()) result.requeue_after = interval_;
  const auto status = site_status(*site, std::move(readings), problems, clock_.now());
  if (!worth_writing(site->status, status)) co_return result;
  api::ObjectMeta meta = site->meta;
  meta.resource_version.clear();  // nobody else writes it, and the newest reading is the right one
  kube::Name place("", name);
  auto written =
      co_await client_.patch(kube::resources::sites(), place, kube::Client::PatchType::apply,
                             kStatusManager, "status", api::apply_status(meta, status));
  if (!written && written.error().code != ErrorCode::not_found) co_return written.error();
  co_return result;
}

}  // namespace kwatt::reconcilers
