#include "planner/destination_choice.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/requested_cpu.hpp"

namespace kwatt::planner {
namespace {

// As Savings looks at it, so that a node is chosen for the load its saving is judged by.
constexpr Duration kLoadWindow = std::chrono::minutes{1};

bool by_energy(api::PlacementStrategy strategy) {
  return strategy == api::PlacementStrategy::EnergyAware ||
         strategy == api::PlacementStrategy::ECSched ||
         strategy == api::PlacementStrategy::CarbonAware;
}

// Fragmentation has no say unless the policy names it: between machines that cost the same, the
// fullest one leaves more nodes that can be emptied.
std::vector<placement::ProfileEntry> profile_of(const api::PlacementSpec& spec) {
  std::vector<placement::ProfileEntry> changes;
  const auto named = [&](std::string_view name) {
    return std::any_of(spec.plugins.begin(), spec.plugins.end(),
                       [&](const api::PluginWeight& plugin) { return plugin.name == name; });
  };
  if (!named("Fragmentation")) changes.push_back({"Fragmentation", 0});
  for (const api::PluginWeight& plugin : spec.plugins) {
    changes.push_back({plugin.name, plugin.weight});
  }
  return placement::changed_profile(placement::default_profile(), changes);
}

}  // namespace

std::optional<std::string> placement_problem(const api::PlacementSpec& spec) {
  const auto names = placement::node_plugin_names();
  for (std::size_t i = 0; i < spec.plugins.size(); ++i) {
    if (std::find(names.begin(), names.end(), spec.plugins[i].name) != names.end()) continue;
    return fmt::format("spec.placement.plugins[{}].name: \"{}\" is no plugin; there are {}", i,
                       spec.plugins[i].name, fmt::join(names, ", "));
  }
  return std::nullopt;
}

DestinationChoice::DestinationChoice(const Pass& pass) : now_(pass.snapshot.now) {
  const api::PlacementSpec& spec = pass.spec.placement;
  if (!by_energy(spec.strategy)) return;
  if (auto made = placement::node_framework(profile_of(spec))) framework_ = std::move(*made);
}

const placement::NodeInfo& DestinationChoice::info_of(const Fitting& fitting) {
  if (known_.size() <= fitting.id) known_.resize(fitting.id + 1);
  Known& known = known_[fitting.id];
  const NodeView& view = *fitting.view;
  if (known.info == nullptr) {
    known.info = std::make_unique<placement::NodeInfo>();
    known.info->name = view.name();
    known.info->node = view.node;
    known.info->allocatable = view.node->allocatable;
    known.info->model = view.model;
    if (view.machine != nullptr && view.machine->spec.model.ops_per_joule > 0) {
      known.info->ops_per_joule = view.machine->spec.model.ops_per_joule;
    }
    known.requested = requested_cpu(view);
    const auto mean = window_mean(view, kLoadWindow, now_);
    const bool measured = mean && mean->has_utilization;
    known.info->load_source =
        measured ? placement::LoadSource::measured : placement::LoadSource::requested;
    known.used =
        measured ? Millicores{view.node->allocatable.cpu.count() * mean->utilization.count() / 1000}
                 : known.requested;
  }
  placement::NodeInfo& info = *known.info;
  info.requested.cpu = info.allocatable.cpu - fitting.free_cpu;
  info.requested.memory = info.allocatable.memory - fitting.free_memory;
  // Pods on their way are taken to use what they ask for, as the extender takes them.
  const std::int64_t coming =
      std::max<std::int64_t>(0, info.requested.cpu.count() - known.requested.count());
  const std::int64_t full = std::max<std::int64_t>(1, info.full_load().count());
  info.load =
      Permille{std::clamp<std::int64_t>((known.used.count() + coming) * 1000 / full, 0, 1000)};
  return info;
}

std::optional<NodeName> DestinationChoice::place(WhatIf& what_if,
                                                 const std::shared_ptr<const api::Pod>& pod) {
  if (!framework_) return what_if.place(pod);
  return what_if.place_among(
      pod, kDestinationsCompared, [&](const std::vector<Fitting>& fitting) -> std::size_t {
        std::vector<const placement::NodeInfo*> nodes;
        nodes.reserve(fitting.size());
        // Growing known_ moves only what points to them.
        for (const Fitting& one : fitting) nodes.push_back(&info_of(one));
        const auto scores = framework_->score(placement::pod_info_of(*pod), nodes);
        if (!scores) return 0;
        const auto& totals = scores->totals;  // equal totals: the fullest
        return static_cast<std::size_t>(std::max_element(totals.begin(), totals.end()) -
                                        totals.begin());
      });
}

}  // namespace kwatt::planner
