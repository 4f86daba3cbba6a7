"""The mounted rules themselves: each store is answered as the kernel would, and Debian's cpupower, which knows
nothing of kwatt, agrees."""
import os
import shutil
import subprocess
import time

import pytest

from kernel_sysfs import CPU, KernelSysfs, missing, policy, zone

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "-")
LIMIT = zone("intel-rapl:0", "constraint_0_power_limit_uw")
EPP = policy(0, "energy_performance_preference")
GOVERNOR, MAX, MIN = (policy(0, f"scaling_{what}") for what in ("governor", "max_freq", "min_freq"))


@pytest.fixture
def mount(tmp_path):
    mounted = []

    def make(**options):
        mounted.append(KernelSysfs(tmp_path / str(len(mounted)), **options))
        return mounted[-1]

    yield make
    for kernel in mounted:
        kernel.stop()


# driver, stores that come before, the store, its errno, what is read back
ROWS = [
    ("acpi-cpufreq", {}, (GOVERNOR, "powersave"), "", "powersave"),
    ("acpi-cpufreq", {}, (GOVERNOR, "turbo"), "EINVAL", "schedutil"),
    ("intel_pstate", {}, (GOVERNOR, "schedutil"), "EINVAL", "powersave"),
    ("intel_cpufreq", {}, (GOVERNOR, "ondemand"), "", "ondemand"),
    ("amd-pstate", {}, (GOVERNOR, "ondemand"), "", "ondemand"),
    ("amd-pstate-epp", {}, (GOVERNOR, "ondemand"), "EINVAL", "powersave"),
    ("acpi-cpufreq", {}, (MAX, "1500000"), "", "1400000"),
    ("intel_pstate", {}, (MAX, "1500000"), "", "1500000"),
    ("intel_pstate", {}, (MAX, "9000000"), "", "3800000"),
    ("intel_pstate", {}, (MAX, "1"), "", "800000"),
    ("intel_pstate", {}, (MAX, "fast"), "EINVAL", "3800000"),
    ("intel_pstate", {}, (MIN, "9000000"), "", "3800000"),
    ("intel_pstate", {MIN: "2000000"}, (MAX, "1000000"), "", "1000000"),
    ("intel_pstate", {f"{CPU}/intel_pstate/no_turbo": "1"}, (MAX, "3800000"), "", "3200000"),
    ("intel_pstate", {f"{CPU}/intel_pstate/max_perf_pct": "50"}, (MAX, "3800000"), "", "3800000"),
    ("intel_cpufreq", {f"{CPU}/intel_pstate/max_perf_pct": "50"}, (MAX, "3800000"), "", "1900000"),
    ("acpi-cpufreq", {}, (policy(0, "scaling_setspeed"), "1000000"), "EINVAL", "<unsupported>"),
    ("acpi-cpufreq", {GOVERNOR: "userspace"}, (policy(0, "scaling_setspeed"), "1000000"), "", "1000000"),
    ("acpi-cpufreq", {}, (f"{CPU}/cpufreq/boost", "2"), "EINVAL", "1"),
    ("acpi-cpufreq", {f"{CPU}/cpufreq/boost": "0"}, (MAX, "3800000"), "", "3200000"),
    ("intel_pstate", {}, (EPP, "balance_power"), "", "balance_power"),
    ("intel_pstate", {}, (EPP, "default"), "", "balance_performance"),
    ("intel_pstate", {}, (EPP, "100"), "", "100"),
    ("intel_pstate", {}, (EPP, "255"), "", "power"),
    ("intel_pstate", {}, (EPP, "256"), "EINVAL", "balance_performance"),
    ("intel_pstate", {}, (EPP, "lazy"), "EINVAL", "balance_performance"),
    ("amd-pstate-epp", {}, (EPP, "100"), "EINVAL", "balance_performance"),
    ("intel_pstate", {GOVERNOR: "performance"}, (EPP, "power"), "EBUSY", "performance"),
    ("amd-pstate-epp", {GOVERNOR: "performance"}, (EPP, "power"), "EBUSY", "performance"),
    ("intel_cpufreq", {GOVERNOR: "performance"}, (EPP, "power"), "", "power"),
    ("acpi-cpufreq", {}, (policy(0, "cpuinfo_max_freq"), "1"), "EACCES", "3800000"),
    ("acpi-cpufreq", {}, (LIMIT, "100100100"), "", "100000000"),
    ("acpi-cpufreq", {}, (LIMIT, "-5"), "EINVAL", "165000000"),
    ("acpi-cpufreq", {}, (zone("intel-rapl:0", "energy_uj"), "0"), "EACCES", None),
    ("acpi-cpufreq", {}, (zone("intel-rapl:0:0", "enabled"), "1"), "ENOSYS", "0"),
]


