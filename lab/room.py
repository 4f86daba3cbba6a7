"""The room: machines, their trees and agents, the servers, and the tick that keeps them all moving."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from .agents import AgentProcess
from .bmc import Bmc
from .cluster import ClusterLink, Heartbeats, PodLoad
from .config import RoomConfig, address, machine_spec
from .control import ControlApi
from .describe import faults_document, machine_document
from .faults import Faults
from .http import HttpServer
from .kube import KubeClient
from .log import RoomLog
from .machine import Machine
from .procfs import ProcfsTree
from .redfish import RedfishService
from .spec import MachineSpec
from .sysfs import SysfsTree


@dataclass
class Slot:
    """What belongs to one machine."""

    sysfs: SysfsTree
    procfs: ProcfsTree
    agent: AgentProcess
    redfish: HttpServer | None = None


class Room:
    """Not thread-safe: run it by serve(), and reach it from other threads through RoomThread or HTTP."""

    def __init__(self, config: RoomConfig) -> None:
        self.config = config
        self.dir = Path(config.dir).absolute()
        self.log = RoomLog(config.log_limit)
        self.machines: dict[str, Machine] = {}
        self._slots: dict[str, Slot] = {}
        self._bmc = Bmc(self.log, time.monotonic)
        self._control = HttpServer(ControlApi(self, self._bmc).handle)
        self._redfish: HttpServer | None = None
        self._tls: ssl.SSLContext | None = None
        self._credentials = ""
        self._cluster: ClusterLink | None = None
        self._pods = PodLoad(config.pod_load_fraction, self._pod_load_changed)

    # --- life ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._raise_file_limit()
        self.dir.mkdir(parents=True, exist_ok=True)
        options = self.config.redfish
        if options:
            self._credentials = options.credentials()
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
            self._tls.load_cert_chain(options.cert, options.key)
            self.redfish_service = RedfishService(lambda: self.machines, self._bmc, self._credentials)
            self._redfish = HttpServer(self.redfish_service.handle, self._tls)
            await self._redfish.start(*address(options.listen))
        if self.config.kube:
            client = KubeClient(self.config.kube.connect())
            heartbeats = Heartbeats(client, self._heartbeat_wanted, self.log)
            self._cluster = ClusterLink(client, self._pods, heartbeats, self.log)
        for spec in self.config.machines:
            await self.add(spec)
        await self._control.start(*address(self.config.control))
        if self._cluster:
            self._cluster.start()
        self._write_endpoints()

    async def serve(self, ready: Callable[[], None], stopped: asyncio.Event) -> None:
        """Runs until `stopped` is set."""
        try:
            await self.start()
            ready()
            while not stopped.is_set():
                self.tick()
                try:
                    async with asyncio.timeout(self.config.tick_seconds):
                        await stopped.wait()
                except TimeoutError:
                    pass  # the next tick is due
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Agents get SIGTERM, so that they can put the machines' settings back, and SIGKILL after the grace period."""
        now = time.monotonic()
        agents = [slot.agent for slot in self._slots.values()]
        for agent in agents:
            agent.shut_down(now)
        while any(agent.pid for agent in agents) and time.monotonic() < now + self.config.agent.grace_seconds:
            await asyncio.sleep(0.02)
            for agent in agents:
                agent.poll(time.monotonic())
        if self._cluster:
            await self._cluster.stop()
        for server in (self._control, self._redfish, *(slot.redfish for slot in self._slots.values())):
            if server:
                await server.stop()
        for slot in self._slots.values():
            slot.agent.kill()
            slot.sysfs.close()
            slot.procfs.close()
        self._slots.clear()

    def tick(self) -> None:
        now = time.monotonic()
        for name, machine in self.machines.items():
            slot = self._slots[name]
            machine.advance(now)
            slot.agent.poll(now)
            if machine.state in ("On", "PoweringOff"):
                slot.sysfs.take_writes()
                slot.sysfs.publish()
                slot.procfs.publish()

    @staticmethod
    def _raise_file_limit() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    # --- machines -----------------------------------------------------------------------------------------------

    async def add(self, spec: MachineSpec) -> Machine:
        """The machine's directory is built anew, whatever an earlier run left there."""
        name = spec.name
        if name in self.machines:
            raise ValueError(f"there is a machine {name!r} already")
        directory = self.dir / name
        for tree in ("sys", "proc"):
            shutil.rmtree(directory / tree, ignore_errors=True)
        directory.mkdir(exist_ok=True)
        machine = Machine(spec, time.monotonic(), self.config.time_scale, time.time)
        machine.pod_millicores = self._pods.on(name)

        def wrote(attribute: str, text: str, accepted: bool) -> None:
            self.log.add("sysfs", name, attribute=attribute, value=text[:200], accepted=accepted)

        slot = Slot(SysfsTree(directory / "sys", machine, wrote), ProcfsTree(directory / "proc", machine),
                    AgentProcess(self.config.agent, name, directory, self.log))
        self.machines[name], self._slots[name] = machine, slot
        machine.on_state = self._state_changed
        self.log.add("state", name, **{"from": "", "to": machine.state, "bootId": machine.boot_id})
        if machine.state == "On":
            slot.agent.start()
        self._check_heartbeat(name)
        if self.config.redfish and self.config.redfish.per_machine_ports:
            slot.redfish = await self._open_port(name)
        if self._control.port:
            self._write_endpoints()
        return machine

    async def add_from_json(self, data: dict[str, Any]) -> dict[str, Any]:
        return self.describe(await self.add(machine_spec(data, self.config.defaults)))

    async def remove(self, name: str) -> None:
        slot = self._slots.pop(name)
        del self.machines[name]
        slot.agent.kill()
        slot.sysfs.close()
        slot.procfs.close()
        if slot.redfish:
            await slot.redfish.stop()
        self._write_endpoints()

    async def _open_port(self, name: str) -> HttpServer:
        assert self.config.redfish is not None

        def only() -> dict[str, Machine]:
            return {name: self.machines[name]} if name in self.machines else {}

        server = HttpServer(RedfishService(only, self._bmc, self._credentials).handle, self._tls)
        await server.start(address(self.config.redfish.listen)[0], 0)
        return server

    def agent(self, name: str) -> AgentProcess:
        return self._slots[name].agent

    def _state_changed(self, machine: Machine, old: str, new: str) -> None:
        name = machine.spec.name
        slot = self._slots[name]
        self.log.add("state", name, **{"from": old, "to": new, "bootId": machine.boot_id})
        if new == "On":
            slot.agent.kill()  # none is left from before, unless a kill was still under way
            slot.sysfs.reset()
            slot.procfs.reset()
            slot.agent.start()
        elif new == "PoweringOff":
            slot.agent.shut_down(time.monotonic())
        elif new == "Off":
            slot.agent.kill()
        self._check_heartbeat(name)

    # --- load, faults -------------------------------------------------------------------------------------------

    def set_base_load(self, machine: Machine, percent: float) -> None:
        machine.set_load(percent, time.monotonic())
        self.log.add("load", machine.spec.name, percent=percent)

    def _pod_load_changed(self, node: str, used: int) -> None:
        machine = self.machines.get(node)
        if machine:
            machine.set_pod_millicores(used, time.monotonic())

    def change_faults(self, machine: Machine, faults: Faults) -> None:
        machine.set_faults(faults, time.monotonic())
        self.log.add("fault", machine.spec.name, **faults_document(faults))
        self._check_heartbeat(machine.spec.name)

    def _heartbeat_wanted(self, name: str) -> bool | None:
        machine = self.machines.get(name)
        if machine is None:
            return None
        return machine.state == "On" and machine.faults.wake != "noHeartbeat"

    def _check_heartbeat(self, name: str) -> None:
        if self._cluster:
            self._cluster.heartbeats.check(name)

    # --- description --------------------------------------------------------------------------------------------

    def describe(self, machine: Machine) -> dict[str, Any]:
        """All there is to know, and the truth, whatever faults are injected."""
        machine.advance(time.monotonic())
        name = machine.spec.name
        slot = self._slots[name]
        server = slot.redfish or self._redfish
        return {
            **machine_document(machine), "agentPid": slot.agent.pid,
            "sys": str(self.dir / name / "sys"), "proc": str(self.dir / name / "proc"),
            "power": f"lab://{self._control.host}:{self._control.port}/machines/{name}",
            "redfish": f"redfish+https://{server.host}:{server.port}/redfish/v1/Systems/{name}" if server else "",
        }

    def describe_all(self) -> list[dict[str, Any]]:
        return [self.describe(machine) for _, machine in sorted(self.machines.items())]

    def energy(self) -> dict[str, Any]:
        now = time.monotonic()
        for machine in self.machines.values():
            machine.advance(now)
        return {"watts": round(sum(m.watts for m in self.machines.values()), 3),
                "joules": round(sum(m.total_joules for m in self.machines.values()), 3),
                "on": sum(m.state == "On" for m in self.machines.values()),
                "off": sum(m.state == "Off" for m in self.machines.values())}

    @property
    def control_url(self) -> str:
        return f"http://{self._control.host}:{self._control.port}"

    @property
    def redfish_url(self) -> str:
        return f"https://{self._redfish.host}:{self._redfish.port}" if self._redfish else ""

    def _write_endpoints(self) -> None:
        """endpoints.json appears when the room is ready; it is replaced as a whole."""
        document = {
            "pid": os.getpid(), "control": self.control_url, "redfish": self.redfish_url,
            "machines": {m["name"]: {key: m[key] for key in ("sys", "proc", "power", "redfish")}
                         for m in self.describe_all()},
        }
        partial = self.dir / "endpoints.json.partial"
        partial.write_text(json.dumps(document, indent=1) + "\n")
        partial.replace(self.dir / "endpoints.json")
