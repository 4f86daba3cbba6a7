#include <functional>

#include <doctest/doctest.h>

#include "planner/pending.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::enforcing;
using test::OnePass;
using test::World;
using namespace std::chrono_literals;

constexpr const char* kPod = "default/p-1";

TEST_CASE("which pods wait for lack of resources") {
  struct Case {
    std::string name;
    std::function<void(World&)> given;  // besides a full n1 and n2 that is off
    bool waits;
  };
  const Case cases[] = {
      {"an unschedulable pod that fits the off node", [](World&) {}, true},
      {"one that fits an awake node after all",
       [](World& w) { w.pod("default/full-1").cpu_milli(3000); }, false},
      {"one that fits no node, on or off", [](World& w) { w.pod(kPod).cpu_milli(9000); }, false},
      {"one that no off node may take", [](World& w) { w.pod(kPod).selector("disk", "ssd"); },
       false},
      {"one the scheduler has not judged yet",
       [](World& w) { w.pod(kPod).pod().scheduled = api::PodScheduled::unknown; }, false},
      {"one with a nomination", [](World& w) { w.pod(kPod).pod().nominated_node_name = "n1"; },
       false},
      {"one with scheduling gates", [](World& w) { w.pod(kPod).gated(); }, false},
      {"one that is being deleted", [](World& w) { w.pod(kPod).terminating(); }, false},
      {"a DaemonSet's pod waits for its own node only", [](World& w) { w.pod(kPod).daemon(); },
       false},
      {"the off node is held off by people",
       [](World& w) { w.node("n2").annotation("kwatt.dev/override", "off"); }, false},
      {"the off node is cordoned by somebody else", [](World& w) { w.node("n2").cordoned(false); },
       false},
      {"the node is just coming up",
       [](World& w) { w.node("n2").state(api::PowerState::PoweringOn); }, true},
      {"the node could not be woken last time",
       [](World& w) { w.node("n2").state(api::PowerState::WakeFailed).quarantined(1h); }, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    w.node("n1");
    w.pod("default/full-1").on("n1").cpu_milli(3950);
    w.node("n2").off();
    w.pod(kPod);
    c.given(w);
    OnePass p{w.snapshot(), enforcing()};
    const Demand& demand = settle(p.pass);
    REQUIRE(demand.waiting.size() == (c.waits ? 1u : 0u));
    if (c.waits) CHECK(demand.waiting[0]->key() == kPod);
  }
}

TEST_CASE("an off node that the policy does not select wakes for nobody") {
  World w;
  w.node("n1").cpu_milli(50);
  w.node("n2").off();
  w.pod(kPod);
  OnePass p{w.snapshot(), enforcing()};
  p.selected = {"n1"};
  CHECK(settle(p.pass).waiting.empty());
}

TEST_CASE("pods are served by priority, then age, then name") {
  World w;
  w.node("n1").off();
  w.pod("default/a-1").pod().creation_timestamp = test::kNoon - 1h;
  w.pod("default/b-1").pod().creation_timestamp = test::kNoon - 2h;
  w.pod("default/c-1").spec().priority = 10;
  w.pod("default/d-1").pod().creation_timestamp = test::kNoon - 2h;
  OnePass p{w.snapshot(), enforcing()};
  std::string order;
  for (const auto& pod : settle(p.pass).waiting) order += pod->name.substr(0, 1);
  CHECK(order == "cbda");
}

TEST_CASE("pods about to be scheduled keep their room in the pass") {
  World w;
  w.node("n1");
  w.pod(kPod).cpu_milli(3000).pod().scheduled = api::PodScheduled::unknown;
  OnePass p{w.snapshot(), enforcing()};
  CHECK(settle(p.pass).waiting.empty());
  CHECK(p.what_if.free_cpu("n1") == Millicores{1000});
  CHECK(p.what_if.incoming("n1") == 1);
  settle(p.pass);
  CHECK(p.what_if.free_cpu("n1") == Millicores{1000});
}

TEST_CASE("looking at off nodes leaves no trace in the pass") {
  World w;
  w.node("n1").off();
  w.pod(kPod);
  OnePass p{w.snapshot(), enforcing()};
  CHECK(settle(p.pass).waiting.size() == 1);
  CHECK_FALSE(p.what_if.is_destination("n1"));
  CHECK(p.what_if.free_cpu("n1") == Millicores{4000});
}

}  // namespace
}  // namespace kwatt::planner
