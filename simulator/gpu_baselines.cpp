#include "simulator/gpu_baselines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "placement/strategies/one_by_one.hpp"
#include "simulator/inflation.hpp"

namespace kwatt::simulator {
namespace {

using namespace kwatt::placement::strategies;

// MaxSpecCpu and MaxSpecGpu of that simulator.
constexpr double kMostCpu = 128'000, kMostGpu = 8'000;
constexpr double kTypicalShare = 0.95;

double free_gpu(const Cluster& cluster, NodeIndex i) {
  double sum = 0;
  for (const std::int32_t part : cluster.free_gpus(i)) sum += part;
  return sum;
}

class Scored : public OneByOne {
 public:
  using OneByOne::OneByOne;

 protected:
  virtual double score(const Request& request, NodeIndex i, const Cluster& cluster) const = 0;
  std::optional<NodeIndex> best(const Job& job, const Batch&, const Cluster& cluster) override {
    return least(job, cluster,
                 [&](NodeIndex i) { return -std::floor(100 * score(job.request, i, cluster)); });
  }
};

class DotProduct : public Scored {
 public:
  DotProduct() : Scored("DotProd") {}

 protected:
  double score(const Request& need, NodeIndex i, const Cluster& cluster) const override {
    const double cpu = static_cast<double>(cluster.free_cpu(i)) / kMostCpu *
                       static_cast<double>(need.cpu.count()) / kMostCpu;
    const double gpu =
        free_gpu(cluster, i) / kMostGpu * static_cast<double>(need.gpu_milli) / kMostGpu;
    return 1 - (cpu + gpu) / 2;
  }
};

class GpuBestFit : public Scored {
 public:
  GpuBestFit() : Scored("GpuBestFit") {}

 protected:
  double score(const Request& need, NodeIndex i, const Cluster& cluster) const override {
    return 1 - (static_cast<double>(cluster.free_cpu(i) - need.cpu.count()) / kMostCpu +
                (free_gpu(cluster, i) - static_cast<double>(need.gpu_milli)) / kMostGpu) /
                   2;
  }
};

struct Typical {
  std::int64_t cpu;
  std::int32_t gpu_milli;  // of each of `gpus`
  int gpus;
  BitSet models;
  double share;
};

class Fgd : public OneByOne {
 public:
  explicit Fgd(std::vector<Typical> typical) : OneByOne("FGD"), typical_(std::move(typical)) {}

 protected:
  std::optional<NodeIndex> best(const Job& job, const Batch& batch,
                                const Cluster& cluster) override {
    const auto choice = choose(job, batch, cluster);
    return choice ? std::optional(choice->node) : std::nullopt;
  }
  std::optional<Choice> choose(const Job& job, const Batch&, const Cluster& cluster) override {
    std::optional<Choice> best;
    double highest = -1;
    cluster.each_fitting(job.request, job.zones, job.gpu_models, [&](NodeIndex i) {
      GpuSet gpus = 0;
      const double value = score(job.request, i, cluster, gpus);
      if (value > highest) highest = value, best = Choice{i, gpus};
      return true;
    });
    return best;
  }

 private:
  // How much of the node's free GPU a typical pod cannot use, in the mean.
  double fragment(std::int64_t cpu, std::span<const std::int32_t> gpus, std::uint16_t model) const {
    std::int64_t total = 0;
    for (const std::int32_t part : gpus) total += part;
    double sum = 0;
    for (const Typical& t : typical_) {
      std::int64_t lost = total;
      if (t.gpu_milli > 0 && (t.models >> model & 1) != 0 && cpu >= t.cpu) {
        std::int64_t small = 0;
        int enough = 0;
        for (const std::int32_t part : gpus) {
          if (part >= t.gpu_milli)
            ++enough;
          else
            small += part;
        }
        if (enough >= t.gpus) lost = small;
      }
      sum += t.share * static_cast<double>(lost);
    }
    return sum;
  }

  double score(const Request& need, NodeIndex i, const Cluster& cluster, GpuSet& chosen) const {
    const auto free = cluster.free_gpus(i);
    const std::uint16_t model = cluster.node(i).gpu_model;
    const double before = fragment(cluster.free_cpu(i), free, model);
    std::array<std::int32_t, 32> gpus{};
    std::copy(free.begin(), free.end(), gpus.begin());
    const auto value = [&] {
      const double after = fragment(cluster.free_cpu(i) - need.cpu.count(),
                                    std::span(gpus).first(free.size()), model);
      return std::floor(100 / (1 + std::exp((after - before) / 1000)));
    };
    if (need.gpu_milli == 0 || need.gpu_milli >= 1000) {
      chosen = cluster.gpus_for(i, need);
      for (std::size_t g = 0; g < free.size(); ++g) {
        if ((chosen >> g & 1) != 0) gpus[g] = 0;
      }
      return value();
    }
    double highest = -1;
    for (std::size_t g = 0; g < free.size(); ++g) {
      if (free[g] < need.gpu_milli) continue;
      gpus[g] -= static_cast<std::int32_t>(need.gpu_milli);
      if (const double one = value(); one > highest) highest = one, chosen = GpuSet{1} << g;
      gpus[g] = free[g];
    }
    return highest;
  }

  std::vector<Typical> typical_;
};

}  // namespace

std::unique_ptr<Strategy> make_gpu_dot_product() {
  return std::make_unique<DotProduct>();
}

std::unique_ptr<Strategy> make_gpu_best_fit() {
  return std::make_unique<GpuBestFit>();
}

std::unique_ptr<Strategy> make_fgd(std::span<const OpenbNode> nodes,
                                   std::span<const OpenbPod> typical) {
  std::map<std::string, std::size_t> models;
  for (const OpenbNode& node : nodes)
    models.try_emplace(node.gpus > 0 ? node.model : "", models.size());
  std::map<std::tuple<std::int64_t, int, int, BitSet>, double> counts;
  for (const OpenbPod& pod : typical) {
    BitSet set = pod.models.empty() ? kAny : 0;
    for (const std::string& model : pod.models) {
      set |= BitSet{1} << models.try_emplace(model, models.size()).first->second % 64;
    }
    ++counts[{pod.cpu.count(), pod.gpu_milli, pod.gpus, set}];
  }
  std::vector<Typical> kinds;
  for (const auto& [key, count] : counts) {
    const auto& [cpu, milli, gpus, set] = key;
    kinds.push_back({cpu, milli, gpus, set, count});
  }
  // Equally frequent ones: the greater first, as there.
  std::reverse(kinds.begin(), kinds.end());
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Typical& a, const Typical& b) { return a.share > b.share; });
  double counted = 0;
  std::size_t kept = 0;
  while (kept < kinds.size() && counted < kTypicalShare * static_cast<double>(typical.size())) {
    counted += kinds[kept++].share;
  }
  kinds.resize(kept);
  for (Typical& kind : kinds) kind.share /= std::max(1.0, counted);
  return std::make_unique<Fgd>(std::move(kinds));
}

}  // namespace kwatt::simulator
