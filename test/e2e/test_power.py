"""Power on and power off."""
import time

import pytest


def test_an_idle_node_is_drained_of_nothing_and_switched_off(case):
    keep, *_ = case.add_machines(2)
    case.apply_policy()
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 1, 40,
              "one of two idle machines to be off")
    off = next(m for m in case.machines if case.power(m).get("powerState") == "Off")
    assert case.site.room.machine(off)["state"] == "Off"
    assert case.commands(off) == ["GracefulShutdown"]
    case.wait(lambda: any(c["type"] == "Suspended" and c["status"] == "True"
                          for c in case.node(off)["status"]["conditions"]), 10, "the condition Suspended")
    # minAwake: the other one stays, and says why.
    awake = next(m for m in case.machines if m != off)
    case.wait_reason(awake, "MinAwake")
    assert case.power(off)["memory"]["poweredOffByUs"] is True
    case.wait(lambda: case.status()["nodes"]["off"] == 1, 10, "the policy to count it")


def test_a_pod_that_does_not_fit_wakes_a_machine_and_runs_there(case):
    case.add_machines(2, cpu=4)
    case.apply_policy()
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 1, 40, "one off")
    off = next(m for m in case.machines if case.power(m).get("powerState") == "Off")
    case.deploy("web", replicas=2, cpu="3")
    case.wait_running("web", 2, seconds=60)
    assert case.where("web") == sorted(case.machines)
    case.wait_on(off)
    assert case.commands(off) == ["GracefulShutdown", "On"]
    node = case.node(off)
    assert not [t for t in node["spec"].get("taints", []) if t["key"].startswith("kwatt.dev/")]
    assert "Suspended" not in {c["type"] for c in node["status"]["conditions"] if c["status"] == "True"}
    assert case.power(off)["memory"].get("wakeVerifiedAt")


def test_a_redfish_machine_is_switched_off_and_woken(case):
    case.add_machines(2, cpu=4, bmc="redfish")
    case.apply_policy()
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 1, 40, "one off")
    case.deploy("web", replicas=2, cpu="3")
    case.wait_running("web", 2, seconds=60)
    sources = {entry["source"] for m in case.machines for entry in case.site.commands(m)}
    assert sources == {"redfish"}


def test_a_hanging_shutdown_is_forced_after_the_soft_timeout(case):
    first, second = case.add_machines(2)
    for machine in case.machines:
        case.site.room.set_faults(machine, shutdown="hang")
    case.apply_policy({"powerOff": {"softTimeout": "3s"}})
    case.wait(lambda: any(case.power(m).get("powerState") == "Off" for m in case.machines), 40, "one forced off")
    off = next(m for m in case.machines if case.power(m).get("powerState") == "Off")
    assert case.commands(off) == ["GracefulShutdown", "ForceOff"]


def test_a_machine_without_a_bmc_is_never_powered_off(case):
    case.add_machines(2, bmc=None, model=None)
    case.apply_policy({"powerOff": {"minAwake": 0}})
    for machine in case.machines:
        case.wait_reason(machine, "NoDriver")
    case.stays(lambda: all(case.site.room.machine(m)["state"] == "On" for m in case.machines), 4, "machines on")


@pytest.mark.parametrize("why, labels, annotations, reason", [
    ("control plane", {"node-role.kubernetes.io/control-plane": ""}, {}, "ControlPlane"),
    ("excluded", {}, {"kwatt.dev/exclude": "true"}, "Excluded"),
])
def test_what_must_not_be_touched_stays_on(case, why, labels, annotations, reason):
    machine, = case.add_machines(1, labels=labels, annotations=annotations)
    case.apply_policy({"powerOff": {"minAwake": 0}})
    case.wait_reason(machine, reason)
    case.stays(lambda: case.site.room.machine(machine)["state"] == "On", 4, f"{why} on")


def test_an_unreachable_bmc_leaves_the_node_on_with_the_reason(case):
    machine, other = case.add_machines(2)
    for name in case.machines:
        case.site.room.set_faults(name, bmc="unavailable")
    case.apply_policy()
    # The decision goes on to CoolDown; the event stays.
    case.wait(lambda: any("BMCError" in case.bed.kubectl("get", "events", "-n", "default", "--field-selector",
                                                         f"involvedObject.name={m}") for m in case.machines),
              40, "an event BMCError")
    for name in case.machines:
        case.wait(lambda n=name: not case.node(n)["spec"].get("unschedulable"), 20, f"{name} to be schedulable")
        assert case.site.room.machine(name)["state"] == "On"


def test_decision_to_off_takes_little_more_than_the_shutdown(case):
    case.add_machines(2)
    case.apply_policy({"powerOff": {"idleFor": "1s"}})
    started = None
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        states = [case.power(m) for m in case.machines]
        if started is None and any(s.get("operation", {}).get("id") for s in states):
            started = time.monotonic()
        if any(s.get("powerState") == "Off" for s in states):
            break
        time.sleep(0.05)
    assert started is not None
    assert time.monotonic() - started < 1 + 8
