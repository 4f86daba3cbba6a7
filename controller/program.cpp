#include "controller/program.hpp"

#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "controller/estimator_service.hpp"
#include "controller/extender_service.hpp"
#include "controller/history_feed.hpp"
#include "controller/informers.hpp"
#include "controller/job_queue_service.hpp"
#include "controller/node_power_knowledge.hpp"
#include "controller/other_kinds.hpp"
#include "controller/prediction_poll.hpp"
#include "controller/sites.hpp"
#include "controller/telemetry_sources.hpp"
#include "kube/credentials.hpp"
#include "kube/fetch.hpp"
#include "kube/indexes.hpp"
#include "kube/lease_election.hpp"
#include "models/power_curve.hpp"
#include "net/run.hpp"
#include "net/server.hpp"
#include "placement/registry.hpp"
#include "reconcilers/placement_view.hpp"
#include "reconcilers/pod_binder.hpp"
#include "reconcilers/policy_pass.hpp"
#include "servers/access_reviewer.hpp"
#include "servers/health.hpp"
#include "servers/history.hpp"
#include "servers/ingest.hpp"
#include "servers/routes.hpp"
#include "servers/sites.hpp"

namespace kwatt::controller {
namespace {

namespace asio = boost::asio;

// No destructive call is started so shortly before our lease may be somebody else's.
constexpr Duration kFenceMargin = std::chrono::seconds{1};
constexpr Duration kStoresTimeout = std::chrono::minutes{2};
// Two passes are never closer than this, whatever triggers them.
constexpr Duration kPassGap{200};

telemetry::SampleStoreOptions sample_options(const Options& options) {
  telemetry::SampleStoreOptions out;
  out.resolution = options.telemetry_resolution;
  return out;
}

std::string agent_user(const Options& options) {
  const std::string& account = options.agent_service_account;
  const auto slash = account.find('/');
  if (slash == std::string::npos) {
    return fmt::format("system:serviceaccount:{}:{}", options.namespace_name, account);
  }
  return fmt::format("system:serviceaccount:{}:{}", account.substr(0, slash),
                     account.substr(slash + 1));
}

bool is_ready(const api::Node& node) {
  const api::Condition* ready = api::find_condition(node.conditions, "Ready");
  return ready != nullptr && ready->status == "True";
}

// Nodes' heartbeats and pods' readiness change nothing of what fits where.
bool counts_for_estimates(const kube::Delta<api::Node>& delta) {
  if (!delta.old || !delta.now) return !delta.initial;
  return delta.old->unschedulable != delta.now->unschedulable ||
         delta.old->taints != delta.now->taints ||
         delta.old->allocatable != delta.now->allocatable ||
         delta.old->meta.labels != delta.now->meta.labels ||
         is_ready(*delta.old) != is_ready(*delta.now);
}
bool counts_for_estimates(const kube::Delta<api::Pod>& delta) {
  if (!delta.old || !delta.now) return !delta.initial;
  return delta.old->node_name != delta.now->node_name ||
         delta.old->terminal() != delta.now->terminal();
}

}  // namespace

// Everything the controller is made of, in the order of construction. Lives on one thread; only
// decide() of a pass runs on `planning`, and the history writes and reads on threads of its own.
// What these threads touch they own, or it is immutable, or locks itself (Metrics, log).
struct Program::Impl {
  explicit Impl(Options given) : options(std::move(given)) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  net::Context context;  // first: the sockets and timers of all others are gone before it
  Options options;
  SystemClock clock;
  Metrics metrics;
  std::optional<asio::thread_pool> planning{std::in_place, 1};
  std::optional<telemetry::History> history;

