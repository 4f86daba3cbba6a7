#include <functional>

#include <doctest/doctest.h>

#include "planner/levers.hpp"
#include "test/planner/world.hpp"

namespace kwatt::planner {
namespace {

using test::enforcing;
using test::kNoon;
using test::OnePass;
using test::World;
using namespace std::chrono_literals;

struct Outcome {
  Proposal proposal;
  std::vector<std::string> pending;
  api::PolicyMemory next;

  std::vector<std::string> woken() const {
    std::vector<std::string> names;
    for (const Action& action : proposal.actions) names.push_back(action.node);
    return names;
  }
  std::optional<Reason> refusal(const std::string& node) const {
    const auto at = proposal.refusals.find(node);
    return at == proposal.refusals.end() ? std::nullopt : std::optional{at->second.reason};
  }
};

Outcome run(const World& w, const api::EnergyPolicySpec& spec = enforcing(),
            const api::PolicyMemory& memory = {}) {
  OnePass p{w.snapshot(), spec};
  Outcome outcome;
  outcome.next = memory;
  outcome.proposal = power_on(p.pass, memory, outcome.next, outcome.pending);
  return outcome;
}

using Names = std::vector<std::string>;

TEST_CASE("a pod that waits for resources wakes a node that fits it") {
  World w;
  w.node("n1").cpu_milli(50);
  w.node("n2").cpu(2).off();
  w.node("n3").cpu(8).off();
  w.pod("default/p-1").cpu_milli(3000);
  const Outcome o = run(w);
  CHECK(o.woken() == Names{"n3"});
  CHECK(o.pending == Names{"default/p-1"});
  const Action& action = o.proposal.actions[0];
  CHECK(std::holds_alternative<PowerOn>(action.what));
  CHECK(action.reason == Reason::PendingPods);
  CHECK(action.message.find("woken for 1 pending pod: default/p-1") == 0);
  CHECK(action.pre.node_uid == "uid-n3");
  CHECK(action.expected_saving < Milliwatts{0});
  CHECK(o.refusal("n2") == Reason::Idle);
  CHECK_FALSE(o.refusal("n1").has_value());
}

TEST_CASE("nothing is woken when nothing waits") {
  World w;
  w.node("n1");
  w.node("n2").off();
  w.pod("default/p-1").on("n1");
  const Outcome o = run(w);
  CHECK(o.woken().empty());
  CHECK(o.pending.empty());
  CHECK(o.refusal("n2") == Reason::Idle);
}

TEST_CASE("the set of nodes that adds the least power is chosen") {
  struct Case {
    std::string name;
    std::function<void(World&)> given;
    Names want;
  };
  const Case cases[] = {
      {"the cheaper of two equals",
       [](World& w) {
         w.node("a").off().watts(100, 200);
         w.node("b").off().watts(40, 80);
         w.pod("default/p-1").cpu_milli(1000);
       },
       {"b"}},
      {"equal ones by name",
       [](World& w) {
         w.node("b").off();
         w.node("a").off();
         w.pod("default/p-1").cpu_milli(1000);
       },
       {"a"}},
      {"one big node rather than three small ones",
       [](World& w) {
         for (const char* n : {"s1", "s2", "s3"}) w.node(n).cpu(4).off().watts(50, 100);
         w.node("t").cpu(16).off().watts(90, 200);
         for (int i = 0; i < 3; ++i) w.pod("default/p-" + std::to_string(i)).cpu_milli(3000);
       },
       {"t"}},
      {"two small ones rather than a hungry big one",
       [](World& w) {
         for (const char* n : {"s1", "s2", "s3"}) w.node(n).cpu(4).off().watts(50, 100);
         w.node("t").cpu(16).off().watts(300, 600);
         for (int i = 0; i < 2; ++i) w.pod("default/p-" + std::to_string(i)).cpu_milli(3000);
       },
       {"s1", "s2"}},
      {"greed per pod would take two small ones, finishing with one is cheaper",
       [](World& w) {
         for (const char* n : {"s1", "s2"}) w.node(n).cpu(2).off().watts(50, 50);
         w.node("t").cpu(3).off().watts(90, 90);
         for (int i = 0; i < 3; ++i) w.pod("default/p-" + std::to_string(i)).cpu_milli(1000);
       },
       {"t"}},
      {"a costly boot counts",
       [](World& w) {
         w.node("a").off().watts(40, 80).boot(300s, 180'000);
         w.node("b").off().watts(50, 90).boot(30s, 100);
         w.pod("default/p-1").cpu_milli(1000);
       },
       {"b"}},
      {"only the node in the volume's zone will do",
       [](World& w) {
         w.node("a").zone("x").off().watts(10, 20);
         w.node("b").zone("y").off();
         w.volume("pv", "topology.kubernetes.io/zone", "y");
         w.claim("default/data", "pv");
         w.pod("default/p-1").claim("data");
       },
       {"b"}},
      {"only the node that the pod names will do",
       [](World& w) {
         for (const char* n : {"a", "b", "c"}) w.node(n).off();
         w.pod("default/p-1").selector("kubernetes.io/hostname", "c");
       },
       {"c"}},
      {"anti-affinity needs a node each",
       [](World& w) {
         for (const char* n : {"a", "b", "c"}) w.node(n).off();
         for (int i = 0; i < 2; ++i) {
           w.pod("default/p-" + std::to_string(i)).label("app", "p").anti_affinity("app", "p");
         }
       },
       {"a", "b"}},
      {"a pod that fits nowhere does not keep others from waking",
       [](World& w) {
         w.node("a").off();
         w.pod("default/huge-1").cpu_milli(64'000);
         w.pod("default/p-1").cpu_milli(1000);
       },
       {"a"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    c.given(w);
    CHECK(run(w).woken() == c.want);
  }
}

TEST_CASE("nodes that are coming up are counted before others are woken") {
  World w;
  w.node("n1").off().state(api::PowerState::PoweringOn).operation(api::OperationKind::PowerOn);
  w.node("n2").off();
  w.pod("default/p-1").cpu_milli(3000);
  Outcome o = run(w);
  CHECK(o.woken().empty());
  CHECK(o.pending == Names{"default/p-1"});
  CHECK(o.refusal("n1") == Reason::InProgress);
  w.pod("default/p-2").cpu_milli(3000);
  CHECK(run(w).woken() == Names{"n2"});
}

TEST_CASE("a node that is on but not yet uncordoned is coming capacity, too") {
  World w;
  w.node("n1").off().state(api::PowerState::On).operation(api::OperationKind::PowerOn);
  w.node("n2").off();
  w.pod("default/p-1").cpu_milli(3000);
  CHECK(run(w).woken().empty());
}

TEST_CASE("why an off node is not woken") {
  struct Case {
    std::string name;
    std::function<void(test::NodeBuilder&)> given;
    Reason want;
  };
  const Case cases[] = {
      {"no driver", [](auto& n) { n.no_driver(); }, Reason::NoDriver},
      {"excluded", [](auto& n) { n.annotation("kwatt.dev/exclude", "true"); }, Reason::Excluded},
      {"held off", [](auto& n) { n.annotation("kwatt.dev/override", "off"); }, Reason::Manual},
      {"somebody else's cordon", [](auto& n) { n.cordoned(false); }, Reason::ForeignOwner},
      {"quarantined after a failed wake",
       [](auto& n) { n.state(api::PowerState::WakeFailed).quarantined(10min); },
       Reason::WakeFailed},
      {"backing off after a driver error", [](auto& n) { n.quarantined(10min); }, Reason::CoolDown},
      {"cooling down", [](auto& n) { n.cool_down(3min); }, Reason::CoolDown},
      {"being switched off right now", [](auto& n) { n.operation(api::OperationKind::PowerOff); },
       Reason::InProgress},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    World w;
    c.given(w.node("n1").off());
    w.pod("default/p-1");
    const Outcome o = run(w);
    CHECK(o.woken().empty());
    CHECK(o.refusal("n1") == c.want);
  }
}

TEST_CASE("after a failed wake another machine is chosen, and the failed one is tried last") {
  World w;
  w.node("n1").off().state(api::PowerState::WakeFailed).quarantined(-1min).watts(10, 20);
  w.node("n2").off();
  w.pod("default/p-1");
  CHECK(run(w).woken() == Names{"n2"});
  World alone;
  alone.node("n1").off().state(api::PowerState::WakeFailed).quarantined(-1min);
  alone.pod("default/p-1");
  CHECK(run(alone).woken() == Names{"n1"});
}

TEST_CASE("a pod beats minOffDuration only where nothing else fits it") {
  World w;
  w.node("n1").off(2min).watts(10, 20);
  w.node("n2").off(1h);
  w.pod("default/p-1");
  Outcome o = run(w);
  CHECK(o.woken() == Names{"n2"});
  CHECK(o.refusal("n1") == Reason::MinOffTime);
  CHECK(o.proposal.next_wake == Duration{8min});
  w.pod("default/p-1").selector("kubernetes.io/hostname", "n1");
  CHECK(run(w).woken() == Names{"n1"});
}

TEST_CASE("pendingFor delays waking, and says when to look again") {
  World w;
  w.node("n1").off();
  w.pod("default/p-1").pending_for(20s);
  api::EnergyPolicySpec spec = enforcing();
  spec.power_on.pending_for = 30s;
  const Outcome o = run(w, spec);
  CHECK(o.woken().empty());
  CHECK(o.pending == Names{"default/p-1"});
  CHECK(o.proposal.next_wake == Duration{10s});
  w.pod("default/p-1").pending_for(30s);
  CHECK(run(w, spec).woken() == Names{"n1"});
}

TEST_CASE("maxPerMinute counts what was started in the last minute") {
  World w;
  api::EnergyPolicySpec spec = enforcing();
  spec.power_on.max_per_minute = 2;
  w.node("a").on_for(30s).cpu_milli(50);
  for (const char* n : {"b", "c", "d"}) w.node(n).off();
  for (int i = 0; i < 3; ++i) w.pod("default/p-" + std::to_string(i)).cpu_milli(3000);
  const Outcome o = run(w, spec);
  CHECK(o.woken() == Names{"b"});
  CHECK(o.refusal("c") == Reason::RateLimited);
  CHECK(o.refusal("d") == Reason::RateLimited);
}

TEST_CASE("headroom is kept on awake nodes, with the cheapest node per core") {
  World w;
  w.node("n1").cpu(10);
  w.node("n2").cpu(10).off().watts(100, 200);
  w.node("n3").cpu(10).off().watts(50, 100);
  w.pod("default/a-1").on("n1").cpu_milli(9000);
  api::EnergyPolicySpec spec = enforcing();
  spec.power_on.headroom = {10, 0};
  CHECK(run(w, spec).woken().empty());
  spec.power_on.headroom = {11, 0};
  const Outcome o = run(w, spec);
  CHECK(o.woken() == Names{"n3"});
  CHECK(o.proposal.actions[0].reason == Reason::Headroom);
  CHECK(o.proposal.actions[0].message.find("cpu 10 %") == 0);
  // Not urgent: minOffDuration holds.
  w.node("n3").off(1min);
  CHECK(run(w, spec).woken() == Names{"n2"});
  // Memory counts alone, too.
  w.pod("default/a-1").memory_mib(15 * 1024).cpu_milli(100);
  spec.power_on.headroom = {0, 10};
  CHECK(run(w, spec).woken() == Names{"n2"});
}

TEST_CASE("capacity that is coming up counts as headroom") {
  World w;
  w.node("n1").cpu(10);
  w.node("n2").cpu(10).off().state(api::PowerState::PoweringOn);
  w.node("n3").cpu(10).off();
  w.pod("default/a-1").on("n1").cpu_milli(9900);
  api::EnergyPolicySpec spec = enforcing();
  spec.power_on.headroom = {20, 20};
  CHECK(run(w, spec).woken().empty());
}

TEST_CASE("high load wakes one node ahead once it has lasted") {
  World w;
  w.node("n1").utilization(95);
  w.node("n2").utilization(75);
  w.node("n3").off();
  w.node("n4").off();
  api::PolicyMemory memory;
  Outcome o = run(w, enforcing(), memory);
  CHECK(o.woken().empty());
  CHECK(o.next.high_since == kNoon);  // (95 + 75) / 2 = 85 % is above 81 %
  CHECK(o.proposal.next_wake == Duration{5min});

  memory.high_since = kNoon - 5min;
  o = run(w, enforcing(), memory);
  CHECK(o.woken() == Names{"n3"});
  CHECK(o.proposal.actions[0].reason == Reason::HighLoad);
  CHECK(o.next.high_since == kNoon);  // the next one only after another highFor

  api::EnergyPolicySpec recommend = enforcing();
  recommend.mode = api::Mode::Recommend;
  o = run(w, recommend, memory);
  CHECK(o.woken() == Names{"n3"});
  CHECK(o.next.high_since == memory.high_since);  // the advice stands

  w.node("n3").state(api::PowerState::PoweringOn);
  CHECK(run(w, enforcing(), memory).woken().empty());

  w.node("n1").utilization(80);
  w.node("n2").utilization(81);
  CHECK_FALSE(run(w, enforcing(), memory).next.high_since.has_value());
}

TEST_CASE("without fresh telemetry there is no high load") {
  World w;
  w.node("n1").utilization(99, 99, 0, 10min, 5min);
  w.node("n2").off();
  api::PolicyMemory memory;
  memory.high_since = kNoon - 1h;
  const Outcome o = run(w, enforcing(), memory);
  CHECK(o.woken().empty());
  CHECK_FALSE(o.next.high_since.has_value());
}

TEST_CASE("people hold a node on with the override annotation") {
  struct Case {
    std::string text;
    Names want;
  };
  const Case cases[] = {{"on", {"n1"}},
                        {"on,until=2026-11-20T18:00:00Z", {"n1"}},
                        {"on,until=2026-11-20T11:00:00Z", {}},
                        {"on,until=tomorrow", {}},
                        {"off", {}},
                        {"", {}}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    World w;
    w.node("n1").off().annotation("kwatt.dev/override", c.text);
    const Outcome o = run(w);
    CHECK(o.woken() == c.want);
    if (!c.want.empty()) CHECK(o.proposal.actions[0].reason == Reason::Manual);
  }
}

TEST_CASE("what is about to be woken is no destination for the levers that follow") {
  World w;
  w.node("n1").off();
  w.pod("default/p-1");
  OnePass p{w.snapshot(), enforcing()};
  api::PolicyMemory next;
  std::vector<std::string> pending;
  CHECK(power_on(p.pass, {}, next, pending).actions.size() == 1);
  CHECK_FALSE(p.what_if.is_destination("n1"));
}

TEST_CASE("a disabled lever wakes nothing and says so") {
  World w;
  w.node("n1").off();
  w.pod("default/p-1");
  api::EnergyPolicySpec spec = enforcing();
  spec.power_on.enabled = false;
  const Outcome o = run(w, spec);
  CHECK(o.woken().empty());
  CHECK(o.refusal("n1") == Reason::LeverDisabled);
}

}  // namespace
}  // namespace kwatt::planner
