#include "reconcilers/effects.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/patch.hpp"
#include "net/encode.hpp"

namespace kwatt::reconcilers {
namespace {

// The wanted taints; true if they differ from the present ones. A taint is known by key and effect.
bool wanted_taints(const api::Node& node, const planner::PatchNode& patch,
                   std::vector<api::Taint>& out) {
  bool changed = false;
  for (const api::Taint& taint : node.taints) {
    const auto& remove = patch.remove_taints;
    if (std::find(remove.begin(), remove.end(), taint.key) != remove.end()) {
      changed = true;
    } else {
      out.push_back(taint);
    }
  }
  for (const api::Taint& taint : patch.add_taints) {
    const bool present = std::any_of(out.begin(), out.end(), [&](const api::Taint& t) {
      return t.key == taint.key && t.effect == taint.effect;
    });
    if (!present) {
      out.push_back(taint);
      changed = true;
    }
  }
  return changed;
}

}  // namespace

std::string node_patch_body(const api::Node& node, const planner::PatchNode& patch) {
  api::MergePatch body;
  bool changed = false;
  const auto set = [&](const char* map, const api::StringMap& present,
                       const api::StringMap& wanted) {
    for (const auto& [key, value] : wanted) {
      const std::string* now = present.find(key);
      if (now != nullptr && *now == value) continue;
      body.set({"metadata", map, key}, value);
      changed = true;
    }
  };
  const auto remove = [&](const char* map, const api::StringMap& present,
                          const std::vector<std::string>& keys, const api::StringMap& wanted) {
    for (const std::string& key : keys) {
      if (!present.contains(key) || wanted.contains(key)) continue;
      body.remove({"metadata", map, key});
      changed = true;
    }
  };
  set("labels", node.meta.labels, patch.set_labels);
  remove("labels", node.meta.labels, patch.remove_labels, patch.set_labels);
  set("annotations", node.meta.annotations, patch.set_annotations);
  remove("annotations", node.meta.annotations, patch.remove_annotations, patch.set_annotations);
  std::vector<api::Taint> taints;
  if (wanted_taints(node, patch, taints)) {
    body.set({"spec", "taints"}, taints);
    changed = true;
  }
  if (patch.unschedulable && *patch.unschedulable != node.unschedulable) {
    body.set({"spec", "unschedulable"}, *patch.unschedulable);
    changed = true;
  }
  if (!changed) return "";
  body.set({"metadata", "resourceVersion"}, node.meta.resource_version);
  return body.text();
}

std::string suspended_condition_body(const std::string& node, bool suspended, TimePoint now) {
  api::MergePatch body;
  body.set({"apiVersion"}, "v1").set({"kind"}, "Node").set({"metadata", "name"}, node);
  if (suspended) {
    api::MergePatch condition;
    condition.set({"type"}, planner::names::kSuspendedCondition)
        .set({"status"}, "True")
        .set({"reason"}, "PoweredOffByKwatt")
        .set({"message"}, "kwatt switched this machine off to save energy; it is woken on demand")
        .set({"lastTransitionTime"}, format_rfc3339(now))
        .set({"lastHeartbeatTime"}, format_rfc3339(now));
    body.set({"status", "conditions"}, api::JsonValue::raw("[" + condition.text() + "]"));
  }
  return body.text();
}

kube::Task<Result<void>> patch_node(kube::Client& client, ClusterView& view,
                                    std::shared_ptr<const api::Node> node,
                                    planner::PatchNode patch) {
  const std::string body = node_patch_body(*node, patch);
  if (!body.empty()) {
    auto answer = co_await client.patch(kube::resources::nodes(), {"", node->meta.name},
                                        kube::Client::PatchType::merge, kFieldManager, "", body);
    if (!answer) co_return answer.error().with_context("patching Node " + node->meta.name);
    auto now = std::make_shared<api::Node>();
    if (auto decoded = api::decode(*answer, *now); !decoded) {
      co_return decoded.error().with_context("the patched Node " + node->meta.name);
    }
    view.wrote_node(node->meta.resource_version, now);
    node = now;
  }
  if (patch.suspended_condition) {
    const api::Condition* present =
        api::find_condition(node->conditions, planner::names::kSuspendedCondition);
    const bool is = present != nullptr && present->status == "True";
    if (is != *patch.suspended_condition) {
      auto answer = co_await client.patch(
          kube::resources::nodes(), {"", node->meta.name}, kube::Client::PatchType::apply,
          kFieldManager, "status",
          suspended_condition_body(node->meta.name, *patch.suspended_condition, view.now()));
      if (!answer) {
        co_return answer.error().with_context("condition Suspended of Node " + node->meta.name);
      }
      // Until the cache shows it, the next step would find it missing and apply it again. (An apply
      // is not guarded by a version: what somebody wrote in between the cache shows, and that
      // counts.)
      auto now = std::make_shared<api::Node>();
      if (auto decoded = api::decode(*answer, *now); !decoded) {
        co_return decoded.error().with_context("the patched Node " + node->meta.name);
      }
      view.wrote_node(node->meta.resource_version, now);
    }
  }
  co_return Result<void>();
}

kube::Task<std::vector<planner::EvictionResult>> evict_pods(kube::Client& client,
                                                            std::vector<api::PodMove> pods,
                                                            Fence may_act) {
  using Outcome = planner::EvictionResult::Outcome;
  std::vector<planner::EvictionResult> results;
  for (const api::PodMove& pod : pods) {
    if (!may_act()) break;
    auto answer = co_await client.evict({pod.namespace_name, pod.pod_name}, pod.uid);
    planner::EvictionResult result;
    result.uid = pod.uid;
    if (!answer) {
      result.outcome = answer.error().code == ErrorCode::too_many_requests
                           ? Outcome::blocked_by_budget
                           : Outcome::failed;
      result.message = answer.error().text();
    }
    results.push_back(std::move(result));
  }
  co_return results;
}

kube::Task<Result<std::vector<std::string>>> workload_pods_on(kube::Client& client,
                                                              std::string node) {
  std::vector<std::string> found;
  const std::string selector = net::percent_encode("spec.nodeName=" + node);
  auto stream = co_await client.open("/api/v1/pods?fieldSelector=" + selector);
  if (!stream) co_return stream.error().with_context("asking for the pods on " + node);
  if ((*stream)->status() != 200) {
    co_return fail(ErrorCode::unavailable,
                   fmt::format("asking for the pods on {}: HTTP {}", node, (*stream)->status()));
  }
  api::ListDecoder<api::Pod> list(nullptr, [&](api::Pod&& pod) {
    if (pod.workload()) found.push_back(pod.key());
  });
  for (;;) {
    auto piece = co_await (*stream)->read_some(std::chrono::seconds{30});
    if (!piece) co_return piece.error().with_context("asking for the pods on " + node);
    if (piece->empty()) break;
    if (auto fed = list.feed(*piece); !fed) co_return fed.error();
  }
  if (auto whole = list.finish(); !whole) co_return whole.error();
  co_return found;
}

api::PowerState to_power_state(hardware::MachinePower power) {
  switch (power) {
    case hardware::MachinePower::on:
      return api::PowerState::On;
    case hardware::MachinePower::off:
      return api::PowerState::Off;
    case hardware::MachinePower::powering_on:
      return api::PowerState::PoweringOn;
    case hardware::MachinePower::powering_off:
      return api::PowerState::PoweringOff;
    case hardware::MachinePower::unknown:
      break;
  }
  return api::PowerState::Unknown;
}

}  // namespace kwatt::reconcilers
