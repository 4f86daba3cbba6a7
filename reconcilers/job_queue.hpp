#pragma once
// The live job queue: asks planner/queue who passes the gate, and takes it off. All it needs to
// know is in the API (pods, their annotations and times, policies), so a restart loses nothing; a
// gang whose release was cut off is finished first of all.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "kube/events.hpp"
#include "net/run.hpp"
#include "planner/queue/gate.hpp"
#include "reconcilers/cluster_view.hpp"
#include "reconcilers/effects.hpp"

namespace kwatt::reconcilers {

// One pod that passed the gate, for the history and the schedule.
struct QueueRelease {
  TimePoint at;
  std::string job;   // NAMESPACE/NAME of the pod
  std::string node;  // the strategy's choice, "" none
  std::string queue, strategy, why, sentence;
  double grams_per_kwh = -1;  // negative: not known
};

struct JobQueueOptions {
  Duration interval = std::chrono::seconds{10};  // looks again so often, whatever happens
  // Pods whose annotation is brought up to date in one pass; the others follow.
  std::size_t annotations = 100;
};

// Single-threaded, on the controller's strand. Dependencies outlive it.
class JobQueue {
 public:
  JobQueue(kube::Client& client, ClusterView& view, planner::queue::OutlookOf outlook,
           kube::EventRecorder& events, Metrics& metrics, Fence fence,
           std::function<void(const QueueRelease&)> released, JobQueueOptions options = {});

  // Decides and releases, once; one at a time, others wait for their turn. The decision says what
  // was meant; a pod that could not be released is tried again by the next pass.
  // Errors: unavailable: the caches cannot be relied on, or the fence is closed.
  kube::Task<Result<std::vector<planner::queue::Decided>>> pass(bool release_all);
  // What pass() would decide, without doing it. On every replica. Errors: unavailable.
  Result<std::vector<planner::queue::Decided>> preview();

  // Passes until stop(): after changes, when a start that was waited for has come, and now and
  // then.
  kube::Task<void> run();
  void changed();  // something that the decision is made from
  void stop();

 private:
  bool forget_seen();
  kube::Task<bool> release(const planner::queue::Decided& one, std::size_t member);
  kube::Task<void> say_why(const std::vector<planner::queue::Decided>& all);
  void note(const planner::queue::Decided& one, const api::Pod& pod);
  Result<planner::queue::GateQuestion> question(bool release_all);

  kube::Client& client_;
  ClusterView& view_;
  planner::queue::OutlookOf outlook_;
  kube::EventRecorder& events_;
  Metrics& metrics_;
  Fence fence_;
  std::function<void(const QueueRelease&)> released_listener_;
  JobQueueOptions options_;
  planner::queue::Released released_;  // until the cache has seen it
  std::set<std::string> not_ours_;     // uids of pods with the label but another gate
  std::map<std::pair<std::string, std::string>, double> waiting_;  // queue and reason: as told
  net::Signal wake_, turn_;
  bool wanted_ = false, stopping_ = false, busy_ = false;
  TimePoint look_again_ = TimePoint::max();
};

}  // namespace kwatt::reconcilers
