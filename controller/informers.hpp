#pragma once
// All informers of the controller, and the stores behind them.
#include <memory>
#include <vector>

#include "api/core.hpp"
#include "api/energy_policy.hpp"
#include "api/node_power.hpp"
#include "kube/informer.hpp"
#include "reconcilers/stores.hpp"

namespace kwatt::controller {

class Informers {
 public:
  Informers(kube::Client& client, const Clock& clock, Metrics& metrics);
  ~Informers();

  // Starts listing and watching everything, in the background, until the executor ends.
  void start(boost::asio::any_io_executor executor);
  // All stores filled once. Errors: timeout, naming those that are not.
  kube::Task<Result<void>> wait_until_ready(Duration timeout);

  const reconcilers::Stores& stores() const;

  // Subscriptions need the stores themselves.
  kube::Store<api::EnergyPolicy>& policies();
  kube::Store<api::NodePower>& machines();
  kube::Store<api::Node>& nodes();
  kube::Store<api::Pod>& pods();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
