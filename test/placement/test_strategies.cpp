#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "cluster_of.hpp"

using namespace kwatt;
using namespace kwatt::placement::strategies;

namespace {

struct Case {
  const char* sentence;
  const char* strategy;
  std::vector<NodeSpec> nodes;
  std::vector<Job> jobs;
  const char* plan;
  const char* reasons;
};

// Cheapest per CPU up to 60 %, then four times as dear.
NodeSpec bent(std::string name) {
  NodeSpec spec = node(std::move(name));
  for (std::size_t i = 7; i < 11; ++i) {
    spec.power.curve.points[i] = spec.power.curve.points[i - 1] + watts(40);
  }
  return spec;
}

NodeSpec frugal(std::string name) {
  NodeSpec spec = node(std::move(name));
  for (std::size_t i = 0; i < 11; ++i) {
    spec.power.curve.points[i] = watts(50 + 2 * static_cast<std::int64_t>(i));
  }
  return spec;
}

NodeSpec little_memory(std::string name) {
  NodeSpec spec = node(std::move(name));
  spec.capacity.memory = Bytes{4 * kGiB};
  return spec;
}

constexpr auto kHour = std::chrono::hours{1};

// What one strategy says about jobs on nodes of its own: plan and reasons.
std::pair<std::string, std::string> decided(std::string_view strategy, std::vector<NodeSpec> nodes,
                                            const std::vector<Job>& jobs) {
  const Cluster on = cluster(std::move(nodes));
  const auto decision = *decide_once(strategy, {jobs, kNow, {}, 0}, on);
  return {plan(decision, on), reasons(decision)};
}

}  // namespace

