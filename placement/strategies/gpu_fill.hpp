#pragma once
// The state of GpuFill (gpu_fill.cpp says what it does and why): kinds of jobs seen, what each node
// wastes, scores by kind and node.
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "placement/strategies/one_by_one.hpp"

namespace kwatt::placement::strategies {

class GpuFill : public OneByOne {
 public:
  GpuFill() : OneByOne("GpuFill") {}

 protected:
  void begin(const Batch& batch, const Cluster& cluster) override;
  std::optional<Choice> choose(const Job& job, const Batch& batch, const Cluster& cluster) override;
  std::optional<NodeIndex> best(const Job& job, const Batch& batch,
                                const Cluster& cluster) override;

 private:
  struct Kind {  // jobs that ask for the same
    Request request;
    BitSet zones, gpu_models;
    double seen;            // members
    std::uint64_t changes;  // the cluster's changed_mark() of the scores
    std::vector<double> score;
    std::vector<GpuSet> gpus;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, BitSet, BitSet>;
  struct Typical {
    std::int64_t cpu, memory, gpu_milli;
    BitSet zones, gpu_models;
    double weight;  // of all typical jobs
  };
  struct State {  // of a node, as far as its waste depends on it
    std::int64_t cpu, memory;
    std::uint32_t place;  // zone and GPU model
    std::array<std::uint64_t, 2> gpus;
    bool operator==(const State&) const = default;
  };
  struct StateHash {
    std::size_t operator()(const State& s) const;
  };

  std::size_t kind_of(const Job& job);
  void count_typical();
  double waste(const State& s, const std::int32_t* gpus, std::size_t count, std::uint16_t zone,
               std::uint16_t model) const;
  double waste_of(std::int64_t cpu, std::int64_t memory, const std::int32_t* gpus,
                  std::size_t count, std::uint16_t zone, std::uint16_t model);
  double score(const Kind& kind, NodeIndex i, const Cluster& cluster, GpuSet& chosen);
  void refresh(NodeIndex i, const Cluster& cluster);

  std::vector<Kind> kinds_;
  std::map<Key, std::size_t> kind_at_;
  std::vector<Typical> typical_;
  double jobs_seen_ = 0, counted_at_ = 0;
  std::unordered_map<State, double, StateHash> memo_;
  std::vector<double> waste_;  // by node, in thousandths of a GPU
  double most_cpu_ = 1, most_gpu_ = 1;
  std::uint64_t changes_ = 0;
};

}  // namespace kwatt::placement::strategies
