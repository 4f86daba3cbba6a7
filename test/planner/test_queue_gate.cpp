// Pods behind the gate, from a snapshot: which of them pass it, and why the others do not.
#include <doctest/doctest.h>

#include "planner/queue/gate.hpp"
#include "world.hpp"

using namespace kwatt;
using namespace kwatt::test;
using namespace kwatt::planner::queue;

namespace {

constexpr const char* kAge = "test/age";  // how long ago a pod was made, in milliseconds

PodBuilder& gated(World& w, const std::string& key, Duration age, const std::string& queue = "q") {
  PodBuilder& pod = w.pod(key);
  pod.gated().label("kwatt.dev/queue", queue).cpu_milli(1000);
  pod.annotation(kAge, std::to_string(age.count()));
  return pod;
}

planner::Snapshot snapshot_of(const World& w) {
  planner::Snapshot s = w.snapshot();
  for (auto& pod : s.unbound) {
    const std::string age(pod->annotations.get(kAge));
    if (age.empty()) continue;
    auto aged = std::make_shared<api::Pod>(*pod);
    aged->creation_timestamp = kNoon - Duration{std::stoll(age)};
    pod = std::move(aged);
  }
  return s;
}

std::shared_ptr<const api::EnergyPolicy> policy(const std::string& name, api::EnergyPolicySpec spec,
                                                api::PlacementStrategy strategy) {
  auto out = std::make_shared<api::EnergyPolicy>();
  out->meta.name = name;
  out->spec = std::move(spec);
  out->spec.placement.strategy = strategy;
  return out;
}
GateQuestion fcfs() {
  GateQuestion out;
  out.policies.push_back(policy("q", enforcing(), api::PlacementStrategy::FCFS));
  return out;
}

// "default/a=Chosen@n1 …"
std::string shown(const std::vector<Decided>& all) {
  std::string text;
  for (const Decided& one : all) {
    text += (text.empty() ? "" : " ") + one.gated.job.name + "=" +
            std::string(to_string(one.verdict.why));
    for (const std::string& node : one.nodes) text += "@" + node;
  }
  return text;
}
std::string decided(const World& w, const GateQuestion& question = fcfs()) {
  return shown(decide_all(snapshot_of(w), question));
}

}  // namespace

TEST_CASE("gate: the oldest job is first, and what runs takes room") {
  World w;
  w.node("n1").cpu(4);
  w.pod("default/runs").on("n1").cpu_milli(2500);
  gated(w, "default/young", 1min);
  gated(w, "default/old", 5min);
  CHECK(decided(w) == "default/old=Chosen@n1 default/young=NoFit");
}

TEST_CASE("gate: only pods with the label or annotation count, and only while they are gated") {
  World w;
  w.node("n1").cpu(4);
  w.pod("default/other").gated().cpu_milli(100);
  w.pod("default/annotated").gated().annotation("kwatt.dev/queue", "q").cpu_milli(100);
  w.pod("default/passed").label("kwatt.dev/queue", "q").cpu_milli(100);
  gated(w, "default/going", 1min).terminating();
  CHECK(decided(w) == "default/annotated=Chosen@n1");
}

TEST_CASE(
    "gate: what was released and is not bound yet keeps its room, also while the cache is behind") {
  World w;
  w.node("n1").cpu(2);
  w.pod("default/passed")
      .label("kwatt.dev/queue", "q")
      .annotation("kwatt.dev/assigned-node", "n1")
      .cpu_milli(1000);
  gated(w, "default/sent", 9min);
  gated(w, "default/next", 5min);
  GateQuestion question = fcfs();
  for (const auto& pod : snapshot_of(w).unbound) {
    if (pod->name == "sent") question.released[pod->uid] = "n1";
  }
  CHECK(decided(w, question) == "default/next=NoFit");
  question.released.clear();
  CHECK(decided(w, question) == "default/sent=Chosen@n1 default/next=NoFit");
}

