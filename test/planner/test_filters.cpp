// kube-scheduler's filters, case by case: each case builds a world and asks whether the pending pod
// "default/p-1" fits the node "n1", and which filter says no.
#include <functional>

#include <doctest/doctest.h>

#include "planner/what_if.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::World;

struct Case {
  std::string name;
  std::function<void(World&)> given;
  std::string refused_by;  // "": fits
  std::string sentence;    // part of it
};

constexpr const char* kPod = "default/p-1";

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    w.node("n1");
    w.pod(kPod);
    c.given(w);
    const Snapshot s = w.snapshot();
    const Reserved none;
    const WhatIf what_if{s, none};
    const auto pod = std::find_if(s.unbound.begin(), s.unbound.end(),
                                  [](const auto& p) { return p->key() == kPod; });
    REQUIRE(pod != s.unbound.end());
    const auto unfit = what_if.fits(**pod, "n1");
    CHECK((unfit ? unfit->filter : "") == c.refused_by);
    CHECK(what_if.can_take(**pod, "n1") == !unfit.has_value());
    if (unfit) {
      CAPTURE(unfit->message);
      CHECK(unfit->message.find(c.sentence) != std::string::npos);
    }
  }
}

TEST_CASE("NodeResourcesFit counts requests of all pods that are not terminal") {
  check({
      {"an empty node takes the pod", [](World&) {}, "", ""},
      {"exactly what is left fits",
       [](World& w) {
         w.pod("default/a-1").on("n1").cpu_milli(3000);
         w.pod(kPod).cpu_milli(1000);
       },
       "", ""},
      {"a millicore too much does not",
       [](World& w) {
         w.pod("default/a-1").on("n1").cpu_milli(3000);
         w.pod(kPod).cpu_milli(1001);
       },
       "NodeResourcesFit", "not enough cpu: needs 1001m, 1000m free"},
      {"memory", [](World& w) { w.pod(kPod).memory_mib(16 * 1024 + 1); }, "NodeResourcesFit",
       "not enough memory: needs 16385Mi, 16384Mi free"},
      {"several shortages are all named",
       [](World& w) { w.pod(kPod).cpu_milli(5000).memory_mib(20 * 1024); }, "NodeResourcesFit",
       "not enough cpu: needs 5000m, 4000m free, memory: needs 20480Mi"},
      {"ephemeral storage", [](World& w) { w.pod(kPod).ephemeral_gib(1); }, "NodeResourcesFit",
       "ephemeral-storage"},
      {"ephemeral storage that is there",
       [](World& w) {
         w.node("n1").ephemeral_gib(10);
         w.pod(kPod).ephemeral_gib(10);
       },
       "", ""},
      {"an extended resource the node lacks",
       [](World& w) { w.pod(kPod).extended("nvidia.com/gpu", 1); }, "NodeResourcesFit",
       "not enough nvidia.com/gpu: needs 1, 0 free"},
      {"an extended resource in use",
       [](World& w) {
         w.node("n1").extended("nvidia.com/gpu", 2);
         w.pod("default/a-1").on("n1").extended("nvidia.com/gpu", 2);
         w.pod(kPod).extended("nvidia.com/gpu", 1);
       },
       "NodeResourcesFit", "nvidia.com/gpu"},
      {"an extended resource that is free",
       [](World& w) {
         w.node("n1").extended("a.b/c", 5).extended("nvidia.com/gpu", 2);
         w.pod("default/a-1").on("n1").extended("nvidia.com/gpu", 1);
         w.pod(kPod).extended("nvidia.com/gpu", 1);
       },
       "", ""},
      {"the pod count",
       [](World& w) {
         w.node("n1").pods(2);
         w.pod("default/a-1").on("n1");
         w.pod("default/a-2").on("n1");
       },
       "NodeResourcesFit", "room for pods"},
      {"DaemonSet and static pods count too",
       [](World& w) {
         w.pod("default/d-1").on("n1").daemon().cpu_milli(2000);
         w.pod("default/s-1").on("n1").mirror().cpu_milli(2000);
       },
       "NodeResourcesFit", "cpu"},
      {"a succeeded pod frees its request",
       [](World& w) {
         w.pod("default/a-1").on("n1").cpu_milli(4000).phase(api::PodPhase::succeeded);
       },
       "", ""},
      {"so does a failed one",
       [](World& w) { w.pod("default/a-1").on("n1").cpu_milli(4000).phase(api::PodPhase::failed); },
       "", ""},
      {"a terminating pod counts until it is gone",
       [](World& w) { w.pod("default/a-1").on("n1").cpu_milli(4000).terminating(); },
       "NodeResourcesFit", "cpu"},
      {"a pod that asks for nothing fits an overcommitted node",
       [](World& w) {
         w.pod("default/a-1").on("n1").cpu_milli(5000).memory_mib(32 * 1024);
         w.pod(kPod).cpu_milli(0).memory_mib(0);
       },
       "", ""},
      {"a pod with a nomination has its place",
       [](World& w) { w.pod("default/a-1").cpu_milli(4000).pod().nominated_node_name = "n1"; },
       "NodeResourcesFit", "cpu"},
  });
}

