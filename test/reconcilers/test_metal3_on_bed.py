"""The Metal3 driver against a real API server: the real kwatt-controller with the rights of manifests/, and a fake
Metal3 that does what spec.online says to the lab's machine."""
import itertools
import threading
from pathlib import Path

import pytest
from bed import objects, register_kind
from bed.client import ApiError
from bed.process import wait_until
from e2e.case import CHEAP_TO_BOOT, FAST
from lab.site import Site

pytestmark = pytest.mark.xdist_group("metal3")
ROOT = Path(__file__).resolve().parent.parent.parent
SPACE = "metal3"
NUMBERS = itertools.count(1)
register_kind("BareMetalHost", "/apis/metal3.io/v1alpha1", "baremetalhosts", namespaced=True)


class FakeMetal3(threading.Thread):
    """Switches the machines of the room as their hosts say, and writes what it sees into their status."""

    def __init__(self, site):
        super().__init__(name="fake-metal3", daemon=True)
        self.site, self.ended = site, threading.Event()

    def add_host(self, machine, state="provisioned", **annotations):
        api = self.site.bed.api
        api.create({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
                    "metadata": {"name": machine, "namespace": SPACE, "annotations": annotations},
                    "spec": {"online": True, "bmc": {"address": "ipmi://10.0.0.7"}}})
        api.patch("BareMetalHost", machine, {"status": {
            "poweredOn": True, "operationalStatus": "OK", "errorMessage": "", "provisioning": {"state": state}}},
            namespace=SPACE, subresource="status")

    def run(self):
        while not self.ended.wait(0.2):
            try:
                for host in self.site.bed.api.list("BareMetalHost", SPACE):
                    self._serve(host)
            except ApiError as error:
                if error.status not in (409, 429):  # somebody was faster; the kind is too new
                    raise

    def _serve(self, host):
        name, annotations = host["metadata"]["name"], host["metadata"].get("annotations") or {}
        if any(key.startswith("baremetalhost.metal3.io/") for key in annotations):
            return
        if name not in self.site.room.call(lambda room: set(room.machines)):
            return  # its case is over
        state, online = self.site.room.machine(name)["state"], host["spec"]["online"]
        if state == "On" and not online:
            self.site.room.power(name, "GracefulShutdown")
        if state == "Off" and online:
            self.site.room.power(name, "On")
        powered = state != "Off"
        if host.get("status", {}).get("poweredOn") not in (None, powered):
            self.site.bed.api.patch("BareMetalHost", name, {"status": {"poweredOn": powered}}, namespace=SPACE,
                                    subresource="status")

    def stop(self):
        self.ended.set()
        self.join(timeout=10)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("metal3-site"), agents=False, redfish=False) as site:
        bed = site.bed
        crd = ROOT / "test" / "reconcilers" / "baremetalhosts.yaml"
        bed.kubectl("apply", "-f", crd)
        bed.kubectl("wait", "--for=condition=Established", "--timeout=20s", "-f", crd)
        bed.create_namespace(SPACE)
        site.start_controller()
        yield site


@pytest.fixture(scope="module")
def metal3(site):
    fake = FakeMetal3(site)
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def pair(site, metal3, request):
    """Two machines, the second one with a host, and a policy over them; the namespace has their name."""
    name = f'{request.node.originalname.removeprefix("test_")[:20].strip("_").replace("_", "-")}-{next(NUMBERS)}'
    keep, machine = f"{name}-1", f"{name}-2"
    site.bed.create_namespace(name)
    for one in (keep, machine):
        site.add_machine(one, cpu=4, bmc=None, labels={"case": name}, model=CHEAP_TO_BOOT)
    site.bed.api.patch("NodePower", machine, {"spec": {"bmc": {"address": f"metal3://{SPACE}/{machine}"}}})
    yield name, machine
    site.bed.kubectl("delete", "energypolicy", name, "--ignore-not-found", "--timeout=90s", timeout=100)
    for one in (keep, machine):
        site.bed.kubectl("delete", "node,nodepower", one, "--wait=false", "--ignore-not-found")
        site.room.remove_machine(one)


def apply_policy(site, name):
    site.bed.kubectl("apply", "-f", "-", input={
        "apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": name},
        "spec": {**FAST, "nodeSelector": {"matchLabels": {"case": name}}}})


def wait(site, condition, seconds, what):
    try:
        wait_until(condition, seconds, what, every=0.2)
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{site.controller.log_tail(60)}") from None


def event_notes(site, machine):
    events = site.bed.kubectl_json("get", "events.events.k8s.io", "-n", "default")["items"]
    return [e.get("note", "") for e in events if e.get("regarding", {}).get("name") == machine]


def test_a_host_is_switched_off_and_on_by_spec_online(site, metal3, pair):
    name, machine = pair
    metal3.add_host(machine)
    apply_policy(site, name)
    # Without the optional role the controller may not read hosts: the node stays on, and says so.
    wait(site, lambda: any("forbidden" in note for note in event_notes(site, machine)), 40, "the refusal by RBAC")
    assert site.room.machine(machine)["state"] == "On"
    site.bed.kubectl("apply", "-f", ROOT / "manifests" / "optional" / "metal3-rbac.yaml")
    site.bed.api.patch("NodePower", machine, {"status": {"memory": {"nextAttempt": None, "failureCount": 0}}},
                       subresource="status")
    wait(site, lambda: site.machine_power(machine).get("powerState") == "Off", 60, "the machine to be off")
    host = site.bed.api.get("BareMetalHost", machine, SPACE)
    assert host["spec"]["online"] is False and host["status"]["poweredOn"] is False
    assert not [key for key in host["metadata"].get("annotations") or {} if key.startswith("reboot.metal3.io")]
    assert host["spec"]["bmc"] == {"address": "ipmi://10.0.0.7"}  # nothing else of it was touched

    site.bed.kubectl("apply", "-f", "-", input=objects.deployment("web", replicas=2, namespace=name, cpu="3",
                                                                  node_selector={"case": name}))
    wait(site, lambda: site.machine_power(machine).get("powerState") == "On", 60, "the machine to be awake")
    assert site.bed.api.get("BareMetalHost", machine, SPACE)["spec"]["online"] is True


@pytest.mark.parametrize("state, annotations, sentence", [
    ("provisioned", {"baremetalhost.metal3.io/detached": "x"}, "it is detached"),
    ("provisioning", {}, "it is provisioning, not provisioned"),
], ids=["detached", "provisioning"])
def test_hosts_of_others_are_left_alone(site, metal3, pair, state, annotations, sentence):
    name, machine = pair
    site.bed.kubectl("apply", "-f", ROOT / "manifests" / "optional" / "metal3-rbac.yaml")
    metal3.add_host(machine, state, **annotations)
    apply_policy(site, name)
    wait(site, lambda: any(sentence in note for note in event_notes(site, machine))
         or sentence in site.machine_power(machine).get("decision", {}).get("message", ""), 40, sentence)
    assert site.bed.api.get("BareMetalHost", machine, SPACE)["spec"]["online"] is True
    assert site.room.machine(machine)["state"] == "On"
