#include "reconcilers/site_advisor.hpp"

#include <algorithm>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/run.hpp"

namespace kwatt::reconcilers {
namespace {

using placement::sites::SiteView;

constexpr std::size_t kAtOnce = 16;
constexpr Duration kLongest = std::chrono::minutes{2};

// Shared with the askers, which may outlive a caller that was cancelled.
struct Asking {
  std::vector<SiteView> views;
  std::vector<std::size_t> wanted;  // positions in views
  std::size_t next = 0, running = 0;
  EstimatorQuestion question;
  net::Signal ended;
};

kube::Task<void> ask_some(std::shared_ptr<Asking> asking, SiteEstimators& estimators) {
  while (asking->next < asking->wanted.size()) {
    const std::size_t at = asking->wanted[asking->next++];
    auto answer = co_await estimators.ask(asking->views[at].site, asking->question);
    asking->views[at].energy = std::move(answer);
  }
}

}  // namespace

SiteAdvisor::SiteAdvisor(const kube::Store<api::Site>& sites, SiteEstimators& estimators,
                         const Clock& clock)
    : sites_(sites), estimators_(estimators), clock_(clock) {}

kube::Task<Result<placement::sites::SiteAnswer>> SiteAdvisor::advise(
    api::SiteRecommendationSpec spec) {
  if (!sites_.ready()) {
    co_return fail(ErrorCode::unavailable, "the sites are not listed yet");
  }
  const placement::sites::SiteRequest request(std::move(spec));
  auto asking = std::make_shared<Asking>();
  const TimePoint now = clock_.now();
  sites_.for_each(
      [&](const auto& site) { asking->views.push_back(placement::sites::view_of(site, now)); });
  auto answer = placement::sites::recommend(request, asking->views);
  const auto& weights = request.spec.weights;
  const bool weighed = std::any_of(weights.begin(), weights.end(),
                                   [](const auto& one) { return one.plugin == "EnergyIncrease"; });
  if (!answer || !weighed) co_return answer;

  std::set<std::string> in_question;
  for (const auto& site : answer->sites) in_question.insert(site.name);
  // Of these the total is shown, too.
  for (const auto& site : answer->excluded) {
    if (site.plugin == "Taint") in_question.insert(site.name);
  }
  for (std::size_t i = 0; i < asking->views.size(); ++i) {
    if (in_question.count(asking->views[i].name()) > 0) asking->wanted.push_back(i);
  }
  asking->question = {request.spec.resources.cpu_millicores, request.spec.workloads};
  asking->running = std::min(kAtOnce, asking->wanted.size());
  const auto executor = co_await boost::asio::this_coro::executor;
  for (std::size_t i = asking->running; i > 0; --i) {
    boost::asio::co_spawn(executor, ask_some(asking, estimators_),
                          [asking](const std::exception_ptr&) {
                            --asking->running;
                            asking->ended.notify_all();
                          });
  }
  while (asking->running > 0) {
    if (!co_await asking->ended.wait_for(kLongest)) {
      co_return fail(ErrorCode::timeout, "the estimators of the sites do not answer");
    }
  }
  co_return placement::sites::recommend(request, std::move(asking->views));
}

}  // namespace kwatt::reconcilers
