// The core kinds, reduced to what kwatt uses.
#include <doctest/doctest.h>

#include "api/decode.hpp"
#include "test/api/samples.hpp"

namespace kwatt::api {
namespace {

template <class T>
T read(std::string_view json, Interner* interner = nullptr) {
  T out;
  const auto done = decode(json, out, interner);
  REQUIRE_MESSAGE(done.has_value(), (done ? std::string{} : done.error().text()));
  return out;
}

TEST_CASE("a pod keeps what kwatt uses") {
  const Pod pod = read<Pod>(test::kPod);
  CHECK(pod.key() == "shop/web-7d9c-x2x4q");
  CHECK(pod.uid == "6f1d0c5e-9a56-4a52-8b5c-0c9d3c1f2a11");
  CHECK(pod.resource_version == "48213");
  CHECK(pod.node_name == "node14");
  CHECK(pod.phase == PodPhase::running);
  CHECK(pod.scheduled == PodScheduled::yes);
  CHECK(pod.ready);
  CHECK_FALSE(pod.mirror);
  CHECK(pod.workload());
  CHECK(pod.creation_timestamp == parse_rfc3339("2026-11-20T20:00:00Z"));
  CHECK_FALSE(pod.deletion_timestamp.has_value());
  CHECK(pod.scheduled_transition == parse_rfc3339("2026-11-20T20:00:01Z"));
  REQUIRE(pod.owner != nullptr);
  CHECK(*pod.owner == OwnerReference{"ReplicaSet", "web-7d9c", "rs-uid", true});
  CHECK(pod.annotations == StringMap{{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
                                     {"kwatt.dev/do-not-disrupt", "true"}});
  const PodTemplate& spec = *pod.spec;
  CHECK(spec.labels == StringMap{{"app", "web"}, {"pod-template-hash", "7d9c"}});
  CHECK(spec.node_selector == StringMap{{"pool", "web"}});
  CHECK(spec.required_node_affinity ==
        std::vector<NodeSelectorTerm>{{{{"zone", "In", {"a", "b"}}}, {}}});
  REQUIRE(spec.required_pod_anti_affinity.size() == 1);
  CHECK(spec.required_pod_anti_affinity[0].has_label_selector);
  CHECK(spec.required_pod_anti_affinity[0].label_selector.match_labels ==
        StringMap{{"app", "web"}});
  CHECK(spec.required_pod_anti_affinity[0].topology_key == "kubernetes.io/hostname");
  CHECK_FALSE(spec.required_pod_anti_affinity[0].any_namespace);
  REQUIRE(spec.topology_spread.size() == 1);  // ScheduleAnyway is not kept
  CHECK(spec.topology_spread[0].max_skew == 2);
  CHECK(spec.topology_spread[0].min_domains == 3);
  CHECK(spec.topology_spread[0].node_taints_policy == "Ignore");
  CHECK(spec.topology_spread[0].label_selector.match_expressions ==
        std::vector<SelectorRequirement>{{"pod-template-hash", "In", {"7d9c"}}});
  REQUIRE(spec.tolerations.size() == 2);
  CHECK(spec.tolerations[1].toleration_seconds == 300);
  CHECK(spec.host_ports == std::vector<HostPort>{{8443, "TCP", "10.0.0.1"}});
  CHECK(spec.claims == std::vector<std::string>{"data", "web-7d9c-x2x4q-scratch"});
  CHECK_FALSE(spec.local_storage);
  CHECK(spec.priority == 1000);
  CHECK(spec.scheduler_name == "default-scheduler");
  CHECK(spec.requests.cpu.count() == 250 + 100 + 5);  // container, sidecar, overhead
  CHECK(spec.requests.memory.count() == (256LL << 20) + (64LL << 20));
  CHECK(spec.requests.extended.at("nvidia.com/gpu") == 1);
}

TEST_CASE("requests are counted as kube-scheduler counts them") {
  struct Case {
    const char* name;
    const char* spec;
    std::int64_t cpu;
  };
  const Case cases[] = {
      {"nothing", R"({})", 0},
      {"containers add up",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}},
                         {"resources":{"requests":{"cpu":"500m"}}}]})",
       1500},
      {"a number without quotes", R"({"containers":[{"resources":{"requests":{"cpu":0.5}}}]})",
       500},
      {"a larger init container counts alone",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"resources":{"requests":{"cpu":"2"}}},
                             {"resources":{"requests":{"cpu":"3"}}}]})",
       3000},
      {"a smaller init container does not count",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"resources":{"requests":{"cpu":"500m"}}}]})",
       1000},
      {"a sidecar runs beside the containers",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}]})",
       3000},
      {"an init container runs beside the sidecars before it only",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"resources":{"requests":{"cpu":"4"}}},
                             {"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},
                             {"resources":{"requests":{"cpu":"3"}}}]})",
       5000},
      {"overhead is added",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],"overhead":{"cpu":"250m"}})",
       1250},
      {"amounts of the whole pod replace those of its containers",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "resources":{"requests":{"cpu":"3"}},"overhead":{"cpu":"250m"}})",
       3250},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Pod pod = read<Pod>(std::string{R"({"spec":)"} + c.spec + "}");
    CHECK(pod.spec->requests.cpu.count() == c.cpu);
  }
}

