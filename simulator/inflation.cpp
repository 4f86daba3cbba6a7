#include "simulator/inflation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace kwatt::simulator {
namespace {

using namespace kwatt::placement::strategies;

// Model names as bits. Nodes without GPUs share one that no pod names.
class Models {
 public:
  Result<std::uint16_t> number(const std::string& model) {
    const auto [at, added] = known_.try_emplace(model, known_.size());
    if (at->second >= 64) {
      return fail(ErrorCode::invalid_argument, "inflation: more than 64 GPU models");
    }
    return static_cast<std::uint16_t>(at->second);
  }

 private:
  std::map<std::string, std::size_t> known_;
};

Result<std::vector<Job>> jobs_of(std::span<const OpenbPod> pods, Models& models) {
  std::vector<Job> jobs;
  for (const OpenbPod& pod : pods) {
    Job job;
    job.id = jobs.size();
    job.request = {pod.cpu, pod.memory, pod.total_gpu_milli()};
    if (!pod.models.empty()) {
      job.gpu_models = 0;
      for (const std::string& model : pod.models) {
        const auto number = models.number(model);
        if (!number) return number.error();
        job.gpu_models |= BitSet{1} << *number;
      }
    }
    jobs.push_back(job);
  }
  return jobs;
}

template <class T>
void shuffle(std::vector<T>& list, std::mt19937_64& random) {
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random() % i]);
}

// What FGD's limit on the next pod looks at: one of its GPUs.
std::int64_t one_gpu(const Job& job) {
  return std::min<std::int64_t>(job.request.gpu_milli, 1000);
}

std::vector<Job> arrivals(const std::vector<Job>& list, double target, std::mt19937_64& random) {
  std::vector<Job> order = list;
  shuffle(order, random);
  std::int64_t asked = 0;
  for (const Job& job : order) asked += job.request.gpu_milli;
  while (static_cast<double>(asked) > target) {
    const auto at = static_cast<std::ptrdiff_t>(random() % order.size());
    asked -= order[static_cast<std::size_t>(at)].request.gpu_milli;
    order.erase(order.begin() + at);
  }
  while (true) {
    const Job& next = list[random() % list.size()];
    if (static_cast<double>(asked + one_gpu(next)) > target) return order;
    asked += next.request.gpu_milli;
    order.push_back(next);
  }
}

}  // namespace

Result<Inflation> inflate(std::span<const OpenbNode> nodes, std::span<const OpenbPod> pods,
                          Strategy& strategy, const InflationSettings& settings) {
  if (settings.target_percent < 1) {
    return fail(ErrorCode::invalid_argument, "inflation: the target must be 1 % or more");
  }
  std::mt19937_64 random(settings.seed);
  Models models;
  std::vector<NodeSpec> specs;
  std::int64_t total = 0;
  for (const OpenbNode& node : nodes) {
    NodeSpec spec;
    spec.name = node.name;
    spec.capacity = {node.cpu, node.memory, std::int64_t{node.gpus} * 1000};
    const auto model = models.number(node.gpus > 0 ? node.model : "");
    if (!model) return model.error();
    spec.gpu_model = *model;
    total += spec.capacity.gpu_milli;
    specs.push_back(std::move(spec));
  }
  const auto list = jobs_of(pods, models);
  if (!list) return list.error();
  std::int64_t listed = 0;
  for (const Job& job : *list) listed += job.request.gpu_milli;
  if (total == 0 || listed == 0) {
    return fail(ErrorCode::invalid_argument,
                "inflation: the nodes have no GPUs, or no pod asks for one");
  }
  shuffle(specs, random);
  auto cluster = Cluster::create(std::move(specs));
  if (!cluster) return cluster.error();

  const double capacity = static_cast<double>(total);
  const std::vector<Job> order =
      arrivals(*list, capacity * settings.target_percent / 100.0, random);
  Inflation result;
  Decision decision;
  std::int64_t asked = 0, used = 0;
  double sum = 0;
  std::size_t read = 0;
  for (const Job& job : order) {
    asked += job.request.gpu_milli;
    strategy.decide({std::span(&job, 1), TimePoint{}, {}, 0}, *cluster, decision);
    ++result.arrived;
    if (!decision.assigned.empty()) ++result.placed, used += job.request.gpu_milli;
    if (std::lround(100.0 * static_cast<double>(asked) / capacity) == settings.target_percent) {
      sum += 100.0 * static_cast<double>(used) / capacity, ++read;
    }
  }
  result.allocated_percent =
      read > 0 ? sum / static_cast<double>(read) : 100.0 * static_cast<double>(used) / capacity;
  return result;
}

}  // namespace kwatt::simulator
