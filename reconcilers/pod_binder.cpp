#include "reconcilers/pod_binder.hpp"

#include <algorithm>

#include "api/patch.hpp"
#include "base/log.hpp"
#include "net/run.hpp"
#include "planner/arrival.hpp"
#include "planner/plan.hpp"
#include "planner/request.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr Duration kLook{20};

bool is_slow(const api::Node& node) {
  return node.meta.labels.get(planner::names::kLabelFrequency) == "low";
}
bool by_us(const planner::RequestNote& note) {
  const auto& keys = planner::frequency_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return note.keys.count(key) > 0; });
}
bool is_capped(const api::Node& node) {
  return node.meta.labels.get(planner::names::kLabelCapped) == "true";
}

}  // namespace

bool can_be_restored(const api::Node& node) {
  const planner::RequestNote note = planner::request_on(node);
  return (is_slow(node) && by_us(note)) || (is_capped(node) && !note.keep_cap);
}

kube::Task<Result<void>> PodBinder::bind(kube::Name pod, std::string uid, std::string node) {
  const auto pending = stores_.pods.get(kube::KeyView{pod.namespace_name, pod.name});
  const bool known = pending != nullptr && pending->uid == uid && pending->node_name.empty();
  if (known) placement_.assume(*pending, node);
  const auto target = stores_.nodes.get(node);
  if (target != nullptr && can_be_restored(*target)) {
    co_await restore(pod.namespace_name + "/" + pod.name, node);
  }
  auto bound = co_await client_.bind(pod, uid, node);
  if (!bound && known) placement_.forget(uid);
  co_return bound;
}

kube::Task<void> PodBinder::restore(std::string pod, std::string node) {
  const auto count = [this](const char* result) {
    metrics_.add("kwatt_extender_restores_total",
                 "Slow or capped nodes that were asked to be restored before a binding.",
                 {{"result", result}});
  };
  planner::Arrival arrival;
  arrival.pod = pod;
  arrival.at = clock_.now();
  api::MergePatch patch;
  patch.set({"metadata", "annotations", planner::names::kRestore},
            planner::format_restore(arrival));
  const auto asked =
      co_await client_.patch(kube::resources::nodes(), kube::Name{"", node},
                             kube::Client::PatchType::merge, "kwatt-controller", "", patch.text());
  if (!asked) {
    count("failed");
    log::warn("a node cannot be asked to be restored; the pod is bound to it as it is",
              {{"pod", pod}, {"node", node}, {"error", asked.error()}});
    co_return;
  }
  const MonotonicPoint started = clock_.monotonic();
  for (;;) {
    const auto now = stores_.nodes.get(node);
    const bool restored = now == nullptr || !can_be_restored(*now);
    const auto waited = std::chrono::ceil<Duration>(clock_.monotonic() - started);
    if (restored || waited >= kRestorePatience) {
      count(restored ? "restored" : "timeout");
      log::info(restored ? "node restored for a pod" : "node not restored in time for a pod",
                {{"pod", pod}, {"node", node}, {"milliseconds", waited.count()}});
      co_return;
    }
    co_await net::sleep(kLook);
  }
}

}  // namespace kwatt::reconcilers
