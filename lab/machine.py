"""One machine: its power state, what it draws, and the energy it has used. Time is passed in, so tests need not wait."""

from __future__ import annotations

import uuid
import zlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Callable

from . import physics
from .faults import Faults
from .spec import POWER_STATES, MachineSpec

RESETS = ("On", "GracefulShutdown", "ForceOff")


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class PolicySettings:
    """What was asked of one cpufreq policy. The limits are requests: the smaller maximum wins over the minimum."""

    governor: str
    min_khz: int
    max_khz: int
    epp: str
    setspeed_khz: int = 0


@dataclass
class PackageSettings:
    long_term_uw: int
    short_term_uw: int
    enabled: bool


@dataclass
class Settings:
    policies: list[PolicySettings]
    packages: list[PackageSettings]


@dataclass(frozen=True)
class Outcome:
    """How a reset command was taken: accepted (something began), nothing to do, or a conflict with a transition."""

    status: int  # 202, 200 or 409
    message: str = ""


@dataclass
class Counters:
    """What the kernel counts from boot on: energy by zone and busy time by policy."""

    package_uj: list[float]
    dram_uj: list[float]
    psys_uj: float
    busy_seconds: list[float]
    up_seconds: float = 0.0


StateListener = Callable[["Machine", str, str], None]