TEST_CASE("what the pod's state is, by phase, conditions and owner") {
  struct Case {
    const char* json;
    PodScheduled scheduled;
    bool workload;
  };
  const Case cases[] = {
      {R"({})", PodScheduled::unknown, true},
      {R"({"status":{"conditions":[{"type":"PodScheduled","status":"False",
          "reason":"Unschedulable"}]}})",
       PodScheduled::unschedulable, true},
      {R"({"status":{"conditions":[{"type":"PodScheduled","status":"False",
          "reason":"SchedulingGated"}]}})",
       PodScheduled::gated, true},
      {R"({"status":{"conditions":[{"type":"PodScheduled","status":"False",
          "reason":"SchedulerError"}]}})",
       PodScheduled::no_other, true},
      {R"({"status":{"phase":"Succeeded"}})", PodScheduled::unknown, false},
      {R"({"status":{"phase":"Failed"}})", PodScheduled::unknown, false},
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}})", PodScheduled::unknown,
       false},
      {R"({"metadata":{"ownerReferences":[{"kind":"DaemonSet","controller":true}]}})",
       PodScheduled::unknown, false},
      {R"({"metadata":{"ownerReferences":[{"kind":"DaemonSet"}]}})", PodScheduled::unknown, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    const Pod pod = read<Pod>(c.json);
    CHECK(pod.scheduled == c.scheduled);
    CHECK(pod.workload() == c.workload);
  }
}

TEST_CASE("what counts as local storage") {
  const std::pair<const char*, bool> cases[] = {
      {R"({"emptyDir":{}})", true},
      {R"({"emptyDir":{"sizeLimit":"1Gi"}})", true},
      {R"({"emptyDir":{"medium":"Memory"}})", false},
      {R"({"hostPath":{"path":"/data"}})", true},
      {R"({"configMap":{"name":"x"}})", false},
      {R"({"projected":{"sources":[]}})", false},
      {R"({"persistentVolumeClaim":{"claimName":"x"}})", false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.first);
    const std::string json = std::string{R"({"spec":{"volumes":[)"} + c.first + "]}}";
    CHECK(read<Pod>(json).spec->local_storage == c.second);
  }
}

TEST_CASE("replicas of one owner share their template, others do not") {
  Interner interner;
  const auto pod = [&](const std::string& name, const std::string& labels,
                       const std::string& owner = "ReplicaSet") {
    return read<Pod>(R"({"metadata":{"name":")" + name + R"(","labels":)" + labels +
                         R"(,"ownerReferences":[{"kind":")" + owner +
                         R"(","name":"o","uid":"u","controller":true}]},"spec":{"affinity":
                         {"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
                         {"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",
                         "operator":"In","values":[")" +
                         name + R"("]}]}]}}}}})",
                     &interner);
  };
  {
    // DaemonSet pods are pinned by name and would otherwise be a template each.
    const Pod a = pod("a", R"({"app":"x"})", "DaemonSet");
    const Pod b = pod("b", R"({"app":"x"})", "DaemonSet");
    CHECK(a.spec == b.spec);
    CHECK(a.owner == b.owner);
    CHECK(interner.templates() == 1);
    const Pod c = pod("a", R"({"app":"y"})", "DaemonSet");
    CHECK(a.spec != c.spec);
    const Pod d = pod("a", R"({"app":"x"})");
    CHECK(a.spec != d.spec);
    CHECK(d.spec->required_node_affinity.size() == 1);
    CHECK(interner.templates() == 3);
  }
  CHECK(interner.templates() == 0);  // nobody uses them any more
  for (int i = 0; i < 1000; ++i) pod("a", R"({"i":")" + std::to_string(i) + "\"}");
  CHECK(interner.templates() == 0);
}