@pytest.mark.parametrize("driver, before, store, error, read_back", ROWS,
                         ids=[f"{row[0]}-{row[2][0].rsplit('/', 1)[1]}={row[2][1]}" for row in ROWS])
def test_a_store_is_answered_as_the_kernel_would(mount, driver, before, store, error, read_back):
    kernel = mount(driver=driver)
    for path, value in before.items():
        assert kernel.write(path, value) == ""
    assert kernel.write(*store) == error
    if read_back is not None:
        assert kernel.read(store[0]) == read_back
    if error != "EACCES":  # refused at open already
        real = os.path.relpath(os.path.realpath(kernel.sys / store[0]), kernel.sys)
        assert kernel.stores()[-1][1:3] == (real, store[1])


def test_a_raised_maximum_brings_the_minimum_back(mount):
    kernel = mount(driver="intel_pstate")
    kernel.write(MIN, "2000000")
    kernel.write(MAX, "1000000")
    assert kernel.read(MIN) == "1000000"
    kernel.write(MAX, "3800000")
    assert kernel.read(MIN) == "2000000"


def test_a_policy_without_an_online_cpu_answers_nothing(mount):
    kernel = mount(inactive_error=16)
    assert kernel.write(GOVERNOR.replace("policy0", "policy2"), "powersave") == ""
    assert kernel.write(f"{CPU}/cpu2/online", "0") == ""
    assert kernel.read(f"{CPU}/online") == "0-1,3"
    assert kernel.try_read(policy(2, "scaling_governor")) == "EBUSY"
    assert kernel.write(policy(2, "scaling_governor"), "performance") == "EBUSY"
    assert kernel.write(f"{CPU}/cpu2/online", "1") == ""
    assert kernel.read(policy(2, "scaling_governor")) == "powersave"
    assert mount(inactive_error=22).write(f"{CPU}/cpu1/online", "0") == ""


def test_a_removed_cpu_takes_its_policy_along_even_from_who_has_it_open(mount):
    kernel = mount()
    with open(kernel.sys / policy(3, "scaling_governor"), "rb", buffering=0) as file:
        assert file.read(100)
        kernel.command("unplug", 3)
        with pytest.raises(OSError, match="No such device"):
            os.pread(file.fileno(), 100, 0)
    assert kernel.try_read(policy(3, "scaling_governor")) == "ENOENT"
    kernel.command("plug", 3)
    assert kernel.read(policy(3, "scaling_governor")) == "schedutil"


def test_another_mode_of_the_driver_replaces_all_policies(mount):
    kernel = mount(driver="intel_pstate")
    assert kernel.write(f"{CPU}/intel_pstate/status", "passive") == ""
    assert kernel.read(policy(0, "scaling_driver")) == "intel_cpufreq"
    assert kernel.read(GOVERNOR) == "schedutil"
    assert kernel.write(f"{CPU}/intel_pstate/status", "off") == ""
    assert kernel.try_read(GOVERNOR) == "ENOENT"


def test_the_preference_after_the_performance_governor_depends_on_the_driver(mount):
    for driver, wanted in (("intel_pstate", "balance_power"), ("amd-pstate-epp", "performance")):
        kernel = mount(driver=driver)
        for path, value in ((EPP, "balance_power"), (GOVERNOR, "performance"), (GOVERNOR, "powersave")):
            assert kernel.write(path, value) == ""
        assert kernel.read(EPP) == wanted


