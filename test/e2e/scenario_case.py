"""One scenario of test/scenarios on the shared site: its machines as a pool of their own, chosen by a label, so that
many run beside each other. What happens is read from the controller's own history of operations."""
import datetime
import re
import sqlite3

from bed import objects
from e2e.case import Case, merged

# The table is written in minutes; here every duration counts a hundredth, and at least what two samples take.
SPEED, LEAST_SECONDS = 100, 3
# What enforcing() in test/planner/world.hpp is, and all defaults that are durations, so that they are scaled as well.
DEFAULTS = {
    "mode": "Enforce",
    "powerOn": {"highFor": "5m", "bootTimeout": "40m", "headroom": {"cpuPercent": 0, "memoryPercent": 0}},
    "powerOff": {"idleFor": "10m", "minOnDuration": "30m", "minOffDuration": "10m", "softTimeout": "10m"},
    "migration": {"drainTimeout": "40m", "evictionRetry": "2m"},
    "dvfs": {"window": "60s"},
    "capping": {"window": "60s"},
    "disruption": {"budgets": [{"nodes": "100%"}]},
}
OFF_TAINT = {"key": "kwatt.dev/power-off", "effect": "NoExecute"}
PARTS = {"h": 3600, "m": 60, "s": 1}


def seconds(duration):
    """Of a duration as in a policy: "1h", "2m30s"."""
    return sum(int(number) * PARTS[unit] for number, unit in re.findall(r"(\d+)([hms])", duration))


def scaled(value):
    """`value` with every duration in it as it is here; "0s" stays."""
    if isinstance(value, dict):
        return {key: scaled(one) for key, one in value.items()}
    if not isinstance(value, str) or not re.fullmatch(r"(\d+[hms])+", value):
        return value
    length = seconds(value)
    return value if length == 0 else f"{max(LEAST_SECONDS, length // SPEED)}s"


