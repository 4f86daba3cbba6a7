// Thermal: a node at or above one of its temperature limits takes no pods; below, more headroom is
// better, up to PluginSettings::cool_enough. The nearer of its two limits counts. A node of which
// no temperature or no limit is known is never refused, and scores like the hottest one that is
// known.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "placement/registry.hpp"

namespace kwatt::placement {
namespace {

std::optional<Millicelsius> headroom(const std::optional<Millicelsius>& now,
                                     const std::optional<Millicelsius>& limit) {
  if (!now || !limit) return std::nullopt;
  return *limit - *now;
}

std::optional<Millicelsius> headroom(const NodeThermal& thermal) {
  const auto ambient = headroom(thermal.ambient, thermal.ambient_limit);
  const auto cpu = headroom(thermal.cpu, thermal.cpu_limit);
  if (!ambient || !cpu) return ambient ? ambient : cpu;
  return std::min(*ambient, *cpu);
}

std::string too_hot(const char* what, Millicelsius now, Millicelsius limit) {
  return fmt::format("the {} temperature is {:.1f} °C, its limit {:.1f} °C", what,
                     static_cast<double>(now.count()) / 1000,
                     static_cast<double>(limit.count()) / 1000);
}

struct Hottest : CycleState {
  Millicelsius headroom{std::numeric_limits<std::int64_t>::max()};
};

class Thermal : public NodePlugin {
 public:
  explicit Thermal(Millicelsius cool_enough) : cool_enough_(cool_enough) {}
  std::string_view name() const override { return "Thermal"; }
  std::string_view unit() const override { return "m°C"; }
  bool filters() const override { return true; }
  bool scores() const override { return true; }

  Status filter(const PodInfo&, const NodeInfo& node, const CycleState*) const override {
    const NodeThermal& t = node.thermal;
    if (t.ambient && t.ambient_limit && *t.ambient >= *t.ambient_limit) {
      return Status::unschedulable(too_hot("ambient", *t.ambient, *t.ambient_limit));
    }
    if (t.cpu && t.cpu_limit && *t.cpu >= *t.cpu_limit) {
      return Status::unschedulable(too_hot("CPU", *t.cpu, *t.cpu_limit));
    }
    return {};
  }

  Status pre_score(const PodInfo&, NodeTargets feasible,
                   std::unique_ptr<CycleState>& state) const override {
    auto hottest = std::make_unique<Hottest>();
    bool known = false;
    for (const NodeInfo* node : feasible) {
      if (const auto room = headroom(node->thermal)) {
        hottest->headroom = std::min(hottest->headroom, *room);
        known = true;
      }
    }
    if (!known) return Status::skip("no temperature with a limit is known");
    state = std::move(hottest);
    return {};
  }
  Status score(const PodInfo&, const NodeInfo& node, const CycleState* state,
               std::int64_t& out) const override {
    out = headroom(node.thermal).value_or(static_cast<const Hottest*>(state)->headroom).count();
    return {};
  }
  Status normalize(const PodInfo&, ScoreRange range,
                   std::span<std::int64_t> scores) const override {
    const std::int64_t enough = std::max<std::int64_t>(1, cool_enough_.count());
    const double width = static_cast<double>(range.most) - static_cast<double>(range.least);
    for (std::int64_t& score : scores) {
      const std::int64_t room = std::clamp<std::int64_t>(score, 0, enough);
      const double share = static_cast<double>(room) / static_cast<double>(enough);
      score = room == enough ? range.most : range.least + static_cast<std::int64_t>(width * share);
    }
    return {};
  }

 private:
  Millicelsius cool_enough_;
};

}  // namespace

std::shared_ptr<const NodePlugin> make_thermal(const PluginSettings& settings) {
  return std::make_shared<Thermal>(settings.cool_enough);
}

}  // namespace kwatt::placement
