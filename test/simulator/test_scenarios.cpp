// The scenario table of test/scenarios: the planner alone and the planner driving simulated
// machines decide the same.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "api/decode.hpp"
#include "simulator/planned.hpp"
#include "test/api/yaml_json.hpp"
#include "test/planner/agent.hpp"
#include "test/simulator/room.hpp"
#include "test/support/source_dir.hpp"

namespace kwatt::simulator::test {
namespace {

using kwatt::test::World;

template <class T>
T value(const YAML::Node& node, const char* key, T otherwise) {
  return node[key] ? node[key].as<T>() : otherwise;
}

api::EnergyPolicySpec policy_of(const YAML::Node& scenario) {
  const YAML::Node policy = scenario["policy"];
  api::EnergyPolicySpec spec;
  api::decode(kwatt::test::to_json(policy), spec).value();
  spec.mode = api::Mode::Enforce;
  const api::EnergyPolicySpec defaults = kwatt::test::enforcing();
  if (!policy["disruption"]) spec.disruption.budgets = defaults.disruption.budgets;
  if (!policy["powerOn"]) spec.power_on.headroom = defaults.power_on.headroom;
  REQUIRE(api::validate(spec).empty());
  return spec;
}

// "n2 PowerOff LowUtilization api-1>n1"
std::string line_of(const planner::Action& action) {
  static constexpr const char* kKinds[] = {"PowerOn",      "PowerOff", "Migrate",
                                           "SetFrequency", "SetCap",   "Release"};
  std::string line = fmt::format("{} {} {}", action.node, kKinds[action.what.index()],
                                 api::to_string(action.reason));
  std::vector<api::PodMove> moves;
  if (const auto* off = std::get_if<planner::PowerOff>(&action.what)) moves = off->moves;
  if (const auto* migrate = std::get_if<planner::Migrate>(&action.what)) moves = migrate->moves;
  for (const api::PodMove& move : moves) line += " " + move.pod_name + ">" + move.node_name;
  return line;
}

std::vector<std::string> expected(const YAML::Node& scenario) {
  std::vector<std::string> lines;
  for (const YAML::Node& one : scenario["expect"]) {
    std::string line =
        fmt::format("{} {} {}", one["node"].as<std::string>(), one["action"].as<std::string>(),
                    one["reason"].as<std::string>());
    for (const auto& move : one["moves"]) {
      line += " " + move.first.as<std::string>() + ">" + move.second.as<std::string>();
    }
    lines.push_back(line);
  }
  return lines;
}

std::string text_of(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "; "));
}

struct Decided {
  std::vector<std::string> actions;
  std::vector<std::string> left;  // "n1 MinAwake": of the nodes that `left` names, the reason
};

Decided by_planner(const YAML::Node& scenario) {
  World world;
  std::map<std::string, std::int64_t> used;
  std::map<std::string, int> pods_on;
  for (const YAML::Node& pod : scenario["pods"]) {
    const auto name = pod["name"].as<std::string>();
    auto& builder = world.pod("default/" + name);
    builder.cpu_milli(pod["cpuMilli"].as<std::int64_t>());
    builder.memory_mib(value<std::int64_t>(pod, "memoryMiB", 128));
    builder.owner("ReplicaSet", name).label("app", name);
    if (value(pod, "bare", false)) builder.bare();
    for (const auto& one : pod["annotations"]) {
      builder.annotation(one.first.as<std::string>(), one.second.as<std::string>());
    }
    if (pod["disruptionsAllowed"]) {
      world.budget("default/" + name, "app", name, pod["disruptionsAllowed"].as<std::int64_t>());
    }
    if (!pod["node"]) continue;
    const auto node = pod["node"].as<std::string>();
    builder.on(node);
    used[node] += pod["cpuMilli"].as<std::int64_t>() * value<std::int64_t>(pod, "uses", 100) / 100;
    ++pods_on[node];
  }
  for (const YAML::Node& node : scenario["nodes"]) {
    const auto name = node["name"].as<std::string>();
    const auto cpu = value<std::int64_t>(node, "cpu", 4);
    const auto idle = value<std::int64_t>(node, "idleWatts", 50);
    const auto most = value<std::int64_t>(node, "maxWatts", 150);
    auto& builder = kwatt::test::with_agent(world.node(name));
    builder.cpu(cpu).memory_gib(value<std::int64_t>(node, "memoryGiB", 16)).watts(idle, most);
    if (node["zone"]) builder.zone(node["zone"].as<std::string>());
    for (const auto& one : node["annotations"]) {
      builder.annotation(one.first.as<std::string>(), one.second.as<std::string>());
    }
    if (value(node, "asleep", false)) {
      builder.off();
      continue;
    }
    const std::int64_t percent = used[name] / (cpu * 10);
    builder.utilization(percent, idle + (most - idle) * percent / 100);
    if (pods_on[name] == 0 && scenario["idleFor"]) {
      builder.idle_for(*parse_go_duration(scenario["idleFor"].as<std::string>()));
    }
  }
  api::PolicyMemory memory;
  if (scenario["loadedFor"]) {
    memory.high_since = world.now - *parse_go_duration(scenario["loadedFor"].as<std::string>());
  }
  const planner::Plan plan = kwatt::test::plan_of(world, policy_of(scenario), memory);
  Decided decided;
  for (const planner::Action& action : plan.actions) decided.actions.push_back(line_of(action));
  for (const auto& one : scenario["left"]) {
    const auto node = one.first.as<std::string>();
    decided.left.push_back(node + " " + kwatt::test::reason_of(plan.verdicts, node));
  }
  return decided;
}

