// GpuFill: each job goes where it spoils the least GPU for the jobs that are to be expected. After
// FGD (Q. Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with
// fragmentation gradient descent", USENIX ATC 2023), which counts the free GPU that a typical job
// cannot start on, and takes the steepest descent of that count, summed over typical jobs by their
// frequency.
//
// What is different here:
// - The measure is what is left of the free GPU after the node has been *filled* with the typical
//   job, not whether a first one fits. A node with eight free GPUs and CPU for one more job counts
//   as seven GPUs lost, where FGD sees none: stranded GPUs are mostly those whose CPUs are gone.
// - Parts of GPUs are no use to jobs of whole GPUs, but others take them while CPU is left: they
//   count half.
// - Typical jobs are those seen so far (FGD: a declared list), counted anew at each doubling.
// - Nearly equal changes (a hundredth of a GPU) go to the tightest node, without FGD's rounding to
// a
//   hundred scores.
#include "placement/strategies/gpu_fill.hpp"

#include <algorithm>
#include <limits>

#include "placement/strategies/all.hpp"

namespace kwatt::placement::strategies {
namespace {

// Rare kinds are left out: together below a twentieth of the jobs, as FGD does.
constexpr double kTypicalShare = 0.95;
constexpr double kPartForWhole = 0.5;
// Thousandths of a GPU that a node as large as the largest, all free, is worse than a full one.
constexpr double kTightness = 10;
constexpr std::size_t kMemoKept = 1 << 20;
constexpr std::int64_t kWhole = 1000;
constexpr double kNoFit = std::numeric_limits<double>::infinity();

std::uint64_t mixed(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0xFF51AFD7ED558CCD;
  return h ^ (h >> 32);
}

}  // namespace

std::size_t GpuFill::StateHash::operator()(const State& s) const {
  std::uint64_t h = mixed(0x9E3779B97F4A7C15, static_cast<std::uint64_t>(s.cpu));
  h = mixed(h, static_cast<std::uint64_t>(s.memory));
  h = mixed(h, s.place);
  h = mixed(h, s.gpus[0]);
  return static_cast<std::size_t>(mixed(h, s.gpus[1]));
}

std::size_t GpuFill::kind_of(const Job& job) {
  const Key key{job.request.cpu.count(), job.request.memory.count(), job.request.gpu_milli,
                job.zones, job.gpu_models};
  const auto [at, added] = kind_at_.try_emplace(key, kinds_.size());
  if (added) kinds_.push_back({job.request, job.zones, job.gpu_models, 0, 0, {}, {}});
  return at->second;
}

void GpuFill::count_typical() {
  std::vector<std::size_t> order(kinds_.size());
  double total = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) order[k] = k, total += kinds_[k].seen;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return kinds_[a].seen > kinds_[b].seen; });
  typical_.clear();
  double counted = 0;
  for (const std::size_t k : order) {
    if (counted >= kTypicalShare * total) break;
    counted += kinds_[k].seen;
    const Kind& kind = kinds_[k];
    if (kind.request.gpu_milli == 0) continue;  // takes no GPU: all is lost to it, everywhere
    typical_.push_back({kind.request.cpu.count(), kind.request.memory.count(),
                        kind.request.gpu_milli, kind.zones, kind.gpu_models, kind.seen});
  }
  for (Typical& one : typical_) one.weight /= std::max(1.0, counted);
  memo_.clear();
  for (Kind& kind : kinds_) kind.score.clear();
  waste_.clear();
}

double GpuFill::waste(const State& s, const std::int32_t* gpus, std::size_t count,
                      std::uint16_t zone, std::uint16_t model) const {
  std::int64_t total = 0, whole = 0;
  for (std::size_t g = 0; g < count; ++g) {
    total += gpus[g];
    if (gpus[g] == kWhole) ++whole;
  }
  if (total == 0) return 0;
  const auto parts = static_cast<double>(total - whole * kWhole);
  double lost = 0;
  for (const Typical& t : typical_) {
    double usable = 0;
    if ((t.zones >> zone & 1) != 0 && (t.gpu_models >> model & 1) != 0) {
      // So many by CPU and memory; more than the GPUs take makes no difference.
      std::int64_t room = total;
      if (t.cpu > 0) room = std::min(room, s.cpu / t.cpu);
      if (t.memory > 0 && s.memory / t.memory < room) room = s.memory / t.memory;
      if (t.gpu_milli >= kWhole) {
        const std::int64_t jobs = std::min(room, whole / (t.gpu_milli / kWhole));
        usable = static_cast<double>(jobs * t.gpu_milli);
        if (room > jobs) usable += kPartForWhole * parts;
      } else if (room > 0) {
        std::int64_t jobs = whole * (kWhole / t.gpu_milli);
        for (std::size_t g = 0; g < count; ++g) {
          if (gpus[g] != kWhole) jobs += gpus[g] / t.gpu_milli;
        }
        usable = static_cast<double>(std::min(room, jobs) * t.gpu_milli);
      }
    }
    lost += t.weight * (static_cast<double>(total) - usable);
  }
  return lost;
}

