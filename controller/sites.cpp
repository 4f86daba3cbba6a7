#include "controller/sites.hpp"

#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "api/decode.hpp"
#include "controller/telemetry_sources.hpp"
#include "kube/informer.hpp"
#include "reconcilers/site_recommendation.hpp"
#include "reconcilers/site_reconciler.hpp"

namespace kwatt::controller {
namespace {

// Sites that change together make one new answer.
constexpr Duration kGather{300};

template <class T>
typename kube::Informer<T>::Decode decoder() {
  return [](std::string_view json) -> Result<T> {
    T object{};
    if (auto done = api::decode(json, object); !done) return done.error();
    return object;
  };
}

kube::WatchTarget all(const kube::Resource& resource) {
  kube::WatchTarget target;
  target.resource = resource;
  return target;
}

reconcilers::SiteEstimatorOptions estimator_options(const SiteOptions& options) {
  reconcilers::SiteEstimatorOptions out;
  out.allowed = options.allowed;
  out.cluster_set_domain = options.cluster_set_domain;
  return out;
}

kube::ControllerOptions loop(const char* name, Duration drain) {
  kube::ControllerOptions out;
  out.name = name;
  out.workers = 4;
  out.drain = drain;
  return out;
}

}  // namespace

struct Sites::Impl {
  Impl(const boost::asio::any_io_executor& executor, kube::Client& client, kube::Send own,
       const Options& options, const Clock& clock, Metrics& metrics, reconcilers::Fence fence)
      : sites(client, all(kube::resources::sites()), decoder<api::Site>(), clock, metrics),
        recommendations(client, all(kube::resources::site_recommendations()),
                        decoder<api::SiteRecommendation>(), clock, metrics),
        clusters(executor, client, std::move(own), options.namespace_name, clock),
        estimators(executor, clusters, estimator_options(options.sites), clock),
        advisor(sites.store(), estimators, clock),
        hooks(executor, options.sites.hooks) {
    if (options.sites.metrics) {
      prometheus.emplace(executor, prometheus_server(options.prometheus));
    }
    site_reconciler.emplace(client, sites.store(), prometheus ? &*prometheus : nullptr,
                            options.sites.interval, clock);
    recommendation_reconciler.emplace(client, recommendations.store(), sites.store(), advisor,
                                      hooks, clock, std::move(fence));
    site_loop.emplace(
        executor, loop("site", options.shutdown_grace),
        [this](std::string key) { return site_reconciler->reconcile(std::move(key)); }, clock,
        metrics);
    recommendation_loop.emplace(
        executor, loop("siterecommendation", options.shutdown_grace),
        [this](std::string key) { return recommendation_reconciler->reconcile(std::move(key)); },
        clock, metrics);
  }

  void subscribe();

  kube::Informer<api::Site> sites;
  kube::Informer<api::SiteRecommendation> recommendations;
  std::optional<telemetry::PrometheusClient> prometheus;
  reconcilers::SiteClusters clusters;
  reconcilers::SiteEstimators estimators;
  reconcilers::SiteAdvisor advisor;
  reconcilers::SiteHooks hooks;
  std::optional<reconcilers::SiteReconciler> site_reconciler;
  std::optional<reconcilers::SiteRecommendationReconciler> recommendation_reconciler;
  std::optional<kube::ControllerLoop> site_loop, recommendation_loop;
};

void Sites::Impl::subscribe() {
  sites.store().subscribe([this](const kube::Delta<api::Site>& delta) {
    using Type = kube::Delta<api::Site>::Type;
    const auto& site = delta.now ? delta.now : delta.old;
    if (!site) return;
    const bool changed = delta.type != Type::updated ||
                         delta.old->meta.generation != delta.now->meta.generation ||
                         delta.old->meta.labels != delta.now->meta.labels;
    // The status is our own; what it reads changes answers, too.
    if (changed) site_loop->enqueue(site->meta.name);
    if (!changed && delta.old->status.readings == delta.now->status.readings) return;
    recommendations.store().for_each([this](const auto& recommendation) {
      recommendation_loop->enqueue(kube::key_of(*recommendation).text(), kube::kPriorityLow,
                                   kGather);
    });
  });
  recommendations.store().subscribe([this](const kube::Delta<api::SiteRecommendation>& delta) {
    if (!delta.now) return;
    if (delta.old && delta.old->meta.generation == delta.now->meta.generation &&
        delta.old->status.machines == delta.now->status.machines) {
      return;  // a status of our own
    }
    recommendation_loop->enqueue(kube::key_of(*delta.now).text());
  });
}

Sites::Sites(const boost::asio::any_io_executor& executor, kube::Client& client, kube::Send own,
             const Options& options, const Clock& clock, Metrics& metrics, reconcilers::Fence fence)
    : impl_(std::make_unique<Impl>(executor, client, std::move(own), options, clock, metrics,
                                   std::move(fence))) {}
Sites::~Sites() = default;

void Sites::start(const boost::asio::any_io_executor& executor) {
  impl_->subscribe();
  boost::asio::co_spawn(executor, impl_->sites.run(), boost::asio::detached);
  boost::asio::co_spawn(executor, impl_->recommendations.run(), boost::asio::detached);
}

void Sites::lead(const boost::asio::any_io_executor& executor) {
  boost::asio::co_spawn(executor, impl_->site_loop->run(), boost::asio::detached);
  boost::asio::co_spawn(executor, impl_->recommendation_loop->run(), boost::asio::detached);
}

kube::Task<void> Sites::stop() {
  co_await impl_->site_loop->stop();
  co_await impl_->recommendation_loop->stop();
}

kube::Task<Result<placement::sites::SiteAnswer>> Sites::advise(api::SiteRecommendationSpec spec) {
  return impl_->advisor.advise(std::move(spec));
}

}  // namespace kwatt::controller
