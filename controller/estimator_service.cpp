#include "controller/estimator_service.hpp"

#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "api/decode.hpp"
#include "base/log.hpp"
#include "controller/api_has.hpp"
#include "kube/credentials.hpp"
#include "kube/informer.hpp"
#include "net/run.hpp"
#include "net/server.hpp"
#include "servers/estimator.hpp"

namespace kwatt::controller {
namespace {

constexpr Duration kLook = std::chrono::seconds{10};
// Between a change of the cluster and the estimates that know of it.
constexpr Duration kSettle = std::chrono::seconds{1};
// How often the file of API keys is read again.
constexpr Duration kReadKeys = std::chrono::seconds{10};

kube::Informer<api::Estimator>::Decode decoder() {
  return [](std::string_view json) -> Result<api::Estimator> {
    api::Estimator object;
    if (auto done = api::decode(json, object); !done) return done.error();
    return object;
  };
}

kube::WatchTarget all(const kube::Resource& resource) {
  kube::WatchTarget target;
  target.resource = resource;
  return target;
}

// The keys of a file, read again now and then; while it cannot be read, the last good ones stay.
class KeyFile {
 public:
  KeyFile(std::string file, const Clock& clock) : file_(std::move(file)), clock_(clock) {}

  Result<void> load() {
    read_at_ = clock_.monotonic();
    auto text = kube::read_file(file_);
    if (!text) return text.error();
    auto keys = servers::parse_api_keys(*text);
    if (!keys) return keys.error().with_context(file_);
    keys_ = std::move(*keys);
    return {};
  }
  const servers::ApiKeys* current() {
    if (file_.empty()) return nullptr;
    if (clock_.monotonic() - read_at_ > kReadKeys) {
      if (auto loaded = load(); !loaded) {
        log::error("API keys not read, the old ones stay", {{"error", loaded.error()}});
      }
    }
    return &keys_;
  }

 private:
  std::string file_;
  const Clock& clock_;
  servers::ApiKeys keys_;
  MonotonicPoint read_at_{};
};

}  // namespace

struct EstimatorService::Impl {
  Impl(EstimatorServiceDependencies given, const Options& options)
      : on(std::move(given)),
        address(options.estimator),
        keys(options.estimator_api_key_file, on.clock),
        has_keys(!options.estimator_api_key_file.empty()),
        ours(on.client, all(kube::resources::estimators()), decoder(), on.clock, on.metrics),
        theirs(on.client, all(kube::resources::wao_estimators()), decoder(), on.clock, on.metrics),
        estimators(dependencies(options)),
        loop(
            on.executor,
            kube::ControllerOptions{
                .name = "estimator", .workers = 4, .drain = options.shutdown_grace},
            [this](std::string key) { return estimators.reconcile(std::move(key)); }, on.clock,
            on.metrics) {
    ours.store().subscribe([this](const Delta& delta) { changed(delta, false); });
    theirs.store().subscribe([this](const Delta& delta) { changed(delta, true); });
  }

  using Delta = kube::Delta<api::Estimator>;

  reconcilers::EstimatorsDependencies dependencies(const Options& options) {
    telemetry::PredictorSettings predictors;
    predictors.allowed = options.endpoint_allow;
    return {
        .executor = on.executor,
        .client = on.client,
        .estimators = {ours.store(), theirs.store()},
        .stores = on.stores,
        .samples = on.samples,
        .clock = on.clock,
        .metrics = on.metrics,
        .predictors = std::move(predictors),
        .model = on.model,
        .may_write = on.may_write,
        .publish = [this](const std::string& key,
                          placement::EstimatorNodes nodes) { book.publish(key, std::move(nodes)); },
        .withdraw = [this](const std::string& key) { book.remove(key); }};
  }

  void changed(const Delta& delta, bool wao) {
    const auto& object = delta.now ? delta.now : delta.old;
    if (!object) return;
    // A status of our own making is no news.
    if (delta.type == Delta::Type::updated &&
        delta.old->meta.generation == delta.now->meta.generation) {
      return;
    }
    // One of the other group with the same name may win or lose by it.
    for (const bool group : {wao, !wao}) {
      loop.enqueue(reconcilers::Estimators::key_of(*object, group));
    }
  }

  net::Task<void> look() {
    bool watching_ours = false, watching_theirs = false;
    while (!watching_ours || !watching_theirs) {
      const auto has_ours = co_await api_has(on.client, kube::resources::estimators());
      const auto has_theirs = co_await api_has(on.client, kube::resources::wao_estimators());
      if (has_ours.value_or(false) && !std::exchange(watching_ours, true)) {
        boost::asio::co_spawn(on.executor, ours.run(), boost::asio::detached);
      }
      if (has_theirs.value_or(false) && !std::exchange(watching_theirs, true)) {
        log::info("heeding a kind", {{"kind", "Estimator of waofed.bitmedia.co.jp"}});
        boost::asio::co_spawn(on.executor, theirs.run(), boost::asio::detached);
      }
      co_await net::sleep(kLook);
    }
  }

  EstimatorServiceDependencies on;
  std::optional<Address> address;
  KeyFile keys;
  bool has_keys;
  servers::EstimatorBook book;
  kube::Informer<api::Estimator> ours, theirs;
  reconcilers::Estimators estimators;
  kube::ControllerLoop loop;
  std::optional<net::Server> server;
  bool started = false;
};

EstimatorService::EstimatorService(EstimatorServiceDependencies dependencies,
                                   const Options& options)
    : impl_(std::make_unique<Impl>(std::move(dependencies), options)) {}
EstimatorService::~EstimatorService() = default;

Result<void> EstimatorService::start_server() {
  Impl& self = *impl_;
  if (!self.address) return {};
  if (self.has_keys) {
    if (auto loaded = self.keys.load(); !loaded) {
      return loaded.error().with_context("--estimator-api-key-file");
    }
  }
  net::ServerOptions options{.address = self.address->host, .port = self.address->port};
  options.limits.body_bytes = 1024 * 1024;
  self.server.emplace(
      self.on.executor, std::move(options),
      servers::estimator_handler({.book = self.book, .metrics = self.on.metrics, .keys = [&self] {
                                    return self.keys.current();
                                  }}));
  return self.server->start();
}

void EstimatorService::start() {
  Impl& self = *impl_;
  // Without the server nobody could ask, but the status tells all the same.
  self.started = true;
  boost::asio::co_spawn(self.on.executor, self.look(), boost::asio::detached);
  boost::asio::co_spawn(self.on.executor, self.loop.run(), boost::asio::detached);
}

void EstimatorService::cluster_changed() {
  Impl& self = *impl_;
  const auto enqueue = [&self](const kube::Store<api::Estimator>& store, bool wao) {
    store.for_each([&](const auto& object) {
      self.loop.enqueue(reconcilers::Estimators::key_of(*object, wao), kube::kPriorityNormal,
                        kSettle);
    });
  };
  enqueue(self.ours.store(), false);
  enqueue(self.theirs.store(), true);
}

net::Task<void> EstimatorService::stop(Duration grace) {
  Impl& self = *impl_;
  if (self.started) co_await self.loop.stop();
  if (self.server) co_await self.server->stop(grace);
}

void EstimatorService::close_server() {
  impl_->server.reset();
}

void EstimatorService::stop_thread() {
  impl_->book.stop();
}

}  // namespace kwatt::controller
