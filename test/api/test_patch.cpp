#include <doctest/doctest.h>

#include "api/patch.hpp"

namespace kwatt::api {
namespace {

TEST_CASE("a JSON pointer escapes tilde and slash") {
  CHECK(JsonPatch::path({"metadata", "annotations", "kwatt.dev/a~b"}) ==
        "/metadata/annotations/kwatt.dev~1a~0b");
  CHECK(JsonPatch::path({}) == "");
}

TEST_CASE("a JSON patch lists its operations in order, with typed values") {
  CHECK(JsonPatch{}.text() == "[]");
  CHECK(JsonPatch{}.empty());
  CHECK(JsonPatch{}
            .test("/a", "x\"y")
            .add("/b", 3)
            .add("/c", true)
            .replace("/d", StringMap{{"k", "v"}})
            .add("/e", std::vector<std::string>{"p", "q"})
            .add("/f", JsonValue::null())
            .add("/g", JsonValue::raw(R"({"raw":[1]})"))
            .add("/h", Taint{"key", "", "NoSchedule", std::nullopt})
            .remove("/i")
            .text() == R"([{"op":"test","path":"/a","value":"x\"y"},)"
                       R"({"op":"add","path":"/b","value":3},)"
                       R"({"op":"add","path":"/c","value":true},)"
                       R"({"op":"replace","path":"/d","value":{"k":"v"}},)"
                       R"({"op":"add","path":"/e","value":["p","q"]},)"
                       R"({"op":"add","path":"/f","value":null},)"
                       R"({"op":"add","path":"/g","value":{"raw":[1]}},)"
                       R"({"op":"add","path":"/h","value":{"key":"key","effect":"NoSchedule"}},)"
                       R"({"op":"remove","path":"/i"}])");
}

TEST_CASE("a merge patch nests its members and removes with null") {
  MergePatch patch;
  CHECK(patch.empty());
  CHECK(patch.text() == "{}");
  patch.set({"metadata", "annotations", "kwatt.dev/governor"}, "powersave")
      .remove({"metadata", "annotations", "kwatt.dev/epp"})
      .set({"metadata", "labels", "kwatt.dev/frequency"}, "low")
      .set({"spec", "unschedulable"}, true);
  CHECK_FALSE(patch.empty());
  CHECK(patch.text() ==
        R"({"metadata":{"annotations":{"kwatt.dev/epp":null,"kwatt.dev/governor":"powersave"},)"
        R"("labels":{"kwatt.dev/frequency":"low"}},"spec":{"unschedulable":true}})");
  patch.set({"spec"}, JsonValue::null());
  CHECK(patch.text().find(R"("spec":null)") != std::string::npos);
}

TEST_CASE("a finalizer is added once and removed only where it is") {
  ObjectMeta meta;
  meta.resource_version = "7";
  CHECK(add_finalizer(meta, "kwatt.dev/release").text() ==
        R"([{"op":"test","path":"/metadata/resourceVersion","value":"7"},)"
        R"({"op":"add","path":"/metadata/finalizers","value":["kwatt.dev/release"]}])");
  CHECK(remove_finalizer(meta, "kwatt.dev/release").empty());
  meta.finalizers = {"other"};
  CHECK(add_finalizer(meta, "kwatt.dev/release").text() ==
        R"([{"op":"add","path":"/metadata/finalizers/-","value":"kwatt.dev/release"}])");
  meta.finalizers = {"other", "kwatt.dev/release"};
  CHECK(add_finalizer(meta, "kwatt.dev/release").empty());
  CHECK(remove_finalizer(meta, "kwatt.dev/release").text() ==
        R"([{"op":"test","path":"/metadata/finalizers/1","value":"kwatt.dev/release"},)"
        R"({"op":"remove","path":"/metadata/finalizers/1"}])");
}

TEST_CASE("taints are replaced only if they are still those that were seen") {
  const Taint ours{"kwatt.dev/candidate", "", "PreferNoSchedule", std::nullopt};
  const Taint theirs{"dedicated", "gpu", "NoExecute", parse_rfc3339("2026-11-20T21:44:03Z")};
  Node node;
  node.meta.resource_version = "7";
  CHECK(replace_taints(node, {}).empty());
  CHECK(replace_taints(node, {ours}).text() ==
        R"([{"op":"test","path":"/metadata/resourceVersion","value":"7"},)"
        R"({"op":"add","path":"/spec/taints","value":[{"key":"kwatt.dev/candidate",)"
        R"("effect":"PreferNoSchedule"}]}])");
  node.taints = {theirs};
  CHECK(replace_taints(node, {theirs}).empty());
  CHECK(replace_taints(node, {}).text() ==
        R"([{"op":"test","path":"/spec/taints","value":[{"key":"dedicated","value":"gpu",)"
        R"("effect":"NoExecute","timeAdded":"2026-11-20T21:44:03Z"}]},)"
        R"({"op":"remove","path":"/spec/taints"}])");
}

}  // namespace
}  // namespace kwatt::api
