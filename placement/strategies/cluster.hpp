#pragma once
// The machines that strategies place jobs on: what each has, what is free, which are awake. Plain
// arrays with an index of blocks over them, changed by start() and finish(), so that a simulation
// of millions of jobs never builds it anew.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "models/power_curve.hpp"

namespace kwatt::placement::strategies {

using NodeIndex = std::uint32_t;
// Which GPUs of a node: bit i is GPU i. A node has at most 32.
using GpuSet = std::uint32_t;
// A set of zones, or of GPU models, by bit; at most 64 of each in a cluster.
using BitSet = std::uint64_t;
inline constexpr BitSet kAny = std::numeric_limits<BitSet>::max();

// What one member of a job needs on its node, or what a node has.
struct Request {
  Millicores cpu;
  Bytes memory;
  // Thousandths of a GPU: below 1000 a share of one single GPU, else a multiple of 1000: so many
  // GPUs that nobody else uses.
  std::int64_t gpu_milli = 0;
  bool operator==(const Request&) const = default;
};
// Amounts as described, none negative and not all of them 0. Callers check before they offer a job.
bool valid(const Request& request);

// awake: can start a job at once. booting: as awake, `ready` says from when on. off: starting a job
// on it means to wake it. unavailable: takes nothing.
enum class NodeState : std::uint8_t { awake, booting, off, unavailable };

struct NodeSpec {
  std::string name;
  Request capacity;  // gpu_milli: 1000 times the number of GPUs
  std::uint16_t zone = 0;
  std::uint16_t gpu_model = 0;  // of all GPUs of the node; any numbering below 64
  models::PowerModel power;     // curve over the CPU's load, boot time and boot energy
  NodeState state = NodeState::awake;
  TimePoint ready{};  // booting only: when it is awake
};

// Invariant: free amounts never leave 0..capacity. Node indices are positions in the list given to
// create() and never change. Not for several threads at once.
class Cluster {
 public:
  // Errors: invalid_argument, naming the node: an empty name or one that is there twice, a
  // capacity that is negative or without CPU, GPUs that are not whole or more than 32, a zone or
  // GPU model of 64 and more.
  static Result<Cluster> create(std::vector<NodeSpec> nodes);

  std::size_t size() const { return nodes_.size(); }
  const Request& largest() const { return largest_; }  // the most of each amount on any node
  const NodeSpec& node(NodeIndex i) const { return nodes_[i]; }  // state: as set_state() left it
  bool off(NodeIndex i) const { return off_[i] != 0; }           // its state, without the rest
  Request free(NodeIndex i) const;                               // gpu_milli: sum over all GPUs
  std::int64_t free_cpu(NodeIndex i) const { return free_cpu_[i]; }        // millicores
  std::int64_t free_memory(NodeIndex i) const { return free_memory_[i]; }  // bytes
  Millicores used_cpu(NodeIndex i) const {
    return Millicores{nodes_[i].capacity.cpu.count() - free_cpu_[i]};
  }
  // By the node's curve, with what is taken of its CPU as load: now, and with so many millicores
  // more. As if it was awake. Milliwatts.
  double draw(NodeIndex i) const { return draw_[i]; }
  double draw_with(NodeIndex i, std::int64_t millicores) const {
    return curve_at(i, nodes_cpu_[i] - free_cpu_[i] + millicores);
  }
  // No more than what so many millicores more cost: from the flattest part of the curve that is
  // ahead, and, if it is off, its idle power. Cheap, to pass over a node at a glance. Milliwatts.
  double increase_at_least(NodeIndex i, std::int64_t millicores) const {
    return wake_[i] + slope_[i] * static_cast<double>(millicores);
  }
  double free_share(NodeIndex i) const {  // of its CPU, 0..1
    return static_cast<double>(free_cpu_[i]) * steps_per_milli_[i] / 10;
  }
  std::int64_t running(NodeIndex i) const { return running_[i]; }  // members started, not finished
  std::span<const std::int32_t> free_gpus(NodeIndex i) const {     // thousandths by GPU
    return {free_gpu_.data() + gpu_at_[i], gpu_at_[i + 1] - gpu_at_[i]};
  }

  // Right now, on a node that takes jobs.
  bool fits(NodeIndex i, const Request& request) const {
    return free_cpu_[i] >= request.cpu.count() && free_memory_[i] >= request.memory.count() &&
           (request.gpu_milli == 0 || fits_gpu(i, request.gpu_milli)) && open_[i] != 0;
  }
  // So many of them fit on the node if it was empty, whatever its state.
  std::int64_t most_members(NodeIndex i, const Request& request) const;
  bool allowed(NodeIndex i, BitSet zones, BitSet gpu_models) const {
    return (zones >> zone_[i] & 1) != 0 && (gpu_models >> gpu_model_[i] & 1) != 0;
  }

  // Takes the request's amounts. The GPUs: a share goes to the fullest GPU with room, whole ones to
  // the first that are free; with `gpus` to these. Must fit.
  GpuSet start(NodeIndex i, const Request& request);
  void start_on(NodeIndex i, const Request& request, GpuSet gpus);
  // Gives back what start() took, exactly.
  void finish(NodeIndex i, const Request& request, GpuSet gpus);
  // Undoes a start() of the same decision: as finish(), but nothing has come free.
  void undo(NodeIndex i, const Request& request, GpuSet gpus) { take_back(i, request, gpus); }
  // What start() would choose; 0 if there is none.
  GpuSet gpus_for(NodeIndex i, const Request& request) const;

