#include "placement/strategies/cluster.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

namespace kwatt::placement::strategies {
namespace {

constexpr std::int64_t kWholeGpu = 1000;
constexpr std::int64_t kMostGpus = 32;
constexpr std::uint16_t kMostZones = 64;

Result<void> check(const NodeSpec& node) {
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::invalid_argument, fmt::format("node \"{}\": {}", node.name, what));
  };
  if (node.name.empty()) return fail(ErrorCode::invalid_argument, "a node has no name");
  if (node.capacity.cpu.count() <= 0) return bad("its CPU capacity must be above 0");
  if (node.capacity.memory.count() < 0) return bad("its memory capacity is negative");
  const std::int64_t gpu = node.capacity.gpu_milli;
  if (gpu < 0 || gpu % kWholeGpu != 0) return bad("its GPUs must be whole (thousandths: k × 1000)");
  if (gpu > kMostGpus * kWholeGpu) return bad("more than 32 GPUs are not supported");
  if (node.zone >= kMostZones) return bad("zones are numbered below 64");
  if (node.gpu_model >= kMostZones) return bad("GPU models are numbered below 64");
  return {};
}

}  // namespace

bool valid(const Request& request) {
  const std::int64_t gpu = request.gpu_milli;
  return request.cpu.count() >= 0 && request.memory.count() >= 0 && gpu >= 0 &&
         (gpu < kWholeGpu || gpu % kWholeGpu == 0) &&
         (request.cpu.count() > 0 || request.memory.count() > 0 || gpu > 0);
}

Result<Cluster> Cluster::create(std::vector<NodeSpec> nodes) {
  std::unordered_set<std::string_view> names;
  for (const NodeSpec& node : nodes) {
    if (const auto checked = check(node); !checked) return checked.error();
    if (!names.insert(node.name).second) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("node \"{}\" is there twice: names are unique", node.name));
    }
  }
  return Cluster(std::move(nodes));
}

Cluster::Cluster(std::vector<NodeSpec> nodes) : nodes_(std::move(nodes)) {
  const std::size_t n = nodes_.size();
  running_.resize(n);
  gpu_share_.resize(n), gpu_whole_.resize(n);
  gpu_at_.push_back(0);
  std::map<std::array<double, 12>, std::uint32_t> seen;
  for (const NodeSpec& node : nodes_) {
    std::array<double, 12> curve{};
    for (std::size_t k = 0; k < 12; ++k) {
      curve[k] = static_cast<double>(node.power.curve.points[std::min<std::size_t>(k, 10)].count());
    }
    const auto [at, added] = seen.emplace(curve, static_cast<std::uint32_t>(curves_.size()));
    if (added) {
      curves_.push_back(curve);
      std::array<double, 11>& ahead = flattest_.emplace_back();
      // Full load has nothing ahead: what is asked there does not fit.
      for (std::size_t k = 10; k-- > 0;) {
        const double step = curve[k + 1] - curve[k];
        ahead[k] = k == 9 ? step : std::min(step, ahead[k + 1]);
      }
      ahead[10] = ahead[9];
    }
    curve_.push_back(at->second);
    largest_.cpu = std::max(largest_.cpu, node.capacity.cpu);
    largest_.memory = std::max(largest_.memory, node.capacity.memory);
    largest_.gpu_milli = std::max(largest_.gpu_milli, node.capacity.gpu_milli);
    open_.push_back(node.state == NodeState::unavailable ? 0 : 1);
    off_.push_back(node.state == NodeState::off ? 1 : 0);
    zone_.push_back(static_cast<std::uint8_t>(node.zone));
    gpu_model_.push_back(static_cast<std::uint8_t>(node.gpu_model));
    nodes_cpu_.push_back(node.capacity.cpu.count());
    steps_per_milli_.push_back(10.0 / static_cast<double>(node.capacity.cpu.count()));
    draw_.push_back(curve[0]);
    slope_.push_back(flattest_[at->second][0] * steps_per_milli_.back());
    wake_.push_back(0);
    free_cpu_.push_back(node.capacity.cpu.count());
    free_memory_.push_back(node.capacity.memory.count());
    free_gpu_.insert(free_gpu_.end(), static_cast<std::size_t>(node.capacity.gpu_milli / kWholeGpu),
                     static_cast<std::int32_t>(kWholeGpu));
    gpu_at_.push_back(free_gpu_.size());
  }
  for (NodeIndex i = 0; i < n; ++i) {
    update_gpus(i);
    update_wake(i);
  }
  blocks_.resize((n + kBlock - 1) / kBlock);
  for (std::size_t block = 0; block < blocks_.size(); ++block) update_block(block);
}

Request Cluster::free(NodeIndex i) const {
  std::int64_t gpu = 0;
  for (const std::int32_t part : free_gpus(i)) gpu += part;
  return {Millicores{free_cpu_[i]}, Bytes{free_memory_[i]}, gpu};
}

std::int64_t Cluster::most_members(NodeIndex i, const Request& request) const {
  const Request& capacity = nodes_[i].capacity;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto bound = [&](std::int64_t have, std::int64_t need) {
    if (need > 0) most = std::min(most, have / need);
  };
  bound(capacity.cpu.count(), request.cpu.count());
  bound(capacity.memory.count(), request.memory.count());
  const std::int64_t gpus = capacity.gpu_milli / kWholeGpu;
  if (request.gpu_milli >= kWholeGpu)
    bound(gpus, request.gpu_milli / kWholeGpu);
  else if (request.gpu_milli > 0)
    most = std::min(most, gpus * (kWholeGpu / request.gpu_milli));
  return most;
}

