#include <doctest/doctest.h>

#include "hardware/hwmon.hpp"
#include "hardware/procstat.hpp"
#include "test/hardware/fake_host_fs.hpp"
#include "test/hardware/print_result.hpp"

namespace kwatt::hardware {
namespace {

TEST_CASE("only the meter of the whole machine counts") {
  FakeHostFs fs;
  CHECK_FALSE(find_power_meter(fs)->has_value());
  fs.put("class/hwmon/hwmon0/name", "amdgpu\n");
  fs.put("class/hwmon/hwmon0/power1_average", "9000000\n");
  fs.put("class/hwmon/hwmon1/temp1_input", "40000\n");
  CHECK_FALSE(find_power_meter(fs)->has_value());
  fs.put("class/hwmon/hwmon2/name", "power_meter\n");
  fs.put("class/hwmon/hwmon2/power1_input", "250000000\n");
  CHECK(*find_power_meter(fs) == "class/hwmon/hwmon2/power1_input");
  fs.put("class/hwmon/hwmon2/power1_average", "251500000\n");
  CHECK(*find_power_meter(fs) == "class/hwmon/hwmon2/power1_average");
  CHECK(*read_power_meter(fs, "class/hwmon/hwmon2/power1_average") == Milliwatts{251'500});
}

TEST_CASE("a meter that says what no machine draws is not believed") {
  FakeHostFs fs;
  for (const char* text : {"0\n", "4294967295000000\n"}) {
    CAPTURE(text);
    fs.put("meter", text);
    CHECK(read_power_meter(fs, "meter").error().code == ErrorCode::out_of_range);
  }
  fs.put("meter", "nan\n");
  CHECK(read_power_meter(fs, "meter").error().code == ErrorCode::parse);
}

TEST_CASE("busy time leaves out idle and waiting, and does not count guests twice") {
  FakeHostFs proc;
  proc.put("stat", "cpu  100 20 30 800 50 1 2 3 90 10\ncpu0 1 2 3 4\n");
  const auto times = read_cpu_times(proc);
  REQUIRE(times);
  CHECK(times->busy == 100 + 20 + 30 + 1 + 2 + 3);
  CHECK(times->total == times->busy + 800 + 50);
}

TEST_CASE("a /proc/stat that is something else is refused") {
  FakeHostFs proc;
  for (const char* text : {"", "cpu 1 2\n", "cpu0 1 2 3 4 5\n", "cpu 1 2 x 4 5\n"}) {
    CAPTURE(text);
    proc.put("stat", text);
    CHECK(read_cpu_times(proc).error().code == ErrorCode::parse);
  }
}

TEST_CASE("the busy fraction between two readings") {
  CHECK(busy_between({100, 1000}, {150, 1100}) == Permille{500});
  CHECK(busy_between({100, 1000}, {100, 1100}) == Permille{0});
  CHECK(busy_between({100, 1000}, {210, 1100}) == Permille{1000});  // iowait fell
  CHECK_FALSE(busy_between({100, 1000}, {100, 1000}));
  CHECK_FALSE(busy_between({100, 1000}, {50, 900}));  // another boot
}

TEST_CASE("utilization does not change because the frequency did") {
  CHECK(frequency_invariant(Permille{200}, Megahertz{3200}, Megahertz{3200}) == Permille{200});
  CHECK(frequency_invariant(Permille{800}, Megahertz{800}, Megahertz{3200}) == Permille{200});
  CHECK(frequency_invariant(Permille{800}, Megahertz{0}, Megahertz{3200}) == Permille{800});
  CHECK(frequency_invariant(Permille{1000}, Megahertz{3300}, Megahertz{3200}) == Permille{1000});
}

TEST_CASE("a boot is known by its id") {
  FakeHostFs proc;
  CHECK(read_boot_id(proc).error().code == ErrorCode::not_found);
  proc.put("sys/kernel/random/boot_id", "6d0f0a64-2c1f-4b39-8a64-3d5a5d1c1d0e\n");
  CHECK(*read_boot_id(proc) == "6d0f0a64-2c1f-4b39-8a64-3d5a5d1c1d0e");
  proc.put("sys/kernel/random/boot_id", "\n");
  CHECK(read_boot_id(proc).error().code == ErrorCode::parse);
}

}  // namespace
}  // namespace kwatt::hardware
