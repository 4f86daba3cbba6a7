"""What a simulated machine is made of: the fields of one entry of room.json, checked."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import Any, Mapping

from . import curves

POWER_STATES = ("On", "Off", "PoweringOn", "PoweringOff")
NAME = re.compile(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")


@dataclass(frozen=True)
class Driver:
    """A cpufreq driver: which governors it offers, and whether its powersave chooses by load."""

    governors: tuple[str, ...]
    default_governor: str
    dynamic_powersave: bool
    has_epp: bool
    cpus_per_policy: int  # default; pstate drivers have one policy per CPU


_CLASSIC = ("conservative", "ondemand", "userspace", "powersave", "performance", "schedutil")
DRIVERS = {
    "acpi-cpufreq": Driver(_CLASSIC, "schedutil", False, False, 4),
    "intel_pstate": Driver(("performance", "powersave"), "powersave", True, True, 1),
    "intel_cpufreq": Driver(_CLASSIC, "schedutil", False, False, 1),  # intel_pstate in passive mode
    "amd-pstate-epp": Driver(("performance", "powersave"), "powersave", True, True, 1),
}
EPP_WORDS = ("default", "performance", "balance_performance", "balance_power", "power")


@dataclass(frozen=True)
class MachineSpec:
    name: str
    cpus: int = 16
    cpus_per_policy: int = 0  # 0: as is usual for the driver
    packages: int = 0  # 0: two, if there are policies for two
    curve: tuple[float, ...] = field(default=curves.CURVES[curves.DEFAULT_CURVE])
    min_mhz: int = 800
    max_mhz: int = 3200
    driver: str = "acpi-cpufreq"
    governor: str = ""  # "": the driver's default
    boot_seconds: float = 60.0  # divided by the room's time scale, as is the next
    shutdown_seconds: float = 10.0
    standby_watts: float = 5.0
    boot_watts: float = -1.0  # below 0: the curve at 50 % load
    shutdown_watts: float = -1.0  # below 0: the curve at 20 % load
    initial_state: str = "On"
    base_load_percent: float = 1.0
    memory_mib: int = 65536
    rapl: bool = True
    dram: bool = True
    psys: bool = False
    mmio: bool = False  # the duplicate of package-0 that intel-rapl-mmio shows
    rapl_enabled: bool = True
    hwmon: bool = True  # an ACPI power meter with power1_average
    max_energy_range_uj: int = 262_143_328_850

    def __post_init__(self) -> None:
        def require(condition: bool, sentence: str) -> None:
            if not condition:
                raise ValueError(f"machine {self.name!r}: {sentence}")

        require(bool(NAME.match(self.name)), "name is not a Kubernetes node name")
        object.__setattr__(self, "curve", curves.resolve(self.curve))
        require(self.driver in DRIVERS, f"driver {self.driver!r} is not one of {', '.join(DRIVERS)}")
        require(self.governor in ("", *self.driver_traits.governors),
                f"{self.driver} has no governor {self.governor!r}")
        require(1 <= self.cpus <= 1024, "cpus is 1 to 1024")
        require(0 <= self.cpus_per_policy <= self.cpus, "cpusPerPolicy is 0 to cpus")
        if self.packages == 0:
            object.__setattr__(self, "packages", min(2, len(self.policy_cpus)))
        require(1 <= self.packages <= len(self.policy_cpus), "packages is 1 to the number of cpufreq policies")
        require(100 <= self.min_mhz < self.max_mhz, "minMhz is at least 100 and below maxMhz")
        require(self.boot_seconds >= 0 and self.shutdown_seconds >= 0, "times are not negative")
        require(self.standby_watts >= 0, "standbyWatts is not negative")
        require(self.initial_state in ("On", "Off"), "initialState is On or Off")
        require(self.base_load_percent >= 0, "baseLoadPercent is not negative")
        require(self.max_energy_range_uj >= 1_000_000, "maxEnergyRangeUj is at least 1000000")

    @property
    def driver_traits(self) -> Driver:
        return DRIVERS[self.driver]

    @property
    def policy_cpus(self) -> tuple[range, ...]:
        """The CPUs of each policy; the last policy may be smaller."""
        size = self.cpus_per_policy or min(self.cpus, self.driver_traits.cpus_per_policy)
        return tuple(range(first, min(first + size, self.cpus)) for first in range(0, self.cpus, size))

    def package_of(self, policy: int) -> int:
        return policy * self.packages // len(self.policy_cpus)

    @property
    def watts_booting(self) -> float:
        return self.boot_watts if self.boot_watts >= 0 else self.curve[5]

    @property
    def watts_shutting_down(self) -> float:
        return self.shutdown_watts if self.shutdown_watts >= 0 else self.curve[2]


def snake(key: str) -> str:
    return re.sub(r"[A-Z]", lambda m: "_" + m.group().lower(), key)


def from_json(cls: type, data: Mapping[str, Any], what: str) -> Any:
    """A dataclass from an object with camelCase keys; an unknown key or a wrong type is a ValueError."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{what}: not an object")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    values = {}
    for key, value in data.items():
        name = snake(key)
        if name not in fields:
            raise ValueError(f"{what}: unknown field {key!r}")
        kind = str(fields[name].type)
        good = {
            "int": isinstance(value, int) and not isinstance(value, bool),
            "float": isinstance(value, (int, float)) and not isinstance(value, bool),
            "bool": isinstance(value, bool),
            "str": isinstance(value, str),
        }.get(kind, True)
        if not good:
            raise ValueError(f"{what}: {key} is not of type {kind}")
        values[name] = value
    optional = {f.name for f in fields.values()
                if f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING}
    missing = [name for name in fields if name not in optional and name not in values]
    if missing:
        raise ValueError(f"{what}: {missing[0]} is missing")
    return cls(**values)
