#include "planner/arrival.hpp"

#include <algorithm>

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "planner/plan.hpp"
#include "planner/request.hpp"

namespace kwatt::planner {

std::string format_restore(const Arrival& arrival) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
  const std::string time = format_rfc3339(arrival.at);
  writer.StartObject();
  writer.Key("pod");
  writer.String(arrival.pod.data(), static_cast<rapidjson::SizeType>(arrival.pod.size()));
  writer.Key("time");
  writer.String(time.data(), static_cast<rapidjson::SizeType>(time.size()));
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

std::optional<Arrival> parse_restore(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) return std::nullopt;
  const auto pod = document.FindMember("pod"), time = document.FindMember("time");
  if (pod == document.MemberEnd() || !pod->value.IsString() || time == document.MemberEnd() ||
      !time->value.IsString()) {
    return std::nullopt;
  }
  const auto at = parse_rfc3339({time->value.GetString(), time->value.GetStringLength()});
  if (!at) return std::nullopt;
  return Arrival{{pod->value.GetString(), pod->value.GetStringLength()}, *at};
}

std::optional<Arrival> arrival_since(const NodeView& node, TimePoint since) {
  const TimePoint from = std::chrono::floor<std::chrono::seconds>(since);
  std::optional<Arrival> newest;
  const auto take = [&](const std::string& pod, TimePoint at) {
    if (at >= from && (!newest || at > newest->at)) newest = Arrival{pod, at};
  };
  for (const auto& pod : node.pods) {
    if (!pod->workload() || pod->deletion_timestamp) continue;
    if (pod->scheduled != api::PodScheduled::yes || !pod->scheduled_transition) continue;
    take(pod->key(), *pod->scheduled_transition);
  }
  const auto announced = parse_restore(node.node->meta.annotations.get(names::kRestore));
  if (announced) take(announced->pod, announced->at);
  return newest;
}

std::optional<TimePoint> held_since(const NodeView& node, const std::set<std::string>& keys) {
  const RequestNote note = request_on(*node.node);
  const bool ours = std::any_of(keys.begin(), keys.end(),
                                [&](const auto& key) { return note.keys.count(key) > 0; });
  return ours ? note.time : std::nullopt;
}

}  // namespace kwatt::planner