std::vector<std::string> left(const YAML::Node& scenario) {
  std::vector<std::string> lines;
  for (const auto& one : scenario["left"]) {
    lines.push_back(one.first.as<std::string>() + " " + one.second.as<std::string>());
  }
  return lines;
}

std::unique_ptr<Simulation> room_of(const YAML::Node& scenario) {
  std::vector<MachineSpec> all;
  for (const YAML::Node& node : scenario["nodes"]) {
    MachineSpec spec;
    spec.name = node["name"].as<std::string>();
    spec.zone = value<std::string>(node, "zone", "");
    spec.capacity = {Millicores{1000 * value<std::int64_t>(node, "cpu", 4)},
                     Bytes{kGiB * value<std::int64_t>(node, "memoryGiB", 16)}, 0};
    spec.starts_off = value(node, "asleep", false);
    api::PowerModelSpec model;
    model.idle_milliwatts = 1000 * value<std::int64_t>(node, "idleWatts", 50);
    model.max_milliwatts = 1000 * value<std::int64_t>(node, "maxWatts", 150);
    model.boot_seconds = 60;
    model.shutdown_seconds = 20;
    spec.power = models::model_of(model, spec.capacity.cpu);
    all.push_back(std::move(spec));
  }
  auto sim = simulation(std::move(all));
  std::vector<Service> services;
  for (const YAML::Node& pod : scenario["pods"]) {
    Service service;
    service.name = pod["name"].as<std::string>();
    service.need = {Millicores{pod["cpuMilli"].as<std::int64_t>()},
                    Bytes{value<std::int64_t>(pod, "memoryMiB", 128) << 20}, 0};
    service.use = {percent(value<std::int64_t>(pod, "uses", 100))};
    if (pod["node"]) service.on = pod["node"].as<std::string>();
    services.push_back(std::move(service));
  }
  sim->add(std::move(services)).value();
  return sim;
}

