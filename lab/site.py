"""A whole site on loopback: the real control plane of test/bed, simulated machines, the real kwatt.

    with Site(directory) as site:
        site.add_machine("node1", boot_seconds=2, shutdown_seconds=1)
        site.start_controller()
        site.bed.kubectl("apply", "-f", "examples/enforce-power.yaml")

Used by the demo and by the end-to-end tests; kwatt's programs come from build/<preset>/bin.
"""
from __future__ import annotations

import base64
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT / "test") not in sys.path:
    sys.path.insert(0, str(ROOT / "test"))

from bed import ApiError, Bed, Timers, objects, register_kind  # noqa: E402
from bed.access import write_kubeconfig  # noqa: E402
from bed.process import PortReservation, Process, wait_until  # noqa: E402

from lab.config import AgentOptions, KubeOptions, RedfishOptions, RoomConfig  # noqa: E402
from lab.thread import RoomThread  # noqa: E402

NAMESPACE = "kwatt-system"
BMC_USER, BMC_PASSWORD = "kwatt", "correct-horse-battery-staple"
TOKEN_SECONDS = 24 * 3600

register_kind("EnergyPolicy", "/apis/kwatt.dev/v1alpha1", "energypolicies", namespaced=False)
register_kind("NodePower", "/apis/kwatt.dev/v1alpha1", "nodepowers", namespaced=False)


def program(name: str, folder: str = "bin") -> Path:
    """A program of ours (in folder "test": one that only tests need), from the preset in KWATT_PRESET (dev)."""
    path = ROOT / "build" / os.environ.get("KWATT_PRESET", "dev") / folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: run ./dev build first")
    return path