TEST_CASE("strategies: small worked cases") {
  const Job early = lasting(job(6), kHour), late = lasting(job(6), 5 * kHour);
  const Case cases[] = {
      {"FCFS takes the first node and lets nobody overtake",
       "FCFS",
       {node("a"), node("b")},
       {job(6), job(6), job(6), job(1)},
       "0:a 1:b",
       "2 NoFit 3 BehindOthers"},
      {"a job that can never fit does not hold up a strict queue",
       "FCFS",
       {node("a")},
       {job(11), job(1)},
       "1:a",
       "0 NeverFits"},
      {"RoundRobin goes round",
       "RoundRobin",
       {node("a"), node("b"), node("c")},
       {job(1), job(1), job(1), job(1)},
       "0:a 1:b 2:c 3:a",
       ""},
      {"RoundRobin keeps the order of arrival",
       "RoundRobin",
       {node("a")},
       {job(8), job(8), job(1)},
       "0:a",
       "1 NoFit 2 BehindOthers"},
      {"DefaultRoundRobin goes round and lets small jobs overtake",
       "DefaultRoundRobin",
       {node("a"), node("b")},
       {job(8), job(8), job(8), job(1)},
       "0:a 1:b 3:a",
       "2 NoFit"},
      {"MinMin starts the shortest", "MinMin", {node("a")}, {late, early}, "1:a", "0 NoFit"},
      {"MaxMin starts the longest", "MaxMin", {node("a")}, {early, late}, "1:a", "0 NoFit"},
      {"MinMin prefers the node that is ready first to the one with more room",
       "MinMin",
       {off(node("a", 20)), node("b")},
       {job(1)},
       "0:b",
       ""},
      {"of nodes equally early MinMin takes the one with the greatest free share",
       "MinMin",
       {node("a"), node("b")},
       {job(2), job(2), job(2)},
       "0:a 1:b 2:a",
       ""},
      {"LeastAllocated takes the emptiest node",
       "LeastAllocated",
       {node("a"), node("b")},
       {job(3), job(1), job(1)},
       "0:a 1:b 2:b",
       ""},
      {"MostAllocated takes the fullest node",
       "MostAllocated",
       {node("a"), node("b", 5)},
       {job(2), job(1)},
       "0:b 1:b",
       ""},
      {"BestFit fills the small node first",
       "BestFit",
       {node("a", 20), node("b")},
       {job(8), job(8)},
       "0:b 1:a",
       ""},
      {"EnergyAware takes the flat curve until it is full",
       "EnergyAware",
       {node("a"), frugal("b")},
       {job(6), job(4), job(1)},
       "0:b 1:b 2:a",
       ""},
      {"EnergyAware wakes a node only if nothing else fits as cheaply",
       "EnergyAware",
       {off(node("a")), node("b")},
       {job(6), job(6)},
       "0:b 1:a",
       ""},
      {"EnergyAware leaves the dear stretch of a curve alone",
       "EnergyAware",
       {bent("a"), bent("b")},
       {job(6), job(4)},
       "0:a 1:b",
       ""},
      {"ECSched leaves the large node to whom needs it",
       "ECSched",
       {node("a", 20), node("b")},
       {job(8), job(16)},
       "0:b 1:a",
       ""},
      {"ECSched-energy fills up to where the curves bend",
       "ECSched-energy",
       {bent("a"), bent("b")},
       {job(2), job(2), job(2), job(2), job(2), job(2)},
       "0:a 1:a 2:a 3:b 4:b 5:b",
       ""},
      {"CarbonAware without a forecast is EnergyAware",
       "CarbonAware",
       {node("a"), frugal("b")},
       {job(6), job(4), job(1)},
       "0:b 1:b 2:a",
       ""},
      {"GpuFill keeps whole GPUs whole",
       "GpuFill",
       {with_gpus(node("a"), 1), with_gpus(node("b"), 1)},
       {gpu_job(500), gpu_job(400), gpu_job(1000)},
       "0:a 1:a 2:b",
       ""},
      {"a node too small in one amount takes nothing",
       "BestFit",
       {little_memory("a"), node("b")},
       {job(1, 8)},
       "0:b",
       ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.sentence);
    Cluster on = cluster(c.nodes);
    Decision decision;
    (*make_strategy(c.strategy))->decide({c.jobs, kNow, {}, 0}, on, decision);
    if (std::string_view(c.strategy).starts_with("ECSched")) {
      // All at once: which job comes first in the list says nothing.
      std::sort(decision.assigned.begin(), decision.assigned.end(),
                [](const Assignment& a, const Assignment& b) { return a.job < b.job; });
      if (std::string_view(c.strategy) == "ECSched-energy") {
        CHECK(on.used_cpu(0) == Millicores{6000});
        CHECK(on.used_cpu(1) == Millicores{6000});
        continue;
      }
    }
    CHECK(plan(decision, on) == c.plan);
    CHECK(reasons(decision) == c.reasons);
  }
}

TEST_CASE("strategies: each has a name and a paper") {
  for (const Listed& one : listed()) {
    CHECK_FALSE(one.paper.empty());
    CHECK((*make_strategy(one.name))->name() == one.name);
  }
}

TEST_CASE("strategies: nothing to do, nowhere to go") {
  for (const Listed& one : listed()) {
    CAPTURE(one.name);
    CHECK(decided(one.name, {node("a")}, {}) == std::pair<std::string, std::string>("", ""));
    CHECK(decided(one.name, {}, {job(1)}).second == "0 NeverFits");
  }
}

TEST_CASE("strategies: a gang starts whole or not at all, and leaves no room taken") {
  for (const Listed& one : listed()) {
    CAPTURE(one.name);
    CHECK(decided(one.name, {node("a"), node("b")}, {job(6, 1, 3)}).second == "0 NeverFits");
    Cluster on = cluster({node("a"), node("b"), node("c")});
    on.start(1, job(6).request);
    const std::vector<Job> jobs = {job(6, 1, 3), job(6, 1, 2)};
    Decision decision;
    (*make_strategy(one.name))->decide({jobs, kNow, {}, 0}, on, decision);
    if (one.name == "FCFS" || one.name == "RoundRobin") {
      CHECK(reasons(decision) == "0 GangIncomplete 1 BehindOthers");
      CHECK(on.free(0) == on.node(0).capacity);
    } else {
      CHECK(reasons(decision) == "0 GangIncomplete");
      REQUIRE(decision.assigned.size() == 2);
      CHECK(decision.assigned[0].node != decision.assigned[1].node);
      CHECK(decision.assigned[0].member + decision.assigned[1].member == 1);
    }
  }
}

