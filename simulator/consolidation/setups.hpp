#pragma once
// The fleets of the consolidation experiments. CPU in MIPS, memory in MB, VMs of the four sizes of
// the PlanetLab experiment by their order.
#include "simulator/consolidation/experiment.hpp"

namespace kwatt::simulator::consolidation {

// The experiment of Beloglazov and Buyya (CCPE 24(13), 2012) as it ships with CloudSim 3.0.3: hosts
// of two models of 2007 in turn, off and on in no time.
Setup planetlab_setup(std::size_t vms, std::size_t hosts = 800);

// Servers of 2019 to 2022 in turn, seven models with curves of SPECpower. A core is one of the
// PlanetLab experiment's faster ones, with 4 GB; 10 Gbit/s; booting takes 2 minutes at full power.
Setup modern_setup(std::size_t vms, std::size_t hosts = 28);

}  // namespace kwatt::simulator::consolidation
