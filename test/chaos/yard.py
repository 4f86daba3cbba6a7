"""A site for many plans: four small machines, one controller behind the fault proxy, and a keeper that starts the
controller again whenever it has ended, as a Deployment does."""
import os
import signal
import threading
import time

from bed import Timers, objects
from bed.client import ApiError, path_of
from bed.process import wait_until
from chaos import state
from e2e.case import CHEAP_TO_BOOT, FAST, merged
from e2e.observer import Observer
from lab.site import Site
from support.fault_proxy import FaultProxy

RESTORE_AFTER = 12
PATIENCE = 60
BY_HAND = "kwatt.dev/max-frequency-mhz"


def patience(seconds=PATIENCE):
    """A wait's end in seconds: longer where other programs want the processors too. Only hangs meet it."""
    return seconds * (1 + min(2.0, os.getloadavg()[0] / (os.cpu_count() or 1) / 4))


class Yard:
    POLICY = "chaos"
    NAMESPACE = "chaos"
    ZONES = {"m1": "a", "m2": "a", "m3": "b", "m4": "b"}
    MACHINES = tuple(ZONES)
    OWN_NODE = "m4"  # the controller says that it runs there

    def __init__(self, directory=None):
        os.environ["KWATT_RESTORE_AFTER"] = f"{RESTORE_AFTER}s"
        self.site = Site(directory, timers=Timers(node_lease_seconds=4, node_monitor_grace="6s"))
        self._wanted, self._lives, self._lock = False, 0, threading.RLock()
        self._ended = threading.Event()
        self.peak = {}
        self.read_only_since = None

    def __enter__(self):
        self.site.start()
        try:
            self.api = self.site.bed.api
            self.proxy = FaultProxy(self.site.bed.port, self.site.bed.ca_file,
                                    *self.site.bed.issue_server_cert("fault-proxy"))
            self.proxy.start()
            self.proxy.kill, self.proxy.outside = self.kill, self._outside
            self.observer = Observer(self.site, own_node=self.OWN_NODE)
            self.observer.start()
            self.site.bed.create_namespace(self.NAMESPACE)
            self.site.add_machines(*({"name": name, "zone": zone, "model": CHEAP_TO_BOOT, "boot_seconds": 0.6,
                                      "shutdown_seconds": 0.3} for name, zone in self.ZONES.items()))
            self.peak = {name: self.site.room.machine(name)["packages"][0]["limitWatts"] for name in self.MACHINES}
            self._wanted, self._lives = True, 1
            self.proxy.sender = "controller 1"
            self.controller = self.site.start_controller("--node-name", self.OWN_NODE, server=self.proxy.url)
            self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
            self._keeper.start()
            self.wait(lambda: all(self.site.machine_power(m).get("report") for m in self.MACHINES), "first reports")
            self.reset()
            self.pristine = state.capture(self)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._ended.set()
        with self._lock:
            self._wanted = False
        if hasattr(self, "observer"):
            self.observer.stop()
        self.site.stop()
        if hasattr(self, "proxy"):
            self.proxy.stop()

    # ---- the controller -----------------------------------------------------------------------------------

    def _keep(self):
        while not self._ended.wait(0.05):
            with self._lock:
                if self._wanted and not self.controller.running():
                    self._lives += 1
                    self.proxy.sender = f"controller {self._lives}"
                    self.controller.start()

    def kill(self):
        """SIGKILL; the keeper starts another one."""
        self.controller.signal(signal.SIGKILL)

    def stop_controller(self, kill=False):
        """It stays away until start_controller()."""
        with self._lock:
            self._wanted = False
            self.controller.stop(grace=0 if kill else 10)

    def start_controller(self):
        with self._lock:
            self._wanted = True

    def leading(self):
        """The present process has the lease."""
        sender = self.proxy.sender
        return self.controller.running() and any(
            r.sender == sender and r.plural == "leases" and r.mutating and 200 <= r.status < 300
            for r in reversed(self.proxy.records))

    def _outside(self, fault, name):
        if fault.kind == "pause":
            self.controller.signal(signal.SIGSTOP)
            time.sleep(fault.value)
            self.controller.signal(signal.SIGCONT)
        elif fault.kind == "term":
            self.controller.signal(signal.SIGTERM)
        elif fault.kind == "agents":
            for machine in self.MACHINES:
                self.site.room.signal_agent(machine, "SIGKILL")
        elif fault.kind == "apiserver":
            self.site.bed.restart_apiserver(kill=True)
        else:
            self.site.room.set_faults(name, bmc=fault.kind.removeprefix("bmc-"), bmcCount=1,
                                      bmcDelaySeconds=fault.value or 1)

    # ---- arranging ----------------------------------------------------------------------------------------

    def apply_policy(self, machines, spec):
        body = {"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": self.POLICY},
                "spec": merged({**FAST, "nodeSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": list(machines)}]}}, spec)}
        self.api.create(body)

    def change_policy(self, spec):
        self.api.patch("EnergyPolicy", self.POLICY, {"spec": spec})

    def models(self, model):
        for machine in self.MACHINES:
            self.api.patch("NodePower", machine, {"spec": {"model": model}})

    def bmcs(self, kind, *machines):
        """They are reached by this protocol from now on: "lab" or "redfish"."""
        for machine in machines:
            self.api.patch("NodePower", machine, {"spec": {"bmc": self.site.bmc_of(machine, kind)}})

    def load(self, **percents):
        for machine, percent in percents.items():
            self.site.room.set_load(machine, percent)

    def deploy(self, name, replicas, machines, **spec):
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(machines)}]}]}}}
        self.api.create(objects.deployment(name, replicas=replicas, namespace=self.NAMESPACE, affinity=affinity, **spec))

    def deploy_on(self, name, replicas, machine, machines, **spec):
        """Pods that may run on `machines`, and begin on `machine`: the others are cordoned meanwhile."""
        others = [m for m in machines if m != machine]
        for other in others:
            self.api.patch("Node", other, {"spec": {"unschedulable": True}})
        self.deploy(name, replicas, machines, **spec)
        self.wait(lambda: len(self.where(name)) == replicas, f"{name} to run")
        for other in others:
            self.api.patch("Node", other, {"spec": {"unschedulable": None}})

    def where(self, app):
        return sorted(p["spec"]["nodeName"] for p in self.api.list("Pod", self.NAMESPACE)
                      if p["metadata"]["labels"]["app"] == app and objects.pod_is_running(p))

    # ---- looking ------------------------------------------------------------------------------------------

    def power(self, machine):
        return self.site.machine_power(machine)

    def is_off(self, machine):
        return self.power(machine).get("powerState") == "Off"

    def idle(self):
        """No operation is under way."""
        return not any(self.power(m).get("operation", {}).get("id") for m in self.MACHINES)

    def policy_status(self):
        return (self.api.find("EnergyPolicy", self.POLICY) or {}).get("status", {})

    def policy_seen(self):
        """The controller's status is about the policy as it is."""
        policy = self.api.find("EnergyPolicy", self.POLICY)
        return policy and policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"]

    def wait(self, condition, what, seconds=PATIENCE):
        """TimeoutError names what was awaited. An API server that is gone for a moment is no answer."""
        def asked():
            try:
                return condition()
            except (OSError, ApiError) as error:
                if isinstance(error, ApiError) and error.status not in (404, 429, 500, 503, 504):
                    raise
                return False
        return wait_until(asked, patience(seconds), what, every=0.15)

    def past_lists(self):
        """What the collections that the controller lists look like now, for the fault `stale`."""
        return {path: self.api._exchange("GET", path, None, "")[2] for path in self.proxy.list_paths()}

    # ---- between plans ------------------------------------------------------------------------------------

    def clean_up(self):
        """The policy goes (kwatt gives back what it holds), then pods and loads."""
        self.proxy.heal()
        self.read_only_since = None
        for machine in self.MACHINES:
            self.site.room.set_faults(machine, bmc="ok", bmcCount=0)
        self.start_controller()
        if self.api.find("EnergyPolicy", self.POLICY):
            self.api.delete("EnergyPolicy", self.POLICY)
        for kind in ("Deployment", "PodDisruptionBudget"):
            self.api.request("DELETE", path_of(kind, None, self.NAMESPACE) + "?propagationPolicy=Background")
        self.wait(lambda: not self.api.find("EnergyPolicy", self.POLICY), "the policy to be gone")

    def reset(self):
        """As at the beginning. The controller stays, unless a plan has killed it; its records of this plan go."""
        self.wait(self.leading, "the controller to lead")
        self.wait(lambda: not self.api.list("Pod", self.NAMESPACE), "the pods to be gone")
        for machine in self.MACHINES:
            self.site.room.set_load(machine, 1)
            # By hand only where a scenario says so; the agent's report stays, it is not ours to reset.
            self.api.annotate("Node", machine, {BY_HAND: None})
            self.api.patch("NodePower", machine, {"status": {"memory": None, "decision": None, "bmc": None}},
                           subresource="status")
        self.models(CHEAP_TO_BOOT)
        self.bmcs("lab", *self.MACHINES)
        self.wait(lambda: all(objects.node_is_ready(self.api.get("Node", m)) for m in self.MACHINES), "nodes Ready")
        self.proxy.forget()
