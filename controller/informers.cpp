#include "controller/informers.hpp"

#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "api/decode.hpp"
#include "kube/indexes.hpp"

namespace kwatt::controller {
namespace {

template <class T>
typename kube::Informer<T>::Decode decoder(api::Interner* interner = nullptr) {
  return [interner](std::string_view json) -> Result<T> {
    T object{};
    if (auto done = api::decode(json, object, interner); !done) return done.error();
    return object;
  };
}

kube::WatchTarget all(const kube::Resource& resource) {
  kube::WatchTarget target;
  target.resource = resource;
  return target;
}

}  // namespace

struct Informers::Impl {
  Impl(kube::Client& client, const Clock& clock, Metrics& metrics)
      : policies(client, all(kube::resources::energy_policies()), decoder<api::EnergyPolicy>(),
                 clock, metrics),
        machines(client, all(kube::resources::node_powers()), decoder<api::NodePower>(), clock,
                 metrics),
        nodes(client, all(kube::resources::nodes()), decoder<api::Node>(), clock, metrics),
        pods(client, all(kube::resources::pods()), decoder<api::Pod>(&interner), clock, metrics,
             kube::pod_indexes()),
        budgets(client, all(kube::resources::pod_disruption_budgets()),
                decoder<api::PodDisruptionBudget>(), clock, metrics),
        claims(client, all(kube::resources::persistent_volume_claims()),
               decoder<api::PersistentVolumeClaim>(), clock, metrics),
        volumes(client, all(kube::resources::persistent_volumes()),
                decoder<api::PersistentVolume>(), clock, metrics),
        attachments(client, all(kube::resources::volume_attachments()),
                    decoder<api::VolumeAttachment>(), clock, metrics),
        replica_sets(client, all(kube::resources::replica_sets()), decoder<api::Workload>(), clock,
                     metrics),
        stateful_sets(client, all(kube::resources::stateful_sets()), decoder<api::Workload>(),
                      clock, metrics),
        stores{policies.store(),     machines.store(),     nodes.store(),   pods.store(),
               budgets.store(),      claims.store(),       volumes.store(), attachments.store(),
               replica_sets.store(), stateful_sets.store()} {}

  template <class Visit>
  void each(Visit&& visit) {
    visit(policies);
    visit(machines);
    visit(nodes);
    visit(pods);
    visit(budgets);
    visit(claims);
    visit(volumes);
    visit(attachments);
    visit(replica_sets);
    visit(stateful_sets);
  }

  api::Interner interner;  // outlives the pods
  kube::Informer<api::EnergyPolicy> policies;
  kube::Informer<api::NodePower> machines;
  kube::Informer<api::Node> nodes;
  kube::Informer<api::Pod> pods;
  kube::Informer<api::PodDisruptionBudget> budgets;
  kube::Informer<api::PersistentVolumeClaim> claims;
  kube::Informer<api::PersistentVolume> volumes;
  kube::Informer<api::VolumeAttachment> attachments;
  kube::Informer<api::Workload> replica_sets;
  kube::Informer<api::Workload> stateful_sets;
  reconcilers::Stores stores;
};

Informers::Informers(kube::Client& client, const Clock& clock, Metrics& metrics)
    : impl_(std::make_unique<Impl>(client, clock, metrics)) {}
Informers::~Informers() = default;

void Informers::start(boost::asio::any_io_executor executor) {
  impl_->each([&](auto& informer) {
    boost::asio::co_spawn(executor, informer.run(), boost::asio::detached);
  });
}

kube::Task<Result<void>> Informers::wait_until_ready(Duration timeout) {
  std::vector<const kube::StoreState*> stores;
  impl_->each([&](auto& informer) { stores.push_back(&informer.store()); });
  co_return co_await kube::wait_until_ready(std::move(stores), timeout);
}

const reconcilers::Stores& Informers::stores() const {
  return impl_->stores;
}
kube::Store<api::EnergyPolicy>& Informers::policies() {
  return impl_->policies.store();
}
kube::Store<api::NodePower>& Informers::machines() {
  return impl_->machines.store();
}
kube::Store<api::Node>& Informers::nodes() {
  return impl_->nodes.store();
}
kube::Store<api::Pod>& Informers::pods() {
  return impl_->pods.store();
}

}  // namespace kwatt::controller
