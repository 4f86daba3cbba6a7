// Whole plans as text: a change of any decision, sentence or order shows as a diff.
// UPDATE_GOLDEN=1 rewrites the files in test/golden/plans.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>

#include <doctest/doctest.h>

#include "planner/render.hpp"
#include "test/planner/agent.hpp"
#include "test/support/source_dir.hpp"

namespace kwatt::test {
namespace {

struct Scene {
  const char* file;
  std::function<void(World&, api::EnergyPolicySpec&)> build;
};

std::string read(const std::string& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

// Three zones, some load, some idle nodes.
void room(World& w) {
  for (int i = 1; i <= 6; ++i) {
    with_agent(w.node("node" + std::to_string(i)))
        .zone(std::string(1, static_cast<char>('a' + i % 3)))
        .utilization(10 * i, 50 + 10 * i);
  }
  for (int i = 1; i <= 4; ++i) {
    for (int k = 0; k < i; ++k) {
      w.pod("shop/web-" + std::to_string(10 * i + k)).on("node" + std::to_string(i)).cpu_milli(400);
    }
  }
  w.node("node5").idle_for(hours{1});
  w.node("node6").idle_for(minutes{4});
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = {
      {"power-off-idle", [](World& w, api::EnergyPolicySpec&) { room(w); }},
      {"power-on-pending",
       [](World& w, api::EnergyPolicySpec&) {
         room(w);
         w.node("node7").off().zone("a").cpu(16).watts(100, 300);
         w.node("node8").off().zone("b").cpu(16).watts(80, 250);
         w.node("node9").off().zone("c").quarantined(minutes{8});
         for (int i = 0; i < 3; ++i) {
           w.pod("batch/job-" + std::to_string(i)).cpu_milli(5000).memory_mib(2048);
         }
       }},
      {"migrate-fewest-pods",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.migration.enabled = true;
         spec.migration.strategy = api::MigrationStrategy::FewestPods;
         spec.migration.max_nodes = 2;
       }},
      {"migrate-best-saving",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.migration.enabled = true;
         spec.migration.min_saving_score = 20;
         w.node("node2").watts(200, 300);
       }},
      {"dvfs",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.power_off.enabled = false;
         spec.dvfs.enabled = true;
         spec.dvfs.migration.enabled = true;
         w.node("node4").utilization(95);
         w.node("node2").annotation("kwatt.dev/governor", "ondemand");
         w.node("node3").machine().status.report.available_governors = {"schedutil"};
       }},
      {"capping",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.power_off.enabled = false;
         spec.capping.enabled = true;
         w.node("node1").utilization(90, 140);
         capped(w.node("node2"), 120).utilization(90, 119);
         capped(w.node("node3"), 120).utilization(20, 70);
         w.node("node4").utilization(90, 145).machine().status.report.cap_max_watts = 0;
       }},
      {"capping-budget",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.power_off.enabled = false;
         spec.capping.enabled = true;
         spec.capping.budget_watts = 640;
       }},
      {"everything-at-once",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.migration.enabled = spec.dvfs.enabled = spec.capping.enabled = true;
         spec.dvfs.idle_nodes = 1;
         spec.disruption.budgets = {api::Budget{}};
         w.node("node7").off().zone("a");
         w.node("node8").operation(api::OperationKind::PowerOff, "WaitEmpty");
         w.node("node9").annotation("kwatt.dev/exclude", "true");
         w.node("master").control_plane().own_node();
         w.pod("shop/big-1").cpu_milli(3900);
       }},
      {"refusals",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.migration.enabled = true;
         spec.power_off.min_awake = 5;
         w.pod("shop/web-10").bare();
         w.pod("shop/web-20").local_storage();
         w.pod("shop/web-30").annotation("kwatt.dev/do-not-disrupt", "true");
         w.node("node7").cool_down(minutes{4}).idle_for(hours{1});
         w.node("node8").no_driver().idle_for(hours{1});
         w.node("node9").taint("ToBeDeletedByClusterAutoscaler", "", "NoSchedule");
       }},
      {"halted",
       [](World& w, api::EnergyPolicySpec& spec) {
         room(w);
         spec.capping.enabled = spec.dvfs.enabled = true;
         for (int i = 1; i <= 6; ++i) w.node("lost" + std::to_string(i)).not_ready();
       }},
  };
  return all;
}

TEST_CASE("golden: plans are as recorded") {
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  for (const Scene& scene : scenes()) {
    const std::string name = scene.file;
    CAPTURE(name);
    World w;
    api::EnergyPolicySpec spec = enforcing();
    scene.build(w, spec);
    const std::string text = planner::render(plan_of(w, spec));
    const std::string path = test::source_path("test/golden/plans/" + name + ".json");
    if (update) std::ofstream{path} << text;
    const std::string recorded = read(path);
    CHECK_MESSAGE(text == recorded, "plan is now:\n" << text);
  }
}

TEST_CASE("render: every kind of action has its line") {
  planner::Plan plan;
  const auto add = [&](planner::What what) {
    planner::Action action;
    action.node = "n1";
    action.what = std::move(what);
    action.message = "say \"why\"";
    plan.actions.push_back(action);
  };
  add(planner::PowerOn{});
  add(planner::PowerOff{{{"ns", "pod", "u", "n2", "", {}}}, true});
  add(planner::SetFrequency{{"powersave", 1200, "power"}, true});
  add(planner::SetCap{180});
  add(planner::SetCap{std::nullopt});
  add(planner::Release{});
  plan.next_wake = minutes{3};
  plan.halted = planner::Reason::TooManyUnready;
  const std::string head = R"({"node":"n1","action":")";
  const std::string why = R"(","reason":"Idle","message":"say \"why\"")";
  CHECK(planner::render(plan) ==
        "{\n  \"actions\": [\n    " + head + "PowerOn" + why + "},\n    " + head + "PowerOff" +
            why + R"(,"moves":["ns/pod -> n2"],"wakeTest":true})" + ",\n    " + head +
            "SetFrequency" + why + R"(,"low":true,"governor":"powersave","maxFrequencyMHz":1200,)" +
            R"("energyPerformancePreference":"power"})" + ",\n    " + head + "SetCap" + why +
            R"(,"watts":180})" + ",\n    " + head + "SetCap" + why + R"(,"watts":null})" +
            ",\n    " + head + "Release" + why +
            "}\n  ],\n  \"verdicts\": [],\n  \"memory\": [],\n  \"budgets\": [],\n"
            "  \"pending\": [],\n  \"highSince\": null,\n  \"halted\": \"TooManyUnready\",\n"
            "  \"nextWake\": \"3m\"\n}\n");
}

}  // namespace
}  // namespace kwatt::test
