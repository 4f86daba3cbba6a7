"""Faults that an observer injects into one machine, each a way in which real hardware has been seen to fail."""

from __future__ import annotations

from dataclasses import dataclass

CHOICES = {
    "wake": ("ok", "stuck", "dead", "noHeartbeat"),
    "shutdown": ("ok", "hang", "ignored", "deaf"),
    "bmc": ("ok", "unavailable", "unauthorized", "slow", "html", "lies", "drop", "truncated", "redirect", "huge"),
    "meter": ("ok", "absent", "zero", "max"),
}


@dataclass(frozen=True)
class Faults:
    wake: str = "ok"
    shutdown: str = "ok"
    bmc: str = "ok"
    bmc_delay_seconds: float = 5.0  # how late a slow BMC answers
    bmc_count: int = 0  # so many faulty answers, then ok; 0: until cleared
    meter: str = "ok"
    cap_locked: bool = False  # writes to RAPL limits do not stay, as with a BIOS lock
    governor_locked: bool = False  # nor do writes to cpufreq

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"faults: {name} is one of {', '.join(choices)}")
        if not 0 <= self.bmc_delay_seconds <= 600:
            raise ValueError("faults: bmcDelaySeconds is 0 to 600")
        if self.bmc_count < 0:
            raise ValueError("faults: bmcCount is not negative")


def metered(faults: Faults, watts: float) -> float | None:
    """What the BMC's power meter says when the machine draws this many watts."""
    if faults.meter == "absent":
        return None
    return {"zero": 0.0, "max": 4294967295.0}.get(faults.meter, round(watts, 3))


def reported_state(faults: Faults, state: str) -> str:
    """A lying BMC says the opposite of the settled states."""
    return {"On": "Off", "Off": "On"}.get(state, state) if faults.bmc == "lies" else state
