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

std::string kept;  // what args point into

Result<ExtenderArgs> read(std::string body) {
  kept = std::move(body);
  return read_extender_args(kept);
}

// Without the white space that an answer may begin with.
std::string filter_result(const ExtenderArgs& args, const std::vector<std::size_t>& passed,
                          const std::vector<placement::Excluded>& excluded = {}) {
  const std::string answer = write_filter_result(args, passed, excluded, std::move(kept));
  return answer.substr(answer.find_first_not_of(' '));
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
  CHECK(filter_result(*args, {0, 2},
                      {left_out(1, placement::Code::unschedulable, "it is \"slow\"")}) ==
        R"({"Nodes":null,"NodeNames":["a","c"],"FailedNodes":{"b":"it is \"slow\""},)"
        R"("FailedAndUnresolvableNodes":{},"Error":""})");
  CHECK(filter_result(*args, {1},
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
      filter_result(*args, {1}, {left_out(0, placement::Code::unschedulable, "no")}) ==
      R"({"Nodes":{"metadata":{},"items":[)" + second +
          R"(]},"NodeNames":null,"FailedNodes":{"a":"no"},"FailedAndUnresolvableNodes":{},"Error":""})");
}

TEST_CASE("extender wire: whole nodes move together, wherever they lie in the request") {
  const std::string pod = R"("Pod":)" + kPod;
  const auto node = [](const std::string& name) {
    return R"({"metadata":{"name":")" + name + R"(","labels":{"of":")" + name + "\"}}}";
  };
  const std::string list = R"("Nodes":{"metadata":{},"items":[)" + node("a") + " , " +
                           node("longer") + ",\n" + node("c") + R"(]},"NodeNames":null)";
  const std::string pod_first = "{" + pod + "," + list + "}",
                    pod_last = "{" + list + "," + pod + "}";
  const std::string short_head = R"({"Nodes":{"items":[)" + node("a") + "," + node("longer") + "," +
                                 node("c") + "]}," + pod + "}";
  struct Case {
    std::vector<std::size_t> passed;
    std::string nodes;
  };
  const std::vector<Case> cases = {
      {{0, 1, 2}, node("a") + "," + node("longer") + "," + node("c")},
      {{0, 2}, node("a") + "," + node("c")},
      {{1, 2}, node("longer") + "," + node("c")},
      {{2}, node("c")},
      {{}, ""},
  };
  for (const std::string& body : {pod_first, pod_last, short_head}) {
    for (const Case& c : cases) {
      CAPTURE(body);
      CAPTURE(c.nodes);
      const auto args = read(body);
      REQUIRE(args.has_value());
      CHECK(
          filter_result(*args, c.passed) ==
          R"({"Nodes":{"metadata":{},"items":[)" + c.nodes +
              R"(]},"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
    }
  }
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
