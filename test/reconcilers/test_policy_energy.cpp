#include <random>

#include <doctest/doctest.h>

#include "reconcilers/energy_meter.hpp"
#include "reconcilers/policy_status.hpp"

TEST_SUITE("telemetry") {
  using namespace kwatt;
  using namespace kwatt::reconcilers;
  using api::PowerState;
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;

  namespace {
  const TimePoint kStart = *parse_rfc3339("2026-11-20T10:00:00Z");

  api::EnergyPolicy policy() {
    api::EnergyPolicy p;
    p.meta.name = "default";
    p.meta.uid = "uid";
    return p;
  }

  // Machines n1, n2 … of 100 W idle, 300 W at full load, 60 s and 18 kJ to boot, in these states;
  // those that are not On were switched off by us.
  planner::Snapshot snapshot(TimePoint now, const std::vector<PowerState>& states) {
    planner::Snapshot s;
    s.now = now;
    s.sync.synced = true;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const std::string name = "n" + std::to_string(i + 1);
      auto node = std::make_shared<api::Node>();
      node->meta.name = name;
      auto machine = std::make_shared<api::NodePower>();
      machine->meta.name = name;
      machine->status.power_state = states[i];
      machine->status.memory.powered_off_by_us = states[i] != PowerState::On;
      planner::NodeView& view = s.nodes[name];
      view.node = node;
      view.machine = machine;
      view.ready = states[i] == PowerState::On;
      api::PowerModelSpec model;
      model.idle_milliwatts = 100'000;
      model.max_milliwatts = 300'000;
      model.boot_seconds = 60;
      model.boot_joules = 18'000;
      view.model = models::model_of(model, Millicores{8000});
    }
    return s;
  }

  PolicyOutcome outcome(std::size_t nodes) {
    PolicyOutcome o;
    o.enforcing = true;
    for (std::size_t i = 1; i <= nodes; ++i) o.selected.push_back("n" + std::to_string(i));
    return o;
  }

  // Milliwatt-seconds.
  std::int64_t saved(const api::EnergyPolicyStatus& status) {
    return status.power.saved_watt_hours * models::kMillijoulesPerWattHour +
           status.memory.saved_milliwatt_seconds;
  }
  }  // namespace

  TEST_CASE("policy energy: savings add up over the passes to whole watt-hours") {
    api::EnergyPolicy p = policy();
    TimePoint now = kStart;
    for (int i = 0; i <= 360; ++i) {  // one hour, a pass every ten seconds, 100 W saved
      p.status = policy_status(p, snapshot(now, {PowerState::On, PowerState::Off}), outcome(2));
      now += seconds{10};
    }
    CHECK(p.status.power.saved_watt_hours == 100);
    CHECK(p.status.memory.saved_milliwatt_seconds == 0);
  }

  TEST_CASE("policy energy: a boot is paid for before anything more is saved") {
    api::EnergyPolicy p = policy();
    const auto pass = [&](TimePoint at, PowerState state) {
      p.status = policy_status(p, snapshot(at, {state}), outcome(1));
    };
    pass(kStart, PowerState::Off);
    pass(kStart + seconds{30}, PowerState::Off);
    CHECK(saved(p.status) == 100'000LL * 30);
    pass(kStart + seconds{31}, PowerState::PoweringOn);  // 300 W, 200 W more than idle
    pass(kStart + seconds{61}, PowerState::PoweringOn);
    pass(kStart + seconds{91}, PowerState::On);
    CHECK(saved(p.status) == 100'000LL * 31 - 200'000LL * 60);
    CHECK(p.status.power.saved_watt_hours == -3);  // -8,900,000 mWs is -3 Wh and 1,900,000 mWs
    CHECK(p.status.memory.saved_milliwatt_seconds == 1'900'000);
    pass(kStart + seconds{151}, PowerState::On);
    CHECK(saved(p.status) == 100'000LL * 31 - 200'000LL * 60);
  }

  TEST_CASE("policy energy: a controller that was away does not claim what it did not see") {
    api::EnergyPolicy p = policy();
    p.status = policy_status(p, snapshot(kStart, {PowerState::Off}), outcome(1));
    struct Case {
      const char* name;
      Duration gap, interval;
      std::int64_t want;
    };
    const Case cases[] = {{"a minute", minutes{1}, seconds{10}, 100'000LL * 60},
                          {"more", seconds{61}, seconds{10}, 0},
                          {"ten hours", hours{10}, seconds{10}, 0},
                          {"two minutes of a slow policy", minutes{2}, minutes{1}, 100'000LL * 120},
                          {"a clock set back", -hours{1}, seconds{10}, 0}};
    for (const Case& c : cases) {
      INFO(c.name);
      api::EnergyPolicy slow = p;
      slow.spec.interval = c.interval;
      CHECK(saved(policy_status(slow, snapshot(kStart + c.gap, {PowerState::Off}), outcome(1))) ==
            c.want);
    }
  }

  TEST_CASE("policy energy: the account in memory goes on while the status is not written") {
    api::EnergyPolicy p = policy();
    p.status = policy_status(p, snapshot(kStart, {PowerState::Off}), outcome(1));
    PolicyOutcome o = outcome(1);
    o.account = account_of(p.status);
    for (int i = 1; i <= 25; ++i) {
      const auto next = policy_status(p, snapshot(kStart + seconds{i}, {PowerState::Off}), o);
      CHECK_FALSE(worth_writing(p.status, next, seconds{30}));
      o.account = account_of(next);
    }
    CHECK(o.account->saved_milliwatt_seconds == 2'500'000);
    // A successor starts from the status and comes to the same.
    CHECK(saved(policy_status(p, snapshot(kStart + seconds{25}, {PowerState::Off}), outcome(1))) ==
          2'500'000);
    // An invalid edit neither adds nor loses anything.
    o.problems = {"spec.interval: must be positive"};
    const auto invalid = policy_status(p, snapshot(kStart + seconds{50}, {PowerState::Off}), o);
    CHECK(saved(invalid) == 2'500'000);
    o.problems.clear();
    o.account = account_of(invalid);
    CHECK(saved(policy_status(p, snapshot(kStart + seconds{51}, {PowerState::Off}), o)) ==
          2'600'000);
  }

  TEST_CASE("policy energy: grams are counted at the configured intensity, and left out without") {
    api::EnergyPolicy p = policy();
    PolicyOutcome unknown = outcome(1), known = outcome(1);
    known.carbon_grams_per_kwh = 400;
    p.status = policy_status(p, snapshot(kStart, {PowerState::Off}), unknown);
    CHECK_FALSE(p.status.power.saved_grams_co2.has_value());
    for (int i = 1; i <= 360; ++i) {
      p.status = policy_status(p, snapshot(kStart + seconds{10 * i}, {PowerState::Off}), known);
    }
    REQUIRE(p.status.power.saved_grams_co2.has_value());
    // 100 Wh at 400 g/kWh; every pass rounds down to a whole microgram.
    const std::int64_t micrograms =
        *p.status.power.saved_grams_co2 * 1'000'000 + p.status.memory.saved_micrograms_co2;
    CHECK(micrograms <= 40'000'000);
    CHECK(micrograms >= 40'000'000 - 360);
  }

  TEST_CASE("policy energy: whatever happens, nothing is counted twice") {
    // Machines change state at random and move between two policies; the policies' sums must be
    // what the machines' own draws come to, and the hours' sums in the history, too.
    for (const std::uint32_t seed : {11U, 12U, 13U, 14U, 15U, 16U}) {
      std::mt19937 random(seed);
      const auto below = [&](int limit) {
        return std::uniform_int_distribution<int>(0, limit - 1)(random);
      };
      constexpr PowerState kStates[] = {PowerState::On, PowerState::Off, PowerState::PoweringOn,
                                        PowerState::PoweringOff};
      std::vector<PowerState> states(6, PowerState::On);
      api::EnergyPolicy a = policy(), b = policy();
      b.meta.name = "b";
      EnergyMeter meter;
      std::int64_t expected = 0, by_hour = 0, off_energy = 0;
      TimePoint now = kStart;
      std::vector<planner::Draw> draws;
      int passes = 0;
      for (int i = 0; i < 400; ++i) {
        const Duration step{below(20'000)};
        now += step;
        for (const planner::Draw& draw : draws) {
          expected += models::held(draw.power, step).saved().count();
          off_energy += models::held(draw.power, step).baseline.count();
        }
        states[static_cast<std::size_t>(below(6))] = kStates[below(4)];
        const planner::Snapshot s = snapshot(now, states);
        const int split = below(7);
        PolicyOutcome first = outcome(6), second = outcome(6);
        second.selected.erase(second.selected.begin(), second.selected.begin() + split);
        first.selected.resize(static_cast<std::size_t>(split));
        a.status = policy_status(a, s, first);
        b.status = policy_status(b, s, second);
        meter.observe(s, "a", first.selected, minutes{1});
        meter.observe(s, "b", second.selected, minutes{1});
        draws.clear();
        for (const auto& [name, node] : s.nodes) draws.push_back(planner::draw_of(node, now));
        ++passes;
      }
      Duration covered{0};
      for (const NodeEnergy& sum : meter.take()) {
        by_hour += sum.energy.saved().count();
        covered += sum.covered;
        CHECK(sum.covered <= hours{1});
        CHECK(sum.measured == Duration{0});
      }
      const std::int64_t total = saved(a.status) + saved(b.status);
      CHECK(std::abs(total - expected) <= 8 * passes);
      CHECK(std::abs(by_hour - expected) <= 16 * passes);
      CHECK(total <= off_energy);
      CHECK(covered <= 6 * (now - kStart));
      CHECK(meter.take().empty());
    }
  }

  TEST_CASE("energy meter: an interval over the full hour is split, a gap is left out") {
    EnergyMeter meter;
    const TimePoint late = kStart + minutes{59} + seconds{50};
    const auto look = [&](TimePoint at) {
      meter.observe(snapshot(at, {PowerState::Off}), "p", {"n1"}, minutes{1});
    };
    look(late);
    look(late + seconds{30});
    look(late + minutes{10});
    look(late + minutes{10} + seconds{10});
    const auto sums = meter.take();
    REQUIRE(sums.size() == 2);
    CHECK(sums[0].hour == kStart);
    CHECK(sums[0].covered == seconds{10});
    CHECK(sums[0].energy.saved().count() == 1'000'000);
    CHECK(sums[1].hour == kStart + hours{1});
    CHECK(sums[1].covered == seconds{30});
    CHECK(sums[1].energy.saved().count() == 3'000'000);
    CHECK(sums[1].policy == "p");
  }
}
