#include "reconcilers/buffers.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "planner/plan.hpp"

namespace kwatt::reconcilers {
namespace {

constexpr std::string_view kActive = "buffer.x-k8s.io/active-capacity";

// How often `one` goes into `all`; an amount that is not limited, or not asked for, does not count.
std::int64_t times(std::int64_t all, std::int64_t one, std::int64_t at_most) {
  return all <= 0 || one <= 0 ? at_most : std::min(at_most, all / one);
}

}  // namespace

std::int64_t wanted_pods(const api::CapacityBuffer& buffer, const api::PodTemplate& shape) {
  if (!buffer.strategy.empty() && buffer.strategy != kActive) return 0;
  if (!buffer.replicas && !buffer.limits) return 0;
  std::int64_t pods =
      std::clamp<std::int64_t>(buffer.replicas.value_or(kMostPerBuffer), 0, kMostPerBuffer);
  if (buffer.limits) {
    pods = times(buffer.limits->cpu.count(), shape.requests.cpu.count(), pods);
    pods = times(buffer.limits->memory.count(), shape.requests.memory.count(), pods);
    pods = times(buffer.limits->pods, 1, pods);
    for (const auto& [name, all] : buffer.limits->extended) {
      const auto one = shape.requests.extended.find(name);
      if (one != shape.requests.extended.end()) pods = times(all, one->second, pods);
    }
  }
  return pods;
}

std::vector<std::shared_ptr<const api::Pod>> buffer_pods(
    const api::CapacityBuffer& buffer, const std::shared_ptr<const api::PodTemplate>& shape) {
  const std::int64_t count = wanted_pods(buffer, *shape);
  std::vector<std::shared_ptr<const api::Pod>> pods;
  if (count == 0) return pods;
  auto last_in_line = std::make_shared<api::PodTemplate>(*shape);
  last_in_line->priority = std::numeric_limits<std::int32_t>::min();
  last_in_line->scheduling_gated = false;
  const std::string name = buffer.meta.namespace_name + "/" + buffer.meta.name;
  for (std::int64_t i = 0; i < count; ++i) {
    auto pod = std::make_shared<api::Pod>();
    pod->namespace_name = buffer.meta.namespace_name;
    pod->name = fmt::format("{}-buffer-{}", buffer.meta.name, i);
    pod->uid = fmt::format("buffer:{}/{}", name, i);
    pod->spec = last_in_line;
    pod->scheduled = api::PodScheduled::unschedulable;
    pod->creation_timestamp = buffer.meta.creation_timestamp;
    pod->annotations.set(planner::names::kBuffer, name);
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace kwatt::reconcilers
