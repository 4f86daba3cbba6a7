"""The real kwatt-agent as wake-on-LAN relay: on one end of a cable made of two network namespaces, with a raw socket
on the other end. The API server, which is outside, is reached through a forwarder over a Unix socket."""
import itertools
import json
import os
import shutil
import socket
import subprocess
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

from bed.process import Process, wait_until
from lab.site import NAMESPACE, program
from support.forward import serve

pytestmark = pytest.mark.xdist_group("agent")
PYTHON = "/usr/bin/python3"
MAC = "52:54:00:12:34:56"
PAYLOAD = b"\xff" * 6 + bytes.fromhex(MAC.replace(":", "")) * 16
BROADCAST = b"\xff" * 6
_numbers = itertools.count(1)

# Prints every frame that arrives at an interface, as hexadecimal digits.
CAPTURE = """
import socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.bind((sys.argv[1], 0))
print("ready", flush=True)
while True:
    frame, where = raw.recvfrom(65535)
    if where[2] != socket.PACKET_OUTGOING:
        print(frame.hex(), flush=True)
"""
# TCP 127.0.0.1:PORT in here to a Unix socket, which does not know namespaces.
INSIDE = """
import socket, sys
sys.path.insert(0, sys.argv[3])
from forward import serve
def to_unix():
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(sys.argv[2])
    return peer
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
serve(listener, to_unix)
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, timeout=20)


class Cable:
    """Namespaces `here` (with a way to the API server) and `there`, joined by a veth pair."""

    def __init__(self, directory, port):
        number = f"{os.getpid()}-{next(_numbers)}"
        self.here, self.there = f"kwatt-wol-{number}-a", f"kwatt-wol-{number}-b"
        self.processes = []
        try:
            for namespace in (self.here, self.there):
                ip("netns", "add", namespace)
            ip("-n", self.here, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", self.there)
            for namespace, device, address in ((self.here, "near", "10.213.77.1/24"), (self.there, "far",
                                                                                      "10.213.77.2/24")):
                ip("-n", namespace, "address", "add", address, "broadcast", "10.213.77.255", "dev", device)
                ip("-n", namespace, "link", "set", device, "up")
            ip("-n", self.here, "link", "set", "lo", "up")
            self.captured = self._start("capture", self.there, CAPTURE, "far")
            self._forward(directory, port)
        except BaseException:
            self.close()
            raise

    def _start(self, name, namespace, code, *arguments):
        log = self.directory_of(name)
        process = Process(name, ["ip", "netns", "exec", namespace, PYTHON, "-c", code, *map(str, arguments)], log)
        process.start()
        self.processes.append(process)
        wait_until(lambda: process.check() or "ready" in log.read_text(), 10, name, every=0.05)
        return log

    def directory_of(self, name):
        folder = Path("/tmp") / self.here
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.log"

    def _forward(self, directory, port):
        path = Path("/tmp") / self.here / "api"  # a Unix socket's path must be short
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(16)
        threading.Thread(target=serve, daemon=True,
                         args=(listener, lambda: socket.create_connection(("127.0.0.1", port)))).start()
        self._start("forward", self.here, INSIDE, port, path, ROOT / "test" / "support")

    def frames(self):
        """(kind, frame) of the magic packets that have arrived: "udp" or "ethernet"."""
        found = []
        for line in self.captured.read_text().splitlines()[1:]:
            frame = bytes.fromhex(line)
            if PAYLOAD not in frame:
                continue
            kind = {b"\x08\x00": "udp", b"\x08\x42": "ethernet"}.get(frame[12:14], "other")
            found.append((kind, frame))
        return found

    def kinds(self):
        return sorted(kind for kind, _ in self.frames())

    def close(self):
        for process in self.processes:
            process.stop(grace=0)
        for namespace in (self.here, self.there):
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True, timeout=20)
        shutil.rmtree(Path("/tmp") / self.here, ignore_errors=True)


class Agent:
    def __init__(self, site, cable, name):
        self.site, self.bed, self.cable, self.name = site, site.bed, cable, name
        site.add_machine(name, cpu=4, wait=False)
        self.directory = site.directory / "room" / name
        token = self.bed.token_for("kwatt-agent", NAMESPACE, bound_node=name)
        self.kubeconfig = self.bed.kubeconfig_for_token(token)
        self.process = None

    def start(self, *options, prefix=()):
        command = ["ip", "netns", "exec", self.cable.here, *prefix, program("kwatt-agent"), "--node-name", self.name,
                   "--kubeconfig", self.kubeconfig, "--sysfs-root", self.directory / "sys", "--proc-root",
                   self.directory / "proc", "--sample-interval", "250ms", "--log-format", "logfmt", *options]
        self.process = Process("agent", [str(part) for part in command], self.directory / "agent.log")
        self.process.start()

    def annotate(self, **annotations):
        self.bed.api.annotate("Node", self.name, {f"kwatt.dev/{key.replace('_', '-')}": value
                                                  for key, value in annotations.items()})

    def note(self, id, age=timedelta()):
        time = (datetime.now(timezone.utc) - age).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"id": id, "mac": MAC, "node": "sleeper", "time": time}

    def report(self):
        return self.site.machine_power(self.name).get("report", {})

    def wait(self, condition, what, seconds=20):
        def met():
            self.process.check()
            return condition()
        try:
            wait_until(met, seconds, what, every=0.05)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.report(), indent=1)}\nframes: {self.cable.kinds()}\n"
                                 f"{self.process.log_tail(25)}") from None


@pytest.fixture
def agent(site, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    cable = Cable(tmp_path, site.bed.port)
    made = Agent(site, cable, f"relay-{next(_numbers)}")
    yield made
    if made.process:
        made.process.stop(grace=5)
    cable.close()


def test_an_annotation_becomes_one_broadcast_in_both_forms(agent):
    agent.start()
    agent.wait(agent.report, "the agent's first report")
    agent.annotate(wake_lan=json.dumps(agent.note("op-1/1")))
    agent.wait(lambda: len(agent.cable.kinds()) >= 2, "the packets")
    # The same id again, and beside another annotation: not a second time.
    agent.annotate(wake_lan=json.dumps([agent.note("op-1/1")]), governor="powersave")
    agent.wait(lambda: agent.report().get("governor") == "powersave", "the other annotation")
    assert agent.cable.kinds() == ["ethernet", "udp"]
    frames = dict(agent.cable.frames())
    assert frames["udp"][:6] == frames["ethernet"][:6] == BROADCAST
    assert frames["ethernet"][14:116] == PAYLOAD
    header = frames["udp"][14:34]
    assert socket.inet_ntoa(header[16:20]) == "10.213.77.255" and frames["udp"][36:38] == b"\x00\x09"  # port 9
    agent.annotate(wake_lan=json.dumps([agent.note("op-1/1"), agent.note("op-1/2")]))
    agent.wait(lambda: agent.cable.kinds() == ["ethernet", "ethernet", "udp", "udp"], "the second attempt")


def test_without_the_right_to_raw_sockets_the_udp_broadcast_goes_out(agent):
    agent.start(prefix=("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"))
    agent.wait(agent.report, "the agent's first report")
    agent.annotate(wake_lan=json.dumps(agent.note("op-2/1")))
    agent.wait(lambda: agent.cable.kinds() == ["udp"], "the packet")


def test_an_agent_that_comes_back_does_not_wake_anybody_again_after_long(agent):
    agent.annotate(wake_lan=json.dumps(agent.note("op-3/1", age=timedelta(minutes=6))))
    agent.start()
    agent.wait(agent.report, "the agent's first report")
    agent.wait(lambda: agent.report().get("converged"), "the Node to have been seen")
    assert agent.cable.kinds() == []


def test_the_machine_is_switched_off_only_for_this_boot_and_says_that_it_can_be(agent):
    script, trace = agent.directory / "power-off", agent.directory / "went-off"
    script.write_text(f"#!/bin/sh\necho \"$1\" >> {trace}\n")
    script.chmod(0o755)
    agent.start("--power-off-command", f"{script} now")
    agent.wait(lambda: agent.report().get("canPowerOff"), "the report")
    agent.annotate(power_state="off")
    agent.wait(lambda: any("power-off-boot" in e for e in agent.report().get("errors", [])), "the refusal")
    agent.annotate(power_off_boot="another-boot")
    agent.wait(lambda: not agent.report().get("errors"), "the refusal to go")
    assert not trace.exists()
    agent.annotate(power_off_boot=agent.report()["bootID"])
    agent.wait(trace.exists, "the command")
    assert trace.read_text() == "now\n"