TEST_CASE("TaintToleration wants every NoSchedule and NoExecute taint tolerated") {
  check({
      {"NoSchedule refuses", [](World& w) { w.node("n1").taint("k", "v", "NoSchedule"); },
       "TaintToleration", "has the taint k=v:NoSchedule that the pod does not tolerate"},
      {"NoExecute refuses", [](World& w) { w.node("n1").taint("k", "", "NoExecute"); },
       "TaintToleration", "k:NoExecute"},
      {"PreferNoSchedule does not",
       [](World& w) { w.node("n1").taint("k", "", "PreferNoSchedule"); }, "", ""},
      {"an equal toleration",
       [](World& w) {
         w.node("n1").taint("k", "v", "NoSchedule");
         w.pod(kPod).tolerate("k", "Equal", "v", "NoSchedule");
       },
       "", ""},
      {"another value is not tolerated",
       [](World& w) {
         w.node("n1").taint("k", "v", "NoSchedule");
         w.pod(kPod).tolerate("k", "Equal", "w", "NoSchedule");
       },
       "TaintToleration", "k=v"},
      {"a toleration of one effect leaves the other",
       [](World& w) {
         w.node("n1").taint("k", "v", "NoSchedule").taint("k", "v", "NoExecute");
         w.pod(kPod).tolerate("k", "Exists", "", "NoSchedule");
       },
       "TaintToleration", "NoExecute"},
      {"an empty key with Exists tolerates all",
       [](World& w) {
         w.node("n1").taint("k", "v", "NoSchedule").taint("l", "", "NoExecute");
         w.pod(kPod).tolerate("", "Exists", "", "");
       },
       "", ""},
  });
}

TEST_CASE("NodeAffinity: nodeSelector and required terms") {
  const auto term = [](std::vector<api::SelectorRequirement> expressions,
                       std::vector<api::SelectorRequirement> fields = {}) {
    return api::NodeSelectorTerm{std::move(expressions), std::move(fields)};
  };
  const auto terms = [](std::vector<api::NodeSelectorTerm> all) {
    return [all](World& w) {
      w.node("n1").zone("a").label("cores", "8");
      w.pod(kPod).spec().required_node_affinity = all;
    };
  };
  const std::string zone = "topology.kubernetes.io/zone";
  check({
      {"nodeSelector matches",
       [](World& w) {
         w.node("n1").label("disk", "ssd");
         w.pod(kPod).selector("disk", "ssd");
       },
       "", ""},
      {"nodeSelector without the label", [](World& w) { w.pod(kPod).selector("disk", "ssd"); },
       "NodeAffinity", "wants disk=ssd, node n1 has no such label"},
      {"nodeSelector with another value",
       [](World& w) {
         w.node("n1").label("disk", "hdd");
         w.pod(kPod).selector("disk", "ssd");
       },
       "NodeAffinity", "node n1 has hdd"},
      {"In", terms({term({{zone, "In", {"a", "b"}}})}), "", ""},
      {"In another zone", terms({term({{zone, "In", {"b"}}})}), "NodeAffinity", "no term"},
      {"NotIn", terms({term({{zone, "NotIn", {"b"}}})}), "", ""},
      {"NotIn matches a node without the label", terms({term({{"x", "NotIn", {"b"}}})}), "", ""},
      {"Exists", terms({term({{"x", "Exists", {}}})}), "NodeAffinity", ""},
      {"DoesNotExist", terms({term({{"x", "DoesNotExist", {}}})}), "", ""},
      {"Gt compares numbers", terms({term({{"cores", "Gt", {"7"}}})}), "", ""},
      {"Gt of the same number", terms({term({{"cores", "Gt", {"8"}}})}), "NodeAffinity", ""},
      {"Lt", terms({term({{"cores", "Lt", {"10"}}})}), "", ""},
      {"requirements of one term are ANDed",
       terms({term({{zone, "In", {"a"}}, {"x", "Exists", {}}})}), "NodeAffinity", ""},
      {"terms are ORed", terms({term({{"x", "Exists", {}}}), term({{zone, "In", {"a"}}})}), "", ""},
      {"an empty term matches nothing", terms({term({})}), "NodeAffinity", ""},
      {"matchFields by name", terms({term({}, {{"metadata.name", "In", {"n1"}}})}), "", ""},
      {"matchFields by another name", terms({term({}, {{"metadata.name", "In", {"n2"}}})}),
       "NodeAffinity", ""},
      {"matchFields NotIn", terms({term({}, {{"metadata.name", "NotIn", {"n1"}}})}), "NodeAffinity",
       ""},
  });
}

