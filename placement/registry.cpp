#include "placement/registry.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kwatt::placement {

// One line per plugin: `X(name)` is make_name() of placement/plugins/name.cpp. In the order of this
// list the default profile filters, cheap and telling refusals first.
#define KWATT_NODE_PLUGINS(X) \
  X(leaving)                  \
  X(awake)                    \
  X(taints)                   \
  X(affinity)                 \
  X(fit)                      \
  X(thermal)                  \
  X(frequency_and_cap)        \
  X(reserved_destination)     \
  X(energy_increase)          \
  X(efficiency)               \
  X(fragmentation)            \
  X(carbon)

#define KWATT_DECLARE(name) std::shared_ptr<const NodePlugin> make_##name(const PluginSettings&);
KWATT_NODE_PLUGINS(KWATT_DECLARE)
#undef KWATT_DECLARE

std::vector<std::shared_ptr<const NodePlugin>> node_plugins(const PluginSettings& settings) {
#define KWATT_MAKE(name) make_##name(settings),
  return {KWATT_NODE_PLUGINS(KWATT_MAKE)};
#undef KWATT_MAKE
}

std::vector<std::string_view> node_plugin_names() {
  std::vector<std::string_view> names;
  for (const auto& plugin : node_plugins()) names.push_back(plugin->name());
  return names;
}

const std::vector<ProfileEntry>& default_profile() {
  static const std::vector<ProfileEntry> kProfile = {
      {"Leaving", 1},
      {"Awake", 1},
      {"Taints", 1},
      {"Affinity", 1},
      {"Fit", 1},
      {"ReservedDestination", 1000},
      {"FrequencyAndCap", 100},
      {"EnergyIncrease", 10},
      {"Thermal", 4},
      {"Carbon", 2},
      {"Efficiency", 2},
      {"Fragmentation", 1},
  };
  return kProfile;
}

std::vector<ProfileEntry> changed_profile(std::vector<ProfileEntry> profile,
                                          const std::vector<ProfileEntry>& changes) {
  for (const ProfileEntry& change : changes) {
    const auto at = std::find_if(profile.begin(), profile.end(), [&](const ProfileEntry& entry) {
      return entry.plugin == change.plugin;
    });
    if (at == profile.end()) {
      if (change.weight != 0) profile.push_back(change);
    } else if (change.weight == 0) {
      profile.erase(at);
    } else {
      at->weight = change.weight;
    }
  }
  return profile;
}

Result<NodeFramework> node_framework(const std::vector<ProfileEntry>& profile,
                                     const PluginSettings& settings, ScoreRange range) {
  const auto plugins = node_plugins(settings);
  std::vector<NodeFramework::Enabled> enabled;
  for (const ProfileEntry& entry : profile) {
    const auto at = std::find_if(plugins.begin(), plugins.end(), [&](const auto& plugin) {
      return plugin->name() == entry.plugin;
    });
    if (at == plugins.end()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("there is no plugin {}; one of: {}", entry.plugin,
                              fmt::join(node_plugin_names(), ", ")));
    }
    enabled.push_back({*at, entry.weight});
  }
  return NodeFramework::create(std::move(enabled), range);
}

}  // namespace kwatt::placement
