#pragma once
// The wiring of the job queue: carbon sources, the loop that releases, its HTTP paths, and where
// its decisions are written.
#include <memory>

#include "controller/options.hpp"
#include "reconcilers/job_queue.hpp"
#include "servers/queue.hpp"
#include "servers/routes.hpp"
#include "telemetry/carbon_state.hpp"
#include "telemetry/history.hpp"

namespace kwatt::controller {

struct JobQueueDependencies {
  kube::Client& client;
  reconcilers::ClusterView& view;
  kube::EventRecorder& events;
  Metrics& metrics;
  const Clock& clock;
  reconcilers::Fence fence;
  telemetry::History* history;  // nullptr: none is kept
};

class JobQueueService {
 public:
  // Errors: what is wrong with --carbon-sources: io, parse, forbidden, invalid_argument.
  static Result<std::unique_ptr<JobQueueService>> make(const boost::asio::any_io_executor& executor,
                                                       const Options& options,
                                                       JobQueueDependencies dependencies);
  ~JobQueueService();

  // /ingest, /queue and /dispatch; the reviewers outlive the routes.
  std::vector<servers::Route> routes(servers::TokenReviewer& tokens,
                                     servers::AccessReviewer& access);
  // Reads carbon intensities, on every replica, until the executor ends.
  void start(const boost::asio::any_io_executor& executor);
  // We lead: gates are taken off from now on.
  void lead(const boost::asio::any_io_executor& executor);
  void stop();

  // Of the stores; what cannot matter to the queue is passed over.
  void pod_changed(const kube::Delta<api::Pod>& delta);
  void changed();

  // For the condition CarbonDataAvailable of a policy with a carbon source.
  telemetry::CarbonState carbon_state(const api::CarbonSpec& carbon,
                                      const std::vector<std::string>& zones);

 private:
  struct Impl;
  explicit JobQueueService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kwatt::controller
