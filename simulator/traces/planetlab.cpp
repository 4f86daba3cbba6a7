#include "simulator/traces/planetlab.hpp"

#include "simulator/traces/percent_table.hpp"

namespace kwatt::simulator::traces {

Result<Series> read_planetlab(std::istream& in, std::string_view name) {
  return read_percent_table(in, name, {.whole = true, .above = 100, .clip = false});
}

}  // namespace kwatt::simulator::traces
