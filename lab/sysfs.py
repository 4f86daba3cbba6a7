"""The /sys tree of one machine: an agent writes to it, the lab answers as the kernel would.

A plain directory cannot refuse a write, so what a kernel refuses (an unknown governor, a locked limit) is put back at
the next tick. Numbers out of range are clamped and rounded, as the kernel does: a writer has to read back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from .files import AttributeFile, link, plain_file
from .machine import Machine, PackageSettings, PolicySettings
from .spec import EPP_WORDS

RAPL_UNIT_UW = 125_000  # the hardware's unit of a power limit: 1/8 W
DRAM_RANGE_UJ = 65_712_999_613
Setter = Callable[[str], bool]  # takes what was written; False: the kernel would refuse it
WriteListener = Callable[[str, str, bool], None]  # attribute (path below the root), what was written, accepted


def _unsigned(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _cpu_list(cpus: range) -> str:
    return " ".join(str(cpu) for cpu in cpus)


class SysfsTree:
    """Builds <root> (which must not exist) and keeps it in step with the machine."""

    def __init__(self, root: Path, machine: Machine, on_write: WriteListener = lambda path, text, ok: None) -> None:
        self.root = root
        self._machine = machine
        self._on_write = on_write
        self._spec = machine.spec
        self._inputs: list[tuple[AttributeFile, Setter, Callable[[], str]]] = []
        self._outputs: list[tuple[AttributeFile, Callable[[], str]]] = []
        self._build_cpu()
        self._build_cpufreq()
        if self._spec.rapl:
            self._build_powercap()
        self._build_sensors()

    def close(self) -> None:
        for entry in (*self._inputs, *self._outputs):
            entry[0].close()
        self._inputs, self._outputs = [], []

    def reset(self) -> None:
        """After a boot: every attribute as the machine has it now, whatever was written before."""
        for attribute, _, show in self._inputs:
            attribute.reset(show())
        for attribute, show in self._outputs:
            attribute.reset(show())

    def take_writes(self) -> bool:
        """Takes what an agent wrote over into the machine, which must have been advanced; true if there was anything."""
        changed = False
        for attribute, store, _ in self._inputs:
            written = attribute.taken()
            if written is not None:
                accepted = store(written)
                self._on_write(str(attribute.path.relative_to(self.root)), written, accepted)
                changed = True
        if changed:
            self._machine.changed()
            # One write can change what another attribute shows (a maximum pushes the minimum down).
            for attribute, _, show in self._inputs:
                attribute.settle(show())
        return changed

    def publish(self) -> None:
        """Writes what the hardware shows: frequencies, energy, watts, temperature."""
        for attribute, show in self._outputs:
            attribute.put(show())

    # --- building blocks ----------------------------------------------------------------------------------------

    def _input(self, path: Path, show: Callable[[], str], store: Setter) -> None:
        self._inputs.append((AttributeFile(path, show(), 0o644), store, show))

    def _output(self, path: Path, show: Callable[[], str], mode: int = 0o444) -> None:
        self._outputs.append((AttributeFile(path, show(), mode), show))

    def _build_cpu(self) -> None:
        spec, base = self._spec, self.root / "devices/system/cpu"
        everything = f"0-{spec.cpus - 1}\n" if spec.cpus > 1 else "0\n"
        for name in ("online", "possible", "present"):
            plain_file(base / name, everything)
        for policy, cpus in enumerate(spec.policy_cpus):
            for cpu in cpus:
                plain_file(base / f"cpu{cpu}/topology/physical_package_id", f"{spec.package_of(policy)}\n")
                plain_file(base / f"cpu{cpu}/topology/core_id", f"{cpu}\n")
                link(base / f"cpu{cpu}/cpufreq", f"../cpufreq/policy{cpus[0]}")
        if spec.driver == "acpi-cpufreq":
            plain_file(base / "cpufreq/boost", "1\n", 0o644)
        if spec.driver in ("intel_pstate", "intel_cpufreq"):
            for name, value in (("status", "active" if spec.driver == "intel_pstate" else "passive"),
                                ("no_turbo", "0"), ("max_perf_pct", "100"),
                                ("min_perf_pct", str(spec.min_mhz * 100 // spec.max_mhz))):
                plain_file(base / "intel_pstate" / name, value + "\n", 0o644)
        if spec.driver == "amd-pstate-epp":
            plain_file(base / "amd_pstate/status", "active\n", 0o644)

    def _build_cpufreq(self) -> None:
        spec, driver = self._spec, self._spec.driver_traits
        low, high = spec.min_mhz * 1000, spec.max_mhz * 1000
        for index, cpus in enumerate(spec.policy_cpus):
            base = self.root / f"devices/system/cpu/cpufreq/policy{cpus[0]}"
            for name, value in (
                ("affected_cpus", _cpu_list(cpus)), ("related_cpus", _cpu_list(cpus)),
                ("cpuinfo_min_freq", low), ("cpuinfo_max_freq", high),
                ("cpuinfo_transition_latency", 10000 if spec.driver == "acpi-cpufreq" else 0),
                ("scaling_driver", spec.driver),
                # The kernel ends this list with a space before the newline.
                ("scaling_available_governors", " ".join(driver.governors) + " "),
            ):
                plain_file(base / name, f"{value}\n")
            if spec.driver == "acpi-cpufreq":
                steps = [str(khz) for khz in range(high, low - 1, -100_000)]
                plain_file(base / "scaling_available_frequencies", " ".join(steps) + " \n")
            if driver.has_epp:
                plain_file(base / "energy_performance_available_preferences", " ".join(EPP_WORDS) + " \n")
            self._policy_attributes(base, index)

    def _policy_attributes(self, base: Path, index: int) -> None:
        machine, driver = self._machine, self._spec.driver_traits

        def policy() -> PolicySettings:
            return machine.settings.policies[index]

        def set_governor(text: str) -> bool:
            if machine.faults.governor_locked or text not in driver.governors:
                return False
            policy().governor = text
            return True

        def set_limit(field: str) -> Setter:
            def store(text: str) -> bool:
                khz = _unsigned(text)
                if khz is None or machine.faults.governor_locked:
                    return False
                setattr(policy(), field, khz)
                return True
            return store

        def show_epp() -> str:
            return ("performance" if policy().governor == "performance" else policy().epp) + "\n"

        def set_epp(text: str) -> bool:
            word = "balance_performance" if text == "default" else text
            if machine.faults.governor_locked or word not in EPP_WORDS or policy().governor == "performance":
                return False
            policy().epp = word
            return True

        def set_speed(text: str) -> bool:
            khz = _unsigned(text)
            if khz is None or policy().governor != "userspace":
                return False
            policy().setspeed_khz = khz
            return True

        def show_speed() -> str:
            if policy().governor != "userspace":
                return "<unsupported>\n"
            return f"{machine.solution.khz[index]}\n"

        self._input(base / "scaling_governor", lambda: policy().governor + "\n", set_governor)
        self._input(base / "scaling_min_freq", lambda: f"{machine.limits_khz(policy())[0]}\n", set_limit("min_khz"))
        self._input(base / "scaling_max_freq", lambda: f"{machine.limits_khz(policy())[1]}\n", set_limit("max_khz"))
        self._input(base / "scaling_setspeed", show_speed, set_speed)
        if driver.has_epp:
            self._input(base / "energy_performance_preference", show_epp, set_epp)
        self._output(base / "scaling_cur_freq", lambda: f"{machine.solution.khz[index]}\n")

    def _build_powercap(self) -> None:
        spec, machine = self._spec, self._machine
        plain_file(self._control_type("intel-rapl") / "enabled", "1\n", 0o644)
        for package in range(spec.packages):
            zone = f"intel-rapl:{package}"
            self._package_zone("intel-rapl", zone, package)
            if spec.dram:
                wrap = min(DRAM_RANGE_UJ, spec.max_energy_range_uj)
                self._energy_zone("intel-rapl", f"{zone}/{zone}:0", "dram", wrap,
                                  lambda p=package: machine.counters.dram_uj[p])
        if spec.psys:
            self._energy_zone("intel-rapl", f"intel-rapl:{spec.packages}", "psys", spec.max_energy_range_uj,
                              lambda: machine.counters.psys_uj)
        if spec.mmio:
            plain_file(self._control_type("intel-rapl-mmio") / "enabled", "1\n", 0o644)
            self._package_zone("intel-rapl-mmio", "intel-rapl-mmio:0", 0)

    def _control_type(self, name: str) -> Path:
        base = self.root / "devices/virtual/powercap" / name
        link(self.root / "class/powercap" / name, f"../../devices/virtual/powercap/{name}")
        return base

    def _energy_zone(self, control_type: str, path: str, name: str, wrap: int, counter: Callable[[], float]) -> Path:
        base = self.root / "devices/virtual/powercap" / control_type / path
        zone = path.rsplit("/", 1)[-1]
        link(self.root / "class/powercap" / zone, f"../../devices/virtual/powercap/{control_type}/{path}")
        plain_file(base / "name", name + "\n")
        plain_file(base / "max_energy_range_uj", f"{wrap}\n")
        self._output(base / "energy_uj", lambda: f"{int(counter()) % wrap}\n", 0o400)
        return base

    def _package_zone(self, control_type: str, zone: str, package: int) -> None:
        machine = self._machine
        base = self._energy_zone(control_type, zone, f"package-{package}", self._spec.max_energy_range_uj,
                                 lambda: machine.counters.package_uj[package])

        def settings() -> PackageSettings:
            return machine.settings.packages[package]

        def set_limit(field: str) -> Setter:
            def store(text: str) -> bool:
                limit = _unsigned(text)
                if limit is None or machine.faults.cap_locked:
                    return False
                setattr(settings(), field, limit // RAPL_UNIT_UW * RAPL_UNIT_UW)
                return True
            return store

        def set_enabled(text: str) -> bool:
            if text not in ("0", "1") or machine.faults.cap_locked:
                return False
            settings().enabled = text == "1"
            return True

        peak = machine.package_peak_uw
        for number, name, field, window, ceiling in ((0, "long_term", "long_term_uw", 999_424, peak),
                                                     (1, "short_term", "short_term_uw", 2_440, 0)):
            plain_file(base / f"constraint_{number}_name", name + "\n")
            plain_file(base / f"constraint_{number}_time_window_us", f"{window}\n", 0o644)
            plain_file(base / f"constraint_{number}_max_power_uw", f"{ceiling}\n")
            self._input(base / f"constraint_{number}_power_limit_uw",
                        lambda f=field: f"{getattr(settings(), f)}\n", set_limit(field))
        self._input(base / "enabled", lambda: f"{int(settings().enabled)}\n", set_enabled)

    def _build_sensors(self) -> None:
        machine, curve = self._machine, self._spec.curve

        def temperature() -> str:
            above = (machine.solution.wall_watts - curve[0]) / max(1.0, curve[10] - curve[0])
            return f"{int(35 + 45 * above) * 1000}\n"

        core = self.root / "devices/platform/coretemp.0/hwmon/hwmon0"
        plain_file(core / "name", "coretemp\n")
        plain_file(core / "temp1_label", "Package id 0\n")
        self._output(core / "temp1_input", temperature)
        link(self.root / "class/hwmon/hwmon0", "../../devices/platform/coretemp.0/hwmon/hwmon0")
        zone = self.root / "devices/virtual/thermal/thermal_zone0"
        plain_file(zone / "type", "x86_pkg_temp\n")
        self._output(zone / "temp", temperature)
        link(self.root / "class/thermal/thermal_zone0", "../../devices/virtual/thermal/thermal_zone0")
        if self._spec.hwmon:
            meter = self.root / "devices/LNXSYSTM:00/ACPI000D:00/hwmon/hwmon1"
            plain_file(meter / "name", "power_meter\n")
            plain_file(meter / "power1_average_interval", "1000\n")
            self._output(meter / "power1_average", lambda: f"{int(machine.solution.wall_watts * 1e6)}\n")
            link(self.root / "class/hwmon/hwmon1", "../../devices/LNXSYSTM:00/ACPI000D:00/hwmon/hwmon1")
