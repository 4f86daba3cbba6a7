// What is written to a pod that passes the gate.
#include <doctest/doctest.h>

#include "reconcilers/pod_gate.hpp"

using namespace kwatt;
using namespace kwatt::reconcilers;

namespace {

constexpr const char* kTerm =
    R"({"weight":100,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}})";

std::string pod(const std::string& spec, const std::string& annotations = R"("annotations":{},)") {
  return R"({"metadata":{"uid":"u","resourceVersion":"7",)" + annotations +
         R"("name":"p"},"spec":{)" + spec + "}}";
}
std::string with_preference(const std::string& path, const std::string& value) {
  return R"([{"op":"test","path":"/metadata/resourceVersion","value":"7"},)"
         R"({"op":"test","path":"/spec/schedulingGates/0/name","value":"kwatt.dev/queue"},)"
         R"({"op":"remove","path":"/spec/schedulingGates/0"},)"
         R"({"op":"add","path":"/metadata/annotations/kwatt.dev~1queue-decision","value":"Chosen"},)"
         R"({"op":"add","path":"/metadata/annotations/kwatt.dev~1assigned-node","value":"n1"},)"
         R"({"op":"add","path":")" +
         path + R"(","value":)" + value + "}]";
}
const GateRelease kToN1{"u", "n1", "Chosen"};
constexpr const char* kGate = R"("schedulingGates":[{"name":"kwatt.dev/queue"}])";

}  // namespace

TEST_CASE("pod gate: the gate goes, and the preference goes as deep as the pod has it already") {
  const std::string term = kTerm;
  const std::string preferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const std::string node = R"({")" + preferred + R"(":[)" + term + "]}";
  struct Case {
    const char* sentence;
    std::string affinity, path, value;
  };
  const Case cases[] = {
      {"no affinity", "", "/spec/affinity", R"({"nodeAffinity":)" + node + "}"},
      {"of pods only", R"(,"affinity":{"podAffinity":{}})", "/spec/affinity/nodeAffinity", node},
      {"required only", R"(,"affinity":{"nodeAffinity":{"required":{}}})",
       "/spec/affinity/nodeAffinity/" + preferred, "[" + term + "]"},
      {"preferences", R"(,"affinity":{"nodeAffinity":{")" + preferred + R"(":[{}]}})",
       "/spec/affinity/nodeAffinity/" + preferred + "/-", term},
  };
  for (const Case& c : cases) {
    CAPTURE(c.sentence);
    CHECK(*release_body(pod(kGate + c.affinity), kToN1) == with_preference(c.path, c.value));
  }
}

TEST_CASE("pod gate: without a node only the gate goes; the gates of others stay") {
  const auto body =
      release_body(pod(R"("schedulingGates":[{"name":"other"},{"name":"kwatt.dev/queue"}])", ""),
                   {"u", "", "MaxDelay"});
  CHECK(
      *body ==
      R"([{"op":"test","path":"/metadata/resourceVersion","value":"7"},)"
      R"({"op":"test","path":"/spec/schedulingGates/1/name","value":"kwatt.dev/queue"},)"
      R"({"op":"remove","path":"/spec/schedulingGates/1"},)"
      R"({"op":"add","path":"/metadata/annotations","value":{}},)"
      R"({"op":"add","path":"/metadata/annotations/kwatt.dev~1queue-decision","value":"MaxDelay"}])");
}

TEST_CASE("pod gate: a pod without the gate, a namesake, and what is no pod") {
  CHECK(release_body(pod(R"("schedulingGates":[{"name":"other"}])"), kToN1)->empty());
  CHECK(release_body(pod(""), kToN1)->empty());
  CHECK(release_body(pod(kGate), {"another", "n1", "Chosen"}).error().code == ErrorCode::conflict);
  CHECK(release_body("[", kToN1).error().code == ErrorCode::parse);
  CHECK(waiting_body("u", "NoFit") ==
        R"({"metadata":{"annotations":{"kwatt.dev/queue-decision":"NoFit"},"uid":"u"}})");
}
