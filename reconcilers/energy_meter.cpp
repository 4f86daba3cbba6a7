#include "reconcilers/energy_meter.hpp"

#include <algorithm>

namespace kwatt::reconcilers {
namespace {

// A node that no policy has selected for so long is forgotten.
constexpr Duration kForget = std::chrono::hours{1};

}  // namespace

void EnergyMeter::observe(const planner::Snapshot& snapshot, const std::string& policy,
                          const std::vector<planner::NodeName>& selected, Duration longest) {
  for (const auto& name : selected) {
    const auto found = snapshot.nodes.find(name);
    if (found == snapshot.nodes.end()) continue;
    const auto last = last_.find(name);
    if (last != last_.end() && snapshot.now - last->second.at <= longest) {
      add(name, last->second, snapshot.now);
    }
    last_[name] = {snapshot.now, policy, planner::draw_of(found->second, snapshot.now)};
  }
}

void EnergyMeter::add(const planner::NodeName& node, const Last& last, TimePoint until) {
  // An hour's sum holds what falls into the hour.
  for (TimePoint from = last.at; from < until;) {
    const TimePoint hour = std::chrono::floor<std::chrono::hours>(from);
    const TimePoint to = std::min<TimePoint>(until, hour + std::chrono::hours{1});
    NodeEnergy& sum = sums_[{hour, node, last.policy}];
    sum.hour = hour;
    sum.node = node;
    sum.policy = last.policy;
    sum.energy += models::held(last.draw.power, to - from);
    sum.covered += to - from;
    if (last.draw.measured()) sum.measured += to - from;
    from = to;
  }
}

std::vector<NodeEnergy> EnergyMeter::take() {
  std::vector<NodeEnergy> out;
  out.reserve(sums_.size());
  TimePoint newest{};
  for (const auto& [name, last] : last_) newest = std::max(newest, last.at);
  for (auto& [key, sum] : sums_) out.push_back(std::move(sum));
  sums_.clear();
  std::erase_if(last_, [&](const auto& entry) { return newest - entry.second.at > kForget; });
  return out;
}

}  // namespace kwatt::reconcilers