@dataclass
class Machine:
    spec: MachineSpec
    now: float  # monotonic seconds up to which everything is accounted for
    time_scale: float = 1.0
    wall_clock: Callable[[], float] = field(default=lambda: 0.0)
    on_state: StateListener = field(default=lambda machine, old, new: None)

    def __post_init__(self) -> None:
        spec = self.spec
        self.faults = Faults()
        self.base_percent = spec.base_load_percent
        self.pod_millicores = 0
        self.wall_cap: float | None = None  # the BMC's limit; it survives a power cycle, as real ones do
        self.boots = 0
        self.joules = {state: 0.0 for state in POWER_STATES}
        full = physics.solve(spec.curve, 1.0, self._policies_at(spec.max_mhz * 1000), spec.min_mhz * 1000,
                             spec.max_mhz * 1000, [None] * spec.packages, None)
        self.package_peak_uw = int(max(full.package_watts)) * 1_000_000 + 1_000_000
        slow = physics.wall_watts(spec.curve, 1.0, spec.min_mhz / spec.max_mhz)
        self.cap_range = (int(slow) + 1, int(spec.curve[10]))
        self.boot_id = ""
        self.deadline: float | None = None
        self.state = "Off"
        self.since = self.wall_clock()
        self._boot_kernel()
        if spec.initial_state == "On":
            self._enter("On")

    # --- what it does now ---------------------------------------------------------------------------------------

    @property
    def demand(self) -> float:
        """CPU time wanted, as a fraction of all cores at full frequency; may exceed 1."""
        return self.base_percent / 100 + self.pod_millicores / 1000 / self.spec.cpus

    @property
    def watts(self) -> float:
        if self.state == "On":
            return self.solution.wall_watts
        spec = self.spec
        return {"Off": spec.standby_watts, "PoweringOn": spec.watts_booting,
                "PoweringOff": spec.watts_shutting_down}[self.state]

    @property
    def total_joules(self) -> float:
        return sum(self.joules.values())

    @property
    def solution(self) -> physics.Solution:
        if self._solution is None:
            self._solution = self._solve()
        return self._solution

    def changed(self) -> None:
        """Call after settings, load or caps were changed (and advance() before)."""
        self._solution = None

    # --- commands -----------------------------------------------------------------------------------------------

    def set_load(self, percent: float, now: float) -> None:
        self.advance(now)
        self.base_percent = percent
        self.changed()

    def set_pod_millicores(self, millicores: int, now: float) -> None:
        self.advance(now)
        self.pod_millicores = millicores
        self.changed()

    def set_wall_cap(self, watts: float | None, now: float) -> None:
        low, high = self.cap_range
        if watts is not None and not low <= watts <= high:
            raise ValueError(f"{watts:g} W is outside this machine's range of {low} to {high} W")
        self.advance(now)
        self.wall_cap = watts
        self.changed()

    def set_faults(self, faults: Faults, now: float) -> None:
        self.advance(now)
        self.faults = faults

    def spend_bmc_fault(self) -> None:
        """One faulty answer was given; a counted fault ends by itself."""
        if self.faults.bmc_count > 0:
            left = self.faults.bmc_count - 1
            self.faults = replace(self.faults, bmc_count=left, bmc=self.faults.bmc if left else "ok")

    def would(self, command: str) -> Outcome:
        """How reset() would take this command in the present state."""
        if command not in RESETS:
            raise ValueError(f"reset {command!r} is not one of {', '.join(RESETS)}")
        state = self.state
        if command == "ForceOff":
            return Outcome(200, "already off") if state == "Off" else Outcome(202)
        if command == "On":
            if state == "PoweringOff":
                return Outcome(409, "the machine is shutting down")
            return Outcome(202) if state == "Off" else Outcome(200, "already on")
        if state == "PoweringOn":
            return Outcome(409, "the machine is still booting")
        return Outcome(202) if state == "On" else Outcome(200, "already off or shutting down")

    def reset(self, command: str, now: float) -> Outcome:
        """A power command of RESETS, as a BMC takes it: idempotent, and never waiting for the result."""
        self.advance(now)
        outcome = self.would(command)
        if outcome.status != 202:
            return outcome
        if self.faults.shutdown == "deaf" and command != "On":
            return outcome  # accepted, and nothing happens
        if command == "ForceOff":
            self._enter("Off")
        elif command == "On" and self.faults.wake != "dead":
            self._enter("PoweringOn")
        elif command == "GracefulShutdown" and self.faults.shutdown != "ignored":
            self._enter("PoweringOff")
        return outcome

    # --- time ---------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Accounts for the time up to now, with the transitions that fall into it at their exact moment."""
        while self.deadline is not None and self.deadline <= now:
            moment, self.deadline = self.deadline, None
            self._integrate(moment)
            self._enter("On" if self.state == "PoweringOn" else "Off")
        self._integrate(now)

    def _integrate(self, until: float) -> None:
        seconds = until - self.now
        if seconds <= 0:
            return
        self.now = until
        self.joules[self.state] += self.watts * seconds
        if self.state != "On":
            return
        solution, counters = self.solution, self.counters
        counters.up_seconds += seconds
        micro = seconds * 1e6
        for i in range(self.spec.packages):
            counters.package_uj[i] += solution.package_watts[i] * micro
            counters.dram_uj[i] += solution.dram_watts[i] * micro
        counters.psys_uj += solution.psys_watts * micro
        for i, busy in enumerate(solution.busy):
            counters.busy_seconds[i] += busy * seconds

    def _enter(self, state: str) -> None:
        old, self.state = self.state, state
        self.since = self.wall_clock()
        self.deadline = None
        if state == "On":
            self.boots += 1
            self._boot_kernel()
            self.boot_id = str(uuid.uuid4())
        elif state == "PoweringOn" and self.faults.wake != "stuck":
            self.deadline = self.now + self.spec.boot_seconds / self.time_scale
        elif state == "PoweringOff" and self.faults.shutdown != "hang":
            self.deadline = self.now + self.spec.shutdown_seconds / self.time_scale
        if state != "On":
            self.boot_id = ""
        self.on_state(self, old, state)

    def _boot_kernel(self) -> None:
        """Everything that a boot sets back: cpufreq and RAPL settings, and the kernel's counters."""
        spec, driver = self.spec, self.spec.driver_traits
        governor = spec.governor or driver.default_governor
        self.settings = Settings(
            policies=[PolicySettings(governor, spec.min_mhz * 1000, spec.max_mhz * 1000, "balance_performance")
                      for _ in spec.policy_cpus],
            packages=[PackageSettings(self.package_peak_uw, self.package_peak_uw * 6 // 5, spec.rapl_enabled)
                      for _ in range(spec.packages)],
        )
        # A large start keeps the number of digits constant for long, so that a reader never sees a half-written number.
        start = float(1_000_000_000 + zlib.crc32(spec.name.encode()) % 1_000_000_000)
        packages = spec.packages
        self.counters = Counters([start + i for i in range(packages)], [start] * packages, start,
                                 [0.0] * len(spec.policy_cpus))
        self._solution: physics.Solution | None = None

    # --- frequency and draw -------------------------------------------------------------------------------------

    def limits_khz(self, policy: PolicySettings) -> tuple[int, int]:
        """The limits in force: requests clamped to the hardware, the minimum to the maximum, as cpufreq does."""
        low, high = self.spec.min_mhz * 1000, self.spec.max_mhz * 1000
        maximum = max(low, min(high, policy.max_khz))
        return min(maximum, max(low, min(high, policy.min_khz))), maximum

    def _policies_at(self, khz: int) -> list[physics.Policy]:
        spec = self.spec
        return [physics.Policy(khz, spec.package_of(i), len(cpus) / spec.cpus)
                for i, cpus in enumerate(spec.policy_cpus)]

    def _solve(self) -> physics.Solution:
        spec, driver = self.spec, self.spec.driver_traits
        policies = self._policies_at(0)
        for i, wanted in enumerate(self.settings.policies):
            low, high = self.limits_khz(wanted)
            target = physics.governor_target(wanted.governor, wanted.epp if driver.has_epp else "",
                                             driver.dynamic_powersave, self.demand, low, high, wanted.setspeed_khz)
            policies[i] = replace(policies[i], target_khz=target)
        limits = [min(p.long_term_uw, p.short_term_uw) / 1e6 if p.enabled and spec.rapl else None
                  for p in self.settings.packages]
        return physics.solve(spec.curve, self.demand, policies, spec.min_mhz * 1000, spec.max_mhz * 1000, limits,
                             self.wall_cap)
