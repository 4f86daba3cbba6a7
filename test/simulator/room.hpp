#pragma once
// Machines and jobs with round numbers, and a strategy that every reader can follow.
#include <string>
#include <vector>

#include "simulator/simulation.hpp"

namespace kwatt::simulator::test {

using namespace std::chrono_literals;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// The first machine in the list with room, awake ones before those that are off; in the order of
// arrival, passing over what does not fit.
class FirstFit final : public strategies::Strategy {
 public:
  std::string_view name() const override { return "FirstFit"; }
  void decide(const strategies::Batch& batch, strategies::Cluster& cluster,
              strategies::Decision& out) override {
    out.clear();
    for (std::uint32_t i = 0; i < batch.jobs.size(); ++i) {
      const std::size_t before = out.assigned.size();
      for (std::uint32_t member = 0; member < batch.jobs[i].members; ++member) {
        const auto node = choose(cluster, batch.jobs[i].request);
        if (!node) break;
        strategies::Assignment to{.job = i, .member = member, .node = *node, .start = batch.now};
        to.gpus = cluster.start(*node, batch.jobs[i].request);
        out.assigned.push_back(to);
      }
      if (out.assigned.size() - before == batch.jobs[i].members) continue;
      while (out.assigned.size() > before) {
        const auto& last = out.assigned.back();
        cluster.finish(last.node, batch.jobs[i].request, last.gpus);
        out.assigned.pop_back();
      }
      out.waiting.push_back({i, strategies::Waits::no_fit, batch.now});
    }
  }

 private:
  static std::optional<std::uint32_t> choose(const strategies::Cluster& cluster,
                                             const strategies::Request& request) {
    for (const bool off : {false, true}) {
      for (std::uint32_t node = 0; node < cluster.size(); ++node) {
        const bool is_off = cluster.node(node).state == strategies::NodeState::off;
        if (is_off == off && cluster.fits(node, request)) return node;
      }
    }
    return std::nullopt;
  }
};

// Holds every job back until a moment, as a strategy that waits for low carbon does.
class HoldUntil final : public strategies::Strategy {
 public:
  explicit HoldUntil(TimePoint until) : until_(until) {}
  std::string_view name() const override { return "HoldUntil"; }
  void decide(const strategies::Batch& batch, strategies::Cluster& cluster,
              strategies::Decision& out) override {
    out.clear();
    if (batch.now >= until_) return first_fit_.decide(batch, cluster, out);
    for (std::uint32_t i = 0; i < batch.jobs.size(); ++i) {
      out.waiting.push_back({i, strategies::Waits::waits_for_carbon, until_});
    }
  }

 private:
  TimePoint until_;
  FirstFit first_fit_;
};

// 4 cores, 16 GiB, 100 W idle, 200 W at full load, a straight line; boots in 60 s with 9 kJ, stops
// in 10 s with 1 kJ, 5 W while off.
inline MachineSpec machine(const std::string& name, const std::string& zone = "") {
  MachineSpec spec;
  spec.name = name;
  spec.zone = zone;
  spec.capacity = {Millicores{4000}, Bytes{16 * kGiB}, 0};
  for (std::int64_t i = 0; i <= 10; ++i) {
    spec.power.curve.points[static_cast<std::size_t>(i)] = Milliwatts{100'000 + i * 10'000};
  }
  spec.power.boot = 60s;
  spec.power.boot_energy = Millijoules{9'000'000};
  spec.power.shutdown = 10s;
  spec.power.shutdown_energy = Millijoules{1'000'000};
  spec.power.standby = Milliwatts{5000};
  spec.power.specified = true;
  spec.min_mhz = 1000;
  spec.max_mhz = 2000;
  return spec;
}

inline std::vector<MachineSpec> machines(std::size_t count) {
  std::vector<MachineSpec> all;
  for (std::size_t i = 1; i <= count; ++i) all.push_back(machine("m" + std::to_string(i)));
  return all;
}

inline Job job(const std::string& name, Duration arrival, Duration duration,
               std::int64_t cores = 1) {
  Job out;
  out.name = name;
  out.arrival = arrival;
  out.duration = duration;
  out.need = {Millicores{cores * 1000}, Bytes{kGiB}, 0};
  return out;
}

inline std::unique_ptr<Simulation> simulation(std::vector<MachineSpec> machines,
                                              Settings settings = {}) {
  return std::move(
      Simulation::create(std::move(machines), std::make_unique<FirstFit>(), std::move(settings))
          .value());
}

// Runs these jobs to their end, or up to `until`.
inline Outcome run(Simulation& simulation, std::vector<Job> jobs,
                   std::optional<Duration> until = {}) {
  JobList list(std::move(jobs));
  simulation.run(list, until).value();
  return simulation.outcome();
}

inline double joules(const Outcome& outcome) {
  return outcome.energy_kwh * 3.6e6;
}

}  // namespace kwatt::simulator::test
