#include "api/patch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/json_writer.hpp"

namespace kwatt::api {
namespace {

void write_taint(JsonWriter& out, const Taint& taint) {
  out.begin().text("key", taint.key).text_unless_empty("value", taint.value);
  out.text("effect", taint.effect);
  if (taint.time_added) out.text("timeAdded", format_rfc3339(*taint.time_added));
  out.end();
}

}  // namespace

std::string JsonValue::text() const {
  JsonWriter out;
  if (const auto* raw = std::get_if<Raw>(&value_)) return raw->json;
  if (const auto* flag = std::get_if<bool>(&value_)) {
    out.boolean(*flag);
  } else if (const auto* number = std::get_if<std::int64_t>(&value_)) {
    out.integer(*number);
  } else if (const auto* string = std::get_if<std::string>(&value_)) {
    out.text(*string);
  } else if (const auto* map = std::get_if<StringMap>(&value_)) {
    out.begin();
    for (const auto& [key, value] : *map) out.text(key, value);
    out.end();
  } else if (const auto* list = std::get_if<std::vector<std::string>>(&value_)) {
    out.begin_list();
    for (const std::string& entry : *list) out.text(entry);
    out.end_list();
  } else if (const auto* taints = std::get_if<std::vector<Taint>>(&value_)) {
    if (!single_) out.begin_list();
    for (const Taint& taint : *taints) write_taint(out, taint);
    if (!single_) out.end_list();
  } else {
    out.null();
  }
  return out.take();
}

std::string JsonPatch::path(const std::vector<std::string_view>& parts) {
  std::string out;
  for (const std::string_view part : parts) {
    out += '/';
    for (const char c : part) {
      if (c == '~') {
        out += "~0";
      } else if (c == '/') {
        out += "~1";
      } else {
        out += c;
      }
    }
  }
  return out;
}

JsonPatch& JsonPatch::operation(std::string_view op, std::string_view path,
                                const JsonValue* value) {
  JsonWriter out;
  out.begin().text("op", op).text("path", path);
  if (value != nullptr) out.key("value").raw(value->text());
  out.end();
  operations_.push_back(out.take());
  return *this;
}

JsonPatch& JsonPatch::test(std::string_view path, const JsonValue& value) {
  return operation("test", path, &value);
}
JsonPatch& JsonPatch::add(std::string_view path, const JsonValue& value) {
  return operation("add", path, &value);
}
JsonPatch& JsonPatch::replace(std::string_view path, const JsonValue& value) {
  return operation("replace", path, &value);
}
JsonPatch& JsonPatch::remove(std::string_view path) {
  return operation("remove", path, nullptr);
}

std::string JsonPatch::text() const {
  return fmt::format("[{}]", fmt::join(operations_, ","));
}

// A node of the patch tree: an inner object, or a value.
struct MergePatch::Member {
  std::map<std::string, Member, std::less<>> members;
  std::optional<std::string> value;

  void write(JsonWriter& out) const {
    if (value) {
      out.raw(*value);
      return;
    }
    out.begin();
    for (const auto& [key, member] : members) {
      out.key(key);
      member.write(out);
    }
    out.end();
  }
};

MergePatch::MergePatch() : root_(std::make_unique<Member>()) {}
MergePatch::~MergePatch() = default;
MergePatch::MergePatch(MergePatch&&) noexcept = default;
MergePatch& MergePatch::operator=(MergePatch&&) noexcept = default;

MergePatch& MergePatch::set(const std::vector<std::string_view>& path, const JsonValue& value) {
  Member* at = root_.get();
  for (const std::string_view part : path) {
    at->value.reset();
    at = &at->members[std::string{part}];
  }
  at->members.clear();
  at->value = value.text();
  return *this;
}

MergePatch& MergePatch::remove(const std::vector<std::string_view>& path) {
  return set(path, JsonValue::null());
}

bool MergePatch::empty() const {
  return root_->members.empty() && !root_->value;
}

std::string MergePatch::text() const {
  JsonWriter out;
  root_->write(out);
  return out.take();
}

JsonPatch add_finalizer(const ObjectMeta& meta, std::string_view finalizer) {
  JsonPatch patch;
  const auto& held = meta.finalizers;
  if (std::find(held.begin(), held.end(), finalizer) != held.end()) return patch;
  if (held.empty()) {
    // `add` to an absent list creates it; the test refuses to drop one that came since.
    patch.test("/metadata/resourceVersion", meta.resource_version);
    patch.add("/metadata/finalizers", std::vector<std::string>{std::string{finalizer}});
  } else {
    patch.add("/metadata/finalizers/-", finalizer);
  }
  return patch;
}

JsonPatch remove_finalizer(const ObjectMeta& meta, std::string_view finalizer) {
  JsonPatch patch;
  const auto& held = meta.finalizers;
  const auto at = std::find(held.begin(), held.end(), finalizer);
  if (at == held.end()) return patch;
  const std::string path = fmt::format("/metadata/finalizers/{}", at - held.begin());
  patch.test(path, finalizer).remove(path);
  return patch;
}

JsonPatch replace_taints(const Node& node, const std::vector<Taint>& next) {
  JsonPatch patch;
  if (node.taints == next) return patch;
  if (node.taints.empty()) {
    patch.test("/metadata/resourceVersion", node.meta.resource_version);
  } else {
    patch.test("/spec/taints", node.taints);
  }
  if (next.empty()) {
    patch.remove("/spec/taints");
  } else {
    patch.add("/spec/taints", next);
  }
  return patch;
}

}  // namespace kwatt::api
