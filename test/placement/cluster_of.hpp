#pragma once
// Clusters and jobs of strategy tests, with defaults.
#include <string>
#include <utility>
#include <vector>

#include "placement/strategies/registry.hpp"

namespace kwatt::placement::strategies {

inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;
inline const TimePoint kNow{std::chrono::hours{480'000}};

// 10 CPUs, 40 GiB; a straight line from 50 to 150 W; awake; 60 s and 6 kJ to boot.
inline NodeSpec node(std::string name, std::int64_t cpus = 10) {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.capacity = {Millicores{cpus * 1000}, Bytes{cpus * 4 * kGiB}, 0};
  for (std::size_t i = 0; i < 11; ++i) {
    spec.power.curve.points[i] = watts(50 + 10 * static_cast<std::int64_t>(i));
  }
  spec.power.boot = std::chrono::seconds{60};
  spec.power.boot_energy = Millijoules{6'000'000};
  return spec;
}

inline NodeSpec with_gpus(NodeSpec spec, std::int64_t count, std::uint16_t model = 0) {
  spec.capacity.gpu_milli = count * 1000;
  spec.gpu_model = model;
  return spec;
}

inline NodeSpec in_zone(NodeSpec spec, std::uint16_t zone) {
  spec.zone = zone;
  return spec;
}

inline NodeSpec off(NodeSpec spec) {
  spec.state = NodeState::off;
  return spec;
}

inline Cluster cluster(std::vector<NodeSpec> nodes) {
  return *Cluster::create(std::move(nodes));
}

inline Job job(std::int64_t cpus, std::int64_t gibibytes = 1, std::uint32_t members = 1) {
  Job made;
  made.request = {Millicores{cpus * 1000}, Bytes{gibibytes * kGiB}, 0};
  made.members = members;
  made.arrival = kNow;
  made.expected = std::chrono::hours{1};
  return made;
}

inline Job gpu_job(std::int64_t gpu_milli) {
  Job made = job(1);
  made.request.gpu_milli = gpu_milli;
  return made;
}

inline Job lasting(Job made, Duration expected) {
  made.expected = expected;
  return made;
}

// "job:node job:node …" in the order chosen, members one after another.
inline std::string plan(const Decision& decision, const Cluster& on) {
  std::string text;
  for (const Assignment& one : decision.assigned) {
    text += (text.empty() ? "" : " ") + std::to_string(one.job) + ":" + on.node(one.node).name;
  }
  return text;
}
// "job Reason …"
inline std::string reasons(const Decision& decision) {
  std::string text;
  for (const Waiting& one : decision.waiting) {
    text += (text.empty() ? "" : " ") + std::to_string(one.job) + " " +
            std::string(to_string(one.reason));
  }
  return text;
}

}  // namespace kwatt::placement::strategies
