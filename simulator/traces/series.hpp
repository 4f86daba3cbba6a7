#pragma once
// Utilization of many VMs at equal steps, as the trace readers give it.
#include <string>
#include <vector>

namespace kwatt::simulator::traces {

struct Series {
  std::vector<std::string> names;  // of the columns, in order
  std::size_t samples = 0;
  std::vector<double> values;  // share of the VM's own size, [sample × names + column]
  std::size_t columns() const { return names.size(); }
  double at(std::size_t sample, std::size_t column) const {
    return values[sample * names.size() + column];
  }
};

}  // namespace kwatt::simulator::traces
