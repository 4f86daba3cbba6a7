"""Power limits and readings through BMCs, and BMCs that break the rules."""
import json
import subprocess

import pytest

from e2e.case import CHEAP_TO_BOOT
from e2e.test_frequency_and_power import CAPPING, LAB_MODEL

WANTED = 406 * 80 // 100
# A machine whose agent can neither measure nor cap, at full load.
NO_METERS = {"rapl": False, "hwmon": False, "bmc": "redfish", "model": LAB_MODEL, "base_load_percent": 100}


def caps(case, machine):
    """The limits that the machine's BMC was told, oldest first."""
    return [entry["watts"] for entry in case.site.room.log(machine=machine, kind="cap")]


def in_the_machine(case, machine):
    return case.site.room.machine(machine)["capWatts"]


def test_a_machine_without_rapl_is_measured_and_capped_by_its_bmc_and_released(case):
    machine, = case.add_machines(1, **NO_METERS)
    case.wait(lambda: case.power(machine).get("power", {}).get("meter") == "redfish", 30, "a reading of the BMC")
    status = case.power(machine)
    assert 390 <= status["watts"] <= 420 and status["power"]["source"] == "Measured" and status["power"]["time"]
    assert not status.get("report", {}).get("watts"), "the agent has no meter here"
    assert status["bmc"]["powerLimit"] and status["bmc"]["capMaxWatts"] == 406
    case.apply_policy(CAPPING)
    case.wait(lambda: case.power(machine)["bmc"].get("requestedCapWatts") == WANTED, 40, f"limit {WANTED} W asked for")
    # What was there before is on record before the machine hears of it.
    assert case.power(machine)["bmc"]["originalKnown"]
    case.site.room.wait_for(machine, lambda m: m["capWatts"] == WANTED and m["watts"] <= WANTED, 20)
    case.wait(lambda: case.power(machine)["bmc"].get("effectiveCapWatts") == WANTED, 20, "the limit to be read back")
    case.wait(lambda: case.node(machine)["metadata"]["labels"].get("kwatt.dev/capped") == "true", 20, "the label")
    assert "kwatt.dev/power-cap-watts" not in case.node(machine)["metadata"].get("annotations", {})
    case.site.room.set_load(machine, 5)
    case.wait(lambda: not case.power(machine)["bmc"].get("originalKnown"), 40, "the limit to be released")
    assert in_the_machine(case, machine) is None
    case.wait(lambda: "kwatt.dev/capped" not in case.node(machine)["metadata"]["labels"], 20, "the label to be gone")
    assert caps(case, machine) == [WANTED, None]


def test_deleting_the_policy_restores_the_limit_that_was_there_before(case):
    machine, = case.add_machines(1, **NO_METERS)
    case.site.room.call(lambda room: room.machines[machine].set_wall_cap(390, room.machines[machine].now))
    name = case.apply_policy(CAPPING)
    case.wait(lambda: in_the_machine(case, machine) == WANTED, 60, "the limit")
    # A controller that dies now must not lose what was there before.
    case.site.controller.stop(grace=0)
    case.site.controller.start()
    case.bed.kubectl("delete", "energypolicy", name, "--wait=false")
    case.wait(lambda: in_the_machine(case, machine) == 390, 40, "the limit of before")
    case.wait(lambda: not case.bed.api.find("EnergyPolicy", name), 40, "the policy to be gone")
    bmc = case.power(machine)["bmc"]
    assert bmc.get("effectiveCapWatts") == 390 and not bmc.get("originalKnown")


def test_a_limit_that_the_bmc_lost_is_set_again(case):
    machine, = case.add_machines(1, **NO_METERS)
    case.apply_policy(CAPPING)
    case.wait(lambda: in_the_machine(case, machine) == WANTED, 60, "the limit")
    case.wait(lambda: case.node(machine)["metadata"]["labels"].get("kwatt.dev/capped") == "true", 20, "the label")
    case.site.room.call(lambda room: room.machines[machine].set_wall_cap(None, room.machines[machine].now))
    case.wait(lambda: in_the_machine(case, machine) == WANTED, 40, "the limit to be back")
    assert caps(case, machine) == [WANTED, WANTED]


@pytest.mark.long(140)
def test_bmcs_that_break_the_rules_leave_their_machines_on_with_reason_and_event(case, tmp_path):
    """One machine for each way to be bad; all are idle and would be switched off."""
    faults = ["unauthorized", "html", "lies", "drop", "truncated", "redirect", "huge", "unavailable"]
    names = case.add_machines(len(faults) + 4, bmc="redfish", model=CHEAP_TO_BOOT)
    bad = dict(zip(names, faults))
    for name, fault in bad.items():
        case.site.room.set_faults(name, bmc=fault)
    certificate, password, forbidden, deaf = names[len(faults):]
    other_ca = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
                               "-days", "2", "-subj", "/CN=other", "-keyout", tmp_path / "key.pem"], check=True,
                              capture_output=True, text=True).stdout
    case.bed.kubectl("apply", "-f", "-", input={
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": case.name, "namespace": "kwatt-system"},
        "stringData": {"username": "kwatt", "password": "not-this-one", "ca.crt": other_ca}})

    def change(name, **bmc):
        case.bed.api.patch("NodePower", name, {"spec": {"bmc": bmc}})

    change(certificate, caSecretRef={"name": case.name})
    change(password, credentialsSecretRef={"name": case.name})
    change(forbidden, address="redfish+https://10.255.255.1/redfish/v1/Systems/1")
    case.site.room.set_faults(deaf, shutdown="deaf")
    case.apply_policy({"powerOff": {"minAwake": 0, "softTimeout": "2s"}})
    case.wait_reason(forbidden, "NoDriver", 40)
    assert "--bmc-allow 10.255.255.1" in case.power(forbidden)["decision"]["message"]

    def events(name):
        return case.bed.kubectl_json("get", "events", "-n", "default", "--field-selector",
                                     f"involvedObject.name={name}")["items"]

    for name in [*bad, certificate, password]:
        case.wait(lambda n=name: [e for e in events(n) if e["reason"] == "BMCError"], 60,
                  f"an event BMCError of {name} ({bad.get(name, 'credentials or certificate')})")
        case.wait(lambda n=name: not case.node(n)["spec"].get("unschedulable"), 30, f"{name} to be schedulable")
    for name in [*bad, certificate, password, forbidden]:
        assert case.site.room.machine(name)["state"] == "On", bad.get(name)
        assert not [t for t in case.node(name)["spec"].get("taints", []) if t["key"].startswith("kwatt.dev/")], name
    told = {name: " ".join(e.get("message", "") for e in events(name)) for name in [*bad, certificate, password]}
    assert "not-this-one" not in json.dumps(told)
    for fault, words in [("html", "not JSON"), ("lies", "not believed"), ("redirect", "redirects"),
                         ("unauthorized", "401")]:
        name = names[faults.index(fault)]
        assert words in told[name], (fault, told[name])
    # The one that accepts everything and does nothing takes its time: both patiences must pass.
    case.wait(lambda: [e for e in events(deaf) if e["reason"] == "BMCError"
                       and "does not go off although its controller accepts" in e.get("message", "")], 180,
              "an event of the machine that does not go off")
    case.wait(lambda: not case.node(deaf)["spec"].get("unschedulable"), 30, f"{deaf} to be schedulable")
    assert case.site.room.machine(deaf)["state"] == "On"
    case.bed.kubectl("delete", "secret", "-n", "kwatt-system", case.name)