  std::unique_ptr<kube::Client> client;
  std::optional<Informers> informers;
  std::optional<OtherKinds> other_kinds;
  std::optional<telemetry::SampleStore> samples;
  std::optional<TelemetryPoll> telemetry_poll;
  std::optional<PredictionPoll> prediction_poll;
  std::optional<reconcilers::Drivers> drivers;
  std::optional<reconcilers::ClusterView> view;
  std::optional<kube::EventRecorder> events;
  std::optional<kube::LeaseElection> election;
  reconcilers::Migrations migrations;
  std::optional<HistoryFeed> history_feed;
  std::optional<reconcilers::MachineReconciler> machines;
  std::optional<kube::ControllerLoop> machine_loop;
  std::optional<reconcilers::PolicyPass> pass;
  std::optional<EstimatorService> estimator;
  std::optional<Sites> sites;
  std::unique_ptr<JobQueueService> job_queue;
  std::optional<servers::TokenReviewer> reviewer;
  std::optional<servers::AccessReviewer> access;
  // Its thread is ended first of all, its sockets and coroutines last (see ~Impl).
  std::optional<ExtenderService> extender;
  std::optional<reconcilers::PlacementView> placement;
  std::optional<reconcilers::PodBinder> binder;
  std::optional<kube::TlsSource> extender_tls;
  std::optional<kube::TlsSource> server_tls;
  std::optional<net::Server> health_server, ingest_server;
  net::Signal pass_signal, end_signal, pass_ended;
  bool pass_wanted = false, stopping = false, lost = false, passes_running = false;

  bool may_act() const {
    return election->leading() && !stopping &&
           clock.monotonic() + kFenceMargin < election->lease_expires();
  }
  void want_pass() {
    pass_wanted = true;
    pass_signal.notify_all();
  }

  // Of a machine whose NodePower says what it draws; others may draw anything.
  std::optional<Milliwatts> machine_maximum(const std::string& node) {
    const auto machine = view->machine(node);
    if (machine == nullptr) return std::nullopt;
    const auto model = models::model_of(machine->spec.model, Millicores{0});
    return model.specified ? std::optional{model.curve.maximum()} : std::nullopt;
  }

  // What its meter has taught, else its own curve, or that of a usual machine of its size.
  telemetry::LocalPower power_of(const std::string& node) {
    const auto object = view->node(node);
    if (object == nullptr) return {};
    const auto machine = view->machine(node);
    const api::PowerModelSpec none;
    const auto model =
        models::model_of(machine ? machine->spec.model : none, object->allocatable.cpu);
    reconcilers::ClusterView::Knowledge known = view->knowledge(node);
    return own_power(model.curve, std::move(known.learned), known.state);
  }

  // A pod that comes to such a node brings its full speed back.
  bool slow_or_capped(const std::string& name) const {
    const auto node = view->stores().nodes.get(name);
    return node != nullptr && (node->meta.labels.get(planner::names::kLabelFrequency) == "low" ||
                               node->meta.labels.get(planner::names::kLabelCapped) == "true");
  }

  // Whose power is to be predicted.
  std::vector<std::string> node_names() const {
    std::vector<std::string> names;
    informers->stores().nodes.for_each(
        [&](const std::shared_ptr<const api::Node>& node) { names.push_back(node->meta.name); });
    return names;
  }
  std::optional<PredictionSubject> prediction_subject(const std::string& name) {
    PredictionSubject subject;
    subject.node = view->node(name);
    if (subject.node == nullptr) return std::nullopt;
    const auto machine = view->machine(name);
    reconcilers::ClusterView::Knowledge known = view->knowledge(name);
    subject.state = known.state;
    subject.learned = std::move(known.learned);
    subject.specified =
        machine != nullptr && models::model_of(machine->spec.model, Millicores{0}).specified;
    return subject;
  }

  // What is wrong with what is measured and predicted.
  std::vector<std::string> telemetry_problems() const {
    std::vector<std::string> out = telemetry_poll->problems();
    for (std::string& problem : prediction_poll->problems()) {
      out.push_back("prediction: " + std::move(problem));
    }
    return out;
  }

