"""The room: machines, their trees and agents, the servers, and the tick that keeps them all moving."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, TypeVar

from .agents import AgentProcess
from .bmc import Bmc
from .cluster import ClusterLink, Heartbeats, PodLoad
from .config import RoomConfig, address, machine_spec
from .control import ControlApi, faults_document, merged_faults
from .faults import Faults
from .http import HttpServer
from .kube import KubeClient
from .log import RoomLog
from .machine import Machine, timestamp
from .procfs import ProcfsTree
from .redfish import RedfishService
from .spec import MachineSpec
from .sysfs import SysfsTree

T = TypeVar("T")
START_SECONDS = 30.0


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
        self._opening: set[asyncio.Task[None]] = set()

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
            self._redfish = HttpServer(RedfishService(lambda: self.machines, self._bmc, self._credentials).handle, self._tls)
            await self._redfish.start(*address(options.listen))
        if self.config.kube:
            client = KubeClient(self.config.kube.connect())
            self._cluster = ClusterLink(client, self._pods, Heartbeats(client, self._heartbeat_wanted, self.log), self.log)
        for spec in self.config.machines:
            self.add(spec)
        await asyncio.gather(*self._opening)
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
                if slot.sysfs.take_writes():
                    machine.changed()
                slot.sysfs.publish()
                slot.procfs.publish()

    @staticmethod
    def _raise_file_limit() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    # --- machines -----------------------------------------------------------------------------------------------

    def add(self, spec: MachineSpec) -> Machine:
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
        if self.config.redfish and self.config.redfish.per_machine_ports:
            task = asyncio.get_running_loop().create_task(self._open_port(name, slot))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        self.log.add("state", name, **{"from": "", "to": machine.state, "bootId": machine.boot_id})
        if machine.state == "On":
            slot.agent.start()
        self._check_heartbeat(name)
        return machine

    def add_from_json(self, data: dict[str, Any]) -> dict[str, Any]:
        machine = self.add(machine_spec(data, self.config.defaults))
        self._write_endpoints()
        return self.describe(machine)

    async def remove(self, name: str) -> None:
        slot = self._slots.pop(name)
        del self.machines[name]
        slot.agent.kill()
        slot.sysfs.close()
        slot.procfs.close()
        if slot.redfish:
            await slot.redfish.stop()
        self._write_endpoints()

    async def _open_port(self, name: str, slot: Slot) -> None:
        assert self.config.redfish is not None

        def only() -> dict[str, Machine]:
            return {name: self.machines[name]} if name in self.machines else {}

        server = HttpServer(RedfishService(only, self._bmc, self._credentials).handle, self._tls)
        await server.start(address(self.config.redfish.listen)[0], 0)
        slot.redfish = server
        if self._control.port:
            self._write_endpoints()

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
        spec, slot = machine.spec, self._slots[machine.spec.name]
        on = machine.state == "On"
        solution = machine.solution
        policies = [{"governor": p.governor, "minMHz": machine.limits_khz(p)[0] // 1000,
                     "maxMHz": machine.limits_khz(p)[1] // 1000, "epp": p.epp, "currentMHz": khz // 1000}
                    for p, khz in zip(machine.settings.policies, solution.khz)]
        packages = [{"limitWatts": p.long_term_uw / 1e6, "enabled": p.enabled, "watts": round(w, 3)}
                    for p, w in zip(machine.settings.packages, solution.package_watts)]
        return {
            "name": spec.name, "state": machine.state, "since": timestamp(machine.since), "bootId": machine.boot_id,
            "boots": machine.boots, "watts": round(machine.watts, 3),
            "joules": round(machine.total_joules, 3),
            "joulesByState": {state: round(joules, 3) for state, joules in machine.joules.items()},
            "capWatts": machine.wall_cap,
            "capRange": {"minWatts": machine.cap_range[0], "maxWatts": machine.cap_range[1]},
            "load": {"percent": machine.base_percent, "podMillicores": machine.pod_millicores,
                     "demandPercent": round(machine.demand * 100, 3)},
            "cpus": spec.cpus, "driver": spec.driver,
            "busyPercent": round(sum(solution.busy) / len(solution.busy) * 100, 3) if on else 0.0,
            "throttled": on and solution.throttled,
            "policies": policies if on else [], "packages": packages if on else [],
            "faults": faults_document(machine.faults), "agentPid": slot.agent.pid,
            "sys": str(self.dir / spec.name / "sys"), "proc": str(self.dir / spec.name / "proc"),
            "power": f"lab://{self._control.host}:{self._control.port}/machines/{spec.name}",
            "redfish": self._redfish_address(spec.name),
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

    def _redfish_address(self, name: str) -> str:
        server = self._slots[name].redfish or self._redfish
        return f"redfish+https://{server.host}:{server.port}/redfish/v1/Systems/{name}" if server else ""

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
            "machines": {m["name"]: {key: m[key] for key in ("sys", "proc", "power", "redfish")} for m in self.describe_all()},
        }
        partial = self.dir / "endpoints.json.partial"
        partial.write_text(json.dumps(document, indent=1) + "\n")
        partial.replace(self.dir / "endpoints.json")


class RoomThread:
    """A room in a thread of this process, for tests. Every method may be called from any thread."""

    def __init__(self, config: RoomConfig) -> None:
        self._room = Room(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lab-room")

    def __enter__(self) -> RoomThread:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the room answers; raises what kept it from starting."""
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError("the room did not start")
        if self._error:
            self._thread.join()
            raise self._error

    def stop(self) -> None:
        if self._loop and self._stopped and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        async def main() -> None:
            self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
            await self._room.serve(self._ready.set, self._stopped)

        try:
            asyncio.run(main())
        except BaseException as error:  # carried over to the caller's thread
            self._error = error
        finally:
            self._ready.set()

    def call(self, action: Callable[[Room], T]) -> T:
        """Runs action(room) on the room's own thread."""
        async def run() -> T:
            return action(self._room)

        assert self._loop is not None, "start() comes first"
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(START_SECONDS)

    @property
    def control_url(self) -> str:
        return self._room.control_url

    @property
    def redfish_url(self) -> str:
        return self._room.redfish_url

    def directory(self, name: str) -> Path:
        return self._room.dir / name

    def add_machine(self, name: str, **fields: Any) -> dict[str, Any]:
        """Fields as MachineSpec has them (snake_case)."""
        return self.call(lambda room: room.describe(room.add(MachineSpec(name, **fields))))

    def machine(self, name: str) -> dict[str, Any]:
        return self.call(lambda room: room.describe(room.machines[name]))

    def power(self, name: str, reset: str) -> int:
        """The button on the machine's front; 202 begun, 200 nothing to do, 409 in transition."""
        return self.call(lambda room: room._bmc.reset(room.machines[name], reset, "button").status)

    def set_load(self, name: str, percent: float) -> None:
        self.call(lambda room: room.set_base_load(room.machines[name], percent))

    def set_faults(self, name: str, **faults: Any) -> None:
        """Keys as the HTTP API has them; those not named stay."""
        self.call(lambda room: room.change_faults(room.machines[name], merged_faults(room.machines[name].faults, faults)))

    def log(self, since: int = 0, machine: str = "", kind: str = "") -> list[dict[str, Any]]:
        return self.call(lambda room: room.log.since(since, machine, kind))

    def wait_for(self, name: str, condition: Callable[[dict[str, Any]], bool], seconds: float = 10.0) -> dict[str, Any]:
        """The first description of the machine that meets the condition; TimeoutError with the last one otherwise."""
        end = time.monotonic() + seconds
        while not condition(description := self.machine(name)):
            if time.monotonic() > end:
                raise TimeoutError(f"not met within {seconds} s: {description}")
            time.sleep(0.01)
        return description

    def wait_state(self, name: str, state: str, seconds: float = 10.0) -> dict[str, Any]:
        return self.wait_for(name, lambda m: m["state"] == state, seconds)
