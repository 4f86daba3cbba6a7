#include "api/interner.hpp"

#include <algorithm>
#include <functional>

namespace kwatt::api {
namespace {

void mix(std::size_t& seed, std::size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6U) + (seed >> 2U);
}
void mix(std::size_t& seed, std::string_view text) {
  mix(seed, std::hash<std::string_view>{}(text));
}
void mix(std::size_t& seed, const StringMap& map) {
  for (const auto& [key, value] : map) {
    mix(seed, key);
    mix(seed, value);
  }
}

// Enough of the content to keep different templates apart; equality decides.
std::size_t hash_of(const PodTemplate& value) {
  std::size_t seed = value.tolerations.size();
  mix(seed, value.labels);
  mix(seed, static_cast<std::size_t>(value.requests.cpu.count()));
  mix(seed, static_cast<std::size_t>(value.requests.memory.count()));
  mix(seed, value.node_selector);
  for (const std::string& claim : value.claims) mix(seed, claim);
  for (const NodeSelectorTerm& term : value.required_node_affinity) {
    for (const SelectorRequirement& field : term.match_fields) {
      for (const std::string& name : field.values) mix(seed, name);
    }
  }
  mix(seed, value.scheduler_name);
  mix(seed, static_cast<std::size_t>(value.priority));
  return seed;
}

std::size_t hash_of(const OwnerReference& value) {
  std::size_t seed = std::hash<std::string>{}(value.uid);
  mix(seed, value.name);
  return seed;
}

}  // namespace

template <class T>
std::shared_ptr<const T> Interner::find_or_add(Table<T>& table, std::size_t hash, T value) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = table.entries.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    auto shared = at->second.lock();
    if (shared != nullptr && *shared == value) return shared;
  }
  if (table.entries.size() >= table.sweep_at) {
    std::erase_if(table.entries, [](const auto& entry) { return entry.second.expired(); });
    table.sweep_at = std::max<std::size_t>(64, table.entries.size() * 2);
  }
  auto made = std::make_shared<const T>(std::move(value));
  table.entries.emplace(hash, made);
  return made;
}

std::shared_ptr<const PodTemplate> Interner::intern(PodTemplate&& value) {
  const std::size_t hash = hash_of(value);
  return find_or_add(templates_, hash, std::move(value));
}

std::shared_ptr<const OwnerReference> Interner::intern(OwnerReference&& value) {
  const std::size_t hash = hash_of(value);
  return find_or_add(owners_, hash, std::move(value));
}

std::size_t Interner::templates() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(templates_.entries.begin(), templates_.entries.end(),
                    [](const auto& entry) { return !entry.second.expired(); }));
}

}  // namespace kwatt::api
