"""An observer that is not kwatt: it reads the API server and the machine room, and checks the invariants
of the product from outside. It keeps what it saw, so a violation is found even if it was short."""
import threading
import time

from bed import Client
from bed.client import ApiError

# A machine may be asked to power off only while no such pod is on it.
EVERY = 0.25


def is_workload(pod):
    owners = pod["metadata"].get("ownerReferences", [])
    daemon = any(owner.get("controller") and owner["kind"] == "DaemonSet" for owner in owners)
    static = "kubernetes.io/config.mirror" in pod["metadata"].get("annotations", {})
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") and not daemon and not static


class Observer:
    def __init__(self, site):
        self._site = site
        self._api = Client(*site.bed.connection())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)
        self._lock = threading.Lock()
        self._violations = []     # (machine, sentence)
        self._operations = {}     # machine → ids seen in status.operation
        self._log_seq = 0

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(timeout=10)

    def take_violations(self, machines):
        """The violations on these machines, after one more look."""
        time.sleep(2 * EVERY)
        with self._lock:
            mine = [text for machine, text in self._violations if machine in machines]
            self._violations = [v for v in self._violations if v[0] not in machines]
        return mine

    def _run(self):
        while not self._stop.wait(EVERY):
            try:
                self._look()
            except (OSError, ApiError, ValueError):
                continue  # the API server is down in some cases; what it says later still counts

    def _look(self):
        # The order matters: an operation is committed before its command, so commands are read first
        # and must all be covered by what the API says afterwards.
        commands = self._site.room.log(since=self._log_seq, kind="command")
        pods = {}
        for pod in self._api.list("Pod"):
            pods.setdefault(pod["spec"].get("nodeName"), []).append(pod)
        machines = {m["metadata"]["name"]: m for m in self._api.list("NodePower")}
        nodes = {n["metadata"]["name"]: n for n in self._api.list("Node")}
        with self._lock:
            for name, machine in machines.items():
                operation = machine.get("status", {}).get("operation", {})
                if operation.get("id"):
                    self._operations.setdefault(name, set()).add(operation["id"])
            for entry in commands:
                self._log_seq = max(self._log_seq, entry["seq"])
                if entry["source"] != "button":
                    self._check_command(entry, pods, nodes)

    def _check_command(self, entry, pods, nodes):
        name, command = entry["machine"], entry["command"]

        def violated(text):
            self._violations.append((name, f"{command} to {name} (operation {entry['operationId']}): {text}"))

        # c: every machine operation has an earlier committed intent with the same id.
        if not entry["operationId"]:
            violated("no operation id went with it")
        elif entry["operationId"] not in self._operations.get(name, set()):
            violated("its operation was never seen in the NodePower")
        if command == "On":
            return
        # a: never off while a workload pod runs on it.
        running = [p["metadata"]["name"] for p in pods.get(name, []) if is_workload(p)]
        if running:
            violated(f"these pods were on it: {', '.join(running)}")
        # f: control-plane nodes and excluded nodes are never powered off.
        node = nodes.get(name, {"metadata": {}})
        if "node-role.kubernetes.io/control-plane" in node["metadata"].get("labels", {}):
            violated("it is a control-plane node")
        if node["metadata"].get("annotations", {}).get("kwatt.dev/exclude") == "true":
            violated("it is excluded")
