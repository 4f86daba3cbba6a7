#include <functional>

#include <doctest/doctest.h>

#include "nodes.hpp"
#include "placement/explain.hpp"

using namespace kwatt;
using namespace kwatt::placement;

namespace {

NodeFramework only(const std::string& plugin) {
  return *node_framework({{plugin, 1}});
}

// "" if the node may take the pod, else the reason, with "!" before it if it never can.
std::string refusal(const std::string& plugin, const PodInfo& pod, const NodeInfo& node) {
  const std::vector<const NodeInfo*> nodes = {&node};
  const auto filtered = only(plugin).filter(pod, nodes);
  REQUIRE(filtered.has_value());
  if (filtered->excluded.empty()) return "";
  const Excluded& out = filtered->excluded.front();
  CHECK(out.plugin == plugin);
  return (out.code == Code::unresolvable ? "!" : "") + out.reason;
}

PluginScores scores_of(const std::string& plugin, const PodInfo& pod,
                       const std::vector<NodeInfo>& nodes) {
  const auto scores = only(plugin).score(pod, pointers(nodes));
  REQUIRE(scores.has_value());
  REQUIRE(scores->plugins.size() == 1);
  return scores->plugins.front();
}

PodInfo with(PodInfo pod, const std::function<void(api::PodTemplate&)>& change) {
  auto spec = std::make_shared<api::PodTemplate>(*pod.spec);
  change(*spec);
  pod.spec = std::move(spec);
  return pod;
}

}  // namespace

TEST_CASE("the registry: names are unique, the default profile is made of them") {
  auto names = node_plugin_names();
  CHECK(names.size() == 12);
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  const auto framework = node_framework(default_profile());
  REQUIRE(framework.has_value());
  CHECK(framework->profile().size() == names.size());
}

TEST_CASE("an unknown plugin is refused with the names there are") {
  const auto made = node_framework({{"Fit", 1}, {"EnergyDecrease", 2}});
  REQUIRE(made.has_error());
  CHECK(made.error().code == ErrorCode::invalid_argument);
  CHECK(made.error().message.starts_with("there is no plugin EnergyDecrease; one of: Leaving, "));
}

TEST_CASE("a policy's plugins change weights, add plugins and take them out") {
  const std::vector<ProfileEntry> changed =
      changed_profile({{"Fit", 1}, {"Carbon", 2}, {"Thermal", 3}},
                      {{"Carbon", 7}, {"Thermal", 0}, {"Efficiency", 4}, {"Awake", 0}});
  CHECK(changed == std::vector<ProfileEntry>{{"Fit", 1}, {"Carbon", 7}, {"Efficiency", 4}});
}

