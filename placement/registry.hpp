#pragma once
// The plugins that judge nodes, by name. A new one is one file in placement/plugins/ and one line
// in registry.cpp.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "placement/energy.hpp"
#include "placement/node_info.hpp"

namespace kwatt::placement {

struct PluginSettings {
  EnergySettings energy;
  // Headroom to a temperature limit from which on more makes no difference.
  Millicelsius cool_enough{20'000};
};

// A plugin by name with its weight; without meaning for one that only filters.
struct ProfileEntry {
  std::string plugin;
  std::int64_t weight = 1;
  bool operator==(const ProfileEntry&) const = default;
};

// All plugins in the order of the registry.
std::vector<std::shared_ptr<const NodePlugin>> node_plugins(const PluginSettings& settings = {});
std::vector<std::string_view> node_plugin_names();

// Filters and all scores. The weights make three steps of it, each of which outweighs everything
// below: a reserved destination, full speed, and then energy with the rest.
const std::vector<ProfileEntry>& default_profile();
// `changes` (a policy's placement.plugins) on top of `profile`: another weight for a plugin that is
// there, weight 0 takes it out, one that is not there is appended.
std::vector<ProfileEntry> changed_profile(std::vector<ProfileEntry> profile,
                                          const std::vector<ProfileEntry>& changes);

// Errors: invalid_argument for a name that is no plugin (all names are listed), and what
// NodeFramework::create() refuses.
Result<NodeFramework> node_framework(const std::vector<ProfileEntry>& profile,
                                     const PluginSettings& settings = {}, ScoreRange range = {});

}  // namespace kwatt::placement
