// The inflation experiment on the openb lists: GPU allocation at 130 % by policy and list, ten
// seeds each, and placements a second of one core. Prints JSON.
//
//   bench_sim_inflation NODES.csv SEEDS POLICY[,POLICY…] LIST.csv…
#include <charconv>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string_view>

#include <fmt/format.h>

#include "placement/strategies/registry.hpp"
#include "simulator/gpu_baselines.hpp"
#include "simulator/inflation.hpp"

namespace {

using namespace kwatt;
using namespace kwatt::simulator;

constexpr std::uint64_t kFirstSeed = 42;

double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

Result<std::unique_ptr<placement::strategies::Strategy>> policy(std::string_view name,
                                                                std::uint64_t seed,
                                                                std::span<const OpenbNode> nodes,
                                                                std::span<const OpenbPod> pods) {
  if (name == "DotProd") return make_gpu_dot_product();
  if (name == "GpuBestFit") return make_gpu_best_fit();
  if (name == "FGD") return make_fgd(nodes, pods);
  placement::strategies::Settings settings;
  settings.seed = seed;
  return placement::strategies::make_strategy(name, settings);
}

int complain(const Error& error) {
  std::cerr << "bench_sim_inflation: " << error.text() << "\n";
  return 1;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string_view> args(words + 1, words + count);
  std::uint64_t seeds = 0;
  if (args.size() < 4 ||
      std::from_chars(args[1].data(), args[1].data() + args[1].size(), seeds).ec != std::errc{}) {
    std::cerr << "usage: bench_sim_inflation NODES.csv SEEDS POLICY[,POLICY...] LIST.csv...\n";
    return 2;
  }
  std::ifstream node_file{std::string(args[0])};
  const auto nodes = read_openb_nodes(node_file, args[0]);
  if (!nodes) return complain(nodes.error());
  bool first = true;
  fmt::print("[");
  for (std::size_t a = 3; a < args.size(); ++a) {
    std::ifstream pod_file{std::string(args[a])};
    const auto pods = read_openb_pods(pod_file, args[a]);
    if (!pods) return complain(pods.error());
    std::string_view rest = args[2];
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      double sum = 0, seconds = 0, least = 100, most = 0;
      std::size_t arrived = 0;
      for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
        const auto strategy = policy(name, seed, *nodes, *pods);
        if (!strategy) return complain(strategy.error());
        const double start = cpu_now();
        const auto result = inflate(*nodes, *pods, **strategy, {130, seed});
        seconds += cpu_now() - start;
        if (!result) return complain(result.error());
        sum += result->allocated_percent, arrived += result->arrived;
        least = std::min(least, result->allocated_percent);
        most = std::max(most, result->allocated_percent);
      }
      fmt::print(R"({}{{"list":"{}","policy":"{}","allocated":{:.3f},"least":{:.3f},"most":{:.3f},)"
                 R"("perSecond":{:.0f}}})",
                 first ? "" : ",\n", args[a], name, sum / static_cast<double>(seeds), least, most,
                 static_cast<double>(arrived) / seconds);
      first = false;
    }
  }
  fmt::print("]\n");
  return 0;
}
