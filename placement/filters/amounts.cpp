#include "placement/filters/amounts.hpp"

#include <algorithm>

namespace kwatt::placement::filters {

std::size_t ResourceNames::id(const std::string& name) {
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at != names_.end()) return static_cast<std::size_t>(at - names_.begin());
  names_.push_back(name);
  return names_.size() - 1;
}

Amounts& Amounts::operator+=(const Amounts& other) {
  cpu += other.cpu;
  memory += other.memory;
  ephemeral += other.ephemeral;
  pods += other.pods;
  if (extended.size() < other.extended.size()) extended.resize(other.extended.size());
  for (std::size_t i = 0; i < other.extended.size(); ++i) extended[i] += other.extended[i];
  return *this;
}

Amounts& Amounts::operator-=(const Amounts& other) {
  cpu -= other.cpu;
  memory -= other.memory;
  ephemeral -= other.ephemeral;
  pods -= other.pods;
  if (extended.size() < other.extended.size()) extended.resize(other.extended.size());
  for (std::size_t i = 0; i < other.extended.size(); ++i) extended[i] -= other.extended[i];
  return *this;
}

Amounts amounts_of(const api::Resources& resources, ResourceNames& names) {
  Amounts amounts;
  amounts.cpu = resources.cpu.count();
  amounts.memory = resources.memory.count();
  amounts.ephemeral = resources.ephemeral_storage.count();
  amounts.pods = resources.pods;
  for (const auto& [name, count] : resources.extended) {
    const std::size_t id = names.id(name);
    if (amounts.extended.size() <= id) amounts.extended.resize(id + 1);
    amounts.extended[id] = count;
  }
  return amounts;
}

}  // namespace kwatt::placement::filters
