#pragma once
// Keeps the status of a Site: what its queries give, and what is left of it.
#include "kube/controller_loop.hpp"
#include "kube/store.hpp"
#include "placement/sites/site_view.hpp"
#include "telemetry/prometheus_client.hpp"

namespace kwatt::reconcilers {

class SiteReconciler {
 public:
  // `prometheus` may be null: then sites with metrics say so. All outlive it.
  SiteReconciler(kube::Client& client, const kube::Store<api::Site>& sites,
                 telemetry::PrometheusClient* prometheus, Duration interval, const Clock& clock);

  kube::Task<Result<kube::ReconcileResult>> reconcile(std::string name);

 private:
  kube::Task<Result<std::int64_t>> read(api::SiteMetric metric);

  kube::Client& client_;
  const kube::Store<api::Site>& sites_;
  telemetry::PrometheusClient* prometheus_;
  Duration interval_;
  const Clock& clock_;
};

// The one number in an answer, rounded. Errors: protocol, with what is wrong with it. Pure.
Result<std::int64_t> one_number(const std::vector<telemetry::Series>& series);

// The next status of `site` after reading its metrics: new readings take the place of old ones,
// those of queries that failed stay with their time. `problems` are sentences about the latter.
// Pure.
api::SiteStatus site_status(const api::Site& site, std::vector<api::SiteReading> readings,
                            const std::vector<std::string>& problems, TimePoint now);

// Is it worth a write? Readings alone at most every minute. Pure.
bool worth_writing(const api::SiteStatus& written, const api::SiteStatus& next);

}  // namespace kwatt::reconcilers