def test_a_locked_limit_answers_enodata_and_its_switch_enosys(mount):
    kernel = mount()
    kernel.command("lock-rapl", 1)
    assert kernel.write(LIMIT, "100000000") == "ENODATA"
    assert kernel.write(zone("intel-rapl:0", "enabled"), "1") == "ENOSYS"
    assert kernel.read(zone("intel-rapl:0", "enabled")) == "0"
    assert kernel.read(LIMIT) == "165000000"


def test_counters_wrap_and_zones_go_with_their_package(mount):
    kernel = mount(packages=2, psys=1, mmio=1)
    names = sorted(os.listdir(kernel.sys / "class/powercap"))
    assert names == ["intel-rapl", "intel-rapl-mmio", "intel-rapl-mmio:0", "intel-rapl:0", "intel-rapl:0:0",
                     "intel-rapl:1", "intel-rapl:1:0", "intel-rapl:2"]
    assert [kernel.read(zone(f"intel-rapl:{i}", "name")) for i in range(3)] == ["package-0", "package-1", "psys"]
    wrap = int(kernel.read(zone("intel-rapl:0", "max_energy_range_uj")))
    kernel.command("energy", "intel-rapl:0", wrap - 60_000_000 * 30)  # half a minute at 60 W
    assert int(kernel.read(zone("intel-rapl:0", "energy_uj"))) > wrap - 60_000_000 * 30
    kernel.command("energy", "intel-rapl:0", wrap - 1)
    time.sleep(0.1)
    assert int(kernel.read(zone("intel-rapl:0", "energy_uj"))) < 60_000_000 * 30
    for cpu in (2, 3):
        kernel.write(f"{CPU}/cpu{cpu}/online", "0")
    assert "intel-rapl:1" not in os.listdir(kernel.sys / "class/powercap")


def test_uncore_limits_are_whole_hundreds_of_megahertz(mount):
    kernel = mount(uncore=1)
    file = f"{CPU}/intel_uncore_frequency/package_00_die_00/max_freq_khz"
    assert kernel.write(file, "1250000") == "" and kernel.read(file) == "1200000"
    assert kernel.write(file, "99999") == "EINVAL" and kernel.write(file, "12800000") == "EINVAL"


# ---- somebody else's program ----------------------------------------------------------------------------------------


def cpupower(kernel, *words):
    """Debian's cpupower in a mount namespace of its own, where the mounted tree is /sys/devices/system/cpu."""
    tool = shutil.which("cpupower")
    if not tool:
        pytest.skip("cpupower (Debian linux-cpupower) is not installed")
    if os.getuid() != 0:
        pytest.skip("needs root: cpupower sees the tree through a bind mount")
    script = 'mount --bind "$0" /sys/devices/system/cpu && exec "$@"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, kernel.sys / CPU, tool, *words],
                          capture_output=True, text=True, timeout=30, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("driver", ["acpi-cpufreq", "intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp"])
def test_cpupower_reads_the_tree_and_sets_it(mount, driver):
    kernel = mount(driver=driver)
    code, text = cpupower(kernel, "-c", "0", "frequency-info")
    assert code == 0 and f"driver: {driver}" in text, text
    assert "hardware limits: 800 MHz - 3.80 GHz" in text, text
    active = driver in ("intel_pstate", "amd-pstate-epp")
    governors = "performance powersave" if active else "conservative ondemand userspace powersave performance schedutil"
    assert f"available cpufreq governors: {governors}" in text, text
    code, text = cpupower(kernel, "frequency-set", "-g", "performance", "-u", "1600MHz")
    assert code == 0, text
    assert [kernel.read(policy(i, "scaling_governor")) for i in range(4)] == ["performance"] * 4
    assert kernel.read(MAX) == "1600000"
    code, text = cpupower(kernel, "-c", "1", "frequency-info", "-p")
    assert "within 800 MHz and 1.60 GHz" in text and '"performance"' in text, text


def test_cpupower_meets_the_same_refusals(mount):
    kernel = mount(driver="intel_pstate")
    code, text = cpupower(kernel, "frequency-set", "-g", "ondemand")
    assert code != 0 and kernel.read(GOVERNOR) == "powersave", text
    kernel.write(f"{CPU}/cpu2/online", "0")
    code, text = cpupower(kernel, "-c", "2", "frequency-info", "-p")
    assert "offline" in text or "not get" in text or "Unable" in text, text
