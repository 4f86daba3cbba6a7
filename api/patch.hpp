#pragma once
// Bodies of PATCH requests, built without string pasting.
//
//   std::string body = JsonPatch{}
//                          .test("/metadata/resourceVersion", rv)
//                          .remove(JsonPatch::path({"metadata", "annotations",
//                          "kwatt.dev/request"})) .text();                                    //
//                          application/json-patch+json
//   std::string body = MergePatch{}
//                          .set({"metadata", "annotations", "kwatt.dev/governor"}, "powersave")
//                          .remove({"metadata", "labels", "kwatt.dev/capped"})
//                          .text();                                    //
//                          application/merge-patch+json
//
// Paths of a JsonPatch are RFC 6901 pointers; path() escapes the parts ("~" and "/").
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/core.hpp"
#include "api/meta.hpp"

namespace kwatt::api {

// A JSON value for patches. Text made by encode() goes in as JsonValue::raw().
class JsonValue {
 public:
  JsonValue(std::string_view text) : value_(std::string{text}) {}
  JsonValue(const char* text) : value_(std::string{text}) {}
  JsonValue(const std::string& text) : value_(text) {}
  JsonValue(bool flag) : value_(flag) {}
  JsonValue(int number) : value_(std::int64_t{number}) {}
  JsonValue(std::int64_t number) : value_(number) {}
  JsonValue(const std::vector<std::string>& list) : value_(list) {}
  JsonValue(const StringMap& map) : value_(map) {}
  JsonValue(const Taint& taint) : value_(std::vector<Taint>{taint}), single_(true) {}
  JsonValue(const std::vector<Taint>& taints) : value_(taints) {}
  static JsonValue null() { return JsonValue{std::monostate{}}; }
  static JsonValue raw(std::string json) { return JsonValue{Raw{std::move(json)}}; }

  std::string text() const;

 private:
  struct Raw {
    std::string json;
  };
  using Value = std::variant<std::monostate, bool, std::int64_t, std::string, StringMap,
                             std::vector<std::string>, std::vector<Taint>, Raw>;
  explicit JsonValue(Value value) : value_(std::move(value)) {}

  Value value_;
  bool single_ = false;  // a vector of taints that is one taint
};

// RFC 6902. Operations are applied in order, all or none; a failing `test` answers 422.
class JsonPatch {
 public:
  // {"metadata", "labels", "kwatt.dev/capped"} → "/metadata/labels/kwatt.dev~1capped"
  static std::string path(const std::vector<std::string_view>& parts);

  JsonPatch& test(std::string_view path, const JsonValue& value);
  JsonPatch& add(std::string_view path, const JsonValue& value);
  JsonPatch& replace(std::string_view path, const JsonValue& value);
  JsonPatch& remove(std::string_view path);
  bool empty() const { return operations_.empty(); }
  std::string text() const;

 private:
  JsonPatch& operation(std::string_view op, std::string_view path, const JsonValue* value);
  std::vector<std::string> operations_;
};

// RFC 7386: members are set or, with null, removed; lists are replaced whole.
class MergePatch {
 public:
  MergePatch();
  ~MergePatch();
  MergePatch(MergePatch&&) noexcept;
  MergePatch& operator=(MergePatch&&) noexcept;

  MergePatch& set(const std::vector<std::string_view>& path, const JsonValue& value);
  MergePatch& remove(const std::vector<std::string_view>& path);
  bool empty() const;
  std::string text() const;

 private:
  struct Member;
  std::unique_ptr<Member> root_;
};

// Adds `finalizer`, or removes it by test + remove at its index; empty patch: nothing to do.
JsonPatch add_finalizer(const ObjectMeta& meta, std::string_view finalizer);
JsonPatch remove_finalizer(const ObjectMeta& meta, std::string_view finalizer);
// Replaces the taints of `node` by `next`, tested against those it has now (422 if they changed).
JsonPatch replace_taints(const Node& node, const std::vector<Taint>& next);

}  // namespace kwatt::api
