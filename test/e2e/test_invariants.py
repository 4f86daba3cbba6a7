"""The observer's checks: what is right passes, what is wrong is named."""
import copy

import pytest
from e2e import invariants
from e2e.invariants import Sight
from e2e.observer import BLIND_LOOKS, Observer

BUDGET = {"disruption": {"budgets": [{"nodes": "1"}]}}


def iso(seconds):
    return f"1970-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}.000000Z"


def policy(name="p", generation=1, seen=1, **spec):
    return {"metadata": {"name": name, "uid": name, "generation": generation}, "status": {"observedGeneration": seen},
            "spec": {"mode": "Enforce", "nodeSelector": {"matchLabels": {"case": "x"}}, **spec}}


def node(zone="a", annotations=None, **labels):
    return {"metadata": {"labels": {"case": "x", invariants.ZONE: zone, **labels}, "annotations": annotations or {}},
            "spec": {}}


def machine(operation=None, **memory):
    return {"status": {"operation": operation or {}, "memory": memory}}


def operation(kind="PowerOff", started=100, name="op"):
    return {"id": name, "kind": kind, "policy": "p", "startedAt": iso(started)}


def sight():
    """Three machines, m1 being switched off by a holder of the lease, at second 100."""
    return Sight(100.0, {"p": policy(powerOff={"minAwake": 1, "minAwakePerZone": 0})},
                 {"m1": machine(operation()), "m2": machine(), "m3": machine()},
                 {name: node() for name in ("m1", "m2", "m3")}, {},
                 {"spec": {"holderIdentity": "me", "renewTime": iso(99), "leaseDurationSeconds": 3}},
                 {name: "On" for name in ("m1", "m2", "m3")}, {name: 400.0 for name in ("m1", "m2", "m3")},
                 {name: {"mhz": (800, 3200), "cap": (150, 406)} for name in ("m1", "m2", "m3")})


def command(name="GracefulShutdown", operation_id="op", at=100):
    return {"machine": "m1", "command": name, "operationId": operation_id, "time": iso(at), "source": "lab"}


def at_command(seen, entry=None, **more):
    return [text[0] for _, text in invariants.command_violations(entry or command(), seen, set(), **more)]


def test_an_orderly_power_off_is_no_violation():
    assert at_command(sight(), identity="me") == []


def pod(**more):
    return {"metadata": {"name": "web", **more}, "status": {"phase": "Running"}}


@pytest.mark.parametrize("letter, change", [
    ("a", lambda s: s.pods.update(m1=[pod()])),
    ("b", lambda s: s.states.update(m2="Off", m3="PoweringOn")),
    ("b", lambda s: s.policies["p"]["spec"].update(powerOff={"minAwake": 3})),
    ("b", lambda s: (s.policies["p"]["spec"].update(powerOff={"minAwake": 1, "minAwakePerZone": 1}),
                     s.nodes.update(m1=node("b")))),
    ("c", lambda s: s.machines["m1"]["status"]["operation"].update(id="another")),
    ("d", lambda s: s.lease["spec"].update(renewTime=iso(96))),
    ("d", lambda s: s.lease["spec"].update(holderIdentity="")),
    ("d", lambda s: s.lease["spec"].update(holderIdentity="other")),
    ("f", lambda s: s.nodes.update(m1=node(annotations={"kwatt.dev/exclude": "true"}))),
    ("f", lambda s: s.nodes.update(m1=node(**{"node-role.kubernetes.io/control-plane": ""}))),
    ("i", lambda s: s.policies["p"]["spec"].update(mode="Recommend")),
    ("i", lambda s: s.policies["p"]["spec"].update(suspend=True)),
    ("i", lambda s: s.policies.clear()),
])
def test_a_wrong_power_off_is_named(letter, change):
    seen = sight()
    change(seen)
    assert at_command(seen, identity="me") == [letter]


def test_the_controllers_own_node_stays():
    assert at_command(sight(), own_node="m1") == ["f"]


def test_a_command_without_an_operation_is_named():
    assert at_command(sight(), command(operation_id="")) == ["c"]


def test_daemons_and_finished_pods_may_be_there():
    seen = sight()
    done = copy.deepcopy(pod())
    done["status"]["phase"] = "Succeeded"
    seen.pods["m1"] = [done, pod(ownerReferences=[{"kind": "DaemonSet", "controller": True}])]
    assert at_command(seen) == []


