// Runs the consolidation experiments on the traces under DATA (../shared/data), and prints one JSON
// array with a row for each run: what it cost, how long it took in CPU time, and the lower bound.
#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "planner/consolidation/named.hpp"
#include "simulator/consolidation/lower_bound.hpp"
#include "simulator/consolidation/setups.hpp"
#include "simulator/traces/google_vms.hpp"
#include "simulator/traces/planetlab.hpp"

namespace {

using namespace kwatt;
using namespace kwatt::simulator;
using planner::consolidation::Fleet;
using planner::consolidation::Move;
using planner::consolidation::Policy;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Measures what it passes on.
class Timed : public Policy {
 public:
  explicit Timed(Policy& policy) : policy_(policy) {}
  std::vector<Move> decide(const Fleet& fleet) override {
    const double started = cpu_seconds();
    std::vector<Move> moves = policy_.decide(fleet);
    seconds += cpu_seconds() - started;
    ++decisions;
    return moves;
  }
  double seconds = 0;
  int decisions = 0;

 private:
  Policy& policy_;
};

class Runs {
 public:
  // One row; false after an error, which is printed.
  bool add(std::string_view experiment, std::string_view day, std::string_view name,
           consolidation::Setup setup, const traces::Series& cpu, const traces::Series* memory) {
    auto policy = planner::consolidation::policy_named(name);
    if (!policy) return complain(policy.error());
    if (name == "dvfs") setup.start = consolidation::Start::first_fit;
    Timed timed(**policy);
    const double started = cpu_seconds();
    const Result<consolidation::Metrics> run = consolidation::run(setup, cpu, memory, timed);
    const double seconds = cpu_seconds() - started;
    if (!run) return complain(run.error());
    const double bound = consolidation::lower_bound_joules(setup.fleet, cpu, memory) / 3.6e6;
    fmt::print(
        "{}{{\"experiment\":\"{}\",\"day\":\"{}\",\"policy\":\"{}\",\"vms\":{},\"kwh\":{},"
        "\"migrations\":{},\"slav\":{},\"pdm\":{},\"slatah\":{},\"esv\":{},\"lacking\":{},"
        "\"shutdowns\":{},\"lowerBoundKwh\":{},\"cpuSeconds\":{},\"decisionMillis\":{}}}",
        first_ ? "" : ",\n", experiment, day, name, setup.fleet.vms.size(), run->energy_kwh(),
        run->migrations, run->slav(), run->pdm(), run->slatah(), run->esv(), run->lacking(),
        run->shutdowns, bound, seconds, 1e3 * timed.seconds / timed.decisions);
    first_ = false;
    return true;
  }

  static bool complain(const Error& error) {
    fmt::print(stderr, "bench_sim_consolidation: {}\n", error.text());
    return false;
  }

 private:
  bool first_ = true;
};

constexpr std::string_view kDays[] = {"20110303", "20110306", "20110309", "20110322",
                                      "20110325", "20110403", "20110409", "20110412"};
constexpr std::string_view kCompared[] = {"lr-mmt-1.2", "thr-mmt-0.8", "kwatt"};

bool planetlab_day(Runs& runs, const std::string& data, std::string_view day) {
  const std::string name = fmt::format("{}/planetlab/{}.csv", data, day);
  std::ifstream in(name);
  if (!in) return Runs::complain(fail(ErrorCode::io, "cannot open " + name));
  const Result<traces::Series> cpu = traces::read_planetlab(in, name);
  if (!cpu) return Runs::complain(cpu.error());
  const consolidation::Setup setup = consolidation::planetlab_setup(cpu->columns());
  for (const std::string_view policy : planner::consolidation::policy_names()) {
    const bool everyday = policy == "dvfs" || std::find(std::begin(kCompared), std::end(kCompared),
                                                        policy) != std::end(kCompared);
    if (!everyday && day != kDays[0]) continue;
    if (!runs.add("planetlab", day, policy, setup, *cpu, nullptr)) return false;
  }
  const consolidation::Setup modern = consolidation::modern_setup(cpu->columns());
  return std::all_of(std::begin(kCompared), std::end(kCompared), [&](std::string_view policy) {
    return runs.add("modern", day, policy, modern, *cpu, nullptr);
  });
}

bool google_day(Runs& runs, const std::string& data, int day) {
  const std::string cpu_name = fmt::format("{}/google-vms/day{:02}_cpu.csv", data, day);
  const std::string memory_name = fmt::format("{}/google-vms/day{:02}_mem.csv", data, day);
  std::ifstream cpu(cpu_name), memory(memory_name);
  if (!cpu || !memory) {
    return Runs::complain(
        fail(ErrorCode::io, fmt::format("cannot open {} and {}", cpu_name, memory_name)));
  }
  const Result<traces::GoogleVms> vms = traces::read_google_vms(cpu, cpu_name, memory, memory_name);
  if (!vms) return Runs::complain(vms.error());
  const consolidation::Setup setup = consolidation::planetlab_setup(vms->cpu.columns(), 200);
  return std::all_of(std::begin(kCompared), std::end(kCompared), [&](std::string_view policy) {
    return runs.add("google-vms", fmt::format("day{:02}", day), policy, setup, vms->cpu,
                    &vms->memory);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: bench_sim_consolidation DATA\n");
    return 2;
  }
  Runs runs;
  const std::string data = argv[1];
  fmt::print("[");
  for (const std::string_view day : kDays) {
    if (!planetlab_day(runs, data, day)) return 2;
  }
  for (int day = 1; day <= 6; ++day) {
    if (!google_day(runs, data, day)) return 2;
  }
  fmt::print("]\n");
}