  Result<void> construct();
  Result<void> construct_extender();
  net::Handler tls_handler();
  Result<void> start_servers();
  Result<void> start_extender();
  void subscribe();
  net::Task<void> passes();
  net::Task<void> wait_for_end();
  void begin_stop();
  void watch_signals(asio::signal_set& signals);
  net::Task<void> stop();
  net::Task<int> run();
};

// Most of what runs never returns (watches, timers, a follower's election), and after a lost lease
// nothing is waited for: run() leaves coroutines behind that are in the middle of anything. They
// are destroyed here, while all that they use is still there.
Program::Impl::~Impl() {
  if (extender) extender->halt();
  // Closing a connection cancels its handler, so the handlers must be there.
  ingest_server.reset();
  health_server.reset();
  if (estimator) estimator->close_server();
  // Then no other thread has anything to hand back, and the coroutines that wait for one wait here.
  planning.reset();
  history.reset();
  if (estimator) estimator->stop_thread();
  context.end();
}

Result<void> Program::Impl::construct() {
  const auto executor = context.get_executor();
  auto config = kube::find_config({.kubeconfig = options.kubeconfig, .context = options.context});
  if (!config) return config.error();
  if (options.namespace_name.empty()) options.namespace_name = config->namespace_name;
  const kube::LeaseOptions lease{.identity = kube::make_identity(),
                                 .lease_duration = options.lease_duration,
                                 .renew_deadline = options.renew_deadline,
                                 .retry_period = options.retry_period};
  if (auto good = kube::check(lease); !good) return good.error();

  const std::string user_agent = std::string("kwatt-controller/") + KWATT_VERSION;
  client = kube::make_client(executor, *config,
                             {.user_agent = user_agent,
                              .queries_per_second = options.client_qps,
                              .burst = options.client_burst},
                             clock);
  informers.emplace(*client, clock, metrics);
  other_kinds.emplace(*client, clock, metrics);
  samples.emplace(sample_options(options));
  drivers.emplace(executor, *client, options.namespace_name, clock, options.bmc_allow,
                  reconcilers::DriverSettings{.stores = &informers->stores(),
                                              .commands = options.bmc_commands});
  view.emplace(informers->stores(), *samples, clock,
               reconcilers::ViewOptions{.own_node = options.node_name},
               [this](const std::string& address) { return drivers->problem(address); });
  view->watch(other_kinds->stores());
  events.emplace(
      executor, *client,
      kube::EventRecorderOptions{.controller = "kwatt.dev/controller", .instance = lease.identity},
      clock, metrics);
  election.emplace(executor, *client, kube::Name{options.namespace_name, options.lease_name}, lease,
                   clock, metrics);

  if (options.history_file.empty()) {
    log::info("no --history-file: no history is kept");
  } else {
    telemetry::HistoryOptions kept;
    kept.path = options.history_file;
    kept.max_bytes = options.history_max_bytes;
    kept.csv_dir = options.history_csv_dir;
    history.emplace(std::move(kept), clock, metrics);
  }
  history_feed.emplace(history ? &*history : nullptr, informers->stores().nodes, *samples, clock);

  const reconcilers::Fence fence = [this] { return may_act(); };
  machines.emplace(
      *client, *view, *drivers, *samples,
      reconcilers::MeterOptions{.interval = options.bmc_poll_interval}, *events, metrics, fence,
      reconcilers::MachineEvents{
          .action_done = [this](
                             const std::string& policy,
                             const std::string& sentence) { pass->action_done(policy, sentence); },
          .evicted =
              [this](const std::string& node, const api::Operation& operation) {
                std::map<std::string, std::string> owners;
                for (const auto& pod : view->stores().pods.by_index(kube::kPodsByNode, node)) {
                  if (pod->owner != nullptr) owners.emplace(pod->uid, pod->owner->uid);
                }
                migrations.evicting(operation.policy, node, operation.moves, operation.reason,
                                    clock.now(), owners);
              },
          .pass_wanted = [this] { want_pass(); },
          .decided =
              [this](const std::string& node, const api::NodeDecision& decision) {
                history_feed->decided(node, decision);
              },
          .operation =
              [this](const std::string& node, const api::Operation& operation,
                     const reconcilers::OperationEvent& event) {
                history_feed->operation(node, operation, event);
              }});
  machine_loop.emplace(
      executor,
      kube::ControllerOptions{
          .name = "nodepower", .workers = options.machine_workers, .drain = options.shutdown_grace},
      [this](std::string key) { return machines->reconcile(std::move(key)); }, clock, metrics);
  pass.emplace(
      *planning, *client, *view, *machines, migrations, *events, metrics, fence,
      [this](const std::string& node) { machine_loop->enqueue(node); },
      reconcilers::PassOptions{
          .carbon_grams_per_kwh = options.carbon_grams_per_kwh,
          .telemetry_problems = [this] { return telemetry_problems(); },
          .carbon_state =
              [this](const api::CarbonSpec& carbon, const std::vector<std::string>& zones) {
                return job_queue->carbon_state(carbon, zones);
              }});
  sites.emplace(executor, *client, kube::make_send(executor, *config, user_agent, clock), options,
                clock, metrics, fence);
  auto queue = JobQueueService::make(executor, options,
                                     {.client = *client,
                                      .view = *view,
                                      .events = *events,
                                      .metrics = metrics,
                                      .clock = clock,
                                      .fence = fence,
                                      .history = history ? &*history : nullptr});
  if (!queue) return queue.error();
  job_queue = std::move(*queue);
  reviewer.emplace(*client, clock);
  access.emplace(*client, clock);
  telemetry_poll.emplace(
      *samples, clock, metrics, [this] { return node_directory(informers->stores()); },
      [this](const std::string& node) { return machine_maximum(node); });
  add_sources(*telemetry_poll, executor, options, *client);
  PredictionOptions predictions;
  predictions.interval = options.prediction_interval;
  predictions.predictors.allowed = options.endpoint_allow;
  predictions.predictors.timeout = options.prediction_timeout;
  prediction_poll.emplace(
      executor, std::move(predictions), [this] { return node_names(); },
      [this](const std::string& name) { return prediction_subject(name); }, clock, metrics);
  if (auto source = environment_source(executor, options)) {
    prediction_poll->use(std::move(source), [this] { return node_directory(informers->stores()); });
  }
  view->watch(prediction_poll->environment());
  estimator.emplace(EstimatorServiceDependencies{
                        .executor = executor,
                        .client = *client,
                        .stores = informers->stores(),
                        .samples = *samples,
                        .clock = clock,
                        .metrics = metrics,
                        .model = [this](const std::string& node) { return power_of(node); },
                        .may_write = [this] { return may_act(); }},
                    options);
  return options.extender.address ? construct_extender() : Result<void>{};
}

// The view on this thread, the server on its own.
Result<void> Program::Impl::construct_extender() {
  // kube-scheduler has judged taints and affinity from a cache that may be newer than ours. Fit
  // stays: kube-scheduler does not know of the room that plans reserve.
  auto framework = placement::node_framework(
      placement::changed_profile(placement::default_profile(), {{"Taints", 0}, {"Affinity", 0}}));
  if (!framework) return framework.error().with_context("the extender's plugins");
  placement.emplace(
      informers->stores(), *samples, clock,
      [this](std::shared_ptr<const placement::NodeTable> table) {
        extender->publish(std::move(table));
      },
      reconcilers::PlacementOptions{.enrich = [this](placement::NodeInfo& node) {
        add_knowledge(node, *prediction_poll, options.carbon_grams_per_kwh, clock.now());
      }});
  ExtenderService::Bind bind;
  if (options.extender.bind) {
    binder.emplace(*client, informers->stores(), *placement, clock, metrics);
    bind = [this](const servers::BindingArgs& args) {
      return binder->bind(kube::Name{args.namespace_name, args.pod_name}, args.pod_uid, args.node);
    };
  }
  extender.emplace(options.extender,
                   std::make_shared<const placement::NodeFramework>(std::move(*framework)), metrics,
                   clock, context.get_executor(), std::move(bind));
  return {};
}

Result<void> Program::Impl::start_extender() {
  if (!extender) return {};
  if (!options.extender.tls) return extender->start({});
  kube::Config files;
  files.client_certificate.file = options.tls_cert_file;
  files.client_key.file = options.tls_key_file;
  files.certificate_authority.file = options.extender.client_ca_file;
  extender_tls.emplace(files, clock);
  if (auto loaded = extender_tls->load(); !loaded) return loaded.error();
  return extender->start([this] { return extender_tls->current(); });
}

// Everything that is served over TLS.
net::Handler Program::Impl::tls_handler() {
  net::Handler ingest = servers::ingest_handler(
      {.reviewer = *reviewer,
       .agent_user = agent_user(options),
       .samples = *samples,
       .clock = clock,
       .metrics = metrics,
       .leading = [this] { return election->leading(); },
       .first_sample = [this](const std::string& node) { machine_loop->enqueue(node); },
       .machine_maximum = [this](const std::string& node) { return machine_maximum(node); }});
  std::vector<servers::Route> routes;
  if (history) {
    routes.push_back(
        {servers::kHistoryPath,
         servers::history_handler(
             {.tokens = *reviewer, .access = *access, .history = *history, .clock = clock})});
  }
  routes.push_back(
      {servers::kSitesPath, servers::sites_handler({.tokens = *reviewer,
                                                    .access = *access,
                                                    .advise =
                                                        [this](api::SiteRecommendationSpec spec) {
                                                          return sites->advise(std::move(spec));
                                                        },
                                                    .clock = clock})});
  for (servers::Route& route : job_queue->routes(*reviewer, *access)) {
    routes.push_back(std::move(route));
  }
  return servers::routes(std::move(routes), std::move(ingest));
}

Result<void> Program::Impl::start_servers() {
  const auto executor = context.get_executor();
  const auto caches = [this]() -> std::string {
    return view->stores().ready() ? "" : "the caches are not filled yet";
  };
  health_server.emplace(
      executor, net::ServerOptions{.address = options.health.host, .port = options.health.port},
      servers::health_handler(metrics, {.live = {{"ping", [] { return std::string(); }}},
                                        .ready = {{"caches", caches}}}));
  if (auto started = health_server->start(); !started) return started.error();
  if (auto started = estimator->start_server(); !started) return started.error();
  if (auto started = start_extender(); !started) return started.error();

  if (options.tls_cert_file.empty()) {
    log::warn(
        "no --tls-cert-file: agents cannot push samples, so frequency, capping and the "
        "utilization rules have no input");
    return {};
  }
  kube::Config files;
  files.client_certificate.file = options.tls_cert_file;
  files.client_key.file = options.tls_key_file;
  server_tls.emplace(files, clock);
  if (auto loaded = server_tls->load(); !loaded) return loaded.error();
  ingest_server.emplace(
      executor,
      net::ServerOptions{.address = options.ingest.host, .port = options.ingest.port, .tls = true},
      tls_handler(), [this] { return server_tls->current(); });
  if (auto started = ingest_server->start(); !started) return started.error();
  return {};
}

// Events of the stores become keys of the machines' queue, or a wish for a pass.
void Program::Impl::subscribe() {
  if (placement) {
    // Before those below: what they bring about sees the new state.
    informers->nodes().subscribe([this](const auto& delta) { placement->node_changed(delta); });
    informers->machines().subscribe(
        [this](const auto& delta) { placement->machine_changed(delta); });
    informers->pods().subscribe([this](const auto& delta) { placement->pod_changed(delta); });
    asio::co_spawn(context.get_executor(), placement->run(), asio::detached);
  }
  using NodeDelta = kube::Delta<api::Node>;
  using PodDelta = kube::Delta<api::Pod>;
  informers->nodes().subscribe([this](const NodeDelta& delta) {
    const auto& node = delta.now ? delta.now : delta.old;
    if (!node) return;
    if (delta.type == NodeDelta::Type::deleted) {
      samples->forget(node->meta.name);
      view->forget(node->meta.name);
    }
    if (counts_for_estimates(delta)) {
      estimator->cluster_changed();
      job_queue->changed();
    }
    machine_loop->enqueue(node->meta.name,
                          delta.initial ? kube::kPriorityLow : kube::kPriorityNormal);
    if (delta.type != NodeDelta::Type::updated ||
        delta.old->unschedulable != delta.now->unschedulable ||
        delta.old->taints != delta.now->taints ||
        delta.old->meta.labels != delta.now->meta.labels ||
        delta.old->meta.annotations != delta.now->meta.annotations) {
      want_pass();
    }
  });
  informers->machines().subscribe([this](const kube::Delta<api::NodePower>& delta) {
    const auto& machine = delta.now ? delta.now : delta.old;
    if (!machine) return;
    machine_loop->enqueue(machine->meta.name,
                          delta.initial ? kube::kPriorityLow : kube::kPriorityNormal);
  });
  informers->policies().subscribe([this](const kube::Delta<api::EnergyPolicy>& delta) {
    // A status of our own making is no news.
    if (delta.type == kube::Delta<api::EnergyPolicy>::Type::updated &&
        delta.old->meta.generation == delta.now->meta.generation &&
        delta.old->meta.finalizers == delta.now->meta.finalizers &&
        delta.old->meta.deletion_timestamp == delta.now->meta.deletion_timestamp) {
      return;
    }
    want_pass();
    job_queue->changed();
  });
  informers->pods().subscribe([this](const PodDelta& delta) {
    job_queue->pod_changed(delta);
    const auto& pod = delta.now ? delta.now : delta.old;
    if (pod && !pod->node_name.empty() && counts_for_estimates(delta)) {
      estimator->cluster_changed();
    }
    if (delta.type == PodDelta::Type::deleted) {
      migrations.gone(*delta.old);
      if (!delta.old->node_name.empty()) machine_loop->enqueue(delta.old->node_name);
      return;
    }
    if (!delta.now) return;
    if (!delta.now->node_name.empty()) {
      migrations.bound(*delta.now);
      if (!delta.old || delta.old->node_name.empty()) {
        machine_loop->enqueue(delta.now->node_name,
                              delta.initial ? kube::kPriorityLow : kube::kPriorityNormal);
        if (!delta.initial && slow_or_capped(delta.now->node_name)) want_pass();
      }
    } else if (delta.now->scheduled == api::PodScheduled::unschedulable) {
      want_pass();
    }
  });
}

net::Task<void> Program::Impl::passes() {
  passes_running = true;
  while (!stopping && !lost) {
    pass_wanted = false;
    const MonotonicPoint started = clock.monotonic();
    Duration due = kPassGap;
    try {
      due = co_await pass->run_once();
    } catch (const std::exception& error) {
      // A bug must not end the loop; the next pass starts from the API again.
      log::error("a pass failed", {{"error", error.what()}});
      metrics.add("kwatt_pass_failures_total", "Passes ended by an exception.", {});
    }
    const auto took = std::chrono::ceil<Duration>(clock.monotonic() - started);
    if (stopping || lost) break;
    co_await net::sleep(kPassGap);
    // Nobody is told twice: what came during the sleep must not be waited for.
    if (stopping || lost) break;
    if (!pass_wanted && due > took + kPassGap) {
      co_await pass_signal.wait_for(due - took - kPassGap);
    }
  }
  passes_running = false;
  pass_ended.notify_all();
}

net::Task<void> Program::Impl::wait_for_end() {
  while (!stopping && !lost) co_await end_signal.wait_for(std::chrono::hours{1});
}

void Program::Impl::begin_stop() {
  stopping = true;
  pass_signal.notify_all();
  end_signal.notify_all();
}

void Program::Impl::watch_signals(asio::signal_set& signals) {
  signals.async_wait([this, &signals](const boost::system::error_code& error, int number) {
    if (error) return;
    if (stopping) {
      log::warn("second signal: stopping at once", {{"signal", number}});
      std::_Exit(1);
    }
    log::info("stopping", {{"signal", number}});
    begin_stop();
    watch_signals(signals);
  });
}

// The reverse of the start: deciders, workers, lease, servers. The caches end with the context.
net::Task<void> Program::Impl::stop() {
  job_queue->stop();
  while (passes_running) co_await pass_ended.wait_for(options.shutdown_grace);
  co_await machine_loop->stop();
  co_await estimator->stop(options.shutdown_grace);
  co_await sites->stop();
  co_await drivers->close();
  events->stop();
  if (!lost) co_await election->release();
  if (extender) co_await extender->stop(options.shutdown_grace);
  if (ingest_server) co_await ingest_server->stop(options.shutdown_grace);
  co_await health_server->stop(options.shutdown_grace);
  history_feed->energy(pass->take_energy());
}

net::Task<int> Program::Impl::run() {
  using namespace asio::experimental::awaitable_operators;
  const auto executor = context.get_executor();
  if (auto built = construct(); !built) {
    log::error("cannot start", {{"error", built.error()}});
    co_return 1;
  }
  asio::signal_set signals(executor, SIGTERM, SIGINT);
  watch_signals(signals);
  if (auto started = start_servers(); !started) {
    log::error("cannot start", {{"error", started.error()}});
    co_return 1;
  }
  informers->start(executor);
  other_kinds->start(executor);
  sites->start(executor);
  job_queue->start(executor);
  asio::co_spawn(executor, events->run(), asio::detached);
  // Filling takes long where the API server does not answer; a stop is not to wait for it.
  const auto filled = co_await (informers->wait_until_ready(kStoresTimeout) || wait_for_end());
  if (stopping) {
    co_await stop();
    log::info("stopped");
    co_return 0;
  }
  if (const auto& ready = std::get<0>(filled); !ready) {
    log::error("the caches did not fill", {{"error", ready.error()}});
    co_return 1;
  }
  subscribe();
  asio::co_spawn(executor, history_feed->run([this] { return pass->take_energy(); }),
                 asio::detached);
  telemetry_poll->start(executor);
  estimator->start();
  prediction_poll->start();
  log::info("caches filled", {{"nodes", view->stores().nodes.size()},
                              {"pods", view->stores().pods.size()},
                              {"policies", view->stores().policies.size()}});
  asio::co_spawn(executor,
                 election->run(
                     [this, executor] {
                       log::info("leading");
                       asio::co_spawn(executor, machine_loop->run(), asio::detached);
                       asio::co_spawn(executor, passes(), asio::detached);
                       sites->lead(executor);
                       job_queue->lead(executor);
                       informers->stores().nodes.for_each(
                           [this](const auto& node) { machine_loop->enqueue(node->meta.name); });
                     },
                     [this] {
                       log::error("leader election lost: nothing more is started");
                       lost = true;
                       pass_signal.notify_all();
                       end_signal.notify_all();
                     }),
                 asio::detached);
  co_await wait_for_end();
  signals.cancel();
  if (lost) co_return 1;
  co_await stop();
  log::info("stopped");
  co_return 0;
}

Program::Program(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Program::~Program() = default;

int Program::run() {
  Impl& self = *impl_;
  int status = 1;
  asio::co_spawn(self.context.get_executor(), self.run(),
                 [&](const std::exception_ptr& error, int code) {
                   if (!error) status = code;
                   // Whatever still waits (watches, timers) ends with the Impl.
                   self.context.stop();
                   if (error) std::rethrow_exception(error);
                 });
  try {
    self.context.run();
  } catch (const std::exception& error) {
    log::error("the controller failed", {{"error", error.what()}});
    return 1;
  }
  return status;
}

void Program::stop() {
  asio::post(impl_->context.get_executor(), [self = impl_.get()] { self->begin_stop(); });
}

}  // namespace kwatt::controller
