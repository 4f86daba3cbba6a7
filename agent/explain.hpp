#pragma once
// Stores that did not do what was asked, as sentences for people. PURE.
#include <string>
#include <vector>

#include "agent/original.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::agent {

struct FailedStore {
  hardware::AttributeWrite write;
  Error error;
};

// One sentence for all policies (or packages) that answered alike: what was stored, what the kernel
// said or put in its place, how many others did the same, and the range that the hardware has where
// a number was clamped. In the order in which they failed.
std::vector<std::string> explain(const std::vector<FailedStore>& failed, const MachineState& now,
                                 const Original& original);

// The same for sentences that differ in numbers only: the first of them and how many more.
std::vector<std::string> grouped(const std::vector<std::string>& sentences);

}  // namespace kwatt::agent
