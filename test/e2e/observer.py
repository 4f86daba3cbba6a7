"""An observer that is not kwatt: it reads the API server and the machine room, and checks the invariants of the
product from outside (e2e/invariants.py). It looks at the very moment of every command to a machine, while its
sender waits for the answer, and besides four times a second; it keeps what it saw."""
import os
import threading
import time
from pathlib import Path

from bed import Client
from bed.client import ApiError
from e2e import invariants
from e2e.invariants import Sight
from lab.physics import PACKAGE_IDLE

EVERY = 0.25
BLIND_LOOKS = 4  # that an operation has to show up after an API server that was gone
LEASE = ("kwatt-controller", "kwatt-system")


def sender_of(port, pids):
    """Which of these processes has the TCP connection from this local port; None: none."""
    inodes = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
              if int(line.split()[1].split(":")[1], 16) == port}
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.removeprefix("socket:[").removesuffix("]") in inodes:
                return pid
    return None


def most_watts(machine):
    """The cap in force on a machine of the lab: what it draws when its packages are at their limits and the rest of it
    is as now. Without a cap the most it can draw; off, what it draws."""
    most = machine.spec.curve[10]
    if machine.state == "PoweringOn":
        return most
    if machine.state != "On":
        return machine.watts
    now, peak = machine.solution, machine.package_peak_uw
    caps = [machine.wall_cap] if machine.wall_cap is not None else []
    limits = [p.long_term_uw for p in machine.settings.packages if p.enabled and machine.spec.rapl]
    if limits and all(limit < peak for limit in limits):
        caps.append(sum(limits) / 1e6 + now.wall_watts - sum(now.package_watts))
    return min([most, *caps])


def cap_range(machine):
    """The watts that the limiters of a machine's packages can be asked for, together with what the rest of it draws: from a
    tenth of the packages' peak, what is taken where the kernel names no minimum, beside the least draw of the rest."""
    peak, idle = machine.package_peak_uw / 1e6 * machine.spec.packages, machine.spec.curve[0]
    return int(peak / 10 + idle * (1 - PACKAGE_IDLE)), int(machine.spec.curve[10])


