"""What happened in the room, in order: for an observer who checks from outside what kwatt may and may not do."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Callable

from .machine import timestamp

KINDS = ("command", "state", "cap", "load", "fault", "sysfs", "agent", "kube")


class RoomLog:
    """Bounded: after `limit` entries the oldest are dropped, and `dropped` says how many."""

    def __init__(self, limit: int = 100_000, wall_clock: Callable[[], float] = time.time) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=limit)
        self._wall_clock = wall_clock
        self._next = 1
        self.listeners: list[Callable[[dict[str, Any]], None]] = []  # called with each entry as it is made

    def add(self, kind: str, machine: str, **details: Any) -> None:
        entry = {"seq": self._next, "time": timestamp(self._wall_clock()), "kind": kind, "machine": machine, **details}
        self._next += 1
        self._entries.append(entry)
        for listener in self.listeners:
            listener(entry)

    @property
    def dropped(self) -> int:
        return self._next - 1 - len(self._entries)

    def since(self, seq: int = 0, machine: str = "", kind: str = "") -> list[dict[str, Any]]:
        """Entries after `seq`, optionally of one machine or kind."""
        return [e for e in self._entries
                if e["seq"] > seq and machine in ("", e["machine"]) and kind in ("", e["kind"])]
