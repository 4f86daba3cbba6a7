#include <fmt/format.h>

#include "placement/filters/filters.hpp"

namespace kwatt::placement::filters::node_resources_fit {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

}  // namespace

std::string explain(const Amounts& need, const Amounts& free, const ResourceNames& names) {
  std::string text;
  const auto lacks = [&](std::string_view what, std::int64_t wanted, std::int64_t have,
                         std::string_view unit) {
    text += fmt::format("{}{}: needs {}{}, {}{} free", text.empty() ? "not enough " : ", ", what,
                        wanted, unit, have, unit);
  };
  if (free.pods < need.pods) lacks("room for pods", need.pods, free.pods, "");
  if (need.cpu > 0 && need.cpu > free.cpu) lacks("cpu", need.cpu, free.cpu, "m");
  if (need.memory > 0 && need.memory > free.memory) {
    lacks("memory", (need.memory + kMiB - 1) / kMiB, free.memory / kMiB, "Mi");
  }
  if (need.ephemeral > 0 && need.ephemeral > free.ephemeral) {
    lacks("ephemeral-storage", (need.ephemeral + kMiB - 1) / kMiB, free.ephemeral / kMiB, "Mi");
  }
  for (std::size_t i = 0; i < need.extended.size(); ++i) {
    const std::int64_t have = i < free.extended.size() ? free.extended[i] : 0;
    if (need.extended[i] > 0 && need.extended[i] > have) {
      lacks(names.name(i), need.extended[i], have, "");
    }
  }
  return text;
}

bool passes(const api::Resources& need, const api::Resources& free) {
  ResourceNames names;
  return passes(amounts_of(need, names), amounts_of(free, names));
}

std::string explain(const api::Resources& need, const api::Resources& free) {
  ResourceNames names;
  const Amounts wanted = amounts_of(need, names);
  return explain(wanted, amounts_of(free, names), names);
}

}  // namespace kwatt::placement::filters::node_resources_fit