TEST_CASE("strategies: members of a gang start with the last of them, which must be woken") {
  for (const Listed& one : listed()) {
    CAPTURE(one.name);
    Cluster on = cluster({node("a"), off(node("b"))});
    const std::vector<Job> jobs = {job(8, 1, 2)};
    const auto decision = *decide_once(one.name, {jobs, kNow, {}, 0}, on);
    REQUIRE(decision.assigned.size() == 2);
    CHECK(decision.wake == std::vector<NodeIndex>{1});
    for (const Assignment& a : decision.assigned) {
      CHECK(a.start == kNow + std::chrono::seconds{60});
    }
  }
}

TEST_CASE("strategies: zones and GPU models bind") {
  for (const Listed& one : listed()) {
    CAPTURE(one.name);
    Job here = job(1);
    here.zones = 0b10;
    CHECK(decided(one.name, {node("a"), in_zone(node("b"), 1)}, {here}).first == "0:b");
    here.zones = 0b100;
    CHECK(decided(one.name, {node("a"), in_zone(node("b"), 1)}, {here}).second == "0 NeverFits");
    Job modelled = gpu_job(1000);
    modelled.gpu_models = 0b10;
    CHECK(decided(one.name, {with_gpus(node("a"), 4), with_gpus(node("b"), 1, 1)}, {modelled})
              .first == "0:b");
  }
}

TEST_CASE("strategies: the same again gives the same, and no node is ever overfull") {
  for (const Listed& one : listed()) {
    CAPTURE(one.name);
    std::vector<NodeSpec> nodes;
    for (int i = 0; i < 100; ++i) {
      nodes.push_back(with_gpus(node("n" + std::to_string(i), 8 + i % 5 * 6), i % 3));
    }
    std::vector<Job> jobs;
    for (int i = 0; i < 500; ++i) {
      Job made = i % 7 == 0 ? gpu_job(i % 2 == 0 ? 300 : 1000) : job(1 + i * 37 % 6, 1 + i % 9);
      if (i % 50 == 0) made.members = 4;
      made.expected = std::chrono::minutes{1 + i * 31 % 200};
      jobs.push_back(made);
    }
    Cluster first = cluster(nodes), second = cluster(nodes);
    Decision a, b;
    (*make_strategy(one.name))->decide({jobs, kNow, {}, 0}, first, a);
    (*make_strategy(one.name))->decide({jobs, kNow, {}, 0}, second, b);
    CHECK(plan(a, first) == plan(b, second));
    CHECK(reasons(a) == reasons(b));
    std::set<std::uint32_t> seen;
    for (const Assignment& one_of : a.assigned) seen.insert(one_of.job);
    for (const Waiting& one_of : a.waiting) CHECK(seen.insert(one_of.job).second);
    CHECK(seen.size() == jobs.size());
    for (NodeIndex i = 0; i < first.size(); ++i) {
      CHECK(first.free_cpu(i) >= 0);
      CHECK(first.free_memory(i) >= 0);
      for (const std::int32_t part : first.free_gpus(i)) CHECK((part >= 0 && part <= 1000));
    }
  }
}

TEST_CASE("strategies: what was refused is looked at again where room came free, and only there") {
  for (const Listed& one : listed()) {
    CAPTURE(one.name);
    Cluster on = cluster({node("a"), node("b")});
    const std::vector<Job> full = {job(10), job(10)}, more = {job(4), job(8)};
    const auto strategy = *make_strategy(one.name);
    Decision decision;
    strategy->decide({full, kNow, {}, 0}, on, decision);
    REQUIRE(decision.assigned.size() == 2);
    const NodeIndex freed = decision.assigned[1].node;
    strategy->decide({more, kNow, {}, 0}, on, decision);
    CHECK(decision.assigned.empty());
    strategy->decide({more, kNow, {}, 2}, on, decision);
    CHECK(decision.assigned.empty());
    on.finish(freed, full[1].request, 0);
    strategy->decide({more, kNow, {}, 2}, on, decision);
    REQUIRE(decision.assigned.size() == 1);
    CHECK(decision.assigned[0].node == freed);
  }
}