GpuSet Cluster::gpus_for(NodeIndex i, const Request& request) const {
  if (request.gpu_milli == 0) return 0;
  const auto gpus = free_gpus(i);
  if (request.gpu_milli < kWholeGpu) {
    std::size_t best = gpus.size();
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      if (gpus[g] >= request.gpu_milli && (best == gpus.size() || gpus[g] < gpus[best])) best = g;
    }
    return best == gpus.size() ? 0 : GpuSet{1} << best;
  }
  GpuSet chosen = 0;
  std::int64_t left = request.gpu_milli;
  for (std::size_t g = 0; g < gpus.size() && left > 0; ++g) {
    if (gpus[g] == kWholeGpu) chosen |= GpuSet{1} << g, left -= kWholeGpu;
  }
  return left > 0 ? 0 : chosen;
}

GpuSet Cluster::start(NodeIndex i, const Request& request) {
  const GpuSet gpus = gpus_for(i, request);
  start_on(i, request, gpus);
  return gpus;
}

void Cluster::start_on(NodeIndex i, const Request& request, GpuSet gpus) {
  free_cpu_[i] -= request.cpu.count();
  free_memory_[i] -= request.memory.count();
  ++running_[i];
  update_draw(i);
  changed_.note(i);
  if (gpus != 0) {
    const auto part = static_cast<std::int32_t>(std::min(request.gpu_milli, kWholeGpu));
    for (GpuSet rest = gpus; rest != 0; rest &= rest - 1) {
      free_gpu_[gpu_at_[i] + static_cast<std::size_t>(std::countr_zero(rest))] -= part;
    }
    update_gpus(i);
  }
  update_block(i / kBlock);
}

void Cluster::take_back(NodeIndex i, const Request& request, GpuSet gpus) {
  free_cpu_[i] += request.cpu.count();
  free_memory_[i] += request.memory.count();
  --running_[i];
  update_draw(i);
  changed_.note(i);
  if (gpus != 0) {
    const auto part = static_cast<std::int32_t>(std::min(request.gpu_milli, kWholeGpu));
    for (GpuSet rest = gpus; rest != 0; rest &= rest - 1) {
      free_gpu_[gpu_at_[i] + static_cast<std::size_t>(std::countr_zero(rest))] += part;
    }
    update_gpus(i);
  }
  widen_block(i);
}

void Cluster::finish(NodeIndex i, const Request& request, GpuSet gpus) {
  take_back(i, request, gpus);
  freed_.note(i);
}

void Cluster::set_state(NodeIndex i, NodeState state, TimePoint ready) {
  const bool was = nodes_[i].state == NodeState::unavailable;
  nodes_[i].state = state;
  nodes_[i].ready = ready;
  open_[i] = state == NodeState::unavailable ? 0 : 1;
  off_[i] = state == NodeState::off ? 1 : 0;
  update_wake(i);
  if (was == (state == NodeState::unavailable)) return;
  update_block(i / kBlock);
  changed_.note(i);
  if (was) freed_.note(i);
}

void Cluster::update_draw(NodeIndex i) {
  draw_[i] = draw_with(i, 0);
  const double x = static_cast<double>(nodes_cpu_[i] - free_cpu_[i]) * steps_per_milli_[i];
  const auto k = static_cast<std::size_t>(std::clamp(x, 0.0, 10.0));
  slope_[i] = flattest_[curve_[i]][k] * steps_per_milli_[i];
}

void Cluster::update_wake(NodeIndex i) {
  const models::PowerModel& power = nodes_[i].power;
  wake_[i] = off(i) ? static_cast<double>((power.curve.idle() - power.standby).count()) : 0;
}

void Cluster::update_gpus(NodeIndex i) {
  std::int32_t share = 0, whole = 0;
  for (const std::int32_t part : free_gpus(i)) {
    share = std::max(share, part);
    whole += part == kWholeGpu ? 1 : 0;
  }
  gpu_share_[i] = share, gpu_whole_[i] = whole;
}

void Cluster::widen_block(NodeIndex i) {
  if (open_[i] == 0) return;
  Room& room = blocks_[i / kBlock];
  room.cpu = std::max(room.cpu, free_cpu_[i]);
  room.memory = std::max(room.memory, free_memory_[i]);
  room.gpu_share = std::max(room.gpu_share, gpu_share_[i]);
  room.gpu_whole = std::max(room.gpu_whole, gpu_whole_[i]);
}

void Cluster::update_block(std::size_t block) {
  blocks_[block] = {};
  const std::size_t end = std::min(nodes_.size(), (block + 1) * kBlock);
  for (std::size_t i = block * kBlock; i < end; ++i) widen_block(static_cast<NodeIndex>(i));
}

void Cluster::Recent::note(NodeIndex i) {
  if (last.size() == 2 * kept) {
    last.erase(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  last.push_back(i);
  ++total;
}

std::optional<std::span<const NodeIndex>> Cluster::Recent::since(std::uint64_t mark) const {
  const std::uint64_t count = total - mark;
  if (mark > total || count > last.size()) return std::nullopt;
  return std::span(last).last(static_cast<std::size_t>(count));
}

}  // namespace kwatt::placement::strategies
