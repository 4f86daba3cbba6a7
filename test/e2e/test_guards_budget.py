"""A power budget holds in every second: while caps are set, while agents are killed and restarted, and when the
controller is gone for longer than agents wait for it."""
import json
import threading
import time

import pytest

from e2e.case import Case
from e2e.observer import Observer
from lab.site import Site

LAB_MODEL = {"idleMilliwatts": 122_000, "maxMilliwatts": 406_000}
CAPPING = {"powerOff": {"enabled": False}, "powerOn": {"enabled": False},
           "capping": {"enabled": True, "window": "3s"}}
LIMIT = "class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
BUDGET = 900


@pytest.fixture
def impatient(tmp_path, monkeypatch, request):
    """A case on a site of its own, whose agents give the controller up after four seconds."""
    monkeypatch.setenv("KWATT_RESTORE_AFTER", "4s")
    with Site(tmp_path / "site", redfish=False) as site:
        site.start_controller()
        observer = Observer(site)
        observer.start()
        case = Case(site, request.node.name)
        yield case
        report = getattr(request.node, "report_call", None)
        if report is not None and report.failed:
            print(case.story())
        violations = observer.take_violations(case.machines)
        observer.stop()
        if violations:
            print(site.controller.log_tail(300))
        assert not violations, "\n".join(violations)


class Meter(threading.Thread):
    """Reads the limits in the machines' own files, twenty times a second: what the hardware enforces, whatever
    kwatt believes of it. A package limit that is as it was at first is no cap."""

    def __init__(self, case, machines):
        super().__init__(daemon=True)
        self.case, self.machines = case, machines
        self.original = {m: case.site.sysfs(m, LIMIT) for m in machines}
        self.lost, self.looks, self._end = [], 0, threading.Event()

    def run(self):
        while not self._end.wait(0.05):
            self.looks += 1
            for machine in self.machines:
                if self.case.site.sysfs(machine, LIMIT) == self.original[machine]:
                    self.lost.append((machine, time.monotonic()))

    def stop(self):
        self._end.set()
        self.join(timeout=5)


def request_of(case, machine):
    return json.loads(case.node(machine)["metadata"]["annotations"].get("kwatt.dev/request", "{}"))


def caps(case, machines):
    """As of one moment: caps move from machine to machine, first down, then up."""
    status = {m["metadata"]["name"]: m.get("status", {}) for m in case.bed.api.list("NodePower")}
    return [status.get(m, {}).get("report", {}).get("effectiveCapWatts", 0) for m in machines]


def within_budget(case, machines):
    """What the packages do not measure moves by some watts with the load, and the agents follow it within a second; the
    observer has its own tolerance for that."""
    case.wait(lambda: sum(caps(case, machines)) <= BUDGET, 10, f"the caps to be within {BUDGET} W: {caps(case, machines)}")


def test_caps_of_a_budget_outlive_agents_and_controller_and_other_caps_do_not(impatient):
    case = impatient
    shared = case.add_machines(3, model=LAB_MODEL, labels={"group": "shared"})
    alone, = case.add_machines(1, model=LAB_MODEL, labels={"group": "alone"})
    for machine in case.machines:
        case.site.room.set_load(machine, 100)
        case.wait(lambda m=machine: case.power(m).get("report", {}).get("governor"), 20, f"a report of {machine}")
    original = case.site.sysfs(alone, LIMIT)
    meter, other = Meter(case, shared), Meter(case, [alone])
    case.apply_policy(CAPPING | {"capping": CAPPING["capping"] | {"budgetWatts": BUDGET},
                                 "nodeSelector": {"matchLabels": {"group": "shared"}}})
    case.apply_policy(CAPPING | {"nodeSelector": {"matchLabels": {"group": "alone"}}}, name=f"{case.name}-alone")
    case.wait(lambda: all(caps(case, case.machines)), 40, "every machine to be capped")
    case.wait(lambda: not any(case.power(m).get("operation", {}).get("id") for m in case.machines), 20, "calm")
    within_budget(case, shared)
    for machine in shared:
        assert request_of(case, machine)["keepCap"] is True
    assert "keepCap" not in request_of(case, alone)

    meter.start()
    other.start()
    # Agents die, at once and in order. The one in order gives back what it may.
    case.site.room.signal_agent(shared[0], "SIGKILL")
    for machine in (shared[1], alone):
        pid = case.site.room.machine(machine)["agentPid"]
        case.site.room.signal_agent(machine, "SIGTERM")
        case.wait(lambda m=machine, p=pid: case.site.room.machine(m)["agentPid"] not in (None, 0, p), 20, "a new agent")
    case.wait(lambda: case.site.sysfs(alone, LIMIT) != original, 20, "its cap to be back")
    other.stop()
    assert other.lost, "a cap without a budget goes with its agent"
    # The controller is gone for longer than agents wait for it.
    case.site.controller.stop(grace=0)
    case.wait(lambda: case.site.sysfs(alone, LIMIT) == original, 30, "the cap without a budget to go")
    time.sleep(3)
    case.site.room.signal_agent(shared[2], "SIGTERM")  # even now, and with nobody to ask
    time.sleep(3)
    case.site.controller.start()
    case.wait(lambda: case.site.sysfs(alone, LIMIT) != original, 40, "the controller to be in charge again")
    meter.stop()
    assert meter.looks > 50
    assert not meter.lost, f"a cap of the budget was lifted: {meter.lost[:5]}"
    within_budget(case, shared)
    # A deleted policy gives its caps back, those of a budget, too.
    case.bed.kubectl("delete", "energypolicy", case.name, f"{case.name}-alone", "--timeout=60s", timeout=70)
    for machine in shared:
        case.wait(lambda m=machine: case.site.sysfs(m, LIMIT) == meter.original[m], 20,
                  f"the original limit of {machine}")
