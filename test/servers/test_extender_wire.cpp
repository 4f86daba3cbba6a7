// kube-scheduler's extender v1 on the wire. Its Go structs have no JSON tags, so the keys are the
// fields' names; the requests here are as kube-scheduler 1.34 writes them.
#include <doctest/doctest.h>

#include "servers/extender_wire.hpp"

using namespace kwatt;
using namespace kwatt::servers;

namespace {

const std::string kPod =
    R"({"metadata":{"name":"web-1","namespace":"shop","uid":"u-1"},"spec":{"containers":[)"
    R"({"name":"main","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]},"status":{}})";

Result<ExtenderArgs> read(std::string body) {
  static std::string kept;  // what args point into
  kept = std::move(body);
  return read_extender_args(kept);
}

placement::Excluded left_out(std::size_t at, placement::Code code, std::string reason) {
  return {at, "Plugin", code, std::move(reason)};
}

}  // namespace

TEST_CASE("extender wire: a request with names, and the answers to it") {
  const auto args = read(R"({"Pod":)" + kPod + R"(,"Nodes":null,"NodeNames":["a","b","c"]})");
  REQUIRE(args.has_value());
  CHECK(args->pod.key() == "shop/web-1");
  CHECK(args->pod.spec->requests.cpu == Millicores{500});
  CHECK_FALSE(args->whole_nodes);
  REQUIRE(args->nodes.size() == 3);
  CHECK(args->nodes[1].name == "b");
  CHECK(write_filter_result(*args, {0, 2},
                            {left_out(1, placement::Code::unschedulable, "it is \"slow\"")}) ==
        R"({"Nodes":null,"NodeNames":["a","c"],"FailedNodes":{"b":"it is \"slow\""},)"
        R"("FailedAndUnresolvableNodes":{},"Error":""})");
  CHECK(write_filter_result(*args, {1},
                            {left_out(0, placement::Code::unresolvable, "off"),
                             left_out(2, placement::Code::unresolvable, "off")}) ==
        R"({"Nodes":null,"NodeNames":["b"],"FailedNodes":{},)"
        R"("FailedAndUnresolvableNodes":{"a":"off","c":"off"},"Error":""})");
  CHECK(write_priorities(*args, {10, 0, 9}) ==
        R"([{"Host":"a","Score":10},{"Host":"b","Score":0},{"Host":"c","Score":9}])");
}

TEST_CASE("extender wire: whole nodes come back byte for byte") {
  const std::string first = R"({"metadata":{"name":"a","annotations":{"x":"]}\" \\"}},"spec":{}})";
  const std::string second =
      R"({ "spec":{"podCIDR":"10.0.0.0/8"}, "metadata" : {"uid":"u","name":"b"} })";
  const auto args = read(R"({"Pod":)" + kPod + R"(,"Nodes":{"metadata":{},"items":[)" + first +
                         "," + second + R"(]},"NodeNames":null})");
  REQUIRE(args.has_value());
  CHECK(args->whole_nodes);
  REQUIRE(args->nodes.size() == 2);
  CHECK(args->nodes[0].name == "a");
  CHECK(args->nodes[1].name == "b");
  CHECK(
      write_filter_result(*args, {1}, {left_out(0, placement::Code::unschedulable, "no")}) ==
      R"({"Nodes":{"metadata":{},"items":[)" + second +
          R"(]},"NodeNames":null,"FailedNodes":{"a":"no"},"FailedAndUnresolvableNodes":{},"Error":""})");
}

TEST_CASE("extender wire: keys in any case, unknown keys, white space, an empty list") {
  const auto args = read(" {\"nodenames\" : [ ] ,\"extra\":{\"a\":[1]},\n\"pod\":" + kPod + "} ");
  REQUIRE(args.has_value());
  CHECK(args->nodes.empty());
  const auto no_items = read(R"({"Pod":)" + kPod + R"(,"Nodes":{"metadata":{},"items":null}})");
  REQUIRE(no_items.has_value());
  CHECK(no_items->nodes.empty());
}

TEST_CASE("extender wire: what is no request is said with its place") {
  struct Case {
    std::string body, says;
  };
  const std::vector<Case> cases = {
      {"", "not ExtenderArgs"},
      {"[]", "not ExtenderArgs"},
      {"{", "no JSON any more"},
      {R"({"NodeNames":["a"]})", "Pod is missing"},
      {R"({"Pod":null,"NodeNames":["a"]})", "Pod is missing"},
      {R"({"Pod":)" + kPod + "}", "neither Nodes nor NodeNames"},
      {R"({"Pod":)" + kPod + R"(,"NodeNames":["a"],"Nodes":{"items":[]}})", "both Nodes and"},
      {R"({"Pod":)" + kPod + R"(,"NodeNames":"a"})", "NodeNames: a list"},
      {R"({"Pod":)" + kPod + R"(,"NodeNames":["a",7]})", "element 1: NodeNames[]: a string"},
      {R"({"Pod":)" + kPod + R"(,"NodeNames":["a\n"]})", "not the name of a node"},
      {R"({"Pod":)" + kPod + R"(,"NodeNames":[""]})", "a name is expected"},
      {R"({"Pod":)" + kPod + R"(,"Nodes":{"items":[{"metadata":{}}]}})", "items[0]: no metadata"},
      {R"({"Pod":)" + kPod + R"(,"Nodes":{"items":[1]}})", "items[0]: an object"},
      {R"({"Pod":{"spec":{"containers":7}},"NodeNames":["a"]})", "Pod: spec.containers"},
      {R"({"Pod":)" + kPod + R"(,"NodeNames":["a"]} {})", "more than one JSON value"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.body);
    const auto args = read(c.body);
    REQUIRE_FALSE(args.has_value());
    CHECK(args.error().message.find(c.says) != std::string::npos);
    MESSAGE(args.error().message);
  }
}

TEST_CASE("extender wire: a binding request, and what cannot be part of a path") {
  const auto args = read_binding_args(
      R"({"PodName":"web-1","PodNamespace":"shop","PodUID":"0-1","Node":"n.example"})");
  REQUIRE(args.has_value());
  CHECK(args->pod_name == "web-1");
  CHECK(args->namespace_name == "shop");
  CHECK(args->pod_uid == "0-1");
  CHECK(args->node == "n.example");
  for (const char* bad : {R"({"PodName":"../x","PodNamespace":"s","PodUID":"u","Node":"n"})",
                          R"({"PodName":"..","PodNamespace":"s","PodUID":"u","Node":"n"})",
                          R"({"PodName":"p","PodNamespace":"s","PodUID":"u"})",
                          R"({"PodName":"p","PodNamespace":"s","PodUID":"u","Node":"a/b"})",
                          R"({"PodName":1})", "7"}) {
    CAPTURE(bad);
    CHECK_FALSE(read_binding_args(bad).has_value());
  }
  CHECK(write_binding_result("") == R"({"Error":""})");
  CHECK(write_binding_result("a \"b\"") == R"({"Error":"a \"b\""})");
}
