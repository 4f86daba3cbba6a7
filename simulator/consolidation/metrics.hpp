#pragma once
// The measures by which dynamic consolidation is judged in the literature. Beloglazov and Buyya,
// CCPE 24(13), 2012, section 6.2:
//
//   SLATAH = time that active hosts gave less CPU than was requested / time that they were active
//   PDM    = CPU·s that VMs lacked while they were migrated / CPU·s that they requested
//   SLAV   = SLATAH × PDM            ESV = energy × SLAV
#include <cstdint>
#include <vector>

namespace kwatt::simulator::consolidation {

struct Metrics {
  double energy_joules = 0;
  double active_seconds = 0, lacking_seconds = 0;         // of hosts
  double requested_cpu_seconds = 0, lacking_in_move = 0;  // of VMs
  double lacking_cpu_seconds = 0;                         // in migration or not
  std::uint64_t migrations = 0, shutdowns = 0, wakes = 0;

  // Share of what was requested that was not given.
  double lacking() const {
    return requested_cpu_seconds > 0 ? lacking_cpu_seconds / requested_cpu_seconds : 0;
  }
  double energy_kwh() const { return energy_joules / 3.6e6; }
  double slatah() const { return active_seconds > 0 ? lacking_seconds / active_seconds : 0; }
  double pdm() const {
    return requested_cpu_seconds > 0 ? lacking_in_move / requested_cpu_seconds : 0;
  }
  double slav() const { return slatah() * pdm(); }
  double esv() const { return energy_kwh() * slav(); }
  bool operator==(const Metrics&) const = default;
};

// Adds up what hosts and VMs were like between one record and the next. A record at the time of
// the last one replaces it, as the state only holds from then on.
class Meter {
 public:
  Meter(std::size_t hosts, std::size_t vms) : hosts_(hosts), vms_(vms) {}
  void host(std::size_t index, double time, double given, double requested, bool active);
  void vm(std::size_t index, double time, double given, double requested, bool migrating);
  // After the last record.
  void finish();

  Metrics metrics;

 private:
  struct HostRecord {
    double time = -1, given = 0, requested = 0;
    bool active = true, was_active = true;
  };
  struct VmRecord {
    double time = -1, given = 0, requested = 0;
    bool migrating = false;
  };
  std::vector<HostRecord> hosts_;
  std::vector<VmRecord> vms_;
};

}  // namespace kwatt::simulator::consolidation
