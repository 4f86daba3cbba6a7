#pragma once
// The wiring of sites: caches of Site and SiteRecommendation, who asks and answers, and the loops
// that keep their status.
#include <memory>

#include "base/metrics.hpp"
#include "controller/options.hpp"
#include "kube/client.hpp"
#include "kube/fetch.hpp"
#include "placement/sites/recommend.hpp"
#include "reconcilers/effects.hpp"

namespace kwatt::controller {

class Sites {
 public:
  // `own` reaches our API server. `client`, `clock` and `metrics` outlive it.
  Sites(const boost::asio::any_io_executor& executor, kube::Client& client, kube::Send own,
        const Options& options, const Clock& clock, Metrics& metrics, reconcilers::Fence fence);
  ~Sites();

  // Begins to watch, in the background until the executor ends. Nothing else waits for these
  // caches: an API server without the kinds costs nothing but their absence.
  void start(const boost::asio::any_io_executor& executor);
  // We lead: statuses are written and machines started from now on.
  void lead(const boost::asio::any_io_executor& executor);
  kube::Task<void> stop();

  // On every replica. Errors: as reconcilers::SiteAdvisor.
  kube::Task<Result<placement::sites::SiteAnswer>> advise(api::SiteRecommendationSpec spec);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