def yesterday():
    moment = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class ScenarioCase(Case):
    """`scenario`: one entry of the table (test/scenarios/README.md)."""

    def __init__(self, site, scenario, number):
        super().__init__(site, f"scenario-{number}")
        self.scenario = scenario
        self.names = {}  # of the table → of the cluster

    # ---- arranging ----------------------------------------------------------------------------------------

    def add_nodes(self):
        """The machines, those that are off as kwatt leaves them, and the Nodes' objects."""
        nodes = self.scenario["nodes"]
        names = [node["name"] for node in nodes]
        assert names == sorted(names), f"{self.scenario['name']}: ties are broken by name, so nodes are listed by name"
        self.names = dict(zip(names, self.add_each(*map(self._fields, nodes))))
        for node in nodes:
            self._remember(node)

    @staticmethod
    def _fields(node):
        idle, most = node.get("idleWatts", 50), node.get("maxWatts", 150)
        model = {"idleMilliwatts": 1000 * idle, "maxMilliwatts": 1000 * most, "bootSeconds": 1, "shutdownSeconds": 1}
        return {"cpu": node.get("cpu", 4), "memory": f"{node.get('memoryGiB', 16)}Gi", "zone": node.get("zone"),
                "annotations": node.get("annotations"), "model": model, "base_load_percent": 0,
                "curve": tuple(idle + (most - idle) * i / 10 for i in range(11)),
                "initial_state": "Off" if node.get("asleep") else "On", "boot_seconds": 0.6, "shutdown_seconds": 0.2}

    def wait_nodes(self):
        for node in self.scenario["nodes"]:
            if not node.get("asleep"):
                self.bed.wait_node_ready(self.names[node["name"]])

    def _remember(self, node):
        """On for a day and woken before; or off since a day, as an off sequence of kwatt leaves it."""
        machine = self.names[node["name"]]
        status = {"memory": {"lastOn": yesterday(), "wakeVerifiedAt": yesterday()}}
        if node.get("asleep"):
            status["powerState"] = "Off"
            status["memory"] |= {"lastOff": yesterday(), "poweredOffByUs": True, "cordonedByUs": True,
                                 "ownerPolicy": self.name}
            self.bed.api.patch("Node", machine, {"spec": {"unschedulable": True, "taints": [OFF_TAINT]}})
        self.bed.api.patch("NodePower", machine, {"status": status}, subresource="status")

    def add_pods(self):
        """A ReplicaSet each, if not bare. Its first pod is bound here, and adopted: its name is that of the table."""
        for pod in self.scenario["pods"]:
            annotations = {"lab.kwatt.dev/cpu": str(self._used(pod)), **pod.get("annotations", {})}
            spec = {"cpu": f"{pod['cpuMilli']}m", "memory": f"{pod.get('memoryMiB', 128)}Mi",
                    "node_selector": {"case": self.name}}
            first = objects.pod(pod["name"], self.name, annotations=annotations, **spec)
            if "node" in pod:
                first["spec"]["nodeName"] = self.names[pod["node"]]
            self.bed.api.create(first)
            if not pod.get("bare"):
                owner = objects.deployment(pod["name"], namespace=self.name, pod_annotations=annotations, **spec)
                self.bed.api.create(owner | {"kind": "ReplicaSet"})
            if "disruptionsAllowed" in pod:
                least = 1 - pod["disruptionsAllowed"]
                self.bed.api.create(objects.disruption_budget(pod["name"], {"app": pod["name"]}, min_available=least,
                                                              namespace=self.name))

    def missing(self):
        """What is not yet as the table has it: pods in their places and owned, machines loaded by them."""
        found = []
        for pod in self.scenario["pods"]:
            seen = self.bed.api.get("Pod", pod["name"], self.name)
            owned = bool(seen["metadata"].get("ownerReferences")) or pod.get("bare")
            waits = any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable"
                        for c in seen["status"].get("conditions", []))
            if not owned or not (objects.pod_is_running(seen) if "node" in pod else waits):
                found.append(f"pod {pod['name']}: {seen['spec'].get('nodeName')}, {seen['status']}")
        for node in self.scenario["nodes"]:
            machine = self.names[node["name"]]
            power, room = self.power(machine), self.site.room.machine(machine)
            used = sum(self._used(pod) for pod in self.scenario["pods"] if pod.get("node") == node["name"])
            if node.get("asleep"):
                right = power.get("powerState") == "Off" and power["memory"].get("poweredOffByUs")
            else:
                right = power.get("report", {}).get("governor") and room["load"]["podMillicores"] == used
            if not right:
                found.append(f"node {node['name']}: {power}, {room['load']}")
        return found

    @staticmethod
    def _used(pod):
        return pod["cpuMilli"] * pod.get("uses", 100) // 100

    def begin(self):
        self.apply_policy(scaled(self.scenario["policy"]), base={"interval": "1s", **scaled(DEFAULTS)})

    # ---- looking ------------------------------------------------------------------------------------------

    def expected(self):
        """As the readers in C++ have it: "n2 PowerOff LowUtilization api-1>n1"; sorted, because the nodes of one pass
        begin side by side."""
        return sorted(" ".join([one["node"], one["action"], one["reason"],
                                *(f"{pod}>{node}" for pod, node in one.get("moves", {}).items())])
                      for one in self.scenario["expect"])

    def begun(self):
        """The actions that the controller has begun under the scenario's policy, sorted."""
        with sqlite3.connect(f"file:{self.site.history_file()}?mode=ro", uri=True) as history:
            rows = history.execute(
                "SELECT n.word, k.word, r.word FROM operations o JOIN words n ON n.id = o.node"
                " JOIN words k ON k.id = o.kind JOIN words r ON r.id = o.reason JOIN words p ON p.id = o.policy"
                " JOIN words f ON f.id = o.phase WHERE p.word = ? AND f.word = 'begun'",
                (self.name,)).fetchall()
        table = {machine: name for name, machine in self.names.items()}
        moves = {}
        for move in self.status().get("migrations", []):
            moves.setdefault(move["fromNode"], []).append(f"{move['podName']}>{table[move['nodeName']]}")
        return sorted(" ".join([table[node], kind, reason, *moves.get(node, [])]) for node, kind, reason in rows)

    def left(self):
        """Of the nodes that the table says are left alone, and why: what the controller says of them."""
        return {name: self.reason(self.names[name]) for name in self.scenario.get("left", {})}

    def agrees(self):
        return self.begun() == self.expected() and self.left() == self.scenario.get("left", {})
