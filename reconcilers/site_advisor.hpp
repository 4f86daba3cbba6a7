#pragma once
// From a request to its answer: the sites as they are known now, their estimators asked, then the
// pure choice (placement/sites/recommend.hpp).
#include "kube/store.hpp"
#include "placement/sites/recommend.hpp"
#include "reconcilers/site_estimators.hpp"

namespace kwatt::reconcilers {

class SiteAdvisor {
 public:
  // All outlive it. Single-threaded, on the controller's strand.
  SiteAdvisor(const kube::Store<api::Site>& sites, SiteEstimators& estimators, const Clock& clock);

  // Estimators are asked only where EnergyIncrease is weighed, and only those of sites that fit
  // otherwise; sixteen at a time. Errors: unavailable (the sites are not listed yet), and those of
  // recommend().
  kube::Task<Result<placement::sites::SiteAnswer>> advise(api::SiteRecommendationSpec spec);

 private:
  const kube::Store<api::Site>& sites_;
  SiteEstimators& estimators_;
  const Clock& clock_;
};

}  // namespace kwatt::reconcilers
