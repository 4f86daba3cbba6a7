"""The /sys and /proc of a large machine as plain files: one frequency domain per CPU, two packages, nothing moves."""
from pathlib import Path

GOVERNORS = "performance powersave"
IDLE = 100_000_000  # ticks so far, of all CPUs; bench/agent.py counts on from here
PREFERENCES = "default performance balance_performance balance_power power"


def build(root: Path, cpus: int, packages: int = 2) -> None:
    def put(path: str, text: object, mode: int = 0o644) -> None:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        file.chmod(mode)

    put("sys/devices/system/cpu/online", f"0-{cpus - 1}")
    for cpu in range(cpus):
        for name, text in (("affected_cpus", cpu), ("related_cpus", cpu), ("cpuinfo_min_freq", 800_000),
                           ("cpuinfo_max_freq", 3_800_000), ("scaling_min_freq", 800_000),
                           ("scaling_max_freq", 3_800_000), ("scaling_cur_freq", 2_000_000 + cpu),
                           ("scaling_driver", "intel_pstate"), ("scaling_governor", "powersave"),
                           ("scaling_available_governors", GOVERNORS),
                           ("energy_performance_preference", "balance_performance"),
                           ("energy_performance_available_preferences", PREFERENCES)):
            put(f"sys/devices/system/cpu/cpufreq/policy{cpu}/{name}", text)
    for package in range(packages):
        zone = f"sys/class/powercap/intel-rapl:{package}"
        for name, text in (("name", f"package-{package}"), ("energy_uj", 1_000_000 * package),
                           ("max_energy_range_uj", 262_143_328_850), ("enabled", 1),
                           ("constraint_0_name", "long_term"), ("constraint_0_power_limit_uw", 250_000_000),
                           ("constraint_0_max_power_uw", 250_000_000), ("constraint_1_name", "short_term"),
                           ("constraint_1_power_limit_uw", 300_000_000)):
            put(f"{zone}/{name}", text)
        for name, text in (("name", "dram"), ("energy_uj", 5), ("max_energy_range_uj", 65_712_999_613)):
            put(f"{zone}:0/{name}", text)
        put(f"sys/class/thermal/thermal_zone{package}/type", "x86_pkg_temp")
        put(f"sys/class/thermal/thermal_zone{package}/temp", 45_000)
    put("sys/class/hwmon/hwmon0/name", "power_meter")
    put("sys/class/hwmon/hwmon0/power1_average", 400_000_000)
    ticks = f"100000 0 20000 {IDLE} 0 0 0 0 0 0"
    put("proc/stat", "\n".join([f"cpu  {ticks}", *(f"cpu{cpu} {ticks}" for cpu in range(cpus))]))
    put("proc/sys/kernel/random/boot_id", "6d0f2f0c-0f3e-4d59-9a55-0c2b6d5a8f11")
