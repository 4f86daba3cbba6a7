"""The real controller switches a machine through ipmitool and OpenIPMI's simulator."""
import base64
import threading

import pytest

from ipmi_sim import IpmiSim
from on_bed import off_and_on_again
from e2e.case import Case
from e2e.test_frequency_and_power import CAPPING, LAB_MODEL
from lab.site import NAMESPACE


pytestmark = pytest.mark.xdist_group("drivers")


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


def create_secret(site, sim, name):
    data = {key: base64.b64encode(value.encode()).decode()
            for key, value in (("username", sim.USER), ("password", sim.PASSWORD))}
    site.bed.api.create({"apiVersion": "v1", "kind": "Secret",
                         "metadata": {"name": name, "namespace": NAMESPACE}, "data": data})
    return {"address": sim.address, "credentialsSecretRef": {"name": name}}


def test_a_machine_goes_off_and_comes_back_and_no_log_has_the_password(site, tmp_path):
    (tmp_path / "sim").mkdir()
    sim = IpmiSim(tmp_path / "sim", dcmi=False)
    mains = Mains(site, sim, "ipmi-2")
    try:
        bmc = create_secret(site, sim, "ipmi")
        mains.start()
        off_and_on_again(site, "ipmi", bmc)
        assert sim.asked() == ["set shutdown 1", "set power 1"]
        assert sim.PASSWORD not in site.controller.log_path.read_text()
    finally:
        mains.stop()
        sim.stop()


def test_a_machine_is_measured_and_capped_through_dcmi_and_released(site, tmp_path):
    """Its agent can neither measure nor cap; what it draws is what the simulator says."""
    (tmp_path / "sim").mkdir()
    sim = IpmiSim(tmp_path / "sim")
    case = Case(site, "ipmi-cap")
    try:
        sim.set_watts("draw", 400)
        machine, = case.add_machines(1, bmc=None, model=LAB_MODEL, rapl=False, hwmon=False)
        site.bed.api.patch("NodePower", machine, {"spec": {"bmc": create_secret(site, sim, "ipmi-cap")}})
        case.wait(lambda: case.power(machine).get("power", {}).get("meter") == "ipmi", 40, "a reading")
        assert case.power(machine)["watts"] == 400
        case.apply_policy(CAPPING)
        case.wait(lambda: sim.limit() == (324, True), 60, "the limit in the management controller")
        case.wait(lambda: case.power(machine)["bmc"].get("effectiveCapWatts") == 324, 30, "the limit to be read back")
        sim.set_watts("draw", 120)
        case.wait(lambda: sim.limit() == (324, False), 60, "the limit to be given up")
        case.wait(lambda: not case.power(machine)["bmc"].get("originalKnown"), 30, "nothing of ours to be left")
    except AssertionError:
        print(case.story())
        raise
    finally:
        sim.stop()
