// From any persisted record of a PowerOff and whatever happens meanwhile, the machine ends On or
// Off, everything agrees about it, and it is never switched off with a workload pod on it.
#include <random>

#include <doctest/doctest.h>

#include "test/planner/stage.hpp"

namespace kwatt::test {
namespace {

using api::PowerState;
using planner::PowerOff;
namespace names = planner::names;

class Chance {
 public:
  explicit Chance(std::uint32_t seed) : random_(seed) {}
  bool one_in(std::uint32_t n) { return random_() % n == 0; }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

 private:
  std::mt19937 random_;
};

// Everything that may go wrong around a node, a little of it at each look.
void something_happens(Stage& stage, Chance& chance, int& serial) {
  if (chance.one_in(12)) stage.crash();
  if (chance.one_in(25)) stage.bmc_answers = !stage.bmc_answers;
  if (chance.one_in(40)) stage.heeds_graceful = !stage.heeds_graceful;
  if (chance.one_in(60)) stage.heeds_on = !stage.heeds_on;
  if (chance.one_in(60)) stage.volume_attached = !stage.volume_attached;
  if (chance.one_in(80)) {
    stage.spec.mode =
        stage.spec.mode == api::Mode::Enforce ? api::Mode::Recommend : api::Mode::Enforce;
  }
  if (chance.one_in(80)) stage.spec.suspend = !stage.spec.suspend;
  if (chance.one_in(100)) stage.node.unschedulable = !stage.node.unschedulable;
  if (chance.one_in(100)) stage.node.meta.annotations.set(names::kOverride, "on");
  if (chance.one_in(50)) stage.node.meta.annotations.erase(names::kOverride);
  if (chance.one_in(100)) stage.status.decision.desired = api::Desired::On;
  // Pods come through the scheduler, or past it, as long as the kubelet runs; some tolerate all.
  const bool admits = stage.machine == PowerState::On;
  if (admits && chance.one_in(stage.node.unschedulable ? 60 : 20) && stage.pods.size() < 6) {
    const bool tolerant = chance.one_in(3);
    stage.pod("default/late-" + std::to_string(serial++), [&](PodBuilder& p) {
      if (tolerant) p.tolerate("", "Exists", "", "");
    });
  }
  if (!stage.pods.empty() && chance.one_in(15)) {
    stage.pods.erase(stage.pods.begin() +
                     chance.below(static_cast<std::uint32_t>(stage.pods.size())));
  }
}

void calm_down(Stage& stage) {
  stage.bmc_answers = stage.heeds_graceful = stage.heeds_on = true;
  stage.volume_attached = false;
  stage.spec.suspend = false;
  stage.spec.mode = api::Mode::Enforce;
  stage.node.meta.annotations.erase(names::kOverride);
}

bool occupied(const Stage& stage) {
  return std::any_of(stage.pods.begin(), stage.pods.end(),
                     [](const api::Pod& p) { return p.workload(); });
}

// The record and the world agree at the end of an operation.
void check_end(const Stage& stage) {
  CHECK(stage.unsafe.empty());
  CHECK_FALSE(stage.busy());
  const api::NodePowerStatus& status = stage.status;
  if (status.power_state == PowerState::WakeFailed) {
    CHECK(status.memory.powered_off_by_us);  // a later pass wakes it
    return;
  }
  const bool ends = stage.machine == PowerState::On || stage.machine == PowerState::Off;
  CHECK(ends);
  CHECK(status.power_state == stage.machine);
  if (stage.machine == PowerState::Off) {
    CHECK(status.memory.powered_off_by_us);
    CHECK_FALSE(occupied(stage));
    CHECK(stage.tainted(names::kPowerOffTaint));
  } else {
    CHECK_FALSE(status.memory.powered_off_by_us);
    CHECK_FALSE(stage.tainted(names::kPowerOffTaint));
    CHECK_FALSE(stage.tainted(names::kCandidateTaint));
  }
}

Stage scene(Chance& chance) {
  Stage stage;
  stage.spec.power_off.soft_timeout = seconds{30};
  stage.spec.migration.drain_timeout = minutes{3};
  stage.shutdown_time = seconds{1 + chance.below(60)};
  stage.boot_time = seconds{5 + chance.below(120)};
  stage.pod_grace = seconds{1 + chance.below(40)};
  const std::uint32_t count = chance.below(4);
  for (std::uint32_t i = 0; i < count; ++i) stage.pod("default/web-" + std::to_string(i));
  if (chance.one_in(2)) {
    stage.pod("kube-system/exporter-1", [](PodBuilder& p) { p.owner("DaemonSet", "exporter"); });
  }
  stage.on_evict = [&chance](const api::Pod&) {
    using Outcome = planner::EvictionResult::Outcome;
    if (chance.one_in(6)) return Outcome::blocked_by_budget;
    return chance.one_in(8) ? Outcome::failed : Outcome::accepted;
  };
  return stage;
}

TEST_CASE("power off, simulated: faults at every step, then calm, end in a state that is true") {
  int off = 0, on = 0, failed_wakes = 0;
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Chance chance{seed};
    Stage stage = scene(chance);
    int serial = 0;
    planner::PowerOff what;
    what.wake_test = chance.one_in(4);
    for (const api::Pod& p : stage.pods) {
      if (p.workload()) what.moves.push_back({p.namespace_name, p.name, p.uid, "n2", "", {}});
    }
    stage.begin(what);
    const TimePoint storm_ends = stage.now + minutes{8};
    while (stage.busy() && stage.now < storm_ends) {
      something_happens(stage, chance, serial);
      const planner::Step step = stage.look(chance.one_in(10));
      stage.tick(std::clamp<Duration>(step.again_after, seconds{1}, seconds{10}));
    }
    calm_down(stage);
    REQUIRE(stage.run(hours{1}));
    check_end(stage);
    if (stage.status.power_state == PowerState::WakeFailed) ++failed_wakes;
    (stage.machine == PowerState::Off ? off : on)++;
  }
  // The storm is rough enough that both ends happen, and mild enough that both happen often.
  CHECK(off > 20);
  CHECK(on > 100);
  CHECK(failed_wakes < 100);
}

TEST_CASE("power off, resumed: every record that a run leaves behind leads to an end") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    Chance chance{seed};
    Stage run = scene(chance);
    run.on_evict = {};
    run.begin_drain();
    // All the records of one undisturbed run, each with the world as it was then.
    std::vector<Stage> records;
    while (run.busy()) {
      records.push_back(run);
      run.look();
      run.tick();
      REQUIRE(records.size() < 5000);
    }
    CHECK(run.machine == PowerState::Off);
    for (std::size_t i = 0; i < records.size(); i += 1 + chance.below(3)) {
      CAPTURE(seed);
      CAPTURE(i);
      CAPTURE(records[i].status.operation.step);
      Stage again = records[i];
      again.crash();
      const int what = static_cast<int>(chance.below(5));
      CAPTURE(what);
      if (what == 1) again.look(true);      // the effects were lost
      if (what == 2) again.tick(hours{1});  // the controller was away for long
      if (what == 3) {                      // the BMC was
        again.bmc_answers = false;
        for (int k = 0; k < 30 && again.busy(); ++k) {
          again.look();
          again.tick();
        }
        again.bmc_answers = true;
      }
      if (what == 4) again.spec = api::EnergyPolicySpec{};  // the policy is gone
      REQUIRE(again.run(hours{2}));
      check_end(again);
    }
  }
}

}  // namespace
}  // namespace kwatt::test
