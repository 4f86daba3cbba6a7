#include "controller/other_kinds.hpp"

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "api/decode.hpp"
#include "base/log.hpp"
#include "controller/api_has.hpp"
#include "kube/informer.hpp"
#include "net/run.hpp"

namespace kwatt::controller {
namespace {

constexpr Duration kLook = std::chrono::seconds{10};

template <class T>
typename kube::Informer<T>::Decode decoder() {
  return [](std::string_view json) -> Result<T> {
    T object{};
    if (auto done = api::decode(json, object); !done) return done.error();
    return object;
  };
}

kube::WatchTarget target_of(const kube::Resource& resource, std::string namespace_name = "") {
  kube::WatchTarget target;
  target.resource = resource;
  target.namespace_name = std::move(namespace_name);
  return target;
}

}  // namespace

struct OtherKinds::Impl {
  Impl(kube::Client& given, const Clock& clock, Metrics& metrics)
      : client(given),
        buffers(given, target_of(kube::resources::capacity_buffers()),
                decoder<api::CapacityBuffer>(), clock, metrics),
        templates(given, target_of(kube::resources::pod_templates()),
                  decoder<api::PodTemplateObject>(), clock, metrics),
        health_checks(given, target_of(kube::resources::node_health_checks()),
                      decoder<api::NodeHealthCheck>(), clock, metrics),
        maintenance(given, target_of(kube::resources::leases(), "medik8s-leases"),
                    decoder<api::Lease>(), clock, metrics),
        stores{buffers.store(), templates.store(), health_checks.store(), maintenance.store(),
               known,           has_buffers,       has_health_checks} {}

  kube::Client& client;
  kube::Informer<api::CapacityBuffer> buffers;
  kube::Informer<api::PodTemplateObject> templates;
  kube::Informer<api::NodeHealthCheck> health_checks;
  kube::Informer<api::Lease> maintenance;
  bool known = false, has_buffers = false, has_health_checks = false;
  bool watching_buffers = false, watching_health_checks = false;
  reconcilers::OtherStores stores;

  kube::Task<void> run();
};

kube::Task<void> OtherKinds::Impl::run() {
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto note = [](const char* kind, bool& before, bool now) {
    if (before != now) log::info(now ? "heeding a kind" : "a kind is gone", {{"kind", kind}});
    before = now;
  };
  for (;;) {
    const auto buffers_there = co_await api_has(client, kube::resources::capacity_buffers());
    const auto checks_there = co_await api_has(client, kube::resources::node_health_checks());
    if (buffers_there) note("CapacityBuffer", has_buffers, *buffers_there);
    if (checks_there) note("NodeHealthCheck", has_health_checks, *checks_there);
    if (has_buffers && !std::exchange(watching_buffers, true)) {
      boost::asio::co_spawn(executor, buffers.run(), boost::asio::detached);
      boost::asio::co_spawn(executor, templates.run(), boost::asio::detached);
    }
    if (has_health_checks && !std::exchange(watching_health_checks, true)) {
      boost::asio::co_spawn(executor, health_checks.run(), boost::asio::detached);
    }
    known = known || (buffers_there && checks_there);
    co_await net::sleep(kLook);
  }
}

OtherKinds::OtherKinds(kube::Client& client, const Clock& clock, Metrics& metrics)
    : impl_(std::make_unique<Impl>(client, clock, metrics)) {}
OtherKinds::~OtherKinds() = default;

void OtherKinds::start(const boost::asio::any_io_executor& executor) {
  boost::asio::co_spawn(executor, impl_->maintenance.run(), boost::asio::detached);
  boost::asio::co_spawn(executor, impl_->run(), boost::asio::detached);
}

const reconcilers::OtherStores& OtherKinds::stores() const {
  return impl_->stores;
}

}  // namespace kwatt::controller
