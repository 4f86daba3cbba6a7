#pragma once
// What kwatt advises kube-scheduler for one pod: which of the offered nodes to leave out, and how
// to rank the others. Pure; from one table of nodes and one profile of plugins.
//
// kube-scheduler has applied its own filters before it asks, to a cache that may be newer than
// ours. So advice never empties the list: where every offered node would be left out, none is.
// Nodes that the table does not have (yet) are let through and get 0.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "placement/node_table.hpp"
#include "servers/extender_scores.hpp"
#include "servers/extender_wire.hpp"

namespace kwatt::servers {

// The offered nodes that the table has.
struct Offer {
  std::vector<const placement::NodeInfo*> known;
  std::vector<std::size_t> position;  // of each in args.nodes, ascending
  std::vector<std::size_t> unknown;   // positions of the others, ascending
};
Offer look_up(const ExtenderArgs& args, const placement::NodeTable& table);

struct FilterAdvice {
  std::vector<std::size_t> passed;            // positions in args.nodes, ascending
  std::vector<placement::Excluded> excluded;  // target: position in args.nodes
  bool overruled = false;                     // all known ones were to be left out: none is
};
// Errors: those of the framework, which are bugs of plugins.
Result<FilterAdvice> advise_filter(const placement::NodeFramework& framework,
                                   const placement::PodInfo& pod, const ExtenderArgs& args,
                                   const Offer& offer);

struct PriorityAdvice {
  std::vector<std::int64_t> scores;  // 0..10 by position in args.nodes
  placement::Scores details;         // by position in Offer::known
};
Result<PriorityAdvice> advise_priorities(const placement::NodeFramework& framework,
                                         const placement::PodInfo& pod, const ExtenderArgs& args,
                                         const Offer& offer);

// Where a node stands for this pod, whatever its total.
Standing standing_of(const placement::PodInfo& pod, const placement::NodeInfo& node);

// The parts of one known node's total as text: "EnergyIncrease 5210 (100 x 10), Thermal 3 (80 x
// 2)".
std::string explain_total(const placement::Scores& details, std::size_t known);
// The known nodes in the order of their scores, then totals, then names; at most `most`.
std::vector<std::size_t> best_first(const PriorityAdvice& advice, const Offer& offer,
                                    std::size_t most);

}  // namespace kwatt::servers
