#include <chrono>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "planner/consolidation/adaptive_threshold.hpp"
#include "planner/consolidation/heuristic.hpp"
#include "planner/consolidation/local_regression.hpp"
#include "planner/consolidation/static_threshold.hpp"
#include "planner/consolidation/steady.hpp"
#include "simulator/consolidation/planetlab.hpp"
#include "simulator/traces/planetlab.hpp"

using namespace kwatt;
using namespace kwatt::planner::consolidation;
namespace sim = kwatt::simulator;

std::unique_ptr<Policy> make(const std::string& name) {
  std::unique_ptr<OverloadRule> rule;
  std::unique_ptr<SelectionRule> sel;
  if (name.starts_with("own")) {
    SteadySettings x;
    if (auto* e = std::getenv("MARGIN")) x.margin = std::atof(e);
    if (auto* e = std::getenv("HEAD")) x.headroom = std::atof(e);
    if (auto* e = std::getenv("PRICE")) x.joules_per_move = std::atof(e);
    if (auto* e = std::getenv("REST")) x.rest_steps = std::atoi(e);
    return std::make_unique<Steady>(x);
  }
  if (name.starts_with("dvfs")) return std::make_unique<Static>();
  if (name.starts_with("thr")) rule = std::make_unique<StaticThreshold>(0.8);
  if (name.starts_with("lr")) rule = std::make_unique<LocalRegression>(1.2);
  if (name.starts_with("iqr")) rule = std::make_unique<AdaptiveThreshold>(interquartile_range, 1.5);
  if (name.starts_with("mad")) rule = std::make_unique<AdaptiveThreshold>(median_absolute_deviation, 2.5);
  if (name.find("mmt") != name.npos) sel = std::make_unique<MinimumMigrationTime>();
  if (name.find("mu") != name.npos) sel = std::make_unique<MinimumUtilization>();
  if (name.find("rs") != name.npos) sel = std::make_unique<RandomSelection>(1);
  return std::make_unique<Heuristic>(std::move(rule), std::move(sel));
}

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    std::ifstream in(argv[i]);
    auto series = sim::traces::read_planetlab(in, argv[i]);
    if (!series) { fmt::print("{}\n", series.error().text()); return 2; }
    auto policy = make(argv[1]);
    auto setup = sim::consolidation::planetlab_setup(series->columns());
    if (std::string(argv[1]) == "dvfs") setup.start = sim::consolidation::Start::first_fit;
    auto t0 = std::chrono::steady_clock::now();
    auto m = sim::consolidation::run(setup, *series, nullptr, *policy);
    std::fflush(stdout);
    double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    if (!m) { fmt::print("{}\n", m.error().text()); return 2; }
    fmt::print("{} {} kWh {:.2f} migr {} slav {:.7f} pdm {:.4f} slatah {:.4f} off {} esv {:.6f} {:.2f}s\n", std::string(argv[i]).substr(std::string(argv[i]).size()-12), argv[1], m->energy_kwh(), m->migrations,
               m->slav(), m->pdm()*100, m->slatah()*100, m->shutdowns, m->esv()*1e3, s);
    fmt::print("    served LB {:.2f} kWh, lacking {:.4f} %, active host-h {:.0f} requested {:.6g}\n", m->requested_cpu_seconds*135/5320/3.6e6, 100*m->lacking_cpu_seconds/m->requested_cpu_seconds, m->active_seconds/3600, m->requested_cpu_seconds);
  }
}
