#include "planner/request.hpp"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace kwatt::planner {
namespace {

std::string string_member(const rapidjson::Value& object, const char* name) {
  const auto found = object.FindMember(name);
  if (found == object.MemberEnd() || !found->value.IsString()) return {};
  return {found->value.GetString(), found->value.GetStringLength()};
}

void put(rapidjson::Writer<rapidjson::StringBuffer>& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

}  // namespace

std::string format_request(const RequestNote& note) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer{buffer};
  writer.StartObject();
  writer.Key("id");
  put(writer, note.id);
  if (note.time) {
    writer.Key("time");
    put(writer, format_rfc3339(*note.time));
  }
  writer.Key("policy");
  put(writer, note.policy);
  writer.Key("keys");
  writer.StartArray();
  for (const std::string& key : note.keys) put(writer, key);
  writer.EndArray();
  if (note.keep_cap) {
    writer.Key("keepCap");
    writer.Bool(true);
  }
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

std::optional<RequestNote> parse_request(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) return std::nullopt;
  RequestNote note;
  note.id = string_member(document, "id");
  note.time = parse_rfc3339(string_member(document, "time"));
  note.policy = string_member(document, "policy");
  const auto keys = document.FindMember("keys");
  if (note.id.empty() || keys == document.MemberEnd() || !keys->value.IsArray()) {
    return std::nullopt;
  }
  for (const auto& key : keys->value.GetArray()) {
    if (!key.IsString()) return std::nullopt;
    note.keys.emplace(key.GetString(), key.GetStringLength());
  }
  const auto keep = document.FindMember("keepCap");
  note.keep_cap = keep != document.MemberEnd() && keep->value.IsTrue();
  return note;
}

RequestNote request_on(const api::Node& node) {
  const std::string* text = node.meta.annotations.find(names::kRequest);
  if (text == nullptr) return {};
  return parse_request(*text).value_or(RequestNote{});
}

const std::set<std::string>& frequency_keys() {
  static const std::set<std::string> keys = {
      std::string(names::kGovernor), std::string(names::kMaxFrequency), std::string(names::kEpp)};
  return keys;
}

const std::set<std::string>& setting_keys() {
  static const std::set<std::string> keys = [] {
    std::set<std::string> all = frequency_keys();
    all.emplace(names::kPowerCap);
    all.emplace(names::kPowerState);
    return all;
  }();
  return keys;
}

std::optional<std::string> set_by_hand(const api::Node& node, const std::set<std::string>& keys) {
  const RequestNote note = request_on(node);
  for (const std::string& key : keys) {
    if (node.meta.annotations.contains(key) && note.keys.count(key) == 0) return key;
  }
  return std::nullopt;
}

api::AgentRequest request_of(const api::FrequencyLevel& level) {
  api::AgentRequest request;
  if (!level.governor.empty()) request.governor = level.governor;
  if (level.max_frequency_mhz > 0) request.max_frequency_mhz = level.max_frequency_mhz;
  if (!level.energy_performance_preference.empty()) {
    request.epp = level.energy_performance_preference;
  }
  return request;
}

api::StringMap annotations_of(const api::AgentRequest& request) {
  api::StringMap map;
  if (request.governor) map.set(names::kGovernor, *request.governor);
  if (request.epp) map.set(names::kEpp, *request.epp);
  if (request.max_frequency_mhz) {
    map.set(names::kMaxFrequency, std::to_string(*request.max_frequency_mhz));
  }
  if (request.power_cap_watts) map.set(names::kPowerCap, std::to_string(*request.power_cap_watts));
  return map;
}

bool in_force(const api::Node& node, const api::AgentRequest& request,
              const std::set<std::string>& keys) {
  const api::StringMap wanted = annotations_of(request);
  const RequestNote note = request_on(node);
  for (const std::string& key : keys) {
    const std::string* is = node.meta.annotations.find(key);
    const std::string* should = wanted.find(key);
    if ((is == nullptr) != (should == nullptr)) return false;
    if (is != nullptr && (*is != *should || note.keys.count(key) == 0)) return false;
  }
  return true;
}

}  // namespace kwatt::planner
