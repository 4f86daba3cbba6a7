"""The real controller switches a machine through ipmitool and OpenIPMI's simulator."""
import base64
import sys
import threading
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from ipmi_sim import IpmiSim  # noqa: E402
from on_bed import off_and_on_again  # noqa: E402
from lab.site import NAMESPACE, Site  # noqa: E402


class Mains(threading.Thread):
    """The room's machine follows the simulator's power."""

    def __init__(self, site, sim, machine):
        super().__init__(name="mains", daemon=True)
        self.site, self.sim, self.machine, self.ended = site, sim, machine, threading.Event()

    def run(self):
        while not self.ended.wait(0.1):
            if self.machine not in self.site.room.call(lambda room: set(room.machines)):
                continue
            state, on = self.site.room.machine(self.machine)["state"], self.sim.power() == "1"
            if state == "On" and not on:
                self.site.room.power(self.machine, "ForceOff")
            if state == "Off" and on:
                self.site.room.power(self.machine, "On")

    def stop(self):
        self.ended.set()
        self.join(timeout=10)


@pytest.fixture
def site(tmp_path):
    with Site(tmp_path / "site", agents=False, redfish=False) as site:
        site.start_controller()
        yield site


def test_a_machine_goes_off_and_comes_back_and_no_log_has_the_password(site, tmp_path):
    (tmp_path / "sim").mkdir()
    sim = IpmiSim(tmp_path / "sim", dcmi=False)
    mains = Mains(site, sim, "ipmi-2")
    try:
        data = {key: base64.b64encode(value.encode()).decode()
                for key, value in (("username", sim.USER), ("password", sim.PASSWORD))}
        site.bed.api.create({"apiVersion": "v1", "kind": "Secret",
                             "metadata": {"name": "ipmi", "namespace": NAMESPACE}, "data": data})
        mains.start()
        off_and_on_again(site, "ipmi", {"address": sim.address, "credentialsSecretRef": {"name": "ipmi"}})
        assert sim.asked() == ["set shutdown 1", "set power 1"]
        assert sim.PASSWORD not in site.controller.log_path.read_text()
    finally:
        mains.stop()
        sim.stop()
