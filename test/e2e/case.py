"""What an end-to-end case works with: machines, pods and policies of its own on the shared site."""
import itertools
import json
import re
import subprocess

from bed import objects
from bed.process import wait_until
from lab.site import program

# Seconds-long timers, so that a case takes seconds.
FAST = {
    "mode": "Enforce",
    "interval": "1s",
    "powerOn": {"pendingFor": "0s", "headroom": {"cpuPercent": 0, "memoryPercent": 0}, "bootTimeout": "40s"},
    "powerOff": {"idleFor": "2s", "minAwake": 1, "minAwakePerZone": 0, "minOnDuration": "20s",
                 "minOffDuration": "1s", "maxCyclesPerDay": 100, "softTimeout": "5s", "wakeTest": "Skip"},
    "disruption": {"budgets": [{"nodes": "100%"}]},
}
# A machine that is cheap to boot, so that switching it off is worth it at once.
CHEAP_TO_BOOT = {"idleMilliwatts": 100_000, "maxMilliwatts": 300_000, "bootSeconds": 2, "bootJoules": 1,
                 "shutdownSeconds": 1}
_numbers = itertools.count(1)


def merged(base, over):
    """`base` with the members of `over` laid over it, objects member by member."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {key: merged(base[key], over[key]) if key in base and key in over else over.get(key, base.get(key))
            for key in {**base, **over}}


class Case:
    def __init__(self, site, test_name):
        self.site, self.bed = site, site.bed
        slug = re.sub("[^a-z0-9]+", "-", test_name.lower().removeprefix("test_")).strip("-")[:24].strip("-")
        self.name = f"{slug}-{next(_numbers)}"
        self.machines, self._policies = [], []
        self.bed.create_namespace(self.name)

    # ---- arranging ----------------------------------------------------------------------------------------

    def add_machines(self, count, **fields):
        """`count` machines named <case>-1 …, labelled case=<case>; fields as Site.add_machine()."""
        fields.setdefault("model", CHEAP_TO_BOOT)
        names = [f"{self.name}-{len(self.machines) + i + 1}" for i in range(count)]
        labels = {**fields.pop("labels", {}), "case": self.name}
        self.site.add_machines(*({"name": name, "labels": labels, **fields} for name in names))
        self.machines += names
        return names

    def add_each(self, *several):
        """One machine for each of `several` fields, all at once; without waiting for their nodes."""
        names = [f"{self.name}-{len(self.machines) + i + 1}" for i in range(len(several))]
        self.site.add_machines(*({"name": name, "model": CHEAP_TO_BOOT, "wait": False, **fields,
                                  "labels": {**fields.get("labels", {}), "case": self.name}}
                                 for name, fields in zip(names, several)))
        self.machines += names
        return names

    def apply_policy(self, spec=None, name=None, base=FAST):
        """kubectl apply of a policy over this case's machines: `spec` laid over `base`."""
        name = name or self.name
        body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": name},
                "spec": merged({**base, "nodeSelector": {"matchLabels": {"case": self.name}}}, spec or {})}
        self.bed.kubectl("apply", "-f", "-", input=body)
        if name not in self._policies:
            self._policies.append(name)
        return name

    def deploy(self, name, replicas=1, **spec):
        """A Deployment in the case's namespace whose pods stay on the case's machines."""
        spec.setdefault("node_selector", {"case": self.name})
        body = objects.deployment(name, replicas=replicas, namespace=self.name, **spec)
        self.bed.kubectl("apply", "-f", "-", input=body)
        return name

    def deploy_on(self, name, machine, replicas=1, **spec):
        """A Deployment whose first pods land on `machine`: the others are cordoned while it starts."""
        others = [m for m in self.machines if m != machine and not self.node(m)["spec"].get("unschedulable")]
        for other in others:
            self.bed.kubectl("cordon", other)
        self.deploy(name, replicas, **spec)
        self.wait_running(name, replicas)
        for other in others:
            self.bed.kubectl("uncordon", other)

    # ---- looking ------------------------------------------------------------------------------------------

    def node(self, machine):
        return self.site.node(machine)

    def power(self, machine):
        """NodePower.status."""
        return self.site.machine_power(machine)

    def reason(self, machine):
        return self.power(machine).get("decision", {}).get("reason")

    def status(self, policy=None):
        return self.site.policy(policy or self.name).get("status", {})

    def condition(self, kind, policy=None):
        conditions = self.status(policy).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def pods(self, app=None):
        pods = self.bed.api.list("Pod", self.name)
        return [p for p in pods if app is None or p["metadata"]["labels"].get("app") == app]

    def where(self, app=None):
        """Node names of the running pods, sorted."""
        return sorted(p["spec"].get("nodeName", "") for p in self.pods(app) if objects.pod_is_running(p))

    def commands(self, machine):
        return [entry["command"] for entry in self.site.commands(machine)]

    # ---- waiting ------------------------------------------------------------------------------------------

    def wait(self, condition, seconds, what):
        def met():
            self.site.restart_controllers()
            return condition()
        try:
            return wait_until(met, seconds, what, every=0.2)
        except TimeoutError as error:
            raise AssertionError(f"{error}") from None

    def wait_running(self, app, replicas, seconds=30):
        self.wait(lambda: len(self.where(app)) == replicas, seconds, f"{replicas} pods of {app} to run")

    def wait_state(self, machine, state, seconds=40):
        self.wait(lambda: self.power(machine).get("powerState") == state, seconds,
                  f"NodePower {machine} to be {state}")

    def wait_off(self, machine, seconds=40):
        """Off in the status and in the machine room."""
        self.wait_state(machine, "Off", seconds)
        assert self.site.room.machine(machine)["state"] == "Off"

    def wait_on(self, machine, seconds=40):
        self.wait(lambda: self.power(machine).get("powerState") == "On"
                  and not self.node(machine)["spec"].get("unschedulable")
                  and objects.node_is_ready(self.node(machine)), seconds, f"{machine} to be awake")

    def wait_reason(self, machine, reason, seconds=20):
        self.wait(lambda: self.reason(machine) == reason, seconds, f"reason {reason} on {machine}")
        self.ask_why(machine)

    def ask_why(self, machine):
        """`kubectl kwatt why` explains the node, whatever its reason is by now, with nothing left out."""
        done = subprocess.run([program("kubectl-kwatt"), "--kubeconfig", str(self.bed.kubeconfig), "why",
                               f"node/{machine}", "-o", "json"], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        told = json.loads(done.stdout)
        assert told["sentence"].startswith(f"node {machine} is ") and f"({told['reason']})" in told["sentence"], told
        assert not re.search("unknown value|not known|[{}]", told["sentence"] + told.get("change", "")), told
        return told

    def stays(self, condition, seconds, what):
        """`condition` holds for so long."""
        try:
            wait_until(lambda: not condition(), seconds, "")
        except TimeoutError:
            return
        raise AssertionError(f"did not stay: {what}")

    # ---- the end ------------------------------------------------------------------------------------------

    def story(self):
        """What a reader of a failed case wants to see."""
        parts = [f"---- {self.name}", self.bed.kubectl("get", "energypolicies,nodepowers,nodes", "-o", "wide",
                                                        check=False)]
        for name in self._policies:
            found = self.bed.api.find("EnergyPolicy", name)
            parts.append(f"policy {name}: " + json.dumps((found or {}).get("status", {}), indent=1))
        for machine in self.machines:
            parts.append(f"machine {machine}: {self.site.describe(machine)}")
        parts.append(self.bed.kubectl("get", "pods", "-n", self.name, "-o", "wide", check=False))
        parts.append(self.bed.kubectl("get", "events", "-n", "default", "--sort-by=.lastTimestamp", check=False)[-4000:])
        parts.append("controller log:\n" + self.site.controller.log_tail(120))
        return "\n".join(parts)

    def clean_up(self):
        """Policies first (they wake and release what they hold), then pods, nodes and machines."""
        for policy in self._policies:
            self.bed.kubectl("delete", "energypolicy", policy, "--wait=false", "--ignore-not-found")
        self.bed.kubectl("delete", "namespace", self.name, "--wait=false", "--ignore-not-found")
        try:
            self.wait(lambda: not any(self.bed.api.find("EnergyPolicy", p) for p in self._policies), 60,
                      "policies to be gone")
        finally:
            for machine in self.machines:
                self.bed.kubectl("delete", "node", machine, "--wait=false", "--ignore-not-found")
                self.bed.kubectl("delete", "nodepower", machine, "--wait=false", "--ignore-not-found")
                self.site.room.remove_machine(machine)
