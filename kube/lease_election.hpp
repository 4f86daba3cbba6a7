#pragma once
// Leader election: drives kube/lease_fsm.hpp with the client, a watch on the Lease and timers.
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "kube/lease_fsm.hpp"

namespace kwatt::kube {

// A name nobody else has: host name, '_' and 128 random bits.
std::string make_identity();

class LeaseElection {
 public:
  // `client`, `clock` and `metrics` outlive it. `lease` is created if it does not exist.
  // The options must pass check().
  LeaseElection(boost::asio::any_io_executor executor, Client& client, Name lease,
                LeaseOptions options, const Clock& clock, Metrics& metrics);
  ~LeaseElection();
  LeaseElection(const LeaseElection&) = delete;
  LeaseElection& operator=(const LeaseElection&) = delete;

  // Competes, then renews. `on_started` is called once when we lead; `on_lost` at once when the
  // renew deadline has passed or somebody else holds the lease: nothing may be started any more
  // and the process should exit with a failure. Returns after on_lost, or after release().
  // Cancelled: stops renewing without releasing; ends with operation_aborted.
  Task<void> run(std::function<void()> on_started, std::function<void()> on_lost);

  // Orderly stop, after all workers have stopped: lets the next one take over at once. Returns when
  // run() is about to return. Also ends the competition of a follower.
  Task<void> release();

  // Safe from any thread. True only while the lease, judged by our clock, cannot be anybody else's.
  bool leading() const;
  // When our last successful renewal runs out: start no operation that may last beyond it.
  MonotonicPoint lease_expires() const;
  // Who leads, as far as we know.
  std::string leader() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kwatt::kube
