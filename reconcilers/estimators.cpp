#include "reconcilers/estimators.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "api/encode.hpp"
#include "base/log.hpp"
#include "kube/indexes.hpp"
#include "reconcilers/estimator_room.hpp"
#include "reconcilers/in_parallel.hpp"

namespace kwatt::reconcilers {
namespace {

using telemetry::NodeState;
using telemetry::PredictionPoint;

constexpr const char* kFieldManager = "kwatt-controller-status";
// Watts and room alone are written no more often than this.
constexpr Duration kStatusRefresh = std::chrono::minutes{5};
// A prediction that could not be made anew counts so long, or ten intervals if that is longer.
constexpr Duration kStale = std::chrono::minutes{5};
constexpr Duration kShortestPause = std::chrono::milliseconds{200};
// Power is predicted at 0, 5, … 100 % of the node's CPU on top, and taken as linear between.
constexpr std::int64_t kSteps = 20;
constexpr std::size_t kNodesInABatch = 32;
constexpr std::size_t kAtOnce = 16;
constexpr std::size_t kKeptPredictors = 1'000;

constexpr std::string_view kKwattPrefix = "kwatt:", kWaoPrefix = "wao:";

bool over_network(const api::PowerConsumptionPredictor& predictor) {
  return predictor.type == "MLServer" || predictor.type == "TFServing";
}
bool over_network(const api::NodeMonitorAgent& agent) {
  return agent.type == "DifferentialPressureAPI" || agent.type == "IPMIExporter" ||
         agent.type == "Redfish";
}

// What is known of one machine, from refresh to refresh.
struct Machine {
  api::NodeConfig config;
  std::optional<TimePoint> looked_at;      // the last refresh
  std::optional<TimePoint> predicted_at;   // of `draw`
  std::vector<placement::DrawPoint> draw;  // the last good prediction
  std::string reason, message;             // why there is none that counts
  bool predictor_failed = false;
};

// One machine in a refresh. Owned by the refresh alone.
struct Job {
  std::string node;
  api::NodeConfig config;
  std::shared_ptr<const api::Node> object;
  PredictionPoint base;  // at nothing on top
  NodeState state;       // as the agents told it
  std::string reason, message;
  bool predictor_failed = false;
  std::vector<placement::DrawPoint> draw;

  void refuse(std::string word, std::string sentence) {
    reason = std::move(word);
    message = std::move(sentence);
  }
};

std::vector<PredictionPoint> points_of(const Job& job) {
  std::vector<PredictionPoint> points;
  const std::int64_t most = std::max<std::int64_t>(1, job.object->allocatable.cpu.count());
  std::int64_t before = -1;
  for (std::int64_t step = 0; step <= kSteps; ++step) {
    const std::int64_t extra = most * step / kSteps;
    if (extra == before) continue;  // fewer millicores than steps
    before = extra;
    points.push_back(job.base);
    points.back().extra = Millicores{extra};
  }
  return points;
}

void take(Job& job, const std::vector<PredictionPoint>& points,
          const std::vector<Milliwatts>& watts, std::size_t first) {
  std::vector<placement::DrawPoint> draw;
  for (std::size_t i = 0; i < points.size(); ++i) {
    draw.push_back({points[i].extra, watts[first + i]});
  }
  job.draw = placement::without_needless(draw);
}

void predict_locally(Job& job, const telemetry::LocalPower& power) {
  const auto points = points_of(job);
  std::vector<Milliwatts> watts;
  for (const PredictionPoint& point : points) {
    auto one = power(point);
    if (!one) {
      job.predictor_failed = true;
      return job.refuse("PredictorFailed", one.error().text());
    }
    watts.push_back(*one);
  }
  take(job, points, watts, 0);
}

void predict_fake(Job& job) {
  auto fake = telemetry::fake_power(job.object->meta.labels);
  if (!fake) {
    job.predictor_failed = true;
    return job.refuse("PredictorFailed", fake.error().text());
  }
  predict_locally(job, [power = *fake](const PredictionPoint& point) -> Result<Milliwatts> {
    return Milliwatts{power.base.count() + point.extra.count() * power.per_core.count() / 1000};
  });
}

}  // namespace

struct Estimators::Impl : std::enable_shared_from_this<Estimators::Impl> {
  explicit Impl(EstimatorsDependencies given)
      : on(std::move(given)), agents(on.executor, on.predictors.allowed) {}