TEST_CASE("filters refuse with a reason, and say whether it may change") {
  const auto tainted = [](const char* key, const char* effect) {
    api::Node object;
    object.taints = {{key, "", effect, {}}};
    return with_object(make_node("a"), object);
  };
  api::Node cordoned;
  cordoned.unschedulable = true;
  api::Node labelled;
  labelled.meta.labels.set("disk", "ssd");
  NodeInfo full = make_node("a");
  full.requested.cpu = Millicores{9'500};
  NodeInfo leaving = make_node("a"), asleep = make_node("a"), hot = make_node("a"), warm = hot;
  leaving.leaving = true;
  asleep.awake = false;
  hot.thermal = {Millicelsius{41'000}, {}, Millicelsius{40'000}, {}};
  warm.thermal = {Millicelsius{39'900}, Millicelsius{85'000}, Millicelsius{40'000},
                  Millicelsius{85'000}};
  const auto wants_ssd =
      with(make_pod(500), [](api::PodTemplate& spec) { spec.node_selector.set("disk", "ssd"); });
  const auto gated =
      with(make_pod(500), [](api::PodTemplate& spec) { spec.scheduling_gated = true; });
  const auto wants_gpu = with(
      make_pod(500), [](api::PodTemplate& spec) { spec.requests.extended["nvidia.com/gpu"] = 1; });
  struct Case {
    const char* plugin;
    PodInfo pod;
    NodeInfo node;
    const char* reason;
  };
  const Case cases[] = {
      {"Fit", make_pod(1000), make_node("a"), ""},
      {"Fit", make_pod(1000), full, "not enough cpu: needs 1000m, 500m free"},
      {"Fit", make_pod(11'000), full, "!not enough cpu: needs 11000m, 500m free"},
      {"Fit", gated, make_node("a"), "!the pod waits for its scheduling gates"},
      {"Fit", wants_gpu, make_node("a"), "!not enough nvidia.com/gpu: needs 1, 0 free"},
      {"Taints", make_pod(1), tainted("gpu", "PreferNoSchedule"), ""},
      {"Taints", make_pod(1), tainted("gpu", "NoSchedule"),
       "!node a has the taint gpu:NoSchedule that the pod does not tolerate"},
      {"Taints", make_pod(1), with_object(make_node("a"), cordoned), "!node a is cordoned"},
      {"Affinity", wants_ssd, with_object(make_node("a"), labelled), ""},
      {"Affinity", wants_ssd, make_node("a"),
       "!the pod's nodeSelector wants disk=ssd, node a has no such label"},
      {"Leaving", make_pod(1), leaving, "!the node is being emptied"},
      {"Awake", make_pod(1), asleep, "!the node is not on"},
      {"Thermal", make_pod(1), hot, "the ambient temperature is 41.0 °C, its limit 40.0 °C"},
      {"Thermal", make_pod(1), warm, "the CPU temperature is 85.0 °C, its limit 85.0 °C"},
      {"Thermal", make_pod(1), make_node("a"), ""},
  };
  for (const Case& c : cases) {
    INFO(c.plugin << ": " << c.reason);
    CHECK(refusal(c.plugin, c.pod, c.node) == c.reason);
  }
}

TEST_CASE("room reserved for a pod's replacement is free for it alone") {
  NodeInfo node = make_node("a");
  const PodInfo mine = make_pod(2000);
  PodInfo other = mine;
  other.owner_uid = "db";
  node.requested.cpu = Millicores{9'000};
  node.reserved = {{"shop", "web", "old-uid", mine.spec->requests}};
  CHECK(refusal("Fit", mine, node).empty());
  CHECK(refusal("Fit", other, node) == "not enough cpu: needs 2000m, 1000m free");
  other.owner_uid = "web";
  other.namespace_name = "elsewhere";
  CHECK_FALSE(refusal("Fit", other, node).empty());
}

TEST_CASE("slow, capped and idle-pool nodes are taken only if nothing else fits") {
  const PodInfo pod = make_pod(1000);
  NodeInfo fast = make_node("fast"), slow = make_node("slow"), capped = make_node("capped"),
           pool = make_node("pool");
  slow.slow = capped.capped = pool.idle_pool = true;
  const auto framework = *node_framework({{"Fit", 1}, {"FrequencyAndCap", 100}});
  const auto run = [&](const std::vector<NodeInfo>& nodes) {
    return *framework.filter(pod, pointers(nodes));
  };
  const auto with_fast = run({slow, fast, capped, pool});
  CHECK(with_fast.feasible == std::vector<std::size_t>{1});
  REQUIRE(with_fast.excluded.size() == 3);
  CHECK(with_fast.excluded[0].reason ==
        "the node runs at a low frequency, and the pod fits elsewhere");
  CHECK(with_fast.excluded[1].reason ==
        "the node runs under a power cap, and the pod fits elsewhere");
  CHECK(with_fast.excluded[2].reason == "the node is kept idle, and the pod fits elsewhere");
  CHECK(run({slow, capped, pool}).feasible.size() == 3);  // judged among the nodes received
  NodeInfo full = fast;
  full.requested.cpu = Millicores{9'500};
  CHECK(run({slow, full}).feasible == std::vector<std::size_t>{0});

  slow.reserved = {{"shop", "web", "old", pod.spec->requests}};
  CHECK(run({slow, fast, capped}).feasible == std::vector<std::size_t>{0, 1});

  const PluginScores scored = scores_of("FrequencyAndCap", pod, {slow, fast, capped});
  CHECK(scored.normalized == std::vector<std::int64_t>{100, 100, 0});
  const PluginScores alike = scores_of("FrequencyAndCap", pod, {fast, fast});
  CHECK(alike.skipped);
  CHECK(alike.note == "no node is slow, capped or kept idle");
}

TEST_CASE("a reserved destination outranks frequency, cap, pool and everything below them") {
  const PodInfo pod = make_pod(1000);
  NodeInfo fast = make_node("fast"), slow = make_node("slow");
  slow.slow = slow.capped = slow.idle_pool = true;
  slow.grams_per_kwh = 900;
  slow.thermal = {Millicelsius{39'000}, {}, Millicelsius{40'000}, {}};
  for (Milliwatts& point : slow.model.curve.points) point = point * 3;
  fast.grams_per_kwh = 10;
  fast.ops_per_joule = slow.ops_per_joule = 1;
  slow.reserved = {{"shop", "web", "old", pod.spec->requests}};
  const std::vector<NodeInfo> nodes = {fast, slow};
  const auto framework = *node_framework(default_profile());
  const auto choice = framework.choose(pod, pointers(nodes));
  REQUIRE(choice.has_value());
  CHECK(choice->best == 1);
  PodInfo other = pod;
  other.owner_uid = "db";
  CHECK(framework.choose(other, pointers(nodes))->best == 0);
}

TEST_CASE("EnergyIncrease: watts after less watts before, from the whole curve") {
  const PodInfo pod = make_pod(1000);
  NodeInfo idle = make_node("idle"), steep = make_node("steep"), asleep = make_node("asleep"),
           predicted = make_node("predicted"), short_table = make_node("short");
  steep.load = Permille{900};
  steep.model.curve.points[10] = watts(200);  // the last tenth is dear: 140 → 200 W
  asleep.awake = false;
  asleep.model.standby = watts(5);
  asleep.model.boot_energy = Millijoules{60'000'000};  // 60 kJ over 10 minutes: 100 W
  auto table = std::make_shared<PredictedWatts>();
  table->at_extra = {
      {Millicores{0}, watts(100)}, {Millicores{500}, watts(104)}, {Millicores{1500}, watts(112)}};
  predicted.predicted = table;
  auto brief = std::make_shared<PredictedWatts>();
  brief->at_extra = {{Millicores{0}, watts(100)}, {Millicores{500}, watts(104)}};
  short_table.predicted = brief;
  const PluginScores scores =
      scores_of("EnergyIncrease", pod, {idle, steep, asleep, predicted, short_table});
  CHECK(scores.raw == std::vector<std::int64_t>{10'000, 60'000, 50'000 - 5'000 + 100'000 + 10'000,
                                                8'000, 10'000});
  CHECK(scores.normalized[3] == 100);
  CHECK(scores.normalized[0] == 81);  // (8 + 1) / (10 + 1)
  CHECK(scores.normalized[1] < 20);
  CHECK(scores.unit == "mW");
}

TEST_CASE("costs: only the least gets the most, ratios stay, nothing leaves the range") {
  struct Case {
    std::vector<std::int64_t> in, out;
  };
  const Case cases[] = {
      {{}, {}},
      {{5'000}, {100}},
      {{5'000, 5'000}, {100, 100}},
      {{9'000, 9'001, 19'000}, {100, 99, 50}},
      {{9'000, 900'000'000'000}, {100, 0}},
      {{0, 1'000, 9'000}, {100, 50, 10}},
      {{-4'000, -3'000, 0}, {100, 50, 20}},
  };
  for (const Case& c : cases) {
    std::vector<std::int64_t> scores = c.in;
    normalize_costs({}, scores, 1000);
    CHECK(scores == c.out);
  }
  std::vector<std::int64_t> wide = {1, std::numeric_limits<std::int64_t>::max()};
  normalize_costs(ScoreRange::any(), wide, 1000);
  CHECK(wide[0] == std::numeric_limits<std::int64_t>::max());
  CHECK(wide[1] < 0);
}

TEST_CASE(
    "Carbon, Efficiency, Thermal, Fragmentation and ReservedDestination score in their units") {
  const PodInfo pod = make_pod(1000, 4);  // a tenth of cpu and of memory
  NodeInfo clean = make_node("clean"), dirty = make_node("dirty"), unknown = make_node("unknown");
  clean.grams_per_kwh = 50;
  dirty.grams_per_kwh = 400;
  const PluginScores carbon = scores_of("Carbon", pod, {clean, dirty, unknown});
  CHECK(carbon.raw == std::vector<std::int64_t>{500'000, 4'000'000, 4'000'000});
  CHECK(carbon.normalized == std::vector<std::int64_t>{100, 14, 14});
  CHECK(scores_of("Carbon", pod, {unknown, unknown}).note == "no carbon intensity is known");
  CHECK(scores_of("Carbon", pod, {clean, clean}).note == "the electricity of all nodes is alike");

  NodeInfo good = make_node("good"), bad = make_node("bad");
  for (Milliwatts& point : bad.model.curve.points) point = point * 2;
  // 10 CPUs at 150 W: 66666 millicores per kilowatt; at 300 W half of it.
  CHECK(scores_of("Efficiency", pod, {good, bad}).raw == std::vector<std::int64_t>{66'666, 33'333});
  bad.ops_per_joule = 9;  // of one node alone it says nothing
  CHECK(scores_of("Efficiency", pod, {good, bad}).raw == std::vector<std::int64_t>{66'666, 33'333});
  good.ops_per_joule = 3;
  CHECK(scores_of("Efficiency", pod, {good, bad}).normalized == std::vector<std::int64_t>{0, 100});

  NodeInfo cool = make_node("cool"), warm = make_node("warm");
  cool.thermal = {Millicelsius{15'000}, {}, Millicelsius{40'000}, {}};
  warm.thermal = {Millicelsius{20'000}, Millicelsius{80'000}, Millicelsius{40'000},
                  Millicelsius{85'000}};
  const PluginScores thermal = scores_of("Thermal", pod, {cool, warm, unknown});
  CHECK(thermal.raw == std::vector<std::int64_t>{25'000, 5'000, 5'000});
  CHECK(thermal.normalized == std::vector<std::int64_t>{100, 25, 25});
  CHECK(scores_of("Thermal", pod, {unknown}).skipped);

  NodeInfo even = make_node("even"), lopsided = make_node("lopsided"),
           devices = make_node("devices");
  lopsided.requested.cpu = Millicores{6'000};
  devices.allocatable.extended["nvidia.com/gpu"] = 4;
  const PluginScores fragments = scores_of("Fragmentation", pod, {even, lopsided, devices});
  CHECK(fragments.raw == std::vector<std::int64_t>{0, 600, 500});
  CHECK(fragments.normalized == std::vector<std::int64_t>{100, 60, 66});

  CHECK(scores_of("ReservedDestination", pod, {even}).note == "no room is reserved for this pod");
}

TEST_CASE("a choice is explained in a sentence, and as a table") {
  std::vector<NodeInfo> nodes = {make_node("a"), make_node("b")};
  nodes[0].load = Permille{900};
  nodes[0].model.curve.points[10] = watts(160);
  const PodInfo pod = make_pod(1000);
  const auto framework = *node_framework({{"Fit", 1}, {"EnergyIncrease", 10}, {"Carbon", 2}});
  const auto all = pointers(nodes);
  const auto choice = *framework.choose(pod, all);
  const auto names = names_of<NodeInfo>(all, choice.filtered.feasible);
  CHECK(explain_choice(names, choice.scores, 1) ==
        "b scores 1000: EnergyIncrease 100 × 10 (10000 mW); next a with 520, "
        "EnergyIncrease 52 × 10 (20000 mW)");
  CHECK(score_table(names, choice.scores) ==
        "NODE  TOTAL  EnergyIncrease\n"
        "b     1000   10000 mW → 100 × 10 = 1000\n"
        "a     520    20000 mW → 52 × 10 = 520\n"
        "Carbon: no carbon intensity is known\n");
  CHECK(score_table(names, choice.scores, 1).find("and 1 more\n") != std::string::npos);
  CHECK(explain_excluded(choice.filtered) == "2 fit");
  const auto nowhere = *framework.choose(make_pod(20'000), all);
  CHECK(explain_excluded(nowhere.filtered) ==
        "nothing fits: 2 Fit (not enough cpu: needs 20000m, 10000m free)");
}
