#include "reconcilers/job_queue.hpp"

#include <algorithm>

#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "reconcilers/pod_gate.hpp"

namespace kwatt::reconcilers {
namespace {

using planner::queue::Decided;
using planner::queue::Why;

// Two passes are never closer than this.
constexpr Duration kGap{200};

// Leaves the turn to the next, also when the pass ends by an exception.
struct Turn {
  Turn(bool& busy, net::Signal& signal) : busy_(busy), signal_(signal) { busy_ = true; }
  ~Turn() {
    busy_ = false;
    signal_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool& busy_;
  net::Signal& signal_;
};

}  // namespace

JobQueue::JobQueue(kube::Client& client, ClusterView& view, planner::queue::OutlookOf outlook,
                   kube::EventRecorder& events, Metrics& metrics, Fence fence,
                   std::function<void(const QueueRelease&)> released, JobQueueOptions options)
    : client_(client),
      view_(view),
      outlook_(std::move(outlook)),
      events_(events),
      metrics_(metrics),
      fence_(std::move(fence)),
      released_listener_(std::move(released)),
      options_(options) {}

Result<planner::queue::GateQuestion> JobQueue::question(bool release_all) {
  if (!view_.stores().ready() || !view_.sync().synced) {
    return fail(ErrorCode::unavailable, "the caches do not show the cluster as it is now");
  }
  planner::queue::GateQuestion out;
  for (const auto& policy : view_.stores().policies.snapshot()) out.policies.push_back(policy);
  out.outlook = outlook_;
  out.released = released_;
  for (const std::string& uid : not_ours_) out.released.emplace(uid, "");
  out.release_all = release_all;
  return out;
}

Result<std::vector<Decided>> JobQueue::preview() {
  auto asked = question(false);
  if (!asked) return asked.error();
  return planner::queue::decide_all(*view_.snapshot(), *asked);
}

// What the cache shows as released needs no note of ours; nor does a pod that is gone. False: no
// pod is behind any gate, so there is nothing to decide.
bool JobQueue::forget_seen() {
  std::set<std::string> gated;
  view_.stores().pods.for_each([&](const std::shared_ptr<const api::Pod>& pod) {
    if (pod->spec->scheduling_gated) gated.insert(pod->uid);
  });
  std::erase_if(released_, [&](const auto& one) { return !gated.contains(one.first); });
  std::erase_if(not_ours_, [&](const std::string& uid) { return !gated.contains(uid); });
  return !gated.empty();
}

void JobQueue::note(const Decided& one, const api::Pod& pod) {
  kube::EventNote event;
  event.regarding = {"v1", "Pod", pod.namespace_name, pod.name, pod.uid};
  event.reason = std::string(to_string(one.verdict.why));
  event.action = one.verdict.starts ? "Release" : "Hold";
  event.note = one.verdict.sentence;
  event.warning = one.verdict.why == Why::malformed || one.verdict.why == Why::never_fits ||
                  one.verdict.why == Why::no_policy;
  events_.record(std::move(event));
}

kube::Task<bool> JobQueue::release(const Decided& one, std::size_t member) {
  const auto pod = one.gated.pods[member];
  kube::Name name(pod->namespace_name, pod->name);
  auto now = co_await client_.get(kube::resources::pods(), name);
  if (!now) {
    if (now.error().code == ErrorCode::not_found) co_return true;  // the cache will say so
    log::warn("a gated pod cannot be read", {{"pod", pod->key()}, {"error", now.error()}});
    co_return false;
  }
  GateRelease release;
  release.uid = pod->uid;
  release.why = std::string(to_string(one.verdict.why));
  if (member < one.nodes.size()) release.node = one.nodes[member];
  auto body = release_body(*now, release);
  if (!body) {
    log::warn("a gated pod is not released", {{"pod", pod->key()}, {"error", body.error()}});
    co_return body.error().code == ErrorCode::conflict;
  }
  if (body->empty()) {
    not_ours_.insert(pod->uid);
    co_return true;
  }
  if (!fence_()) co_return false;
  auto patched = co_await client_.patch(kube::resources::pods(), name,
                                        kube::Client::PatchType::json, kFieldManager, "", *body);
  if (!patched) {
    metrics_.add("kwatt_queue_release_failures_total",
                 "Gates that the API server did not let be removed.", {});
    log::warn("a gated pod is not released", {{"pod", pod->key()}, {"error", patched.error()}});
    co_return patched.error().code == ErrorCode::not_found;
  }
  released_[pod->uid] = release.node;
  metrics_.add("kwatt_queue_released_total", "Pods that passed the gate, by reason.",
               {{"queue", one.gated.queue}, {"reason", release.why}});
  log::info("pod released", {{"pod", pod->key()},
                             {"queue", one.gated.queue},
                             {"strategy", one.strategy},
                             {"reason", release.why},
                             {"node", release.node}});
  note(one, *pod);
  if (released_listener_) {
    released_listener_({view_.now(), pod->key(), release.node, one.gated.queue, one.strategy,
                        release.why, one.verdict.sentence, one.verdict.grams_per_kwh});
  }
  co_return true;
}

// Only when the reason has become another one: figures in the sentence change all the time.
kube::Task<void> JobQueue::say_why(const std::vector<Decided>& all) {
  std::size_t written = 0;
  for (const Decided& one : all) {
    if (one.verdict.starts) continue;
    const std::string why(to_string(one.verdict.why));
    for (const auto& pod : one.gated.pods) {
      if (pod->annotations.get(planner::queue::names::kDecision) == why) continue;
      if (written++ == options_.annotations) {
        wanted_ = true;  // the rest with the next pass
        co_return;
      }
      if (!fence_()) co_return;
      kube::Name name(pod->namespace_name, pod->name);
      std::string body = waiting_body(pod->uid, why);
      auto patched =
          co_await client_.patch(kube::resources::pods(), name, kube::Client::PatchType::merge,
                                 kFieldManager, "", std::move(body));
      if (patched) note(one, *pod);
    }
  }
}

kube::Task<Result<std::vector<Decided>>> JobQueue::pass(bool release_all) {
  while (busy_) co_await turn_.wait_for(std::chrono::minutes{1});
  const Turn turn(busy_, turn_);
  if (!fence_()) co_return fail(ErrorCode::unavailable, "this replica does not lead");
  const bool any = forget_seen();
  auto asked = question(release_all);
  if (!asked) co_return asked.error();
  std::vector<Decided> all;
  // A snapshot of a large cluster is not for nothing.
  if (any) all = planner::queue::decide_all(*view_.snapshot(), *asked);
  look_again_ = TimePoint::max();
  std::map<std::pair<std::string, std::string>, double> waiting;
  for (const Decided& one : all) {
    if (!one.verdict.starts) {
      // What lies behind us brings nothing: the job waits for something else.
      if (one.verdict.look_again > view_.now()) {
        look_again_ = std::min(look_again_, one.verdict.look_again);
      }
      waiting[{one.gated.queue, std::string(to_string(one.verdict.why))}] +=
          static_cast<double>(one.gated.pods.size());
      continue;
    }
    for (std::size_t member = 0; member < one.gated.pods.size(); ++member) {
      const bool done = co_await release(one, member);
      if (!done) wanted_ = true;
    }
  }
  for (auto& [labels, count] : waiting_) {
    if (!waiting.contains(labels)) waiting.emplace(labels, 0);
  }
  for (const auto& [labels, count] : waiting) {
    metrics_.set("kwatt_queue_waiting", "Pods behind the gate, by reason.",
                 {{"queue", labels.first}, {"reason", labels.second}}, count);
  }
  waiting_ = std::move(waiting);
  co_await say_why(all);
  co_return all;
}

kube::Task<void> JobQueue::run() {
  while (!stopping_) {
    wanted_ = false;
    try {
      auto done = co_await pass(false);
      if (!done) log::debug("no jobs released", {{"error", done.error()}});
    } catch (const boost::system::system_error&) {
      throw;  // cancelled
    } catch (const std::exception& error) {
      log::error("a pass of the job queue failed", {{"error", error.what()}});
    }
    co_await net::sleep(kGap);
    if (stopping_ || wanted_) continue;
    Duration pause = options_.interval;
    if (look_again_ != TimePoint::max()) {
      pause = std::clamp<Duration>(look_again_ - view_.now(), Duration{0}, pause);
    }
    if (pause > Duration{0}) co_await wake_.wait_for(pause);
  }
}

void JobQueue::changed() {
  wanted_ = true;
  wake_.notify_all();
}

void JobQueue::stop() {
  stopping_ = true;
  wake_.notify_all();
}

}  // namespace kwatt::reconcilers
