#pragma once
// Answers SiteRecommendations: advice into status, machines through hooks, policies for Karmada.
#include "kube/controller_loop.hpp"
#include "reconcilers/effects.hpp"
#include "reconcilers/site_advisor.hpp"
#include "reconcilers/site_hooks.hpp"

namespace kwatt::reconcilers {

class SiteRecommendationReconciler {
 public:
  SiteRecommendationReconciler(kube::Client& client,
                               const kube::Store<api::SiteRecommendation>& recommendations,
                               const kube::Store<api::Site>& sites, SiteAdvisor& advisor,
                               SiteHooks& hooks, const Clock& clock, Fence fence);

  // key: NAMESPACE/NAME.
  kube::Task<Result<kube::ReconcileResult>> reconcile(std::string key);

 private:
  using Pointer = std::shared_ptr<const api::SiteRecommendation>;

  // Calls the hooks of machines that are intended and due; true: something in `status` changed.
  kube::Task<bool> start_machines(Pointer asked, api::SiteRecommendationStatus& status);
  kube::Task<void> propagate(Pointer asked, api::SiteRecommendationStatus& status);
  kube::Task<Result<void>> apply_policy(Pointer asked, kube::Resource resource, std::string body);
  kube::Task<Result<void>> write(Pointer asked, const api::SiteRecommendationStatus& status);

  kube::Client& client_;
  const kube::Store<api::SiteRecommendation>& recommendations_;
  const kube::Store<api::Site>& sites_;
  SiteAdvisor& advisor_;
  SiteHooks& hooks_;
  const Clock& clock_;
  Fence fence_;
  std::map<std::string, HookAnswer> answered_;  // by operation, until it is written
};

// Has the answer been committed to machines? Then it is not asked anew.
bool decided(const api::SiteRecommendation& recommendation);

// The status that says the answer, or why there is none; with `action: Create` also the intent for
// each recommended site. `new_id` makes an operation's id. Pure but for that.
api::SiteRecommendationStatus answered(const api::SiteRecommendation& asked,
                                       const Result<placement::sites::SiteAnswer>& answer,
                                       TimePoint now, const std::function<std::string()>& new_id);

// What the condition Created says of the machines. Pure.
void show_machines(const api::SiteRecommendation& asked, api::SiteRecommendationStatus& status,
                   TimePoint now);

}  // namespace kwatt::reconcilers
