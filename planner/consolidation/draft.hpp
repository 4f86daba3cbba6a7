#pragma once
// A decision in the making: where VMs would be, and what hosts would then hand out. The rules of
// division are CloudSim 3.0.3's time-shared scheduler with over-subscription, so that the
// heuristics built on it (heuristic.hpp) decide as they were published.
#include <array>
#include <cstdint>
#include <vector>

#include "planner/consolidation/fleet.hpp"

namespace kwatt::planner::consolidation {

constexpr std::size_t kHistory = 30;           // samples that the published detectors look back
using History = std::array<double, kHistory>;  // CPU, newest first, 0 where there is no sample

struct DraftHost {
  std::uint32_t index = 0;
  double cpu = 0, core_cpu = 0;  // of its kind
  std::vector<std::uint32_t> vms;
  double requested = 0;   // by its VMs
  double handed_out = 0;  // to them; of those arriving what they will get here
  double free = 0;
  double memory_free = 0;
  History history{};        // of its VMs together: it moves with them
  std::size_t samples = 1;  // up to the oldest in which one of them had load
  double largest_memory = 0;
};

class Draft {
 public:
  // Keeps a reference: the fleet outlives the draft.
  explicit Draft(const Fleet& fleet);

  const Fleet& fleet() const { return fleet_; }
  const DraftHost& host(std::uint32_t index) const { return hosts_[index]; }
  const History& history(std::uint32_t vm) const { return histories_[vm]; }
  // Up to the VM's oldest sample within the history that is not zero; one at least.
  std::size_t samples(std::uint32_t vm) const { return samples_[vm]; }
  // Free CPU, one core and free memory are enough for what the VM wants now.
  bool fits(std::uint32_t vm, std::uint32_t host) const;
  // The VM is here as well from now on; it fits.
  void add(std::uint32_t vm, std::uint32_t host);
  void remove(std::uint32_t vm, std::uint32_t host);

 private:
  void recount(DraftHost& host) const;
  const Fleet& fleet_;
  std::vector<History> histories_;
  std::vector<std::size_t> samples_;
  std::vector<DraftHost> hosts_;
};

}  // namespace kwatt::planner::consolidation
