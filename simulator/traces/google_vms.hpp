#pragma once
// VMs made from Google's cluster data of 2011 by Farahnakian et al. (IEEE Transactions on Services
// Computing): two CSV files a day, CPU and memory in percent of the VM's own size.
#include <istream>
#include <string_view>

#include "base/result.hpp"
#include "simulator/traces/series.hpp"

namespace kwatt::simulator::traces {

struct GoogleVms {
  Series cpu, memory;  // the same VMs and steps
};

// Values above 100 % (sums over tasks can exceed the VM) count as 100 %. Errors:
// percent_table.hpp, and ErrorCode::parse when the two files do not name the same VMs or have
// different numbers of lines. The names are what messages call the inputs.
Result<GoogleVms> read_google_vms(std::istream& cpu, std::string_view cpu_name,
                                  std::istream& memory, std::string_view memory_name);

}  // namespace kwatt::simulator::traces
