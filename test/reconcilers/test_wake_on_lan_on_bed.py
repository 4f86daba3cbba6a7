"""Wake-on-LAN with the real kwatt-controller and API server. The agents are fake: they send samples, and do to the
lab's machines what the annotations on their Nodes say. What the real agent sends is in test/agent/."""
import json
import threading
import urllib.request
import ssl
from datetime import datetime, timezone

import pytest

from bed import objects
from bed.process import wait_until
from e2e.case import CHEAP_TO_BOOT, FAST, merged
from lab.site import NAMESPACE, Site

MACS = {"sleeper": "52:54:00:00:00:01"}


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class FakeAgent(threading.Thread):
    """The agent of one machine, alive while the machine is on; each boot has its own id."""

    def __init__(self, site, name, can_power_off):
        super().__init__(name=f"fake-agent-{name}", daemon=True)
        self.site, self.node, self.can_power_off = site, name, can_power_off
        self.token = site.bed.token_for("kwatt-agent", NAMESPACE, audience="kwatt", bound_node=name)
        self.context = ssl.create_default_context(cafile=str(site.bed.ca_file))
        self.ended, self.boots, self.sent, self.was_on = threading.Event(), 0, [], False

    def run(self):
        while not self.ended.wait(0.5):
            on = self.site.room.machine(self.node)["state"] == "On"
            if on and not self.was_on:
                self.boots += 1
                self._report()
            self.was_on = on
            if on:
                self._push()
                self._obey()

    @property
    def boot(self):
        return f"{self.node}-boot-{self.boots}"

    def _report(self):
        self.site.bed.api.patch("NodePower", self.node, {"status": {"report": {
            "bootID": self.boot, "time": now(), "canPowerOff": self.can_power_off, "converged": True}}},
            subresource="status")

    def _push(self):
        body = {"node": self.node, "bootID": self.boot,
                "samples": [{"time": now(), "cpuBusyPermille": 10, "utilizationPermille": 10, "source": "none"}]}
        request = urllib.request.Request(self.site.ingest_url + "/metrics-ingest", json.dumps(body).encode(), {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10, context=self.context).close()

    def _obey(self):
        annotations = self.site.node(self.node)["metadata"].get("annotations") or {}
        if annotations.get("kwatt.dev/power-state") == "off" and annotations.get("kwatt.dev/power-off-boot") == self.boot:
            self.site.room.power(self.node, "GracefulShutdown")
        note = json.loads(annotations.get("kwatt.dev/wake-lan", "[]"))
        for one in note if isinstance(note, list) else [note]:
            if one["id"] not in [sent["id"] for sent in self.sent]:
                self.sent.append(one)
                target = next(name for name, mac in MACS.items() if mac == one["mac"])
                self.site.room.power(target, "On")

    def stop(self):
        self.ended.set()
        self.join(timeout=10)


@pytest.fixture
def site(tmp_path):
    with Site(tmp_path, agents=False, redfish=False) as site:
        site.start_controller()
        yield site


@pytest.mark.long(130)
def test_a_machine_without_a_bmc_goes_off_by_its_agent_and_comes_back_through_a_relay(site):
    bed = site.bed

    def wait(condition, seconds, what):
        try:
            wait_until(condition, seconds, what, every=0.2)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{site.describe('sleeper')}\n{site.controller.log_tail(60)}") from None

    bed.create_namespace("wol")
    # The relay has no driver at all, so it stays on; another zone than the sleeper's is better than none.
    site.add_machine("relay", cpu=4, bmc=None, zone="b", labels={"case": "wol"}, model=CHEAP_TO_BOOT)
    site.add_machine("sleeper", cpu=4, bmc=None, zone="a", labels={"case": "wol"}, model=CHEAP_TO_BOOT)
    bed.api.patch("NodePower", "sleeper", {"spec": {"bmc": {"address": f"wol://{MACS['sleeper']}"}}})
    relay, sleeper = FakeAgent(site, "relay", False), FakeAgent(site, "sleeper", False)
    try:
        relay.start()
        sleeper.start()
        policy = {"apiVersion": "kwatt.dev/v1alpha1", "kind": "EnergyPolicy", "metadata": {"name": "wol"},
                  "spec": merged(FAST, {"nodeSelector": {"matchLabels": {"case": "wol"}},
                                        "powerOff": {"softTimeout": "180s"}, "powerOn": {"bootTimeout": "60s"}})}
        bed.kubectl("apply", "-f", "-", input=policy)
        wait(lambda: "--power-off-command" in site.machine_power("sleeper").get("decision", {}).get("message", ""), 30,
             "the reason why the machine stays on")
        assert site.machine_power("sleeper")["decision"]["reason"] == "NoDriver"
        sleeper.can_power_off = True
        sleeper._report()

        wait(lambda: site.room.machine("sleeper")["state"] == "Off", 60, "the machine to be off")
        annotations = site.node("sleeper")["metadata"]["annotations"]
        assert annotations["kwatt.dev/power-off-boot"] == "sleeper-boot-1"
        # Nobody can ask the machine: it counts as off when its Lease was watched silent for a minute and a half.
        assert site.machine_power("sleeper").get("powerState") == "PoweringOff"
        wait(lambda: site.machine_power("sleeper").get("powerState") == "Off", 130, "the status to say so")

        bed.kubectl("apply", "-f", "-", input=objects.deployment("web", replicas=2, namespace="wol", cpu="3",
                                                                 node_selector={"case": "wol"}))
        wait(lambda: relay.sent, 30, "the note on the relay")
        assert relay.sent[0]["node"] == "sleeper" and relay.sent[0]["id"].endswith("/1")
        wait(lambda: site.machine_power("sleeper").get("powerState") == "On", 60, "the machine to be awake")
        annotations = site.node("sleeper")["metadata"].get("annotations") or {}
        assert not [key for key in annotations if key.startswith("kwatt.dev/power-")]
        wait(lambda: "kwatt.dev/wake-lan" not in (site.node("relay")["metadata"].get("annotations") or {}), 60,
             "the note to be gone")
        assert len(relay.sent) == 1
        assert sleeper.boots == 2 and site.room.machine("sleeper")["state"] == "On"
    finally:
        relay.stop()
        sleeper.stop()