double GpuFill::waste_of(std::int64_t cpu, std::int64_t memory, const std::int32_t* gpus,
                         std::size_t count, std::uint16_t zone, std::uint16_t model) {
  State s{cpu, memory, static_cast<std::uint32_t>(zone) << 16 | model, {0, 0}};
  if (count == 0) return 0;
  if (count > 8) return waste(s, gpus, count, zone, model);
  // The order of the GPUs makes no difference: states that are alike are computed once.
  std::array<std::int32_t, 8> sorted{};
  std::copy_n(gpus, count, sorted.begin());
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t g = 0; g < 8; ++g) {
    s.gpus[g / 4] |= static_cast<std::uint64_t>(sorted[g]) << (g % 4 * 16);
  }
  if (memo_.size() >= kMemoKept) memo_.clear();
  const auto [at, added] = memo_.try_emplace(s, 0.0);
  if (added) at->second = waste(s, gpus, count, zone, model);
  return at->second;
}

double GpuFill::score(const Kind& kind, NodeIndex i, const Cluster& cluster, GpuSet& chosen) {
  chosen = 0;
  const Request& need = kind.request;
  if (!cluster.fits(i, need) || !cluster.allowed(i, kind.zones, kind.gpu_models)) return kNoFit;
  const auto free = cluster.free_gpus(i);
  std::array<std::int32_t, 32> gpus{};
  std::copy(free.begin(), free.end(), gpus.begin());
  const NodeSpec& node = cluster.node(i);
  const std::int64_t cpu = cluster.free_cpu(i) - need.cpu.count();
  const std::int64_t memory = cluster.free_memory(i) - need.memory.count();
  const auto after = [&] {
    return waste_of(cpu, memory, gpus.data(), free.size(), node.zone, node.gpu_model);
  };
  double least_after = kNoFit;
  if (need.gpu_milli > 0 && need.gpu_milli < kWhole) {
    const auto part = static_cast<std::int32_t>(need.gpu_milli);
    for (std::size_t g = 0; g < free.size(); ++g) {
      if (free[g] < part) continue;
      const bool alike = std::find(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(g),
                                   free[g]) != free.begin() + static_cast<std::ptrdiff_t>(g);
      if (alike) continue;
      gpus[g] -= part;
      const double value = after();
      gpus[g] += part;
      if (value < least_after) least_after = value, chosen = GpuSet{1} << g;
    }
  } else {
    chosen = cluster.gpus_for(i, need);
    for (std::size_t g = 0; g < free.size(); ++g) {
      if ((chosen >> g & 1) != 0) gpus[g] = 0;
    }
    least_after = after();
  }
  double free_gpu = 0;
  for (const std::int32_t part : free) free_gpu += part;
  const double tightness =
      static_cast<double>(cluster.free_cpu(i)) / most_cpu_ + free_gpu / most_gpu_;
  return least_after - waste_[i] + kTightness * tightness;
}

void GpuFill::begin(const Batch& batch, const Cluster& cluster) {
  const std::size_t seen = std::min(batch.seen, batch.jobs.size());
  for (std::size_t i = seen; i < batch.jobs.size(); ++i) {
    kinds_[kind_of(batch.jobs[i])].seen += batch.jobs[i].members;
    jobs_seen_ += batch.jobs[i].members;
  }
  if (jobs_seen_ >= 2 * counted_at_) {
    count_typical();
    counted_at_ = jobs_seen_;
  }
  if (waste_.size() != cluster.size()) {
    const Request& most = cluster.largest();
    most_cpu_ = std::max(1.0, static_cast<double>(most.cpu.count()));
    most_gpu_ = std::max(1.0, static_cast<double>(most.gpu_milli));
    waste_.assign(cluster.size(), 0);
    for (NodeIndex i = 0; i < cluster.size(); ++i) {
      refresh(i, cluster);
    }
    for (Kind& kind : kinds_) kind.score.clear();
    changes_ = cluster.changed_mark();
  }
}

void GpuFill::refresh(NodeIndex i, const Cluster& cluster) {
  const auto free = cluster.free_gpus(i);
  const NodeSpec& node = cluster.node(i);
  waste_[i] = waste_of(cluster.free_cpu(i), cluster.free_memory(i), free.data(), free.size(),
                       node.zone, node.gpu_model);
}

// Scores of a kind are kept by node; only nodes that changed since are looked at again.
std::optional<Choice> GpuFill::choose(const Job& job, const Batch&, const Cluster& cluster) {
  const auto renew = [&](std::uint64_t since, auto&& one) {
    if (const auto changed = cluster.changed_since(since)) {
      for (const NodeIndex i : *changed) one(i);
    } else {
      for (NodeIndex i = 0; i < cluster.size(); ++i) one(i);
    }
  };
  renew(changes_, [&](NodeIndex i) { refresh(i, cluster); });
  changes_ = cluster.changed_mark();

  Kind& kind = kinds_[kind_of(job)];
  const auto again = [&](NodeIndex i) { kind.score[i] = score(kind, i, cluster, kind.gpus[i]); };
  if (kind.score.size() != cluster.size()) {
    kind.score.resize(cluster.size()), kind.gpus.resize(cluster.size());
    for (NodeIndex i = 0; i < cluster.size(); ++i) again(i);
  } else {
    renew(kind.changes, again);
  }
  kind.changes = changes_;
  const auto best = std::min_element(kind.score.begin(), kind.score.end());
  if (best == kind.score.end() || *best == kNoFit) return std::nullopt;
  const auto i = static_cast<NodeIndex>(best - kind.score.begin());
  return Choice{i, kind.gpus[i]};
}

std::optional<NodeIndex> GpuFill::best(const Job& job, const Batch& batch, const Cluster& cluster) {
  const auto choice = choose(job, batch, cluster);
  return choice ? std::optional(choice->node) : std::nullopt;
}

std::unique_ptr<Strategy> make_gpu_fill(const Settings&) {
  return std::make_unique<GpuFill>();
}

}  // namespace kwatt::placement::strategies