def test_a_wake_needs_the_lease_and_an_operation_only():
    seen = sight()
    seen.policies.clear()
    assert at_command(seen, command("On")) == []
    seen.lease = None
    assert at_command(seen, command("On")) == ["d"]


def test_a_limit_at_the_bmc_needs_the_lease_and_an_operation_too():
    entry = {"machine": "m1", "watts": 300, "operationId": "op", "time": iso(100), "source": "redfish"}
    assert at_command(sight(), entry) == []
    assert at_command(sight(), {**entry, "operationId": "unheard-of"}) == ["c"]
    assert at_command(sight(), {**entry, "time": iso(103)}) == ["d"]


def test_two_at_a_time_where_one_is_allowed_is_named():
    seen = sight()
    seen.policies["p"]["spec"].update(BUDGET)
    assert invariants.budget_violations(seen, {"p": 50}) == []
    seen.machines["m2"] = machine(operation("Migrate", name="op2"))
    assert len(invariants.budget_violations(seen, {"p": 50})) == 1
    # Begun before the budget was what it is.
    assert invariants.budget_violations(seen, {"p": 101}) == []
    seen.policies["p"]["spec"]["disruption"]["budgets"] = [{"nodes": "50%"}]
    assert invariants.budget_violations(seen, {"p": 50}) == []


def test_power_that_was_within_the_budget_and_leaves_it_is_named():
    seen, kept = sight(), set()
    seen.policies["p"]["spec"]["capping"] = {"enabled": True, "budgetWatts": 1000}
    assert invariants.watts_violations(seen, kept) == []  # not yet within
    seen.most_watts.update(m1=200.0)
    assert invariants.watts_violations(seen, kept) == []
    seen.most_watts.update(m1=400.0)
    assert len(invariants.watts_violations(seen, kept)) == 1


def test_requests_out_of_the_hardwares_range_are_named():
    seen = sight()
    ours = '{"id":"op","keys":["kwatt.dev/power-cap-watts"]}'
    seen.nodes["m1"] = node(annotations={"kwatt.dev/request": ours, invariants.CAP: "300"})
    assert invariants.range_violations(seen) == []
    seen.nodes["m1"]["metadata"]["annotations"][invariants.CAP] = "500"
    assert len(invariants.range_violations(seen)) == 1
    # What people set is theirs.
    del seen.nodes["m1"]["metadata"]["annotations"]["kwatt.dev/request"]
    assert invariants.range_violations(seen) == []


def test_frequencies_out_of_the_hardwares_range_are_named():
    def written(khz):
        entry = {"machine": "m1", "attribute": "devices/system/cpu/cpufreq/policy0/scaling_max_freq", "value": khz}
        return invariants.write_violations([entry], sight().hardware)
    assert written("2000000") == [] and len(written("9000000")) == 1 and len(written("799999")) == 1


def test_operations_on_what_must_not_be_touched_are_named():
    seen = sight()
    assert invariants.untouchable_violations(seen, {}) == []
    assert len(invariants.untouchable_violations(seen, {"m1": 90.0})) == 1
    assert invariants.untouchable_violations(seen, {"m1": 99.0}) == []  # nobody can have known yet
    assert len(invariants.untouchable_violations(seen, {}, own_node="m1")) == 1


def test_what_a_deleted_policy_leaves_behind_is_named():
    seen = sight()
    seen.machines["m2"] = machine(ownerPolicy="p", poweredOffByUs=True)
    assert invariants.remains_violations(seen, set()) == []
    assert len(invariants.remains_violations(seen, {"p"})) == 1
    seen.nodes["m3"] = node(annotations={"kwatt.dev/request": '{"id":"op","policy":"p","keys":[]}'})
    assert len(invariants.remains_violations(seen, {"p"})) == 2


def test_a_command_that_nobody_could_look_at_waits_for_its_operation_to_show():
    observer = Observer.__new__(Observer)
    observer._violations = []
    known, before = set(), sight()
    before.machines["m1"] = machine()  # what was seen last before the API server went
    for shown in (True, False):
        observer._blind = [[BLIND_LOOKS, (command(operation_id="late"), before, known, "me", "")]]
        observer._judge_blind()
        assert observer._violations == [] and observer._blind
        if shown:
            known.add("late")
            observer._judge_blind()
            assert not [text for _, text in observer._violations if "never committed" in text]
            known.clear()
            observer._violations = []
        else:
            for _ in range(BLIND_LOOKS):
                observer._judge_blind()
            assert [text for _, text in observer._violations if "never committed" in text]
        assert observer._blind == []