// The actions of the first pass that begins any, within two hours.
std::vector<std::string> by_simulator(const YAML::Node& scenario) {
  auto sim = room_of(scenario);
  std::vector<std::string> lines;
  std::optional<TimePoint> first;
  auto planned = make_planned(*sim, "default", policy_of(scenario), [&](const Acted& acted) {
    if (!first) first = acted.at;
    if (*first == acted.at) lines.push_back(line_of(acted.action));
  });
  sim->set_controller(std::move(planned.value()));
  sim->run_until(2h).value();
  return lines;
}

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry :
       std::filesystem::directory_iterator(kwatt::test::source_path("test/scenarios"))) {
    if (entry.path().extension() == ".yaml") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST_SUITE("simulator") {
  TEST_CASE("scenarios: the planner alone, and driving simulated machines, decides the same") {
    std::size_t count = 0;
    for (const auto& file : files()) {
      for (const YAML::Node& scenario : YAML::LoadFile(file.string())) {
        const auto name = scenario["name"].as<std::string>();
        CAPTURE(name);
        const Decided alone = by_planner(scenario);
        CHECK(text_of(alone.actions) == text_of(expected(scenario)));
        CHECK(text_of(alone.left) == text_of(left(scenario)));
        if (!value(scenario, "simulated", true)) continue;
        CHECK(text_of(by_simulator(scenario)) == text_of(expected(scenario)));
        ++count;
      }
    }
    CHECK(count >= 22);
  }
}

// ---- whole runs under a policy
api::EnergyPolicySpec eager() {
  api::EnergyPolicySpec spec = kwatt::test::enforcing();
  spec.power_off.idle_for = 2min;
  spec.power_off.min_awake = 1;
  spec.power_off.min_awake_per_zone = 0;
  spec.power_off.min_on_duration = spec.power_off.min_off_duration = 0s;
  spec.power_off.max_cycles_per_day = 100;
  return spec;
}

TEST_SUITE("simulator") {
  TEST_CASE("planned: machines go off when idle and come back for jobs, boot time included") {
    auto sim = simulation(machines(3));
    sim->set_controller(make_planned(*sim, "default", eager()).value());
    const Outcome o =
        run(*sim, {job("a", 0s, 60s, 1), job("b", 30min, 600s, 4), job("c", 30min, 600s, 4)});
    CHECK(o.completed == 3);
    CHECK(o.shutdowns >= 2);
    CHECK(o.boots >= 1);
    // c waits for a machine: its boot of 60 s, and the seconds in which it is noticed and joins.
    CHECK(o.waiting.maximum() >= 60'000);
    CHECK(o.waiting.maximum() <= 90'000);
    // All three idling would have drawn 300 W, and the jobs come on top of that.
    CHECK(joules(o) < 0.9 * 300 * static_cast<double>(o.length.count()) / 1000);
  }

  TEST_CASE("planned: a drained node's service goes to the node reserved for it") {
    auto sim = simulation(machines(2));
    api::EnergyPolicySpec spec = eager();
    spec.migration.enabled = true;
    spec.migration.strategy = api::MigrationStrategy::FewestPods;
    spec.power_off.min_off_duration = 10min;  // over which the boot has to pay
    std::vector<Service> services;
    for (const char* on : {"m1", "m1", "m2"}) {
      Service service;
      service.name = fmt::format("web-{}", services.size());
      service.need = {Millicores{500}, Bytes{kGiB}, 0};
      service.on = on;
      services.push_back(service);
    }
    sim->add(services).value();
    sim->set_controller(make_planned(*sim, "default", spec).value());
    sim->run_until(30min).value();
    const Outcome o = sim->outcome();
    CHECK(o.migrations == 1);
    CHECK(o.shutdowns == 1);
    CHECK(sim->machine(1).state() == MachineState::off);
    CHECK(sim->on_machine(0).size() == 3);
    CHECK(o.pdm > 0);
  }

  TEST_CASE("planned: jobs that are held back for carbon wake nothing") {
    Settings settings;
    auto all = machines(2);
    all[1].starts_off = true;
    auto sim = std::move(
        Simulation::create(all, std::make_unique<HoldUntil>(settings.start + 2h), settings)
            .value());
    sim->set_controller(make_planned(*sim, "default", eager()).value());
    const Outcome o = run(*sim, {job("a", 0s, 60s, 4), job("b", 0s, 60s, 4)}, 100min);
    CHECK(o.boots == 0);
    CHECK(o.unfinished == 2);
  }

  TEST_CASE("planned: a policy that selects nothing is refused") {
    auto sim = simulation(machines(1));
    api::EnergyPolicySpec spec = eager();
    spec.node_selector.match_labels.set("rack", "7");
    const auto planned = make_planned(*sim, "default", spec);
    REQUIRE_FALSE(planned.has_value());
    CHECK(planned.error().message.find("selects none of the machines") != std::string::npos);
  }

  TEST_CASE("planned: same input, same run") {
    const auto once = [] {
      auto sim = simulation(machines(6));
      sim->set_controller(make_planned(*sim, "default", eager()).value());
      std::vector<Job> jobs;
      for (int i = 0; i < 60; ++i) {
        jobs.push_back(
            job("j" + std::to_string(i), minutes{i * 3}, seconds{30 + i * 7 % 400}, 1 + i % 4));
      }
      const Outcome o = run(*sim, jobs);
      return std::make_tuple(o.energy_kwh, o.boots, o.shutdowns, o.waiting.mean(), o.events);
    };
    CHECK(once() == once());
  }
}

}  // namespace
}  // namespace kwatt::simulator::test