TEST_CASE("InterPodAffinity: anti-affinity in both directions, affinity with the first-pod rule") {
  const std::string zone = "topology.kubernetes.io/zone";
  check({
      {"anti-affinity against a pod on the node",
       [](World& w) {
         w.pod("default/a-1").on("n1").label("app", "a");
         w.pod(kPod).anti_affinity("app", "a");
       },
       "InterPodAffinity", "must not be with pods of app=a in the same kubernetes.io/hostname"},
      {"anti-affinity ignores other nodes",
       [](World& w) {
         w.node("n2");
         w.pod("default/a-1").on("n2").label("app", "a");
         w.pod(kPod).anti_affinity("app", "a");
       },
       "", ""},
      {"anti-affinity by zone sees the neighbour node",
       [zone](World& w) {
         w.node("n1").zone("a");
         w.node("n2").zone("a");
         w.pod("default/a-1").on("n2").label("app", "a");
         w.pod(kPod).anti_affinity("app", "a", zone);
       },
       "InterPodAffinity", zone},
      {"anti-affinity does not bind on a node without the topology label",
       [zone](World& w) {
         w.pod("default/a-1").on("n1").label("app", "a");
         w.pod(kPod).anti_affinity("app", "a", zone);
       },
       "", ""},
      {"anti-affinity of another namespace's pods does not count",
       [](World& w) {
         w.pod("other/a-1").on("n1").label("app", "a");
         w.pod(kPod).anti_affinity("app", "a");
       },
       "", ""},
      {"unless the term names that namespace",
       [](World& w) {
         w.pod("other/a-1").on("n1").label("app", "a");
         w.pod(kPod).anti_affinity("app", "a").spec().required_pod_anti_affinity[0].namespaces = {
             "other"};
       },
       "InterPodAffinity", ""},
      {"or all of them",
       [](World& w) {
         w.pod("other/a-1").on("n1").label("app", "a");
         w.pod(kPod).anti_affinity("app", "a").spec().required_pod_anti_affinity[0].any_namespace =
             true;
       },
       "InterPodAffinity", ""},
      {"a term without a selector matches no pod",
       [](World& w) {
         w.pod("default/a-1").on("n1").label("app", "a");
         auto& terms = w.pod(kPod).anti_affinity("app", "a").spec().required_pod_anti_affinity;
         terms[0].label_selector = {};
         terms[0].has_label_selector = false;
       },
       "", ""},
      {"an existing pod keeps the incoming one away",
       [](World& w) {
         w.pod("default/a-1").on("n1").label("app", "a").anti_affinity("role", "batch");
         w.pod(kPod).label("role", "batch");
       },
       "InterPodAffinity", "keeps pods of role=batch out of its kubernetes.io/hostname"},
      {"even from another node of its zone",
       [zone](World& w) {
         w.node("n1").zone("a");
         w.node("n2").zone("a");
         w.pod("default/a-1").on("n2").anti_affinity("role", "batch", zone);
         w.pod(kPod).label("role", "batch");
       },
       "InterPodAffinity", ""},
      {"a terminating pod still keeps others away",
       [](World& w) {
         w.pod("default/a-1").on("n1").anti_affinity("role", "batch").terminating();
         w.pod(kPod).label("role", "batch");
       },
       "InterPodAffinity", ""},
      {"a terminal pod does not",
       [](World& w) {
         w.pod("default/a-1")
             .on("n1")
             .anti_affinity("role", "batch")
             .phase(api::PodPhase::succeeded);
         w.pod(kPod).label("role", "batch");
       },
       "", ""},
      {"affinity is satisfied by a pod on the node",
       [](World& w) {
         w.pod("default/a-1").on("n1").label("app", "db");
         w.pod(kPod).affinity("app", "db");
       },
       "", ""},
      {"affinity to a pod elsewhere refuses",
       [](World& w) {
         w.node("n2");
         w.pod("default/a-1").on("n2").label("app", "db");
         w.pod(kPod).affinity("app", "db");
       },
       "InterPodAffinity", "must be with pods of app=db in the same kubernetes.io/hostname"},
      {"affinity to a pod in the zone",
       [zone](World& w) {
         w.node("n1").zone("a");
         w.node("n2").zone("a");
         w.pod("default/a-1").on("n2").label("app", "db");
         w.pod(kPod).affinity("app", "db", zone);
       },
       "", ""},
      {"affinity to nobody refuses", [](World& w) { w.pod(kPod).affinity("app", "db"); },
       "InterPodAffinity", ""},
      {"the first pod of a group that wants itself may start anywhere",
       [](World& w) { w.pod(kPod).label("app", "db").affinity("app", "db"); }, "", ""},
      {"the second one may not",
       [](World& w) {
         w.node("n2");
         w.pod("default/p-0").on("n2").label("app", "db");
         w.pod(kPod).label("app", "db").affinity("app", "db");
       },
       "InterPodAffinity", ""},
      {"affinity needs the topology label on the node",
       [zone](World& w) { w.pod(kPod).label("app", "db").affinity("app", "db", zone); },
       "InterPodAffinity", ""},
      {"all terms must speak of the same pod",
       [](World& w) {
         w.pod("default/a-1").on("n1").label("app", "db");
         w.pod("default/b-1").on("n1").label("role", "x");
         w.pod(kPod).affinity("app", "db").affinity("role", "x");
       },
       "InterPodAffinity", ""},
  });
}