TEST_CASE("a node keeps labels, annotations, taints, room and conditions") {
  const Node node = read<Node>(test::kNode);
  CHECK(node.meta.name == "node14");
  CHECK(node.meta.labels.get("topology.kubernetes.io/zone") == "a");
  CHECK(node.meta.annotations.get("kwatt.dev/governor") == "powersave");
  CHECK_FALSE(node.meta.annotations.contains("kubectl.kubernetes.io/last-applied-configuration"));
  CHECK(node.unschedulable);
  CHECK(node.taints.size() == 1);
  CHECK(node.taints[0].time_added == parse_rfc3339("2026-11-20T21:00:00Z"));
  CHECK(node.provider_id == "lab://node14");
  CHECK(node.allocatable.cpu.count() == 31850);
  CHECK(node.allocatable.memory.count() == 131072LL * 1024 * 1024);
  CHECK(node.allocatable.pods == 110);
  CHECK(node.allocatable.extended ==
        std::map<std::string, std::int64_t>{{"hugepages-1Gi", 0}, {"nvidia.com/gpu", 4}});
  REQUIRE(find_condition(node.conditions, "Ready") != nullptr);
  CHECK(find_condition(node.conditions, "Ready")->status == "True");
  CHECK(node.internal_ip == "10.0.0.14");
}

TEST_CASE("the other kinds keep what kwatt uses") {
  const auto budget = read<PodDisruptionBudget>(
      R"({"metadata":{"name":"b","namespace":"n"},"spec":{"minAvailable":"50%","selector":
          {"matchLabels":{"app":"web"}}},"status":{"disruptionsAllowed":1,"desiredHealthy":2,
          "currentHealthy":3,"expectedPods":4}})");
  CHECK(budget.has_selector);
  CHECK(budget.selector.match_labels == StringMap{{"app", "web"}});
  CHECK(budget.disruptions_allowed == 1);
  CHECK(budget.desired_healthy == 2);
  CHECK(budget.current_healthy == 3);
  CHECK(budget.expected_pods == 4);
  CHECK_FALSE(read<PodDisruptionBudget>(R"({"spec":{"maxUnavailable":1}})").has_selector);
  CHECK(read<PersistentVolumeClaim>(R"({"spec":{"volumeName":"pv1"}})").volume_name == "pv1");
  const auto volume = read<PersistentVolume>(
      R"({"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":
          [{"key":"kubernetes.io/hostname","operator":"In","values":["node1"]}]}]}}}})");
  REQUIRE(volume.required_node_affinity.size() == 1);
  CHECK(volume.required_node_affinity[0].match_expressions[0].values[0] == "node1");
  CHECK(read<VolumeAttachment>(R"({"spec":{"nodeName":"node1","attacher":"x"}})").node_name ==
        "node1");
  const auto lease = read<Lease>(
      R"({"metadata":{"name":"l","namespace":"n","resourceVersion":"5"},"spec":{"holderIdentity":
          "me","leaseDurationSeconds":15,"leaseTransitions":2,
          "renewTime":"2026-11-20T21:44:03.123456Z"}})");
  CHECK(lease.holder_identity == "me");
  CHECK(lease.lease_duration_seconds == 15);
  CHECK(lease.lease_transitions == 2);
  CHECK(lease.renew_time == "2026-11-20T21:44:03.123456Z");
  const auto workload =
      read<Workload>(R"({"kind":"ReplicaSet","metadata":{"name":"w"},"spec":{"replicas":3}})");
  CHECK(workload.kind == "ReplicaSet");
  CHECK(workload.replicas == 3);
  CHECK(read<Workload>(R"({"spec":{}})").replicas == 1);
}

TEST_CASE("a wrong amount is an error with its path") {
  Pod pod;
  const auto done =
      decode(R"({"spec":{"containers":[{},{"resources":{"requests":{"memory":"much"}}}]}})", pod);
  REQUIRE(done.has_error());
  CHECK(done.error().message ==
        "spec.containers[1].resources.requests[memory]: expected a quantity, got \"much\"");
}

}  // namespace
}  // namespace kwatt::api
