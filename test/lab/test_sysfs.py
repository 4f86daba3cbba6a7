"""The trees as an agent sees them: written with plain file operations, the machine in virtual time."""

import os
import threading

import pytest

from lab.faults import Faults
from lab.files import AttributeFile
from lab.machine import Machine
from lab.procfs import ProcfsTree
from lab.spec import MachineSpec
from lab.sysfs import SysfsTree

POLICY = "devices/system/cpu/cpufreq/policy0"
RAPL = "class/powercap/intel-rapl:0"


class Host:
    def __init__(self, root, **fields):
        self.now = 0.0
        self.machine = Machine(MachineSpec("node1", **{"base_load_percent": 0, **fields}), 0.0)
        self.writes = []
        self.sys = SysfsTree(root / "sys", self.machine, lambda *write: self.writes.append(write))
        self.proc = ProcfsTree(root / "proc", self.machine)

    def read(self, path):
        return (self.sys.root / path).read_text()

    def number(self, path):
        return int(self.read(path))

    def write(self, path, text):
        (self.sys.root / path).write_text(f"{text}\n")
        self.tick(0)

    def tick(self, seconds):
        self.now += seconds
        self.machine.advance(self.now)
        self.sys.take_writes()
        self.sys.publish()
        self.proc.publish()


@pytest.fixture
def host(tmp_path):
    opened = []

    def make(**fields):
        opened.append(Host(tmp_path / str(len(opened)), **fields))
        return opened[-1]

    yield make
    for each in opened:
        each.sys.close()
        each.proc.close()


def test_attributes_have_the_kernels_formats(host):
    h = host(psys=True, mmio=True)
    assert h.read(f"{POLICY}/scaling_governor") == "schedutil\n"
    assert h.read(f"{POLICY}/scaling_driver") == "acpi-cpufreq\n"
    assert h.read(f"{POLICY}/cpuinfo_max_freq") == "3200000\n"
    assert h.read(f"{POLICY}/related_cpus") == "0 1 2 3\n"
    assert h.read(f"{POLICY}/scaling_available_governors").endswith("schedutil \n")
    assert h.read(f"{POLICY}/scaling_setspeed") == "<unsupported>\n"
    assert h.read("devices/system/cpu/online") == "0-15\n"
    assert h.read("devices/system/cpu/cpu5/cpufreq/scaling_min_freq") == "800000\n"
    assert h.read("devices/system/cpu/cpu15/topology/physical_package_id") == "1\n"
    zones = {zone: h.read(f"class/powercap/{zone}/name") for zone in os.listdir(h.sys.root / "class/powercap")
             if ":" in zone}
    assert zones == {"intel-rapl:0": "package-0\n", "intel-rapl:1": "package-1\n", "intel-rapl:2": "psys\n",
                     "intel-rapl:0:0": "dram\n", "intel-rapl:1:0": "dram\n", "intel-rapl-mmio:0": "package-0\n"}
    assert h.read(f"{RAPL}/constraint_0_name") == "long_term\n"
    assert h.read(f"{RAPL}/intel-rapl:0:0/name") == "dram\n"
    assert h.read("class/hwmon/hwmon1/power1_average") == "122000000\n"
    assert h.read("class/thermal/thermal_zone0/temp") == "35000\n"
    assert os.stat(h.sys.root / RAPL / "energy_uj").st_mode & 0o777 == 0o400
    assert os.stat(h.sys.root / POLICY / "scaling_cur_freq").st_mode & 0o777 == 0o444