  struct State {
    std::map<std::string, Machine> machines;
    std::optional<api::EstimatorStatus> written;  // by us, the last time
    std::string written_problem;                  // logged once
    bool published = false;
  };
  using Predictors = std::map<std::string, std::shared_ptr<telemetry::Predictor>>;

  EstimatorsDependencies on;
  telemetry::StateAgents agents;
  std::map<std::string, std::shared_ptr<State>> states;
  Predictors predictors;  // by type and endpoint

  static std::pair<bool, std::string> split(const std::string& key) {
    const bool wao = key.starts_with(kWaoPrefix);
    return {wao, key.substr(wao ? kWaoPrefix.size() : kKwattPrefix.size())};
  }
  std::shared_ptr<const api::Estimator> find(const std::string& key) const {
    const auto [wao, name] = split(key);
    return (wao ? on.estimators.wao : on.estimators.kwatt).get(name);
  }

  void check(const api::Estimator& estimator, bool wao, EstimatorResult& result) const;
  Duration plan(const api::Estimator& estimator, State& state, bool accepted,
                std::vector<std::shared_ptr<Job>>& due) const;
  void see(Job& job) const;
  kube::Task<void> ask_agents(std::vector<std::shared_ptr<Job>> jobs);
  kube::Task<void> predict(std::vector<std::shared_ptr<Job>> jobs);
  kube::Task<void> predict_batch(std::vector<std::shared_ptr<Job>> batch);
  Result<std::shared_ptr<telemetry::Predictor>> predictor_for(
      const api::PowerConsumptionPredictor& wanted);
  void settle(State& state, const std::vector<std::shared_ptr<Job>>& jobs) const;
  void collect(const State& state, EstimatorResult& result) const;
  kube::Task<void> write_status(std::string key, std::shared_ptr<const api::Estimator> estimator,
                                std::shared_ptr<State> state, EstimatorResult result);
  kube::Task<Result<kube::ReconcileResult>> reconcile(std::string key);
};

// What is wrong with the object as a whole.
void Estimators::Impl::check(const api::Estimator& estimator, bool wao,
                             EstimatorResult& result) const {
  result.problems = api::validate(estimator.spec);
  result.problem_reason = "Invalid";
  if (!result.problems.empty()) return;
  const std::string name = estimator.meta.namespace_name + "/" + estimator.meta.name;
  if (wao && on.estimators.kwatt.get(name) != nullptr) {
    result.problem_reason = "Conflict";
    result.problems.push_back(
        "an Estimator of kwatt.dev has the same namespace and name; it counts");
    return;
  }
  std::set<std::string> refused;
  const auto ask = [&](const std::string& endpoint) {
    const auto url = net::parse_url(endpoint);
    if (!url) {
      refused.insert(url.error().message);
    } else if (!on.predictors.allowed.may(url->origin.host, url->origin.tls)) {
      refused.insert(
          fmt::format("{}: {} is not allowed; --endpoint-allow of the controller allows it",
                      endpoint, url->origin.host));
    }
  };
  const auto look = [&](const api::NodeConfig& config) {
    for (const auto& agent : config.node_monitor.agents) {
      if (over_network(agent)) ask(agent.endpoint);
    }
    if (over_network(config.power_consumption_predictor)) {
      ask(config.power_consumption_predictor.endpoint);
    }
  };
  look(api::config_of(estimator.spec, ""));
  for (const auto& entry : estimator.spec.node_config_overrides) {
    look(api::config_of(estimator.spec, entry.first));
  }
  if (refused.empty()) return;
  // Machines whose endpoints are allowed are served all the same.
  result.problem_reason = "EndpointNotAllowed";
  result.problems.assign(refused.begin(), refused.end());
}

// The machines that must be looked at now, and when the next ones must be.
Duration Estimators::Impl::plan(const api::Estimator& estimator, State& state, bool accepted,
                                std::vector<std::shared_ptr<Job>>& due) const {
  const TimePoint now = on.clock.now();
  Duration next = std::chrono::hours{1};
  std::set<std::string> present;
  on.stores.nodes.for_each([&](const std::shared_ptr<const api::Node>& node) {
    const std::string& name = node->meta.name;
    present.insert(name);
    if (!accepted) return;
    Machine& machine = state.machines[name];
    api::NodeConfig config = api::config_of(estimator.spec, name);
    const Duration refresh = api::refresh_of(config);
    // Labels tell the fake ones what to say, so these cost nothing and are asked whenever we look.
    const bool changed = machine.config != config || !machine.looked_at;
    const bool fake =
        config.power_consumption_predictor.type == "Fake" &&
        std::none_of(config.node_monitor.agents.begin(), config.node_monitor.agents.end(),
                     [](const auto& agent) { return over_network(agent); });
    if (changed) machine = Machine{};
    machine.config = config;
    if (changed || fake || now - *machine.looked_at >= refresh) {
      auto job = std::make_shared<Job>();
      job->node = name;
      job->config = std::move(config);
      job->object = node;
      due.push_back(std::move(job));
      next = std::min(next, refresh);
    } else {
      next = std::min(next, *machine.looked_at + refresh - now);
    }
  });
  std::erase_if(state.machines,
                [&](const auto& entry) { return !accepted || !present.contains(entry.first); });
  return std::max(next, kShortestPause);
}

// What can be told without asking anybody.
void Estimators::Impl::see(Job& job) const {
  NodeState told;
  const auto readings = on.samples.samples(job.node);
  std::optional<double> measured;
  for (const telemetry::Reading& reading : readings) {
    if (reading.has_utilization && on.clock.now() <= reading.utilization_until) {
      measured = static_cast<double>(reading.busy.count()) / 1000.0;
    }
  }
  for (const api::NodeMonitorAgent& agent : job.config.node_monitor.agents) {
    if (agent.type == "Fake") {
      auto fake = telemetry::fake_state(job.object->meta.labels);
      if (!fake) return job.refuse("AgentFailed", fake.error().text());
      telemetry::lay_over(told, *fake);
    }
    if (agent.type == "MetricsAPI" || agent.type == "Agent") {
      if (!measured) {
        return job.refuse("NoTelemetry",
                          agent.type == "Agent"
                              ? "kwatt's agent has pushed no CPU utilization lately"
                              : "no CPU utilization from metrics.k8s.io; is --metrics-api on?");
      }
      told.cpu_usage = measured;
    }
  }
  telemetry::lay_over(told, job.state);
  PredictionPoint& base = job.base;
  base.logical_processors = processors_of(*job.object);
  const double all = static_cast<double>(base.logical_processors) * 1000;
  // Nobody was named who could tell: what is known anyway, else what the pods have asked for.
  if (!told.cpu_usage) told.cpu_usage = measured;
  if (told.cpu_usage) {
    base.used = Millicores{std::llround(*told.cpu_usage * all)};
  } else {
    base.used = requested_by(on.stores.pods.by_index(kube::kPodsByNode, job.node));
  }
  base.ambient_celsius = told.ambient_celsius;
  base.cpu1_celsius = told.cpu1_celsius;
  base.cpu2_celsius = told.cpu2_celsius;
  base.static_pressure_pascal = told.static_pressure_pascal;
  if (auto ranges = telemetry::read_ranges(job.object->meta.labels, base); !ranges) {
    job.refuse("AgentFailed", ranges.error().text());
  }
}

// Each endpoint once, however many machines share it.
kube::Task<void> Estimators::Impl::ask_agents(std::vector<std::shared_ptr<Job>> jobs) {
  using Answers = std::map<std::pair<std::string, std::string>, Result<NodeState>>;
  const auto answers = std::make_shared<Answers>();
  for (const auto& job : jobs) {
    for (const auto& agent : job->config.node_monitor.agents) {
      if (!over_network(agent)) continue;
      answers->try_emplace(std::pair{agent.type, agent.endpoint},
                           fail(ErrorCode::unavailable, "not asked"));
    }
  }
  if (answers->empty()) co_return;
  std::vector<Answers::iterator> each;
  for (auto it = answers->begin(); it != answers->end(); ++it) each.push_back(it);
  const std::size_t count = each.size();
  std::function<kube::Task<void>(std::size_t)> ask = [self = shared_from_this(), answers,
                                                      each](std::size_t index) -> kube::Task<void> {
    const std::string type = each[index]->first.first, endpoint = each[index]->first.second;
    auto told = co_await self->agents.ask(type, endpoint);
    each[index]->second = std::move(told);
  };
  co_await in_parallel(count, kAtOnce, std::move(ask));
  for (const auto& job : jobs) {
    for (const auto& agent : job->config.node_monitor.agents) {
      const auto answer = answers->find(std::pair{agent.type, agent.endpoint});
      if (answer == answers->end()) continue;
      if (!answer->second) {
        job->refuse("AgentFailed", answer->second.error().text());
      } else {
        telemetry::lay_over(job->state, *answer->second);
      }
    }
  }
}

Result<std::shared_ptr<telemetry::Predictor>> Estimators::Impl::predictor_for(
    const api::PowerConsumptionPredictor& wanted) {
  // Objects come and go; those under way hold their own.
  if (predictors.size() > kKeptPredictors) predictors.clear();
  std::shared_ptr<telemetry::Predictor>& known = predictors[wanted.type + " " + wanted.endpoint];
  if (known != nullptr) return known;
  auto made = wanted.type == "MLServer"
                  ? telemetry::make_mlserver(on.executor, wanted.endpoint, on.predictors)
                  : telemetry::make_tf_serving(on.executor, wanted.endpoint, "", on.predictors);
  if (!made) {
    predictors.erase(wanted.type + " " + wanted.endpoint);
    return made.error();
  }
  known = std::move(*made);
  return known;
}

// Machines that share a predictor. When it refuses them together, because of one of them or what it
// says of one, each is asked about alone.
kube::Task<void> Estimators::Impl::predict_batch(std::vector<std::shared_ptr<Job>> batch) {
  auto predictor = predictor_for(batch.front()->config.power_consumption_predictor);
  std::vector<PredictionPoint> all;
  for (const auto& job : batch) {
    const auto points = points_of(*job);
    all.insert(all.end(), points.begin(), points.end());
  }
  Result<std::vector<Milliwatts>> watts = fail(ErrorCode::unavailable, "not asked");
  if (predictor) {
    watts = co_await (*predictor)->predict(std::move(all));
  } else {
    watts = predictor.error();
  }
  if (watts) {
    std::size_t first = 0;
    for (const auto& job : batch) {
      const auto points = points_of(*job);
      take(*job, points, *watts, first);
      first += points.size();
    }
    co_return;
  }
  const Error error = watts.error();
  const bool of_one = error.code == ErrorCode::invalid_argument ||
                      error.code == ErrorCode::out_of_range || error.code == ErrorCode::parse;
  if (of_one && batch.size() > 1) {
    for (const auto& job : batch) {
      std::vector<std::shared_ptr<Job>> alone{job};
      co_await predict_batch(std::move(alone));
    }
    co_return;
  }
  for (const auto& job : batch) {
    job->predictor_failed = true;
    job->refuse("PredictorFailed", error.text());
  }
}

kube::Task<void> Estimators::Impl::predict(std::vector<std::shared_ptr<Job>> jobs) {
  std::map<std::string, std::vector<std::vector<std::shared_ptr<Job>>>> by_predictor;
  for (const auto& job : jobs) {
    if (!job->reason.empty()) continue;
    const auto& predictor = job->config.power_consumption_predictor;
    if (predictor.type == "None") {
      job->refuse("NoPredictor", "powerConsumptionPredictor is None");
    } else if (predictor.type == "Fake") {
      predict_fake(*job);
    } else if (predictor.type == "Model") {
      const telemetry::LocalPower power = on.model ? on.model(job->node) : telemetry::LocalPower();
      if (power) {
        predict_locally(*job, power);
      } else {
        job->refuse("NoPredictor", "kwatt has no model of this machine");
      }
    } else {
      auto& batches = by_predictor[predictor.type + " " + predictor.endpoint];
      if (batches.empty() || batches.back().size() == kNodesInABatch) batches.emplace_back();
      batches.back().push_back(job);
    }
  }
  const auto batches = std::make_shared<std::vector<std::vector<std::shared_ptr<Job>>>>();
  for (auto& entry : by_predictor) {
    for (auto& batch : entry.second) batches->push_back(std::move(batch));
  }
  if (batches->empty()) co_return;
  const std::size_t count = batches->size();
  std::function<kube::Task<void>(std::size_t)> work =
      [self = shared_from_this(), batches](std::size_t index) -> kube::Task<void> {
    co_await self->predict_batch((*batches)[index]);
  };
  co_await in_parallel(count, kAtOnce, std::move(work));
}

// What a refresh found out becomes what is known. An old prediction outlives a failure for a while.
void Estimators::Impl::settle(State& state, const std::vector<std::shared_ptr<Job>>& jobs) const {
  const TimePoint now = on.clock.now();
  for (const auto& job : jobs) {
    const auto found = state.machines.find(job->node);
    if (found == state.machines.end()) continue;
    Machine& machine = found->second;
    machine.looked_at = now;
    machine.predictor_failed = job->predictor_failed;
    machine.reason = job->reason;
    machine.message = job->message;
    if (job->reason.empty()) {
      machine.draw = job->draw;
      machine.predicted_at = now;
      continue;
    }
    const Duration keep = std::max(kStale, 10 * api::refresh_of(job->config));
    const bool transient = job->reason == "PredictorFailed" || job->reason == "AgentFailed" ||
                           job->reason == "NoTelemetry";
    if (!transient || !machine.predicted_at || now - *machine.predicted_at > keep) {
      machine.draw.clear();
      machine.predicted_at.reset();
    }
  }
}

void Estimators::Impl::collect(const State& state, EstimatorResult& result) const {
  on.stores.nodes.for_each([&](const std::shared_ptr<const api::Node>& node) {
    const std::string& name = node->meta.name;
    EstimatorOutcome outcome;
    EstimatorRoom room = estimator_room(*node, on.stores.pods.by_index(kube::kPodsByNode, name));
    outcome.node.name = name;
    outcome.node.free = room.free;
    outcome.node.free_pods = room.free_pods;
    const auto machine = state.machines.find(name);
    if (!room.reason.empty()) {
      outcome.reason = std::move(room.reason);
      outcome.message = std::move(room.message);
    } else if (machine == state.machines.end()) {
      outcome.reason = "NotAccepted";
      outcome.message = "see the condition Accepted";
    } else if (machine->second.draw.empty()) {
      outcome.reason = machine->second.reason;
      outcome.message = machine->second.message;
    } else {
      outcome.node.draw = machine->second.draw;
    }
    if (machine != state.machines.end()) {
      outcome.predictor_failed = machine->second.predictor_failed;
      outcome.predictor_error = machine->second.message;
    }
    result.nodes.push_back(std::move(outcome));
  });
}

kube::Task<void> Estimators::Impl::write_status(std::string key,
                                                std::shared_ptr<const api::Estimator> estimator,
                                                std::shared_ptr<State> state,
                                                EstimatorResult result) {
  if (!on.may_write()) co_return;
  api::Estimator base = *estimator;
  if (state->written) base.status.conditions = state->written->conditions;
  const api::EstimatorStatus next = estimator_status(base, result, on.clock.now());
  const api::EstimatorStatus& last = state->written ? *state->written : estimator->status;
  if (!worth_writing(last, next, kStatusRefresh)) co_return;
  const bool wao = split(key).first;
  const kube::Resource& resource =
      wao ? kube::resources::wao_estimators() : kube::resources::estimators();
  // Without a resourceVersion: the status is ours alone.
  api::ObjectMeta meta = estimator->meta;
  meta.resource_version.clear();
  const std::string body =
      api::apply_status(wao ? api::kWaoApiVersion : api::kKwattApiVersion, meta, next);
  const kube::Name name(estimator->meta.namespace_name, estimator->meta.name);
  auto answer = co_await on.client.patch(resource, name, kube::Client::PatchType::apply,
                                         kFieldManager, "status", body);
  // Either way: what cannot be written (WAO's own CRD has no such fields) is not tried every time.
  state->written = next;
  if (answer || answer.error().code == ErrorCode::not_found) {
    state->written_problem.clear();
  } else if (state->written_problem != answer.error().message) {
    state->written_problem = answer.error().message;
    log::warn("status of an estimator not written",
              {{"estimator", key}, {"error", answer.error()}});
    if (answer.error().transient()) state->written.reset();
  }
}

kube::Task<Result<kube::ReconcileResult>> Estimators::Impl::reconcile(std::string key) {
  const auto [wao, name] = split(key);
  std::shared_ptr<const api::Estimator> estimator = find(key);
  if (estimator == nullptr) {
    states.erase(key);
    // A namesake of the other group may have the page now.
    const bool other = (wao ? on.estimators.kwatt : on.estimators.wao).get(name) != nullptr;
    if (!other) on.withdraw(name);
    co_return kube::ReconcileResult{};
  }
  std::shared_ptr<State>& known = states[key];
  if (known == nullptr) known = std::make_shared<State>();
  const std::shared_ptr<State> state = known;
  if (state->written && state->written->observed_generation != estimator->meta.generation) {
    state->written_problem.clear();
  }

  EstimatorResult result;
  check(*estimator, wao, result);
  const bool conflict = result.problem_reason == "Conflict" && !result.problems.empty();
  const bool accepted = result.problems.empty() || result.problem_reason == "EndpointNotAllowed";
  std::vector<std::shared_ptr<Job>> due;
  const Duration next = plan(*estimator, *state, accepted, due);
  if (!due.empty()) {
    co_await ask_agents(due);
    for (const auto& job : due) {
      if (job->reason.empty()) see(*job);
    }
    co_await predict(due);
    settle(*state, due);
  }
  collect(*state, result);
  if (!conflict) {
    placement::EstimatorNodes nodes;
    for (const EstimatorOutcome& outcome : result.nodes) nodes.nodes.push_back(outcome.node);
    on.publish(name, std::move(nodes));
  }
  co_await write_status(key, estimator, state, std::move(result));
  kube::ReconcileResult done;
  done.requeue_after = next;
  co_return done;
}

Estimators::Estimators(EstimatorsDependencies dependencies)
    : impl_(std::make_shared<Impl>(std::move(dependencies))) {}
Estimators::~Estimators() = default;

kube::Task<Result<kube::ReconcileResult>> Estimators::reconcile(std::string key) {
  return impl_->reconcile(std::move(key));
}

std::string Estimators::key_of(const api::Estimator& estimator, bool wao) {
  return fmt::format("{}{}/{}", wao ? kWaoPrefix : kKwattPrefix, estimator.meta.namespace_name,
                     estimator.meta.name);
}

}  // namespace kwatt::reconcilers
