#pragma once
// Energy of each node by the hour, for the history: the same draws as in the policies' accounts,
// held from pass to pass. A convenience: what was not taken yet is lost at a restart.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/draw.hpp"

namespace kwatt::reconcilers {

struct NodeEnergy {
  TimePoint hour;  // its beginning, UTC
  planner::NodeName node;
  std::string policy;
  models::EnergyPair energy;
  Duration covered{0};   // of the hour, so that a gap is seen
  Duration measured{0};  // of these, with a meter's reading
};

// Single-threaded, on the controller's strand.
class EnergyMeter {
 public:
  // One pass over a policy's nodes. What was seen the last time is held until now, unless that is
  // longer ago than `longest`.
  void observe(const planner::Snapshot& snapshot, const std::string& policy,
               const std::vector<planner::NodeName>& selected, Duration longest);
  // The sums since the last call, to be added to what stands; sorted by hour and node.
  std::vector<NodeEnergy> take();

 private:
  struct Last {
    TimePoint at;
    std::string policy;
    planner::Draw draw;
  };
  void add(const planner::NodeName& node, const Last& last, TimePoint until);

  std::map<planner::NodeName, Last> last_;
  std::map<std::tuple<TimePoint, planner::NodeName, std::string>, NodeEnergy> sums_;
};

}  // namespace kwatt::reconcilers
