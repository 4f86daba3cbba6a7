#pragma once
// The estimator of a controller: watches both kinds of Estimator where the API server has them,
// keeps their machines up to date, and serves the HTTP API.
#include <memory>

#include "controller/options.hpp"
#include "kube/client.hpp"
#include "reconcilers/estimators.hpp"

namespace kwatt::controller {

struct EstimatorServiceDependencies {
  boost::asio::any_io_executor executor;
  kube::Client& client;
  const reconcilers::Stores& stores;
  const telemetry::SampleStore& samples;
  const Clock& clock;
  Metrics& metrics;
  std::function<telemetry::LocalPower(const std::string& node)> model;
  std::function<bool()> may_write;
};

class EstimatorService {
 public:
  // All dependencies outlive it.
  EstimatorService(EstimatorServiceDependencies dependencies, const Options& options);
  ~EstimatorService();

  // Listens. Errors: io, invalid_argument, parse (the file of API keys).
  Result<void> start_server();
  // Watches and works in the background, once the other caches are filled.
  void start();
  // A Node or a bound pod came, changed or went: estimates are made anew soon.
  void cluster_changed();
  // Ends what runs, in order.
  net::Task<void> stop(Duration grace);
  // Ends the thread, too; before the coroutines that wait are destroyed.
  void stop_thread();
  void close_server();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
