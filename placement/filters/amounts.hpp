#pragma once
// Amounts of resources as plain integers, for the innermost loop of the what-if.
#include <cstdint>
#include <string>
#include <vector>

#include "api/core.hpp"

namespace kwatt::placement::filters {

// Numbers the names of extended resources (nvidia.com/gpu, …) as they turn up.
class ResourceNames {
 public:
  std::size_t id(const std::string& name);
  const std::string& name(std::size_t id) const { return names_[id]; }

 private:
  std::vector<std::string> names_;  // a handful: searched linearly
};

struct Amounts {
  std::int64_t cpu = 0;        // millicores
  std::int64_t memory = 0;     // bytes
  std::int64_t ephemeral = 0;  // bytes
  std::int64_t pods = 0;
  std::vector<std::int64_t> extended;  // by ResourceNames id; missing ones are 0

  Amounts& operator+=(const Amounts& other);
  Amounts& operator-=(const Amounts& other);
};

Amounts amounts_of(const api::Resources& resources, ResourceNames& names);

}  // namespace kwatt::placement::filters