// Three zones; `counts` pods of app=w in a, b, c; n1 is in zone a.
void zones(World& w, std::vector<int> counts, const std::string& label = "w") {
  const std::vector<std::string> names = {"n1", "n2", "n3"}, zone = {"a", "b", "c"};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    w.node(names[i]).zone(zone[i]);
    for (int k = 0; k < counts[i]; ++k) {
      w.pod("default/w-" + zone[i] + std::to_string(k)).on(names[i]).label("app", label);
    }
  }
}

TEST_CASE("PodTopologySpread with DoNotSchedule keeps the skew") {
  const std::string zone = "topology.kubernetes.io/zone";
  check({
      {"the emptiest zone is fine",
       [&](World& w) {
         zones(w, {0, 1, 1});
         w.pod(kPod).label("app", "w").spread("app", "w", zone);
       },
       "", ""},
      {"one more than the least is fine",
       [&](World& w) {
         zones(w, {1, 1, 1});
         w.pod(kPod).label("app", "w").spread("app", "w", zone);
       },
       "", ""},
      {"two more is not",
       [&](World& w) {
         zones(w, {1, 0, 1});
         w.pod(kPod).label("app", "w").spread("app", "w", zone);
       },
       "PodTopologySpread", "would exceed maxSkew 1: 1 there, 0 at least"},
      {"unless maxSkew allows it",
       [&](World& w) {
         zones(w, {1, 0, 1});
         w.pod(kPod).label("app", "w").spread("app", "w", zone, 2);
       },
       "", ""},
      {"a pod that does not match its own selector does not add to the skew",
       [&](World& w) {
         zones(w, {1, 0, 1});
         w.pod(kPod).spread("app", "w", zone);
       },
       "", ""},
      {"pods of other namespaces do not count",
       [&](World& w) {
         zones(w, {0, 0, 0});
         w.pod("other/w-1").on("n1").label("app", "w");
         w.pod(kPod).label("app", "w").spread("app", "w", zone);
       },
       "", ""},
      {"terminating pods do not count",
       [&](World& w) {
         zones(w, {1, 0, 0});
         w.pod("default/w-a0").terminating();
         w.pod(kPod).label("app", "w").spread("app", "w", zone);
       },
       "", ""},
      {"a node without the key refuses",
       [&](World& w) {
         w.node("n2").zone("b");
         w.pod(kPod).label("app", "w").spread("app", "w", zone);
       },
       "PodTopologySpread", "lacks the label"},
      {"fewer domains than minDomains make the least 0",
       [&](World& w) {
         zones(w, {1, 1});
         auto& pod = w.pod(kPod).label("app", "w").spread("app", "w", zone);
         pod.spec().topology_spread[0].min_domains = 3;
       },
       "PodTopologySpread", "0 at least"},
      {"as many domains as minDomains do not",
       [&](World& w) {
         zones(w, {1, 1, 1});
         auto& pod = w.pod(kPod).label("app", "w").spread("app", "w", zone);
         pod.spec().topology_spread[0].min_domains = 3;
       },
       "", ""},
      {"nodeAffinityPolicy Honor leaves out nodes the pod cannot use",
       [&](World& w) {
         zones(w, {1, 1, 0});
         w.node("n1").label("pool", "x");
         w.node("n2").label("pool", "x");
         w.pod(kPod).label("app", "w").selector("pool", "x").spread("app", "w", zone);
       },
       "", ""},
      {"nodeAffinityPolicy Ignore counts them",
       [&](World& w) {
         zones(w, {1, 1, 0});
         w.node("n1").label("pool", "x");
         w.node("n2").label("pool", "x");
         auto& pod = w.pod(kPod).label("app", "w").selector("pool", "x").spread("app", "w", zone);
         pod.spec().topology_spread[0].node_affinity_policy = "Ignore";
       },
       "PodTopologySpread", ""},
      {"nodeTaintsPolicy Ignore counts tainted nodes, even those that are off",
       [&](World& w) {
         zones(w, {1, 1, 0});
         w.node("n3").off();
         w.pod(kPod).label("app", "w").spread("app", "w", zone);
       },
       "PodTopologySpread", ""},
      {"nodeTaintsPolicy Honor leaves them out",
       [&](World& w) {
         zones(w, {1, 1, 0});
         w.node("n3").off();
         auto& pod = w.pod(kPod).label("app", "w").spread("app", "w", zone);
         pod.spec().topology_spread[0].node_taints_policy = "Honor";
       },
       "", ""},
      {"every constraint must hold",
       [&](World& w) {
         zones(w, {0, 0, 0});
         w.pod("default/w-a0").on("n1").label("app", "w");
         w.pod(kPod)
             .label("app", "w")
             .spread("app", "w", zone, 5)
             .spread("app", "w", "kubernetes.io/hostname");
       },
       "PodTopologySpread", "kubernetes.io/hostname"},
      {"ScheduleAnyway does not filter",
       [&](World& w) {
         zones(w, {3, 0, 0});
         auto& pod = w.pod(kPod).label("app", "w").spread("app", "w", zone);
         pod.spec().topology_spread[0].do_not_schedule = false;
       },
       "", ""},
  });
}

