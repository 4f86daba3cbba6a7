#pragma once
// Energy counters and power limits as Linux shows them under class/powercap (Intel and AMD RAPL).
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"
#include "hardware/sysfs_files.hpp"

namespace kwatt::hardware {

enum class ZoneKind { package, dram, psys, other };

// One power zone. Limits in microwatts, as the kernel gives them.
struct PowerZone {
  std::string id;    // "intel-rapl:0"
  std::string name;  // "package-0"
  ZoneKind kind = ZoneKind::other;
  std::int64_t energy_range_uj = 0;  // the counter wraps here
  int constraint = -1;               // number of the long_term constraint; -1: no limit can be set
  std::int64_t limit_uw = 0;
  std::int64_t min_uw = 0, max_uw = 0;  // 0: the hardware does not say
  bool enabled = false;
  bool operator==(const PowerZone&) const = default;
};

// All zones, by id. intel-rapl-mmio shows package-0 a second time: such duplicates are left out.
// A zone that goes meanwhile, with its package, is left out too. A machine without powercap gives
// an empty list. Errors: of the files.
Result<std::vector<PowerZone>> read_zones(const HostFs& fs);

// What the packages can be limited to together, each with the same share. A minimum the hardware
// does not name is taken as a tenth of the maximum: a lower cap would stop the machine rather than
// slow it. A maximum it does not name is the limit in force (so give this the zones as they were
// before any cap of ours). nullopt: no package can be limited.
struct PackageRange {
  std::int64_t min_uw = 0, max_uw = 0;
  int packages = 0;
  bool operator==(const PackageRange&) const = default;
};
std::optional<PackageRange> package_range(const std::vector<PowerZone>& zones);
// A package whose limit can be set.
bool limitable(const PowerZone& zone);
// Sum of the limits of all packages that can be limited; a disabled limit counts as the maximum.
std::int64_t package_limit_uw(const std::vector<PowerZone>& zones);

// The stores that set one zone's long-term limit (nothing if it is within `slack_uw` already) and
// switch it on or off. What the hardware rounds by less than a watt is accepted at reading back.
std::vector<AttributeWrite> limit_changes(const PowerZone& now, std::int64_t limit_uw, bool enabled,
                                          std::int64_t slack_uw);
inline constexpr std::int64_t kLimitTolerance_uw = 1'000'000;

// Where the files of a zone are: "class/powercap/intel-rapl:0/".
std::string zone_folder(const std::string& id);

// A limit that the firmware has locked answers ENODATA (ENOSYS at its switch): the sentence for it.
// Other errors come back as they are.
Error explain_limit_error(Error error, const AttributeWrite& write);

// Microjoules between two readings of a counter that wraps at `range` at most once.
// nullopt: the counter fell although it cannot wrap (range 0), or lies outside the range.
std::optional<std::int64_t> energy_between(std::int64_t before, std::int64_t after,
                                           std::int64_t range);

// Turns energy counters into power. One per agent; call it at every sample.
class EnergyMeter {
 public:
  struct Reading {
    std::optional<Milliwatts> packages, dram, psys;  // averages since the call before
    bool operator==(const Reading&) const = default;
  };
  // Empty readings at the first call, after a gap in which a counter may have wrapped unseen (over
  // a minute), where a counter jumped by more than 10 kW, and for a kind of zone of which one has
  // only just come. Errors: forbidden when the counters are not readable (energy_uj is 0400),
  // others of the files; a zone that went with its package is no error.
  Result<Reading> sample(const HostFs& fs, const std::vector<PowerZone>& zones, MonotonicPoint now);

 private:
  struct Counter {
    std::string id;
    std::int64_t energy_uj = 0;
  };
  std::vector<Counter> last_;
  MonotonicPoint last_time_{};
};

}  // namespace kwatt::hardware
