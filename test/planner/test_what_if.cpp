#include <functional>

#include <doctest/doctest.h>

#include "planner/what_if.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::World;
using PodPtr = std::shared_ptr<const api::Pod>;

PodPtr pod_of(const Snapshot& s, const std::string& key) {
  for (const auto& pod : s.unbound) {
    if (pod->key() == key) return pod;
  }
  for (const auto& [name, node] : s.nodes) {
    for (const auto& pod : node.pods) {
      if (pod->key() == key) return pod;
    }
  }
  return nullptr;
}

TEST_CASE("a pod goes to the most allocated node that still fits it") {
  World w;
  for (const char* name : {"n1", "n2", "n3"}) w.node(name);
  w.pod("default/a-1").on("n2").cpu_milli(2000);
  w.pod("default/b-1").on("n3").cpu_milli(3500);
  w.pod("default/p-1").cpu_milli(1000);
  w.pod("default/q-1").cpu_milli(200);
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  CHECK(what_if.place(pod_of(s, "default/p-1")) == "n2");
  CHECK(what_if.place(pod_of(s, "default/q-1")) == "n3");
}

TEST_CASE("equal nodes are taken by name") {
  World w;
  for (const char* name : {"n3", "n1", "n2"}) w.node(name);
  w.pod("default/p-1");
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  CHECK(what_if.place(pod_of(s, "default/p-1")) == "n1");
}

TEST_CASE("slow and capped nodes are taken only if nothing else fits") {
  World w;
  w.node("slow").label("kwatt.dev/frequency", "low");
  w.node("capped").label("kwatt.dev/capped", "true");
  w.node("free").cpu(1);
  w.pod("default/a-1").on("slow").cpu_milli(1000);
  w.pod("default/p-1").cpu_milli(800);
  w.pod("default/q-1").cpu_milli(800);
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  CHECK(what_if.place(pod_of(s, "default/p-1")) == "free");
  CHECK(what_if.place(pod_of(s, "default/q-1")) == "slow");
}

TEST_CASE("a pod that moves leaves its node, and is not counted twice") {
  World w;
  w.node("n1");
  w.node("n2");
  w.pod("default/a-1").on("n1").cpu_milli(3000);
  w.pod("default/b-1").on("n1").cpu_milli(500);
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  what_if.exclude("n1");
  CHECK(what_if.place(pod_of(s, "default/a-1")) == "n2");
  CHECK(what_if.free_cpu("n1") == Millicores{3500});
  CHECK(what_if.free_cpu("n2") == Millicores{1000});
  CHECK(what_if.incoming("n2") == 1);
  // Placed again, it leaves the place it was given before.
  what_if.exclude("n2");
  what_if.include("n1");
  CHECK(what_if.place(pod_of(s, "default/a-1")) == "n1");
  CHECK(what_if.free_cpu("n2") == Millicores{4000});
  CHECK(what_if.free_cpu("n1") == Millicores{500});
  CHECK(what_if.incoming("n2") == 0);
}

TEST_CASE("a placement that fails changes nothing") {
  World w;
  w.node("n1").cpu(8);
  w.node("n2");
  w.pod("default/a-1").on("n1").cpu_milli(5000);
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  what_if.exclude("n1");
  const std::size_t mark = what_if.mark();
  CHECK_FALSE(what_if.place(pod_of(s, "default/a-1")).has_value());
  CHECK(what_if.mark() == mark);
  CHECK(what_if.free_cpu("n1") == Millicores{3000});
}

TEST_CASE("rollback restores room, destinations, woken nodes and counts") {
  World w;
  w.node("n1").zone("a");
  w.node("n2").zone("b").off();
  w.pod("default/a-1").on("n1").label("app", "a").anti_affinity("app", "a");
  w.pod("default/p-1").label("app", "a").anti_affinity("app", "a");
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  const PodPtr pod = pod_of(s, "default/p-1");
  CHECK_FALSE(what_if.place(pod).has_value());
  const std::size_t mark = what_if.mark();
  what_if.assume_awake("n2");
  CHECK(what_if.is_destination("n2"));
  CHECK(what_if.place(pod) == "n2");
  what_if.exclude("n1");
  what_if.remove(*pod_of(s, "default/a-1"));
  CHECK(what_if.free_cpu("n1") == Millicores{4000});
  what_if.rollback(mark);
  CHECK(what_if.free_cpu("n1") == Millicores{3900});
  CHECK(what_if.is_destination("n1"));
  CHECK_FALSE(what_if.is_destination("n2"));
  CHECK_FALSE(what_if.place(pod).has_value());
  // What was learnt in between is not remembered wrongly.
  what_if.remove(*pod_of(s, "default/a-1"));
  CHECK(what_if.place(pod) == "n1");
}