class Site:
    """Machines are added with add_machine(); what runs ends with stop(), however this process ends."""

    def __init__(self, directory: Path | None = None, agents: bool = True, timers: Timers | None = None,
                 redfish: bool = True, audit: bool = False, scheduler_config: dict | None = None) -> None:
        self._temporary = directory is None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="kwatt-site-")).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.bed = Bed(self.directory / "bed", timers=timers, audit=audit, scheduler_config=scheduler_config)
        self._agents, self._redfish = agents, redfish
        self._ports: list[PortReservation] = []
        self._controllers: list[Process] = []

    def __enter__(self) -> Site:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- life ---------------------------------------------------------------------------------------------

    def start(self) -> Site:
        """The control plane, kwatt's kinds and rights, and an empty machine room."""
        self.bed.start()
        try:
            self.bed.kubectl("apply", "-f", ROOT / "crds", "-f", ROOT / "manifests" / "00-namespace.yaml")
            self.bed.kubectl("wait", "--for=condition=Established", "--timeout=20s", "-f", ROOT / "crds")
            for manifest in sorted((ROOT / "manifests").glob("*.yaml")):
                self.bed.kubectl("apply", "-f", manifest)
            self._health_port, self._ingest_port = self._port(), self._port()
            self._server_cert = self.bed.issue_server_cert("kwatt-controller")
            self.room = RoomThread(self._room_config())
            self.room.start()
            self._write_bmc_secret()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        for controller in self._controllers:
            controller.stop(grace=5)
        if hasattr(self, "room"):
            self.room.stop()
        self.bed.stop()
        for reservation in self._ports:
            reservation.release()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _port(self) -> int:
        reservation = PortReservation()
        self._ports.append(reservation)
        return reservation.port

    def _room_config(self) -> RoomConfig:
        room = self.directory / "room"
        room.mkdir(exist_ok=True)
        agent = AgentOptions()
        if self._agents:
            command = (f"{program('kwatt-agent')} --node-name {{node}} --sysfs-root {{sys}} --proc-root {{proc}}"
                       f" --kubeconfig {{dir}}/agent.kubeconfig --controller-url {self.ingest_url}"
                       f" --controller-ca-file {self.bed.ca_file} --controller-token-file {{dir}}/push.token"
                       f" --sample-interval 500ms --push-interval 1s --log-format logfmt --log-level debug"
                       f" --restore-after {os.environ.get('KWATT_RESTORE_AFTER', '10m')}")
            agent = AgentOptions(command=command, restart=True, grace_seconds=2)
        redfish = None
        if self._redfish:
            cert, key = self.bed.issue_server_cert("bmc")
            auth = self.directory / "bmc.auth"
            auth.write_text(f"{BMC_USER}:{BMC_PASSWORD}\n")
            auth.chmod(0o600)
            redfish = RedfishOptions(cert=str(cert), key=str(key), auth_file=str(auth))
        return RoomConfig(dir=str(room), kube=KubeOptions(kubeconfig=str(self.bed.kubeconfig)), agent=agent,
                          redfish=redfish)

    def _write_bmc_secret(self) -> None:
        def encoded(text: str) -> str:
            return base64.b64encode(text.encode()).decode()

        ca = Path(self.bed.ca_file).read_text()
        secrets = {"bmc": {"username": encoded(BMC_USER), "password": encoded(BMC_PASSWORD)},
                   "bmc-ca": {"ca.crt": encoded(ca)}}
        for name, data in secrets.items():
            self.bed.kubectl("apply", "-f", "-", input={
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
                "data": data})

    # ---- kwatt --------------------------------------------------------------------------------------------

    @property
    def ingest_url(self) -> str:
        return f"https://127.0.0.1:{self._ingest_port}"

    @property
    def health_url(self) -> str:
        return f"http://127.0.0.1:{self._health_port}"

    def start_controller(self, *arguments: str, name: str = "controller", server: str = "",
                         lease: tuple[str, str, str] = ("5s", "4s", "500ms")) -> Process:
        """Starts kwatt-controller with its ServiceAccount's rights; its log is <directory>/<name>.log.
        `server`: another URL than the API server's own (a proxy). `lease`: duration, renew deadline, retry period."""
        token = self.bed.token_for("kwatt-controller", NAMESPACE, seconds=TOKEN_SECONDS)
        kubeconfig = write_kubeconfig(self.directory / f"{name}.kubeconfig", server or self.bed.url, self.bed.ca_file,
                                      token=token)
        first = not self._controllers
        health = self._health_port if first else self._port()
        ingest = self._ingest_port if first else self._port()
        cert, key = self._server_cert
        self.history_file(name).parent.mkdir(exist_ok=True)
        command = [program("kwatt-controller"), "--kubeconfig", kubeconfig, "--namespace", NAMESPACE,
                   "--health-address", f"127.0.0.1:{health}", "--ingest-address", f"127.0.0.1:{ingest}",
                   "--tls-cert-file", cert, "--tls-private-key-file", key, "--log-format", "logfmt",
                   "--log-level", "debug", "--telemetry-resolution", "1s",
                   "--bmc-allow", "127.0.0.1,http://127.0.0.1", "--bmc-poll-interval", "2s",
                   "--lease-duration", lease[0], "--lease-renew-deadline", lease[1],
                   "--lease-retry-period", lease[2], "--history-file", self.history_file(name),
                   "--carbon-grams-per-kwh", "400", *arguments]
        controller = Process(name, [str(part) for part in command], self.directory / f"{name}.log")
        controller.start()
        self._controllers.append(controller)
        return controller

    def history_file(self, name: str = "controller") -> Path:
        return self.directory / "history" / f"{name}.db"

    @property
    def controller(self) -> Process:
        return self._controllers[0]

    def restart_controllers(self) -> None:
        """What a Deployment does: starts a controller again that ended because it lost its lease, which a machine
        too busy to renew in time brings about. Anything else that ends a controller is not hidden."""
        for controller in self._controllers:
            if controller.ended() and "leader election lost" in controller.log_tail(5):
                controller.start()

    # ---- machines -----------------------------------------------------------------------------------------

    def add_machine(self, name: str, bmc: str | None = "lab", cpu: int = 8, memory: str = "32Gi",
                    zone: str | None = None, labels: dict[str, str] | None = None, taints: list | None = None,
                    annotations: dict[str, str] | None = None, model: dict[str, Any] | None = None,
                    wait: bool = True, **machine: Any) -> None:
        """A machine, its Node, and (unless bmc is None) its NodePower with the address of its BMC, lab or
        redfish. Further keywords are the lab's machine fields in snake_case."""
        machine.setdefault("boot_seconds", 2)
        machine.setdefault("shutdown_seconds", 1)
        machine.setdefault("rapl", True)
        on = machine.get("initial_state", "On") == "On"
        self.bed.api.create(objects.node(name, cpu=str(cpu), memory=memory, zone=zone, labels=labels,
                                         annotations=annotations, taints=taints, kwok=on))
        if self._agents:
            self._write_agent_files(name)
        self.room.add_machine(name, cpus=cpu, **machine)
        spec: dict[str, Any] = {}
        if bmc:
            spec["bmc"] = self.bmc_of(name, bmc)
        if model:
            spec["model"] = model
        if spec:
            try:
                self.bed.api.create({"apiVersion": "kwatt.dev/v1alpha1", "kind": "NodePower",
                                     "metadata": {"name": name}, "spec": spec})
            except ApiError as error:
                if error.status != 409:  # the controller was faster: it has heard the agent already
                    raise
                self.bed.api.patch("NodePower", name, {"spec": spec})
        if on and wait:
            self.bed.wait_node_ready(name)

    def bmc_of(self, name: str, kind: str) -> dict[str, Any]:
        """NodePower.spec.bmc of a machine, by the lab's own protocol ("lab") or by Redfish ("redfish"); what the other
        one does not need is null, so that it can be patched in."""
        redfish = kind == "redfish"
        return {"address": self.room.machine(name)["redfish" if redfish else "power"],
                "credentialsSecretRef": {"name": "bmc"} if redfish else None,
                "caSecretRef": {"name": "bmc-ca"} if redfish else None}

    def add_machines(self, *machines: dict[str, Any]) -> None:
        """Several add_machine() at once, each given as its keywords."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda fields: self.add_machine(**fields), machines))

    def _write_agent_files(self, name: str) -> None:
        folder = self.directory / "room" / name
        folder.mkdir(parents=True, exist_ok=True)
        token = self.bed.token_for("kwatt-agent", NAMESPACE, bound_node=name, seconds=TOKEN_SECONDS)
        shutil.copy(self.bed.kubeconfig_for_token(token), folder / "agent.kubeconfig")
        (folder / "push.token").write_text(
            self.bed.token_for("kwatt-agent", NAMESPACE, audience="kwatt", bound_node=name, seconds=TOKEN_SECONDS))

    # ---- what one sees ------------------------------------------------------------------------------------

    def node(self, name: str) -> dict[str, Any]:
        return self.bed.api.get("Node", name)

    def machine_power(self, name: str) -> dict[str, Any]:
        """The NodePower's status, {} if there is none yet."""
        found = self.bed.api.find("NodePower", name)
        return (found or {}).get("status", {})

    def policy(self, name: str) -> dict[str, Any]:
        return self.bed.api.get("EnergyPolicy", name)

    def sysfs(self, name: str, attribute: str) -> str:
        """The text of a file below the machine's /sys."""
        return (self.directory / "room" / name / "sys" / attribute).read_text().strip()

    def governor(self, name: str) -> str:
        return self.sysfs(name, "devices/system/cpu/cpufreq/policy0/scaling_governor")

    def commands(self, name: str | None = None) -> list[dict[str, Any]]:
        """The power commands the machines got, from the lab's log, oldest first."""
        return self.room.log(machine=name or "", kind="command")

    def describe(self, name: str) -> str:
        """Everything about one machine, for the message of a failed wait."""
        return json.dumps({"nodepower": self.machine_power(name), "lab": self.room.machine(name)}, indent=1)

    def wait(self, condition: Any, seconds: float, what: str) -> Any:
        return wait_until(condition, seconds, what, every=0.1)
