"""room.json: reading and checking."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import kubeconfig
from .agents import AgentOptions
from .spec import MachineSpec, from_json


@dataclass(frozen=True)
class RedfishOptions:
    cert: str  # PEM files
    key: str
    auth_file: str  # its first line is user:password
    listen: str = "127.0.0.1:0"
    per_machine_ports: bool = False

    def credentials(self) -> str:
        lines = Path(self.auth_file).read_text().splitlines()
        if not lines or ":" not in lines[0]:
            raise ValueError("redfish: the first line of authFile is not user:password")
        return lines[0]


@dataclass(frozen=True)
class KubeOptions:
    """A kubeconfig, or a server with PEM files."""

    kubeconfig: str = ""
    server: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    token_file: str = ""

    def connect(self) -> kubeconfig.Connection:
        if self.kubeconfig:
            return kubeconfig.from_kubeconfig(Path(self.kubeconfig))

        def text(name: str) -> str | None:
            return Path(name).read_text() if name else None

        return kubeconfig.connect(self.server, text(self.ca), text(self.cert), text(self.key),
                                  (text(self.token_file) or "").strip())


@dataclass(frozen=True)
class RoomConfig:
    dir: str
    control: str = "127.0.0.1:0"
    time_scale: float = 1.0
    tick_seconds: float = 0.1
    pod_load_fraction: float = 0.5
    log_limit: int = 100_000
    redfish: RedfishOptions | None = None
    kube: KubeOptions | None = None
    agent: AgentOptions = field(default_factory=AgentOptions)
    machines: list[MachineSpec] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)  # for machines added later, too

    def __post_init__(self) -> None:
        if self.time_scale <= 0 or not 0.005 <= self.tick_seconds <= 5:
            raise ValueError("room: timeScale is above 0, tickSeconds 0.005 to 5")
        if not 0 <= self.pod_load_fraction <= 1:
            raise ValueError("room: podLoadFraction is 0 to 1")
        address(self.control)


def address(text: str) -> tuple[str, int]:
    """host:port, on loopback: nothing here is meant to be reached from elsewhere."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not host:port")
    if host not in ("localhost", "::1", "[::1]") and not host.startswith("127."):
        raise ValueError(f"{text!r}: the lab listens on loopback only")
    return host.strip("[]"), int(port)


def machine_spec(data: dict[str, Any], defaults: dict[str, Any]) -> MachineSpec:
    return from_json(MachineSpec, {**defaults, **data}, f"machine {data.get('name', '?')}")


def parse(data: dict[str, Any]) -> RoomConfig:
    """From room.json. `machines` entries may say {"name": "node{i}", "count": 3, "first": 1}."""
    data = dict(data)
    defaults = data.get("defaults", {})
    machines = []
    for entry in data.pop("machines", []):
        entry = dict(entry)
        count, first = entry.pop("count", None), entry.pop("first", 1)
        if count is None:
            machines.append(machine_spec(entry, defaults))
        else:
            pattern = entry.pop("name", "")
            if "{i" not in pattern:
                raise ValueError("machines: with a count, the name has to contain {i}")
            machines += [machine_spec({**entry, "name": pattern.format(i=i)}, defaults)
                         for i in range(first, first + count)]
    for key, cls in (("redfish", RedfishOptions), ("kube", KubeOptions), ("agent", AgentOptions)):
        if data.get(key) is not None:
            data[key] = from_json(cls, data[key], key)
    return from_json(RoomConfig, {**data, "machines": machines}, "room")


def load(path: Path) -> dict[str, Any]:
    data = json.loads(path.read_text())
    if not isinstance(data, dict):
        raise ValueError(f"{path}: not a JSON object")
    return data
