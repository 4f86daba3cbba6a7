"""What a machine draws and how fast it runs, from demand, frequency settings and caps. Pure functions.

    φ = f / f_max                              of each cpufreq policy
    busy = min(1, demand / φ)                  slower cores are busy longer with the same work
    P = P(0) + (P(busy) − P(0)) · s(φ)         P() is the measured curve, at full frequency
    s(φ) = 0.4·φ + 0.6·φ³

Dynamic power of CMOS goes with C·V²·f; voltage falls about linearly with frequency, hence the cubic part, while uncore
and memory scale with the rate of work only, hence the linear part. The 40:60 split is an assumption, not a measurement.
A cap lowers f in steps of 100 MHz until the draw fits, no lower than the hardware minimum: no clock modulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from .curves import Curve, watts_at

LINEAR_SHARE = 0.4
STEP_KHZ = 100_000

# Where the watts go (assumption): of the idle draw and of what load adds; the rest is fans, board and power supply.
PACKAGE_IDLE, PACKAGE_DYNAMIC = 0.40, 0.80
DRAM_IDLE, DRAM_DYNAMIC = 0.10, 0.08
PSYS_SHARE = 0.90  # of the wall: what psys sees behind the power supply


@dataclass(frozen=True)
class Policy:
    """One cpufreq policy as the solver sees it: what its governor asks for, and its weight in the machine."""

    target_khz: int
    package: int
    share: float  # fraction of the machine's CPUs


@dataclass(frozen=True)
class Solution:
    khz: tuple[int, ...]  # per policy
    busy: tuple[float, ...]  # per policy, 0..1
    wall_watts: float
    package_watts: tuple[float, ...]
    dram_watts: tuple[float, ...]
    throttled: bool

    @property
    def psys_watts(self) -> float:
        return self.wall_watts * PSYS_SHARE


def frequency_scale(phi: float) -> float:
    return LINEAR_SHARE * phi + (1 - LINEAR_SHARE) * phi**3


def busy_fraction(demand: float, phi: float) -> float:
    return min(1.0, demand / phi)


def governor_target(governor: str, epp: str, dynamic_powersave: bool, demand: float, low: int, high: int,
                    setspeed: int) -> int:
    """The frequency (kHz, in low..high) a governor asks for at this demand (fraction of full-speed capacity)."""
    demand = min(1.0, demand)
    if governor == "performance":
        wanted = float(high)
    elif governor == "powersave" and not dynamic_powersave:
        wanted = float(low)
    elif governor == "userspace":
        wanted = float(setspeed or low)
    elif governor in ("ondemand", "conservative"):
        wanted = float(high) if demand > 0.8 else low + demand * (high - low)
    else:  # schedutil, and powersave of the drivers that choose by load themselves
        headroom = {"performance": 2.0, "balance_performance": 1.5, "power": 1.0}.get(epp, 1.25)
        wanted = headroom * demand * high
    steps = -(-int(wanted) // STEP_KHZ)  # rounded up: a governor does not starve the load
    return max(low, min(high, steps * STEP_KHZ))


def wall_watts(curve: Curve, demand: float, phi: float) -> float:
    dynamic = watts_at(curve, busy_fraction(demand, phi)) - curve[0]
    return curve[0] + dynamic * frequency_scale(phi)


def _dynamic(curve: Curve, demand: float, policies: Sequence[Policy], khz: Sequence[int], max_khz: int,
             package: int | None) -> float:
    total = 0.0
    for policy, frequency in zip(policies, khz):
        if package is None or policy.package == package:
            total += policy.share * (wall_watts(curve, demand, frequency / max_khz) - curve[0])
    return total


def _throttle(khz: list[int], members: Sequence[int], min_khz: int, fits) -> bool:
    """Lowers the members of khz step by step until fits(); true if that changed anything."""
    start = [khz[i] for i in members]
    ceiling = max(start, default=min_khz)
    while not fits() and ceiling > min_khz:
        ceiling = max(min_khz, ceiling - STEP_KHZ)
        for i in members:
            khz[i] = min(khz[i], ceiling)
    return start != [khz[i] for i in members]


def solve(curve: Curve, demand: float, policies: Sequence[Policy], min_khz: int, max_khz: int,
          package_limits: Sequence[float | None], wall_limit: float | None) -> Solution:
    """Frequencies and watts. A limit of None is no limit; package_limits has one entry per package."""
    khz = [policy.target_khz for policy in policies]
    count = len(package_limits)
    idle = curve[0]

    def package_draw(package: int) -> float:
        dynamic = _dynamic(curve, demand, policies, khz, max_khz, package)
        return PACKAGE_IDLE * idle / count + PACKAGE_DYNAMIC * dynamic

    def wall_draw() -> float:
        return idle + _dynamic(curve, demand, policies, khz, max_khz, None)

    throttled = False
    for package, limit in enumerate(package_limits):
        if limit is not None:
            members = [i for i, policy in enumerate(policies) if policy.package == package]
            throttled |= _throttle(khz, members, min_khz, lambda p=package, w=limit: package_draw(p) <= w)
    if wall_limit is not None:
        throttled |= _throttle(khz, range(len(khz)), min_khz, lambda: wall_draw() <= wall_limit)

    dram = tuple(DRAM_IDLE * idle / count + DRAM_DYNAMIC * _dynamic(curve, demand, policies, khz, max_khz, package)
                 for package in range(count))
    return Solution(
        khz=tuple(khz),
        busy=tuple(busy_fraction(demand, frequency / max_khz) for frequency in khz),
        wall_watts=wall_draw(),
        package_watts=tuple(package_draw(package) for package in range(count)),
        dram_watts=dram,
        throttled=throttled,
    )
