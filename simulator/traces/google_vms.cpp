#include "simulator/traces/google_vms.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/traces/percent_table.hpp"

namespace kwatt::simulator::traces {

Result<GoogleVms> read_google_vms(std::istream& cpu, std::string_view cpu_name,
                                  std::istream& memory, std::string_view memory_name) {
  constexpr PercentRules kRules{.whole = false, .above = 100, .clip = true};
  Result<Series> first = read_percent_table(cpu, cpu_name, kRules);
  if (!first) return first.error();
  Result<Series> second = read_percent_table(memory, memory_name, kRules);
  if (!second) return second.error();
  GoogleVms vms{std::move(first.value()), std::move(second.value())};
  if (vms.cpu.columns() != vms.memory.columns()) {
    return fail(ErrorCode::parse, fmt::format("{}:1: {} VMs, expected the {} of {}", memory_name,
                                              vms.memory.columns(), vms.cpu.columns(), cpu_name));
  }
  const auto differ =
      std::mismatch(vms.cpu.names.begin(), vms.cpu.names.end(), vms.memory.names.begin());
  if (differ.first != vms.cpu.names.end()) {
    return fail(ErrorCode::parse, fmt::format("{}:1: VM '{}', expected '{}' as in {}", memory_name,
                                              *differ.second, *differ.first, cpu_name));
  }
  if (vms.cpu.samples != vms.memory.samples) {
    return fail(ErrorCode::parse,
                fmt::format("{}:{}: ends after {} steps, expected the {} of {}", memory_name,
                            vms.memory.samples + 1, vms.memory.samples, vms.cpu.samples, cpu_name));
  }
  return vms;
}

}  // namespace kwatt::simulator::traces