TEST_CASE("gate: a policy that is missing, suspended or only recommends releases nothing") {
  World w;
  w.node("n1");
  gated(w, "default/a", 5min, "none");
  gated(w, "default/b", 4min, "advice");
  gated(w, "default/c", 3min, "asleep");
  GateQuestion question = fcfs();
  auto advice = enforcing(), asleep = enforcing();
  advice.mode = api::Mode::Recommend;
  asleep.suspend = true;
  question.policies = {policy("advice", advice, api::PlacementStrategy::FCFS),
                       policy("asleep", asleep, api::PlacementStrategy::FCFS)};
  CHECK(decided(w, question) == "default/b=RecommendOnly default/c=Suspended default/a=NoPolicy");
  question.release_all = true;
  CHECK(decided(w, question) == "default/b=Asked@n1 default/c=Asked@n1 default/a=Asked@n1");
}

TEST_CASE(
    "gate: pods of a Job with a gang size start together, and the rest follows what has begun") {
  World w;
  w.node("n1").cpu(2);
  w.node("n2").cpu(2);
  for (int i = 0; i < 3; ++i) {
    gated(w, "default/mpi-" + std::to_string(i), 5min)
        .owner("Job", "mpi", "uid-mpi")
        .annotation("kwatt.dev/gang-size", "4");
  }
  CHECK(decided(w) == "default/mpi=MembersMissing");
  gated(w, "default/mpi-3", 4min)
      .owner("Job", "mpi", "uid-mpi")
      .annotation("kwatt.dev/gang-size", "4");
  CHECK(decided(w) == "default/mpi=Chosen@n1@n1@n2@n2");
  w.pod("default/fills").on("n1").cpu_milli(1000);
  CHECK(decided(w) == "default/mpi=GangIncomplete");
  // One of them has passed already, when the controller was killed: the others follow.
  w.pod("default/mpi-4")
      .label("kwatt.dev/queue", "q")
      .owner("Job", "mpi", "uid-mpi")
      .annotation("kwatt.dev/gang-size", "4");
  CHECK(decided(w) == "default/mpi=Begun");
}

TEST_CASE("gate: a launcher and its workers are one gang by name, though their owners differ") {
  World w;
  w.node("n1").cpu(8);
  for (const char* name : {"launcher", "worker"}) {
    gated(w, std::string("default/") + name, 5min)
        .owner("Job", name)
        .label("kwatt.dev/gang", "solver")
        .annotation("kwatt.dev/gang-size", "2");
  }
  CHECK(decided(w) == "default/solver=Chosen@n1@n1");
}

TEST_CASE(
    "gate: annotations that cannot be read hold a job back, with a sentence, until its delay is "
    "over") {
  World w;
  w.node("n1");
  gated(w, "default/a", 5min)
      .annotation("kwatt.dev/deadline", "tomorrow")
      .annotation("kwatt.dev/gang-size", "0")
      .annotation("kwatt.dev/expected-duration", "-1h");
  auto all = decide_all(snapshot_of(w), fcfs());
  REQUIRE(shown(all) == "default/a=Malformed");
  CHECK(
      all[0].verdict.sentence ==
      "kwatt.dev/gang-size: expected 1 to 10000, got \"0\"; kwatt.dev/expected-duration: expected "
      "a duration such as 90m, got \"-1h\"; kwatt.dev/deadline: expected a time such as "
      "2026-11-20T21:00:00Z, got \"tomorrow\"; correct it, or it starts at " +
          format_rfc3339(kNoon - 5min + 24h));
  w.now += 24h;
  CHECK(decided(w) == "default/a=MaxDelay@n1");
}