  void set_state(NodeIndex i, NodeState state, TimePoint ready = {});

  // Calls `visit(NodeIndex)` in ascending order for every node that is allowed and fits; blocks
  // without room are passed over. `visit` returns false to stop. `from`: the first node, those
  // before it come last.
  template <class Visit>
  void each_fitting(const Request& request, BitSet zones, BitSet gpu_models, Visit&& visit,
                    NodeIndex from = 0) const {
    each_fitting(request, zones, gpu_models, visit, from, [](NodeIndex) { return true; });
  }
  // Only those that `wanted(NodeIndex)` is true of; it is asked first.
  template <class Visit, class Wanted>
  void each_fitting(const Request& request, BitSet zones, BitSet gpu_models, Visit&& visit,
                    NodeIndex from, Wanted&& wanted) const;

  // Nodes on which room came free (finish() or set_state()) since `mark`, a former value of
  // freed_mark(); nullopt: too many to list, look at all.
  std::uint64_t freed_mark() const { return freed_.total; }
  std::optional<std::span<const NodeIndex>> freed_since(std::uint64_t mark) const {
    return freed_.since(mark);
  }
  // The same for every change of what a node has free or whether it takes jobs.
  std::uint64_t changed_mark() const { return changed_.total; }
  std::optional<std::span<const NodeIndex>> changed_since(std::uint64_t mark) const {
    return changed_.since(mark);
  }

 private:
  static constexpr std::size_t kBlock = 64;  // nodes an entry of the index stands for

  struct Recent {  // the last nodes to which something happened, oldest first
    std::size_t kept;
    std::vector<NodeIndex> last = {};  // at most twice `kept`
    std::uint64_t total = 0;
    void note(NodeIndex i);
    std::optional<std::span<const NodeIndex>> since(std::uint64_t mark) const;
  };

  struct Room {  // the most of each amount on any node of a block: an upper bound
    std::int64_t cpu = 0, memory = 0;
    std::int32_t gpu_share = 0;  // greatest free part of one GPU
    std::int32_t gpu_whole = 0;  // most free whole GPUs on one node
  };

  explicit Cluster(std::vector<NodeSpec> nodes);
  bool fits_gpu(NodeIndex i, std::int64_t gpu_milli) const {
    return gpu_milli < 1000 ? gpu_share_[i] >= gpu_milli : gpu_whole_[i] * 1000 >= gpu_milli;
  }
  bool block_may_fit(std::size_t block, const Request& request) const {
    const Room& room = blocks_[block];
    return room.cpu >= request.cpu.count() && room.memory >= request.memory.count() &&
           (request.gpu_milli == 0 ||
            (request.gpu_milli < 1000 ? room.gpu_share >= request.gpu_milli
                                      : room.gpu_whole * 1000 >= request.gpu_milli));
  }
  double curve_at(NodeIndex i, std::int64_t used) const {
    const double x = static_cast<double>(used) * steps_per_milli_[i];
    const auto k = static_cast<std::size_t>(std::clamp(x, 0.0, 10.0));
    const std::array<double, 12>& points = curves_[curve_[i]];  // the last one twice
    return points[k] + (points[k + 1] - points[k]) * (std::min(x, 10.0) - static_cast<double>(k));
  }
  void update_draw(NodeIndex i);
  void update_wake(NodeIndex i);
  void take_back(NodeIndex i, const Request& request, GpuSet gpus);
  void update_gpus(NodeIndex i);
  void widen_block(NodeIndex i);
  void update_block(std::size_t block);

  std::vector<NodeSpec> nodes_;
  Request largest_;
  std::vector<std::uint8_t> open_, off_, zone_, gpu_model_;  // what every look at a node needs
  // Of each curve, from each of its points on: the flattest part ahead, in milliwatts a step.
  std::vector<std::array<double, 11>> flattest_;
  std::vector<std::array<double, 12>> curves_;  // different ones, in milliwatts
  std::vector<std::uint32_t> curve_;            // by node
  std::vector<double> steps_per_milli_, draw_, slope_, wake_;
  std::vector<std::int64_t> nodes_cpu_, free_cpu_, free_memory_, running_;
  std::vector<std::size_t>
      gpu_at_;  // by node: where its GPUs begin in free_gpu_; one more at the end
  std::vector<std::int32_t> free_gpu_, gpu_share_, gpu_whole_;
  std::vector<Room> blocks_;
  Recent freed_{64}, changed_{2048};
};

template <class Visit, class Wanted>
void Cluster::each_fitting(const Request& request, BitSet zones, BitSet gpu_models, Visit&& visit,
                           NodeIndex from, Wanted&& wanted) const {
  const auto range = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last;) {
      const std::size_t end = std::min(last, (i / kBlock + 1) * kBlock);
      if (block_may_fit(i / kBlock, request)) {
        for (; i < end; ++i) {
          const NodeIndex node = static_cast<NodeIndex>(i);
          if (wanted(node) && fits(node, request) && allowed(node, zones, gpu_models) &&
              !visit(node)) {
            return false;
          }
        }
      }
      i = end;
    }
    return true;
  };
  if (range(from, nodes_.size())) range(0, from);
}

}  // namespace kwatt::placement::strategies
