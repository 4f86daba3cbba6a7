#include <doctest/doctest.h>

#include "simulator/report/report.hpp"
#include "simulator/synthetic.hpp"
#include "test/simulator/room.hpp"

namespace kwatt::simulator::test {
namespace {

TEST_SUITE("simulator") {
  TEST_CASE("simulation: one job on one machine, by hand") {
    auto sim = simulation(machines(1));
    const Outcome o = run(*sim, {job("a", 10s, 100s, 2)});
    CHECK(o.completed == 1);
    CHECK(o.makespan == 110s);
    CHECK(o.length == 110s);
    CHECK(o.turnaround.mean() == 100'000);
    CHECK(o.waiting.mean() == 0);
    CHECK(joules(o) == doctest::Approx(10 * 100 + 100 * 150));
    CHECK(o.nodes[0].account.busy_ms == 100'000);
    CHECK(o.utilization == doctest::Approx(0.5 * 100 / 110));
  }

  TEST_CASE("simulation: who finds no room waits until somebody ends") {
    auto sim = simulation(machines(1));
    const Outcome o =
        run(*sim, {job("a", 0s, 100s, 3), job("b", 10s, 50s, 2), job("c", 20s, 10s, 1)});
    CHECK(o.completed == 3);
    CHECK(o.waiting.maximum() == 90'000);  // b: from 10 s to 100 s; c runs beside a
    CHECK(o.makespan == 150s);
  }

  TEST_CASE("simulation: a machine that is off is woken for a job, which waits for the boot") {
    auto all = machines(1);
    all[0].starts_off = true;
    Settings settings;
    settings.idle_off_after = 5min;
    auto sim = simulation(all, settings);
    Outcome o = run(*sim, {job("a", 100s, 100s, 4)});
    CHECK(o.waiting.mean() == 60'000);
    CHECK(o.makespan == 260s);
    CHECK(joules(o) == doctest::Approx(100 * 5 + 9000 + 100 * 200));
    // Five minutes later it goes off again.
    sim->run_until(1000s).value();
    o = sim->outcome();
    CHECK(o.shutdowns == 1);
    CHECK(joules(o) ==
          doctest::Approx(100 * 5 + 9000 + 100 * 200 + 300 * 100 + 1000 + (1000 - 570) * 5));
  }

  TEST_CASE("simulation: minAwake machines stay on") {
    Settings settings;
    settings.idle_off_after = 1min;
    settings.min_awake = 2;
    auto sim = simulation(machines(5), settings);
    sim->run_until(1h).value();
    CHECK(sim->outcome().shutdowns == 3);
  }

  TEST_CASE("simulation: without idle-off nobody is switched off") {
    auto sim = simulation(machines(2));
    sim->run_until(24h).value();
    CHECK(sim->outcome().shutdowns == 0);
    CHECK(joules(sim->outcome()) == doctest::Approx(2 * 100 * 86'400));
  }

  TEST_CASE("simulation: deadlines are missed by who ends late, who is rejected and who waits") {
    auto sim = simulation(machines(1));
    std::vector<Job> jobs = {job("late", 0s, 100s, 4), job("right", 0s, 100s, 4),
                             job("huge", 0s, 100s, 5), job("open", 0s, 100s, 4)};
    jobs[0].deadline = 99s;
    jobs[1].deadline = 200s;
    jobs[2].deadline = 1000s;
    const Outcome o = run(*sim, jobs, 250s);
    CHECK(o.with_deadline == 3);
    CHECK(o.deadline_misses == 2);
    CHECK(o.completed == 2);
    CHECK(o.unfinished == 1);
    CHECK(o.submitted == o.completed + o.rejected + o.unfinished);
  }

  TEST_CASE("simulation: what can never run is rejected with its reason, not lost") {
    struct Case {
      const char* name;
      std::function<void(Job&)> change;
      const char* reason;
    };
    const Case cases[] = {
        {"cpu", [](Job& j) { j.need.cpu = Millicores{4001}; }, "fit on no machine, even empty"},
        {"memory", [](Job& j) { j.need.memory = Bytes{17 * kGiB}; }, "fit on no machine"},
        {"gpu", [](Job& j) { j.need.gpu_milli = 500; }, "fit on no machine"},
        {"gang", [](Job& j) { j.tasks = 9; }, "9 × 1000 millicores"},
        {"no cpu", [](Job& j) { j.need.cpu = {}; }, "its CPU must be above 0"},
        {"no time", [](Job& j) { j.duration = 0s; }, "its duration must be above 0"},
        {"negative time", [](Job& j) { j.duration = -1s; }, "its duration must be above 0"},
        {"no task", [](Job& j) { j.tasks = 0; }, "at least one task"},
        {"parts of several GPUs", [](Job& j) { j.need.gpu_milli = 1500; }, "whole GPUs"},
    };
    for (const Case& c : cases) {
      CAPTURE(c.name);
      auto sim = simulation(machines(2));
      Job bad = job("bad", 0s, 10s);
      c.change(bad);
      const Outcome o = run(*sim, {bad, job("good", 0s, 10s)});
      CHECK(o.rejected == 1);
      CHECK(o.completed == 1);
      REQUIRE(o.refused.size() == 1);
      CHECK(o.refused[0].name == "bad");
      CHECK_MESSAGE(o.refused[0].reason.find(c.reason) != std::string::npos, o.refused[0].reason);
    }
  }

  TEST_CASE("simulation: of many rejected jobs all are counted and the first are named") {
    auto sim = simulation(machines(1));
    std::vector<Job> jobs;
    for (int i = 0; i < 100; ++i) jobs.push_back(job("huge", 0s, 1s, 99));
    const Outcome o = run(*sim, jobs);
    CHECK(o.rejected == 100);
    CHECK(o.refused.size() == Outcome::kNamed);
  }

  TEST_CASE("simulation: a gang starts when all its members can, and ends as one") {
    auto sim = simulation(machines(3));
    Job gang = job("gang", 0s, 100s, 3);
    gang.tasks = 3;
    std::vector<std::string> started;
    sim->on_started([&](const Started& s) { started.emplace_back(s.machine); });
    const Outcome o = run(*sim, {job("a", 0s, 50s, 2), gang});
    CHECK(o.completed == 2);
    CHECK(o.makespan == 150s);  // m1 has room for it from 50 s on
    CHECK(started == std::vector<std::string>{"m1", "m1", "m2", "m3"});
    CHECK(o.nodes[1].account.busy_ms == 100'000);
  }

  TEST_CASE("simulation: a gang is as slow as its slowest machine") {
    auto sim = simulation(machines(2));
    sim->limit_frequency(1, 1000);
    Job gang = job("gang", 0s, 100s, 3);
    gang.tasks = 2;
    CHECK(run(*sim, {gang}).makespan == 200s);
  }

  TEST_CASE("simulation: a change of frequency in the middle changes the end") {
    struct Slow final : Controller {
      Result<Duration> act(Simulation& sim) override {
        if (sim.elapsed() == 50s) sim.limit_frequency(0, 1000);
        return Duration{50s};
      }
    };
    auto sim = simulation(machines(1));
    sim->set_controller(std::make_unique<Slow>());
    const Outcome o = run(*sim, {job("a", 0s, 100s, 4)});
    CHECK(o.makespan == 150s);
    CHECK(joules(o) == doctest::Approx(50 * 200 + 100 * 127.5));
  }

  TEST_CASE("simulation: carbon follows the zone's series from hour to hour") {
    Settings settings;
    settings.intensities["north"] = {settings.start, 1h, {100, 500}, 0};
    settings.intensities[""] = {{}, 1h, {}, 1000};
    auto sim = simulation({machine("a", "north"), machine("b", "south")}, settings);
    sim->run_until(3h).value();
    const Outcome o = sim->outcome();
    CHECK(o.nodes[0].account.grams_co2 == doctest::Approx(0.1 * 100 + 0.2 * 500));
    CHECK(o.nodes[1].account.grams_co2 == doctest::Approx(0.3 * 1000));
    CHECK(o.mean_intensity() == doctest::Approx((110 + 300) / 0.6));
    CHECK(o.cost == doctest::Approx(0.6 * 0.15 + 410e-6 * 80));
  }

  TEST_CASE("simulation: a job that is held back for carbon starts when it was meant to") {
    Settings settings;
    auto sim = std::move(
        Simulation::create(machines(1), std::make_unique<HoldUntil>(settings.start + 3h), settings)
            .value());
    const Outcome o = run(*sim, {job("a", 10min, 60s)});
    CHECK(o.waiting.mean() == Duration{3h - 10min}.count());
  }

  TEST_CASE("simulation: an evicted job begins anew, an evicted service loses what it would do") {
    struct Evict final : Controller {
      Result<Duration> act(Simulation& sim) override {
        if (sim.elapsed() == 50s) {
          for (const WorkId id : std::vector<WorkId>(sim.on_machine(0)))
            sim.evict(id, MachineId{1});
        }
        return Duration{50s};
      }
    };
    auto sim = simulation(machines(2));
    sim->set_controller(std::make_unique<Evict>());
    Service service;
    service.name = "web";
    service.need = {Millicores{1000}, Bytes{kGiB}, 0};
    service.on = "m1";
    sim->add({service}).value();
    const Outcome o = run(*sim, {job("a", 0s, 100s, 1)});
    CHECK(o.migrations == 2);
    CHECK(o.lost_core_hours == doctest::Approx(55.0 / 3600));  // 50 s, and 5 s to stop
    CHECK(o.makespan == 55s + 5s + 100s);
    CHECK(o.pdm == doctest::Approx(5.0 / 160));  // 5 s until its replacement runs
    CHECK(sim->on_machine(0).empty());
  }

  TEST_CASE("simulation: a job that ends before its eviction would, ends") {
    struct Evict final : Controller {
      Result<Duration> act(Simulation& sim) override {
        if (sim.elapsed() == 97s) {
          for (const WorkId id : std::vector<WorkId>(sim.on_machine(0))) sim.evict(id, {});
        }
        return Duration{97s};
      }
    };
    auto sim = simulation(machines(1));
    sim->set_controller(std::make_unique<Evict>());
    const Outcome o = run(*sim, {job("a", 0s, 100s)});
    CHECK(o.migrations == 0);
    CHECK(o.makespan == 100s);
  }

  TEST_CASE("simulation: a service uses what its series says, and too much of it is an overload") {
    auto sim = simulation(machines(1));
    Service service;
    service.name = "vm";
    service.need = {Millicores{4000}, Bytes{kGiB}, 0};
    service.step = 100s;
    service.use = {percent(50), percent(200), percent(0)};
    service.end = 400s;
    sim->add({service}).value();
    JobList none({});
    sim->run(none).value();
    const Outcome o = sim->outcome();
    CHECK(o.length == 400s);
    CHECK(joules(o) == doctest::Approx(100 * 150 + 100 * 200 + 200 * 100));
    CHECK(o.slatah == doctest::Approx(0.25));
    CHECK(o.pdm == 0);
  }

  TEST_CASE("simulation: the strategy is asked at whole intervals") {
    Settings settings;
    settings.decide_every = 1min;
    auto sim = simulation(machines(1), settings);
    const Outcome o = run(*sim, {job("a", 10s, 10s), job("b", 60s, 10s), job("c", 61s, 10s)});
    CHECK(o.decisions == 2);
    CHECK(o.waiting.maximum() == 59'000);
  }

  TEST_CASE("simulation: a queue longer than the window is worked off in order") {
    Settings settings;
    settings.window = 2;
    auto sim = simulation(machines(1), settings);
    std::vector<Job> jobs;
    for (int i = 0; i < 50; ++i) jobs.push_back(job("j" + std::to_string(i), 0s, 10s, 4));
    std::vector<std::string> order, names;
    sim->on_started([&](const Started& s) { order.emplace_back(s.job); });
    for (const Job& j : jobs) names.push_back(j.name);
    CHECK(run(*sim, jobs).makespan == 500s);
    CHECK(order == names);
  }

  TEST_CASE("simulation: same input, same run, to the byte") {
    const auto once = [](std::uint64_t seed) {
      Settings settings;
      settings.idle_off_after = 3min;
      settings.intensities[""] = {settings.start, 1h, {100, 300, 50, 400}, 0};
      auto sim = simulation(machines(20), settings);
      Synthetic spec;
      spec.jobs = 2000;
      spec.per_hour = 400;
      spec.most_cores = 4;
      SyntheticJobs jobs(spec, seed);
      std::string schedule = report::kScheduleHeader;
      sim->on_started([&](const Started& s) {
        schedule += report::schedule_line(s.job, s.machine, s.strategy, s.grams_per_kwh, s.at);
      });
      sim->run(jobs).value();
      const std::vector<report::Run> runs = {{"FirstFit", "synthetic", seed, sim->outcome()}};
      return schedule + report::json_of(runs) + report::csv_of(runs) +
             report::metrics_csv_of(runs) + report::html_of(runs, "t");
    };
    const std::string first = once(7);
    CHECK(first == once(7));
    CHECK(first != once(8));
  }

  TEST_CASE("simulation: conserves work, room and energy over a long random run") {
    Settings settings;
    settings.idle_off_after = 2min;
    auto sim = simulation(machines(10), settings);
    Synthetic spec;
    spec.jobs = 3000;
    spec.per_hour = 600;
    spec.most_cores = 8;  // some are too large
    SyntheticJobs jobs(spec, 3);
    sim->run(jobs).value();
    const Outcome o = sim->outcome();
    CHECK(o.submitted == 3000);
    CHECK(o.submitted == o.completed + o.rejected + o.unfinished);
    CHECK(o.rejected > 0);
    CHECK(o.unfinished == 0);
    double nodes = 0, timeline = 0;
    for (const auto& node : o.nodes) nodes += static_cast<double>(node.account.energy.units) / 1000;
    for (const auto& point : o.timeline.points()) {
      const Duration step = std::min(o.timeline.step(), o.length - point.at);
      timeline += point.mean.watts * static_cast<double>(step.count()) / 1000;
    }
    CHECK(nodes == doctest::Approx(joules(o)));
    // What rounding leaves of boots is in the nodes alone.
    CHECK(timeline == doctest::Approx(nodes).epsilon(1e-6));
    for (MachineId id = 0; id < sim->size(); ++id) {
      CHECK(sim->machine(id).used() == Amount{});
      CHECK(sim->on_machine(id).empty());
    }
  }

  TEST_CASE("simulation: jobs that go back in time are an error that names them") {
    struct Backwards final : JobSource {
      int made = 0;
      Result<std::optional<Job>> next() override {
        ++made;
        return std::optional<Job>{job("j" + std::to_string(made), seconds{100 / made}, 1s)};
      }
    };
    auto sim = simulation(machines(1));
    Backwards source;
    const auto done = sim->run(source);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().message.find("job j2 arrives at 50000 ms, before the one before it") !=
          std::string::npos);
  }

  TEST_CASE("simulation: a cluster that makes no sense is refused") {
    const auto error_of = [](std::vector<MachineSpec> all) {
      auto made = Simulation::create(std::move(all), std::make_unique<FirstFit>(), {});
      return made ? std::string("none") : made.error().message;
    };
    CHECK(error_of({}) == "there are no machines to simulate");
    CHECK(error_of({machine("a"), machine("a")}).find("a") != std::string::npos);
    auto none = machine("a");
    none.capacity.cpu = {};
    CHECK(error_of({none}) != "none");
    auto frequency = machine("a");
    frequency.max_mhz = 100;
    CHECK(error_of({frequency}).find("frequencies") != std::string::npos);
  }

  TEST_CASE("simulation: progress is told, and can end the run") {
    auto sim = simulation(machines(10));
    Synthetic spec;
    spec.jobs = 20'000;
    spec.most_cores = 4;
    SyntheticJobs jobs(spec, 1);
    sim->on_progress([](Duration, std::uint64_t arrived) { return arrived < 5000; });
    const auto done = sim->run(jobs);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().code == ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace kwatt::simulator::test
