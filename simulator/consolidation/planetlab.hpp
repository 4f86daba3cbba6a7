#pragma once
// The experiment of Beloglazov and Buyya (CCPE 24(13), 2012) as it ships with CloudSim 3.0.3: hosts
// of two models in turn, VMs of four sizes by their order.
#include "simulator/consolidation/experiment.hpp"

namespace kwatt::simulator::consolidation {

// CPU in MIPS, memory in MB.
Setup planetlab_setup(std::size_t vms, std::size_t hosts = 800);

}  // namespace kwatt::simulator::consolidation