class Observer:
    """`identities` (two controllers): returns pid → identity in the Lease, for every process that may send commands.
    `own_node`: the controller's --node-name."""

    def __init__(self, site, identities=None, own_node=""):
        self._site, self._identities, self._own_node = site, identities, own_node
        self._api = Client(*site.bed.connection(), timeout=5)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)
        self._lock = threading.RLock()
        self._violations = []      # (machine, sentence)
        self._operations = {}      # machine → ids seen in status.operation
        self._last = Sight(0.0)    # what was seen last, for when the API server is gone
        self._since = {}           # policy → ((uid, generation), when it was first seen)
        self._finalized = set()    # policies that were seen with our finalizer
        self._excluded_since = {}
        self._kept_watts = set()
        self._blind = []           # [looks left, arguments of command_violations] of commands nobody could look at
        self._log_seq = 0
        self.commands = []         # (entry, pid or None) of all commands but the button's
        self.looks = 0

    def start(self):
        self._site.room.listen(self._logged)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(timeout=10)

    def take_violations(self, machines=None):
        """The violations on these machines (None: all), each once, after one more look."""
        time.sleep(2 * EVERY)
        end = time.monotonic() + 10
        while time.monotonic() < end and any(machines is None or c[0]["machine"] in machines for _, c in self._blind):
            time.sleep(EVERY)
        with self._lock:
            mine = [text for machine, text in self._violations if machines is None or machine in machines]
            self._violations = [v for v in self._violations if machines is not None and v[0] not in machines]
        return list(dict.fromkeys(mine))

    def note(self, violations):
        with self._lock:
            self._violations += violations

    # ---- looking ------------------------------------------------------------------------------------------

    def _look(self, room):
        """`room`: the lab's, on its own thread. Policies come first: of one that is gone by then, nothing may be left
        in what is read after it."""
        sight = Sight(time.time())
        sight.policies = {p["metadata"]["name"]: p for p in self._api.list("EnergyPolicy")}
        sight.machines = {m["metadata"]["name"]: m for m in self._api.list("NodePower")}
        sight.nodes = {n["metadata"]["name"]: n for n in self._api.list("Node")}
        for pod in self._api.list("Pod"):
            sight.pods.setdefault(pod["spec"].get("nodeName"), []).append(pod)
        sight.lease = self._api.find("Lease", *LEASE)
        if room is not None:
            self._see_room(room, sight)
        else:
            self._site.room.call(lambda own: self._see_room(own, sight))
        now = {p["metadata"]["name"]: p for p in self._api.list("EnergyPolicy")}
        sight.changing = {name for name, policy in sight.policies.items()
                          if self._wish(policy) != self._wish(now.get(name))}
        return sight

    @staticmethod
    def _wish(policy):
        return policy and (policy["metadata"]["generation"], policy["metadata"].get("deletionTimestamp"))

    @staticmethod
    def _see_room(room, sight):
        for name, machine in room.machines.items():
            sight.states[name] = machine.state
            sight.most_watts[name] = most_watts(machine)
            sight.hardware[name] = {"mhz": (machine.spec.min_mhz, machine.spec.max_mhz), "cap": cap_range(machine)}

    def _remember(self, sight):
        self._last = sight
        self.looks += 1
        for name in sight.machines:
            if operation := invariants.operation_of(sight, name).get("id"):
                self._operations.setdefault(name, set()).add(operation)
        for name, policy in sight.policies.items():
            version = policy["metadata"]["uid"], policy["metadata"]["generation"]
            if self._since.get(name, (None,))[0] != version:
                self._since[name] = version, sight.time
            if any(f.startswith("kwatt.dev/") for f in policy["metadata"].get("finalizers", [])):
                self._finalized.add(name)
        for name, node in sight.nodes.items():
            if node["metadata"].get("annotations", {}).get("kwatt.dev/exclude") == "true":
                self._excluded_since.setdefault(name, sight.time)
            else:
                self._excluded_since.pop(name, None)

    # ---- at the moment of a command (on the lab's thread) -------------------------------------------------

    def _logged(self, room, entry):
        if entry["kind"] not in ("command", "cap") or entry["source"] == "button":
            return
        pid = identity = None
        if self._identities is not None:
            known = self._identities()
            pid = sender_of(entry["peerPort"], known)
            identity = known.get(pid, "")
        blind = False
        try:
            sight = self._look(room)
        except (OSError, ApiError, ValueError):
            sight, blind = self._last, True  # the API server is down in some cases; what it said last counts
        with self._lock:
            if entry["kind"] == "command":
                self.commands.append((entry, pid))
            # The same set for good: what is committed later is in it later.
            command = (entry, sight, self._operations.setdefault(entry["machine"], set()), identity, self._own_node)
            if blind:
                self._blind.append([BLIND_LOOKS, command])
            else:
                self._violations += invariants.command_violations(*command)

    # ---- four times a second ------------------------------------------------------------------------------

    def _run(self):
        while not self._stop.wait(EVERY):
            try:
                # Not under the lock: the room's thread takes it while it logs a command.
                sight = self._look(None)
                writes = self._site.room.log(since=self._log_seq, kind="sysfs")
            except (OSError, ApiError, ValueError):
                continue
            self._log_seq = max([self._log_seq, *(entry["seq"] for entry in writes)])
            with self._lock:
                self._remember(sight)
                self._judge_blind()
                self._check(sight, writes)

    def _judge_blind(self):
        """An operation that was committed right before the API server went shows when it is back."""
        still = []
        for looks_left, command in self._blind:
            entry, _, operations, *_ = command
            if looks_left <= 1 or entry["operationId"] in operations:
                self._violations += invariants.command_violations(*command)
            else:
                still.append([looks_left - 1, command])
        self._blind = still

    def _check(self, sight, writes):
        since = {name: seen for name, (_, seen) in self._since.items()}
        gone = self._finalized - set(sight.policies)
        self._violations += invariants.budget_violations(sight, since)
        self._violations += invariants.watts_violations(sight, self._kept_watts)
        self._violations += invariants.range_violations(sight)
        self._violations += invariants.write_violations(writes, sight.hardware)
        self._violations += invariants.untouchable_violations(sight, self._excluded_since, self._own_node)
        self._violations += invariants.remains_violations(sight, gone)
