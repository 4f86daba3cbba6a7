#pragma once
// Kubernetes Events (events.k8s.io/v1): "kubectl describe" shows them. Aggregated, rate limited,
// written in the background: recording never waits and never fails the decision it tells of.
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "base/metrics.hpp"
#include "kube/client.hpp"
#include "kube/event_correlator.hpp"

namespace kwatt::kube {

struct EventRecorderOptions {
  std::string controller = "kwatt.dev/controller";  // reportingController
  std::string instance;                             // reportingInstance, e.g. the pod's name
  std::size_t queue_limit = 1000;                   // more than that waiting: dropped and counted
  EventLimits limits{};
};

class EventRecorder {
 public:
  // `client`, `clock` and `metrics` outlive it.
  EventRecorder(boost::asio::any_io_executor executor, Client& client, EventRecorderOptions options,
                const Clock& clock, Metrics& metrics);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Queues the event and returns; from any thread.
  void record(EventNote note);

  // Writes what is queued, until cancelled (ends with operation_aborted) or stop(): then it returns
  // after the last queued event was tried once.
  Task<void> run();
  void stop();  // from any thread

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kwatt::kube
