#include "reconcilers/pod_gate.hpp"

#include <fmt/format.h>

#include "api/json_writer.hpp"
#include "api/patch.hpp"
#include "hardware/json.hpp"
#include "planner/queue/gated_jobs.hpp"

namespace kwatt::reconcilers {
namespace {

namespace names = planner::queue::names;

constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

std::string preferred_term(const std::string& node) {
  api::JsonWriter json;
  json.begin().key("weight").integer(100).begin("preference").begin_list("matchFields");
  json.begin().text("key", "metadata.name").text("operator", "In").begin_list("values");
  json.text(node).end_list().end().end_list().end().end();
  return json.take();
}

// As deep as the pod has it already; JSON Patch adds no parents.
void add_preference(const rapidjson::Document& pod, const std::string& node,
                    api::JsonPatch& patch) {
  const std::string term = preferred_term(node);
  const std::string list = fmt::format("[{}]", term);
  const std::string affinity = fmt::format(R"({{"{}":{}}})", kPreferred, list);
  const auto raw = [](std::string json) { return api::JsonValue::raw(std::move(json)); };
  const auto has = [&](std::initializer_list<std::string_view> path) {
    const rapidjson::Value* found = hardware::find(pod, path);
    return found != nullptr && !found->IsNull();
  };
  if (!has({"spec", "affinity"})) {
    patch.add("/spec/affinity", raw(fmt::format(R"({{"nodeAffinity":{}}})", affinity)));
  } else if (!has({"spec", "affinity", "nodeAffinity"})) {
    patch.add("/spec/affinity/nodeAffinity", raw(affinity));
  } else {
    const std::string path = api::JsonPatch::path({"spec", "affinity", "nodeAffinity", kPreferred});
    if (has({"spec", "affinity", "nodeAffinity", kPreferred})) {
      patch.add(path + "/-", raw(term));
    } else {
      patch.add(path, raw(list));
    }
  }
}

}  // namespace

Result<std::string> release_body(std::string_view text, const GateRelease& release) {
  auto pod = hardware::parse_json(text);
  if (!pod) return pod.error().with_context("pod");
  if (hardware::text_at(*pod, {"metadata", "uid"}) != release.uid) {
    return fail(ErrorCode::conflict, "a namesake has taken the place of the pod");
  }
  const rapidjson::Value* gates = hardware::find(*pod, {"spec", "schedulingGates"});
  if (gates == nullptr || !gates->IsArray()) return std::string();
  for (rapidjson::SizeType i = 0; i < gates->Size(); ++i) {
    if (hardware::text_at((*gates)[i], {"name"}) != names::kQueue) continue;
    api::JsonPatch patch;
    const std::string gate = fmt::format("/spec/schedulingGates/{}", i);
    patch.test("/metadata/resourceVersion",
               std::string(hardware::text_at(*pod, {"metadata", "resourceVersion"})));
    patch.test(gate + "/name", names::kQueue);
    patch.remove(gate);
    const rapidjson::Value* annotations = hardware::find(*pod, {"metadata", "annotations"});
    if (annotations == nullptr || !annotations->IsObject()) {
      patch.add("/metadata/annotations", api::JsonValue::raw("{}"));
    }
    patch.add(api::JsonPatch::path({"metadata", "annotations", names::kDecision}), release.why);
    if (!release.node.empty()) {
      patch.add(api::JsonPatch::path({"metadata", "annotations", names::kAssignedNode}),
                release.node);
      add_preference(*pod, release.node, patch);
    }
    return patch.text();
  }
  return std::string();
}

std::string waiting_body(const std::string& uid, const std::string& why) {
  api::MergePatch patch;
  patch.set({"metadata", "uid"}, uid);
  patch.set({"metadata", "annotations", names::kDecision}, why);
  return patch.text();
}

}  // namespace kwatt::reconcilers
