#pragma once
// Keeps the machines of every Estimator up to date: asks agents and predictors at each one's own
// interval, looks at the room as pods come and go, hands the outcome to the server, and writes the
// status. Runs on every replica, because every replica serves; only the leader writes.
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/estimator.hpp"
#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "kube/controller_loop.hpp"
#include "net/allow_list.hpp"
#include "reconcilers/estimator_status.hpp"
#include "reconcilers/stores.hpp"
#include "telemetry/node_state.hpp"
#include "telemetry/predictor.hpp"
#include "telemetry/sample_store.hpp"

namespace kwatt::reconcilers {

// The two kinds; empty where the API server does not have one.
struct EstimatorStores {
  const kube::Store<api::Estimator>& kwatt;
  const kube::Store<api::Estimator>& wao;
};

struct EstimatorsDependencies {
  boost::asio::any_io_executor executor;
  kube::Client& client;
  EstimatorStores estimators;
  const Stores& stores;  // nodes and pods
  const telemetry::SampleStore& samples;
  const Clock& clock;
  Metrics& metrics;
  telemetry::PredictorSettings predictors = {};  // and the allow-list of agents
  // kwatt's own model of a node; an empty function: there is none.
  std::function<telemetry::LocalPower(const std::string& node)> model = {};
  std::function<bool()> may_write = [] { return false; };
  std::function<void(const std::string& key, placement::EstimatorNodes nodes)> publish = {};
  std::function<void(const std::string& key)> withdraw = {};
};

class Estimators {
 public:
  explicit Estimators(EstimatorsDependencies dependencies);
  ~Estimators();

  // Keys are those of key_of(). Never the same twice at once.
  kube::Task<Result<kube::ReconcileResult>> reconcile(std::string key);

  static std::string key_of(const api::Estimator& estimator, bool wao);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kwatt::reconcilers