def test_a_governor_changes_frequency_and_watts(host):
    h = host(base_load_percent=20)
    draw = {}
    for governor in ("performance", "powersave"):
        for cpu in (0, 4, 8, 12):
            h.write(f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", governor)
        draw[governor] = h.number(f"{POLICY}/scaling_cur_freq"), h.number("class/hwmon/hwmon1/power1_average")
    assert draw["performance"] == (3_200_000, 182_000_000)
    assert draw["powersave"] == (800_000, pytest.approx(141_359_375))


def test_a_frequency_limit_holds(host):
    h = host(base_load_percent=100, governor="performance")
    h.write(f"{POLICY}/scaling_max_freq", 1_500_000)
    assert h.number(f"{POLICY}/scaling_cur_freq") == 1_500_000


def test_limits_out_of_range_are_clamped_and_the_minimum_gives_way_to_the_maximum(host):
    h = host()
    h.write(f"{POLICY}/scaling_max_freq", 99_000_000)
    assert h.read(f"{POLICY}/scaling_max_freq") == "3200000\n"
    h.write(f"{POLICY}/scaling_min_freq", 2_000_000)
    h.write(f"{POLICY}/scaling_max_freq", 1_000_000)
    assert h.read(f"{POLICY}/scaling_min_freq") == "1000000\n"
    h.write(f"{POLICY}/scaling_max_freq", 3_200_000)
    assert h.read(f"{POLICY}/scaling_min_freq") == "2000000\n", "the request was kept"


REFUSED = [
    # driver, attribute, what is written, what stands there afterwards
    ("acpi-cpufreq", f"{POLICY}/scaling_governor", "turbo", "schedutil\n"),
    ("intel_pstate", f"{POLICY}/scaling_governor", "ondemand", "powersave\n"),
    ("acpi-cpufreq", f"{POLICY}/scaling_max_freq", "fast", "3200000\n"),
    ("acpi-cpufreq", f"{POLICY}/scaling_max_freq", "-1", "3200000\n"),
    ("acpi-cpufreq", f"{POLICY}/scaling_setspeed", "1000000", "<unsupported>\n"),
    ("intel_pstate", f"{POLICY}/energy_performance_preference", "eco", "balance_performance\n"),
    ("acpi-cpufreq", f"{RAPL}/enabled", "yes", "1\n"),
    ("acpi-cpufreq", f"{RAPL}/constraint_0_power_limit_uw", "lots", "139000000\n"),
]


@pytest.mark.parametrize("driver, path, text, stays", REFUSED)
def test_what_a_kernel_refuses_does_not_stay(host, driver, path, text, stays):
    h = host(driver=driver)
    h.write(path, text)
    assert h.read(path) == stays
    assert [(value, accepted) for _, value, accepted in h.writes] == [(text, False)]


def test_energy_performance_preference_acts_and_is_pinned_by_the_performance_governor(host):
    h = host(driver="intel_pstate", base_load_percent=50)
    path = f"{POLICY}/energy_performance_preference"
    assert h.number(f"{POLICY}/scaling_cur_freq") == 2_400_000
    h.write(path, "power")
    assert h.number(f"{POLICY}/scaling_cur_freq") == 1_600_000
    h.write(f"{POLICY}/scaling_governor", "performance")
    assert h.read(path) == "performance\n"
    h.write(path, "power")
    assert h.read(path) == "performance\n"
    h.write(f"{POLICY}/scaling_governor", "powersave")
    assert h.read(path) == "power\n"


def test_userspace_sets_the_speed(host):
    h = host()
    h.write(f"{POLICY}/scaling_governor", "userspace")
    h.write(f"{POLICY}/scaling_setspeed", 1_800_000)
    assert h.read(f"{POLICY}/scaling_setspeed") == "1800000\n"
    assert h.number(f"{POLICY}/scaling_cur_freq") == 1_800_000


def test_a_rapl_limit_caps_its_package_and_is_rounded_to_the_hardware_unit(host):
    h = host(base_load_percent=90, governor="performance")
    before = h.number("class/hwmon/hwmon1/power1_average")
    for package in (0, 1):
        h.write(f"class/powercap/intel-rapl:{package}/constraint_0_power_limit_uw", 70_100_000)
    assert h.read(f"{RAPL}/constraint_0_power_limit_uw") == "70000000\n"
    assert max(h.machine.solution.package_watts) <= 70
    assert h.number("class/hwmon/hwmon1/power1_average") < before
    assert h.number(f"{POLICY}/scaling_cur_freq") < 3_200_000
    for package in (0, 1):
        h.write(f"class/powercap/intel-rapl:{package}/enabled", 0)
    assert h.number("class/hwmon/hwmon1/power1_average") == before, "a disabled zone does not limit"


def test_locked_hardware_keeps_its_settings(host):
    h = host()
    h.machine.set_faults(Faults(cap_locked=True, governor_locked=True), 0)
    h.write(f"{RAPL}/constraint_0_power_limit_uw", 50_000_000)
    h.write(f"{POLICY}/scaling_governor", "powersave")
    assert h.read(f"{RAPL}/constraint_0_power_limit_uw") == "139000000\n"
    assert h.read(f"{POLICY}/scaling_governor") == "schedutil\n"


def test_a_boot_puts_everything_back_even_a_write_nobody_has_seen(host):
    h = host()
    h.write(f"{POLICY}/scaling_governor", "powersave")
    (h.sys.root / POLICY / "scaling_max_freq").write_text("1000000000000")
    h.machine.reset("ForceOff", 0)
    h.machine.reset("On", 0)
    h.machine.advance(60)
    h.sys.reset()
    h.proc.reset()
    assert h.read(f"{POLICY}/scaling_governor") == "schedutil\n"
    assert h.read(f"{POLICY}/scaling_max_freq") == "3200000\n"
    boot_id = (h.proc.root / "sys/kernel/random/boot_id").read_text()
    assert boot_id == h.machine.boot_id + "\n"


def test_energy_counters_advance_by_the_watts_and_wrap(host):
    h = host(max_energy_range_uj=100_000_000)
    package_watts = h.machine.solution.package_watts[0]
    path, seen, wraps, total = f"{RAPL}/energy_uj", [h.number(f"{RAPL}/energy_uj")], 0, 0
    for _ in range(20):
        h.tick(1)
        seen.append(h.number(path))
        delta = seen[-1] - seen[-2]
        if delta < 0:
            wraps += 1
            delta += h.number(f"{RAPL}/max_energy_range_uj")
        total += delta
    assert total == pytest.approx(20 * package_watts * 1e6, rel=1e-5)
    assert wraps >= 4 and max(seen) < 100_000_000


def stat(h):
    rows = {}
    for line in (h.proc.root / "stat").read_text().splitlines():
        name, *values = line.split()
        rows[name] = [int(v) for v in values]
    return rows


def test_proc_stat_shows_how_busy_the_cores_are(host):
    h = host(base_load_percent=20, governor="powersave")
    before = stat(h)
    h.tick(10)
    after = stat(h)
    for name in ("cpu", "cpu0", "cpu15"):
        delta = [b - a for a, b in zip(before[name], after[name])]
        assert (sum(delta) - delta[3]) / sum(delta) == pytest.approx(0.8, abs=0.01)  # 20 % of 3.2 GHz at 0.8 GHz
    assert len([name for name in after if name.startswith("cpu")]) == 17
    assert "btime" in after


def test_a_reader_never_sees_an_empty_or_broken_number(host):
    h = host()
    path = h.sys.root / RAPL / "energy_uj"
    bad, done = [], threading.Event()

    def read_all_the_time():
        while not done.is_set():
            text = path.read_text()
            if not (text.strip().isdigit() and int(text) >= 1_000_000_000):
                bad.append(text)

    reader = threading.Thread(target=read_all_the_time)
    reader.start()
    for _ in range(1500):
        h.tick(0.1)
    done.set()
    reader.join()
    assert bad == []


def test_writes_in_quick_succession_are_all_seen_in_the_end(host):
    h = host()
    for khz in range(1_000_000, 3_000_000, 10_000):
        h.write(f"{POLICY}/scaling_max_freq", khz)
        assert h.machine.settings.policies[0].max_khz == khz


@pytest.mark.parametrize("raw", ["powersave", "powersave\n", "powersave\nutil\n"])
def test_a_write_is_taken_up_to_its_newline_with_or_without_truncation(host, raw):
    h = host()
    with open(h.sys.root / POLICY / "scaling_governor", "w") as file:
        file.write(raw)
    h.tick(0)
    assert h.machine.settings.policies[0].governor == "powersave"


def test_what_is_written_while_the_lab_answers_is_not_lost(tmp_path):
    attribute = AttributeFile(tmp_path / "limit", "10\n", 0o644)
    other = os.open(tmp_path / "limit", os.O_WRONLY)
    os.pwrite(other, b"23\n", 0)
    assert attribute.taken() == "23"
    os.pwrite(other, b"42\n", 0)  # before the lab shows what it made of the 23
    attribute.settle("20\n")
    assert attribute.taken() == "42"
    attribute.settle("40\n")
    assert (tmp_path / "limit").read_text() == "40\n" and attribute.taken() is None
    os.close(other)
    attribute.close()