TEST_CASE("strategies: Default depends on its seed and on nothing else") {
  std::vector<NodeSpec> nodes;
  for (int i = 0; i < 50; ++i) nodes.push_back(node("n" + std::to_string(i)));
  const std::vector<Job> jobs(30, job(1));
  const auto with = [&](std::uint64_t seed) {
    Settings settings;
    settings.seed = seed;
    const Cluster on = cluster(nodes);
    return plan(*decide_once("Default", {jobs, kNow, {}, 0}, on, settings), on);
  };
  CHECK(with(1) == with(1));
  CHECK(with(1) != with(2));
}

TEST_CASE("strategies: names are found without regard to case and hyphens; others are listed") {
  CHECK((*make_strategy("ecschedenergy"))->name() == "ECSched-energy");
  CHECK((*make_strategy("min-min"))->name() == "MinMin");
  const auto wrong = make_strategy("Fifo");
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().code == ErrorCode::invalid_argument);
  for (const Listed& one : listed()) {
    CHECK(wrong.error().message.find(one.name) != std::string::npos);
  }
}

TEST_CASE("CarbonAware waits for the cleanest start within the deadline") {
  const std::vector<double> dirty_then_clean = {400, 300, 100, 100, 350};
  const CarbonForecast forecast{kNow, kHour, dirty_then_clean};
  const auto when = [&](Job one, std::span<const CarbonForecast> forecasts) {
    const std::vector<Job> jobs = {one};
    return *decide_once("CarbonAware", {jobs, kNow, forecasts, 0}, cluster({node("a")}));
  };
  Job patient = lasting(job(1), 2 * kHour);
  patient.deadline = kNow + 24 * kHour;

  SUBCASE("to the start of the clean stretch") {
    const auto decision = when(patient, std::span(&forecast, 1));
    CHECK(reasons(decision) == "0 WaitsForCarbon");
    CHECK(decision.waiting[0].not_before == kNow + 2 * kHour);
  }
  SUBCASE("as far as the deadline lets it") {
    patient.deadline = kNow + 3 * kHour;
    CHECK(when(patient, std::span(&forecast, 1)).waiting[0].not_before == kNow + kHour);
  }
  SUBCASE("no longer than it may be held back") {
    patient.latest_start = kNow + std::chrono::minutes{30};
    CHECK(when(patient, std::span(&forecast, 1)).waiting[0].not_before ==
          kNow + std::chrono::minutes{30});
  }
  SUBCASE("not at all without a deadline, a duration, a forecast, or time") {
    Job hasty = patient;
    hasty.deadline = TimePoint::max();
    CHECK(when(hasty, std::span(&forecast, 1)).assigned.size() == 1);
    CHECK(when(lasting(patient, Duration{0}), std::span(&forecast, 1)).assigned.size() == 1);
    CHECK(when(patient, {}).assigned.size() == 1);
    patient.deadline = kNow + kHour;
    CHECK(when(patient, std::span(&forecast, 1)).assigned.size() == 1);
  }
  SUBCASE("not for less than a hundredth") {
    const std::vector<double> flat = {100, 99.5, 99.5, 99.5};
    const CarbonForecast even{kNow, kHour, flat};
    CHECK(when(patient, std::span(&even, 1)).assigned.size() == 1);
  }
}

TEST_CASE("CarbonAware goes to the zone where it adds the fewest grams") {
  const std::vector<double> dirty = {500, 500}, clean = {50, 50};
  const CarbonForecast forecasts[] = {{kNow, kHour, dirty}, {kNow, kHour, clean}};
  const Cluster on = cluster({node("a"), in_zone(node("b"), 1), in_zone(node("c"), 2)});
  const std::vector<Job> jobs = {job(1), job(10), job(10)};
  const auto decision = *decide_once("CarbonAware", {jobs, kNow, forecasts, 0}, on);
  // Zone 2 is not known: it counts as the dirtiest, and ties go to the first in the list.
  CHECK(plan(decision, on) == "0:b 1:a 2:c");
}