TEST_CASE("NodePorts: the same port and protocol on overlapping addresses") {
  check({
      {"a free port", [](World& w) { w.pod(kPod).host_port(80); }, "", ""},
      {"a port in use",
       [](World& w) {
         w.pod("default/a-1").on("n1").host_port(80);
         w.pod(kPod).host_port(80);
       },
       "NodePorts", "80/TCP"},
      {"another protocol",
       [](World& w) {
         w.pod("default/a-1").on("n1").host_port(80, "UDP");
         w.pod(kPod).host_port(80);
       },
       "", ""},
      {"other addresses",
       [](World& w) {
         w.pod("default/a-1").on("n1").host_port(80, "TCP", "10.0.0.1");
         w.pod(kPod).host_port(80, "TCP", "10.0.0.2");
       },
       "", ""},
      {"0.0.0.0 overlaps every address",
       [](World& w) {
         w.pod("default/a-1").on("n1").host_port(80, "TCP", "10.0.0.1");
         w.pod(kPod).host_port(80, "TCP", "0.0.0.0");
       },
       "NodePorts", ""},
      {"a terminal pod has released its port",
       [](World& w) {
         w.pod("default/a-1").on("n1").host_port(80).phase(api::PodPhase::failed);
         w.pod(kPod).host_port(80);
       },
       "", ""},
  });
}

