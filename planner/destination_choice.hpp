#pragma once
// Which of the nodes that fit a leaving pod gets it.
//
// Fullest first keeps the load together. But a server is at its best below full load, and machines
// differ, so among the fullest few that fit, placement's scoring plugins choose: the same that
// advise kube-scheduler, with the policy's weights. A plugin that knows nothing here (temperatures,
// carbon and predictions are not in the snapshot) has no say.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/registry.hpp"
#include "planner/levers.hpp"

namespace kwatt::planner {

// Among how many nodes the plugins choose. More would spread pods over nodes that could be emptied
// next, and each costs time in a pass that tries hundreds of drains.
inline constexpr std::size_t kDestinationsCompared = 8;

// What is wrong with spec.placement that api::validate() cannot know, as a sentence that begins
// with the JSON path: a plugin that does not exist. nullopt: nothing.
std::optional<std::string> placement_problem(const api::PlacementSpec& spec);

// For one pass. Strategies that rank by energy (EnergyAware, ECSched, CarbonAware) have the plugins
// choose; the others, and a policy whose plugins cannot work, take the fullest node.
class DestinationChoice {
 public:
  explicit DestinationChoice(const Pass& pass);
  // Reserves a destination in the pass's what-if; nullopt: none, and nothing has changed.
  std::optional<NodeName> place(WhatIf& what_if, const std::shared_ptr<const api::Pod>& pod);

 private:
  const placement::NodeInfo& info_of(const Fitting& fitting);

  TimePoint now_;
  std::optional<placement::NodeFramework> framework_;  // nullopt: the fullest
  // By Fitting::id; null: not asked for yet. The room and the load are set at each question.
  struct Known {
    std::unique_ptr<placement::NodeInfo> info;
    Millicores used;       // now, by its pods: measured, or requested
    Millicores requested;  // by the pods that are bound
  };
  std::vector<Known> known_;
};

}  // namespace kwatt::planner