TEST_CASE("gate: a job goes where its pods may go, in the nodes that the policy selects") {
  World w;
  w.node("a").cpu(2);
  w.node("b").cpu(2).label("disk", "ssd").taint("team", "x", "NoSchedule");
  w.node("c").cpu(2).label("disk", "ssd").label("pool", "batch");
  w.node("d").cpu(2).label("disk", "ssd").cordoned();
  gated(w, "default/tolerant", 9min).selector("disk", "ssd").tolerate("team", "Exists", "", "");
  gated(w, "default/plain", 8min).selector("disk", "ssd");
  gated(w, "default/big", 7min).selector("disk", "ssd").cpu_milli(2000);
  CHECK(decided(w) == "default/tolerant=Chosen@b default/plain=Chosen@c default/big=NoFit");
  GateQuestion question = fcfs();
  auto spec = enforcing();
  spec.node_selector.match_labels = {{"pool", "batch"}};
  question.policies = {policy("q", spec, api::PlacementStrategy::FCFS)};
  CHECK(decided(w, question) ==
        "default/tolerant=Chosen@c default/plain=Chosen@c default/big=NoFit");
}

TEST_CASE(
    "gate: a node that kwatt switched off is room, one that somebody else switched off is not") {
  World w;
  w.node("n1").off();
  gated(w, "default/a", 5min);
  CHECK(decided(w) == "default/a=Chosen@n1");
  World other;
  other.node("n1").state(api::PowerState::Off);
  gated(other, "default/a", 5min);
  CHECK(decided(other).starts_with("default/a=N"));
}

TEST_CASE(
    "gate: a job waits for the clean hour of the policy's zone, at most for the lesser delay") {
  World w;
  w.node("n1");
  gated(w, "default/a", 0min);
  gated(w, "default/b", 0min).annotation("kwatt.dev/max-delay", "1h");
  GateQuestion question;
  auto spec = enforcing();
  spec.carbon.source = "file";
  spec.carbon.zone = "DE";
  question.policies = {policy("q", spec, api::PlacementStrategy::EnergyAware)};
  question.outlook = [&](const api::CarbonSpec& carbon, const std::string& zone) {
    CHECK(carbon.source == "file");
    CHECK(zone == "DE");
    return Outlook{w.now, 1h, {500, 400, 300, 50, 500}};
  };
  auto all = decide_all(snapshot_of(w), question);
  REQUIRE(shown(all) == "default/a=WaitsForCarbon default/b=WaitsForCarbon");
  CHECK(all[0].verdict.look_again == w.now + 3h);
  CHECK(all[1].verdict.look_again == w.now + 1h);
  CHECK(all[0].strategy == "EnergyAware");
}

TEST_CASE("gate: who may wait does until the source has answered for the first time") {
  World w;
  w.node("n1");
  gated(w, "default/late", 2h).annotation("kwatt.dev/max-delay", "1h");
  gated(w, "default/patient", 0min);
  GateQuestion question;
  auto spec = enforcing();
  spec.carbon.source = "file";
  spec.carbon.zone = "DE";
  question.policies = {policy("q", spec, api::PlacementStrategy::FCFS)};
  Outlook outlook;
  outlook.pending = true;
  question.outlook = [&](const api::CarbonSpec&, const std::string&) { return outlook; };
  auto all = decide_all(snapshot_of(w), question);
  CHECK(shown(all) == "default/late=MaxDelay@n1 default/patient=WaitsForCarbon");
  for (const Decided& one : all) {
    if (one.verdict.starts) continue;
    CHECK(one.verdict.sentence ==
          "carbon source file is being asked for zone \"DE\" for the first time");
    CHECK(one.verdict.look_again == w.now + spec.carbon.max_delay);
  }
  question.release_all = true;
  CHECK(shown(decide_all(snapshot_of(w), question)) ==
        "default/late=Asked@n1 default/patient=Asked@n1");
  // It answered that it knows nothing: as if carbon did not exist.
  question.release_all = outlook.pending = false;
  CHECK(shown(decide_all(snapshot_of(w), question)) ==
        "default/late=MaxDelay@n1 default/patient=Chosen@n1");
}