TEST_CASE("a node assumed awake is clean of our cordon and of what comes with being off") {
  struct Case {
    std::string name;
    std::function<void(test::NodeBuilder&)> given;
    std::string refused_by;
  };
  const Case cases[] = {
      {"as we left it", [](test::NodeBuilder&) {}, ""},
      {"with the stuck-volume taint",
       [](test::NodeBuilder& n) { n.taint("node.kubernetes.io/out-of-service", "", "NoExecute"); },
       ""},
      {"with a foreign taint",
       [](test::NodeBuilder& n) { n.taint("dedicated", "x", "NoSchedule"); }, "TaintToleration"},
      {"with somebody else's cordon", [](test::NodeBuilder& n) { n.cordoned(false); },
       "NodeUnschedulable"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    c.given(w.node("n1").off());
    w.pod("default/p-1");
    const Snapshot s = w.snapshot();
    WhatIf what_if{s, {}};
    what_if.assume_awake("n1");
    const auto unfit = what_if.fits(*pod_of(s, "default/p-1"), "n1");
    CHECK((unfit ? unfit->filter : "") == c.refused_by);
  }
}

TEST_CASE("a woken node has room set aside for the DaemonSets that will start there") {
  World w;
  w.node("n1").label("pool", "x");
  w.node("n2").label("pool", "x").off();
  w.node("n3").off();
  auto& daemon =
      w.pod("kube-system/cni-n1").on("n1").daemon().cpu_milli(1000).selector("pool", "x");
  daemon.spec().required_node_affinity.push_back({{}, {{"metadata.name", "In", {"n1"}}}});
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  what_if.assume_awake("n2");
  what_if.assume_awake("n3");
  CHECK(what_if.free_cpu("n2") == Millicores{3000});
  CHECK(what_if.free_cpu("n3") == Millicores{4000});
}

TEST_CASE("reserved pods occupy their destination") {
  World w;
  w.node("n1");
  w.node("n2");
  w.pod("default/a-1").on("n1").cpu_milli(3000);
  w.pod("default/p-1").cpu_milli(2000);
  const Snapshot s = w.snapshot();
  Reserved reserved;
  reserved["n2"].push_back(pod_of(s, "default/a-1"));
  WhatIf what_if{s, reserved};
  CHECK(what_if.free_cpu("n2") == Millicores{1000});
  CHECK_FALSE(what_if.place(pod_of(s, "default/p-1")).has_value());
}

TEST_CASE("spread and affinity follow pods while they are placed") {
  World w;
  for (const char* name : {"n1", "n2", "n3"}) w.node(name);
  for (int i = 0; i < 4; ++i) {
    w.pod("default/w-" + std::to_string(i))
        .label("app", "w")
        .spread("app", "w", "kubernetes.io/hostname");
  }
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  std::map<std::string, int> count;
  for (const auto& pod : s.unbound) ++count[what_if.place(pod).value_or("none")];
  CHECK(count == std::map<std::string, int>{{"n1", 2}, {"n2", 1}, {"n3", 1}});
}

TEST_CASE("a group that wants to be together follows its first pod") {
  World w;
  for (const char* name : {"n1", "n2"}) w.node(name);
  w.pod("default/x-1").on("n1").cpu_milli(3800);
  for (int i = 0; i < 3; ++i) {
    w.pod("default/g-" + std::to_string(i)).cpu_milli(150).label("g", "1").affinity("g", "1");
  }
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  CHECK(what_if.place(s.unbound[0]) == "n1");
  CHECK_FALSE(what_if.place(s.unbound[1]).has_value());  // 50m are left beside the first
  // The first goes away again: the second may start a group where there is room.
  what_if.remove(*s.unbound[0]);
  what_if.exclude("n1");
  CHECK(what_if.place(s.unbound[1]) == "n2");
  CHECK(what_if.place(s.unbound[2]) == "n2");
}

TEST_CASE("why a pod fits nowhere is counted by filter, as kube-scheduler says it") {
  World w;
  w.node("n1").cpu(1);
  w.node("n2").cpu(1);
  w.node("n3").taint("k", "", "NoSchedule");
  w.node("n4").off();
  w.pod("default/p-1").cpu_milli(2000);
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  CHECK_FALSE(what_if.place(s.unbound[0]).has_value());
  const Unfit unfit = what_if.why_nowhere(*s.unbound[0]);
  CHECK(unfit.filter == "NodeResourcesFit");
  CHECK(unfit.message ==
        "0 of 3 awake nodes fit (2 NodeResourcesFit, 1 TaintToleration); on n1: not enough cpu: "
        "needs 2000m, 1000m free");
}

TEST_CASE("a pod may be sent to a chosen node, or the sentence says why not") {
  World w;
  w.node("n1");
  w.node("n2").cpu(1);
  w.pod("default/p-1").cpu_milli(2000);
  const Snapshot s = w.snapshot();
  WhatIf what_if{s, {}};
  CHECK(what_if.place_on(s.unbound[0], "n2")->filter == "NodeResourcesFit");
  CHECK_FALSE(what_if.put(s.unbound[0], "n2"));
  CHECK_FALSE(what_if.place_on(s.unbound[0], "n1").has_value());
  CHECK(what_if.free_cpu("n1") == Millicores{2000});
  CHECK(what_if.place_on(s.unbound[0], "nowhere")->filter == "NodeName");
}

}  // namespace
}  // namespace kwatt::planner
