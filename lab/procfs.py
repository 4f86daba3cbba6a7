"""The few files of /proc from which an agent computes utilization and recognizes a boot."""

from __future__ import annotations

from pathlib import Path

from .files import AttributeFile, plain_file
from .machine import Machine

USER_HZ = 100
USER_SHARE = 0.85  # of busy time; the rest is system time
# Each counter starts here: its digits then do not change in number for hours, and the file not in length.
START_TICKS = 10_000_000


class ProcfsTree:
    def __init__(self, root: Path, machine: Machine) -> None:
        self.root = root
        self._machine = machine
        self._boot_time = int(machine.wall_clock())
        self._stat = AttributeFile(root / "stat", self._stat_text(), 0o444)
        self._uptime = AttributeFile(root / "uptime", self._uptime_text(), 0o444)
        self._boot_id = AttributeFile(root / "sys/kernel/random/boot_id", f"{machine.boot_id}\n", 0o444)
        total = machine.spec.memory_mib * 1024
        plain_file(root / "meminfo", f"MemTotal:       {total} kB\nMemFree:        {total // 2} kB\n"
                                     f"MemAvailable:   {total * 3 // 4} kB\n")

    def close(self) -> None:
        for attribute in (self._stat, self._uptime, self._boot_id):
            attribute.close()

    def reset(self) -> None:
        """After a boot."""
        self._boot_time = int(self._machine.wall_clock())
        self._boot_id.reset(f"{self._machine.boot_id}\n")
        self.publish()

    def publish(self) -> None:
        self._stat.put(self._stat_text())
        self._uptime.put(self._uptime_text())

    def _uptime_text(self) -> str:
        counters, spec = self._machine.counters, self._machine.spec
        idle = sum((counters.up_seconds - busy) * len(cpus)
                   for busy, cpus in zip(counters.busy_seconds, spec.policy_cpus))
        return f"{counters.up_seconds:.2f} {idle:.2f}\n"

    def _stat_text(self) -> str:
        counters = self._machine.counters
        rows: list[str] = []
        totals = [0, 0, 0]
        for busy_seconds, cpus in zip(counters.busy_seconds, self._machine.spec.policy_cpus):
            # Ticks that have begun are rounded down, so no counter ever falls.
            user = START_TICKS + int(busy_seconds * USER_SHARE * USER_HZ)
            system = START_TICKS + int(busy_seconds * (1 - USER_SHARE) * USER_HZ)
            idle = START_TICKS + int((counters.up_seconds - busy_seconds) * USER_HZ)
            row = f"{user} 0 {system} {idle} 0 0 0 0 0 0"
            rows.extend(f"cpu{cpu} {row}" for cpu in cpus)
            for i, ticks in enumerate((user, system, idle)):
                totals[i] += ticks * len(cpus)
        head = f"cpu  {totals[0]} 0 {totals[1]} {totals[2]} 0 0 0 0 0 0"
        tail = f"intr 0\nctxt 0\nbtime {self._boot_time}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"
        return "\n".join([head, *rows, tail])