TEST_CASE("VolumeBinding: bound claims follow their volume, unbound ones go nowhere") {
  const std::string zone = "topology.kubernetes.io/zone";
  check({
      {"a volume that reaches everywhere",
       [](World& w) {
         w.volume("pv", "", "");
         w.claim("default/data", "pv");
         w.pod(kPod).claim("data");
       },
       "", ""},
      {"a volume of the node's zone",
       [zone](World& w) {
         w.node("n1").zone("a");
         w.volume("pv", zone, "a");
         w.claim("default/data", "pv");
         w.pod(kPod).claim("data");
       },
       "", ""},
      {"a volume of another zone",
       [zone](World& w) {
         w.node("n1").zone("a");
         w.volume("pv", zone, "b");
         w.claim("default/data", "pv");
         w.pod(kPod).claim("data");
       },
       "VolumeBinding", "the volume of the claim default/data cannot be reached from node n1"},
      {"a claim that is not bound",
       [](World& w) {
         w.claim("default/data", "");
         w.pod(kPod).claim("data");
       },
       "VolumeBinding", "not bound"},
      {"a claim nobody knows", [](World& w) { w.pod(kPod).claim("data"); }, "VolumeBinding",
       "not known"},
      {"a volume nobody knows",
       [](World& w) {
         w.claim("default/data", "pv");
         w.pod(kPod).claim("data");
       },
       "VolumeBinding", "volume of the claim default/data is not known"},
      {"a claim of the same name in another namespace is another claim",
       [](World& w) {
         w.volume("pv", "", "");
         w.claim("other/data", "pv");
         w.pod(kPod).claim("data");
       },
       "VolumeBinding", "not known"},
  });
}

TEST_CASE("a pod with scheduling gates fits nowhere") {
  check({{"gated", [](World& w) { w.pod(kPod).gated(); }, "SchedulingGates", "gates"}});
}

TEST_CASE("only awake nodes are destinations, and the sentence says why others are not") {
  check({
      {"off", [](World& w) { w.node("n1").off(); }, "NodeAwake", "node n1 is off"},
      {"powering on", [](World& w) { w.node("n1").state(api::PowerState::PoweringOn); },
       "NodeAwake", "being switched on"},
      {"not ready", [](World& w) { w.node("n1").not_ready(); }, "NodeAwake", "not ready"},
      {"cordoned", [](World& w) { w.node("n1").cordoned(); }, "NodeAwake", "cordoned"},
      {"being emptied", [](World& w) { w.node("n1").operation(api::OperationKind::PowerOff); },
       "NodeAwake", "being emptied"},
      {"losing pods", [](World& w) { w.node("n1").operation(api::OperationKind::Migrate); },
       "NodeAwake", "being emptied"},
      {"changing its frequency is no hindrance",
       [](World& w) { w.node("n1").operation(api::OperationKind::SetFrequency); }, "", ""},
      {"held off by people", [](World& w) { w.node("n1").annotation("kwatt.dev/override", "off"); },
       "NodeAwake", "override"},
      {"no NodePower, but Ready", [](World& w) { w.node("n1").no_machine(); }, "", ""},
      {"slow and capped nodes can still take pods",
       [](World& w) {
         w.node("n1").label("kwatt.dev/frequency", "low").label("kwatt.dev/capped", "true");
       },
       "", ""},
  });
}

}  // namespace
}  // namespace kwatt::planner
