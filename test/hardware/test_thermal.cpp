#include <doctest/doctest.h>

#include "hardware/thermal.hpp"
#include "test/hardware/fake_host_fs.hpp"

TEST_SUITE_BEGIN("agent-sysfs");

namespace kwatt::hardware {
namespace {

using Paths = std::vector<std::string>;

TEST_CASE("the CPU packages' own zones come first, other chips only without them") {
  FakeHostFs fs;
  CHECK(find_cpu_temperatures(fs).empty());
  fs.put("class/thermal/thermal_zone0/type", "acpitz\n");
  fs.put("class/thermal/thermal_zone1/type", "cpu-thermal\n");
  fs.put("class/hwmon/hwmon0/name", "nvme\n");
  CHECK(find_cpu_temperatures(fs) == Paths{"class/thermal/thermal_zone1/temp"});
  fs.put("class/hwmon/hwmon1/name", "k10temp\n");
  fs.put("class/hwmon/hwmon2/name", "k10temp\n");
  CHECK(find_cpu_temperatures(fs) ==
        Paths{"class/hwmon/hwmon1/temp1_input", "class/hwmon/hwmon2/temp1_input"});
  fs.put("class/thermal/thermal_zone2/type", "x86_pkg_temp\n");
  CHECK(find_cpu_temperatures(fs) == Paths{"class/thermal/thermal_zone2/temp"});
}

TEST_CASE("the hottest counts, and what is no temperature does not") {
  FakeHostFs fs;
  const Paths paths{"a", "b", "c"};
  CHECK_FALSE(hottest(fs, paths));
  fs.put("a", "51000\n");
  fs.put("b", "64500\n");
  CHECK(hottest(fs, paths) == 64'500);
  fs.put("c", "255000\n");
  CHECK(hottest(fs, paths) == 64'500);
  fs.put("b", "-5000\n");
  CHECK(hottest(fs, paths) == 51'000);
  fs.fail_read("a", EAGAIN);
  CHECK_FALSE(hottest(fs, paths));
}

}  // namespace
}  // namespace kwatt::hardware

TEST_SUITE_END();
