"""Modes, suspension, deletion, conflicts and invalid policies."""
from bed import CommandError
import pytest

DVFS = {"dvfs": {"enabled": True, "window": "3s"}}


def one_off(case, seconds=40):
    case.wait(lambda: sum(case.power(m).get("powerState") == "Off" for m in case.machines) == 1, seconds, "one off")
    return next(m for m in case.machines if case.power(m).get("powerState") == "Off")


def traces_of_kwatt(node):
    """Everything of ours that may be on a Node."""
    meta, spec = node["metadata"], node["spec"]
    found = [key for key in meta.get("annotations", {}) if key.startswith("kwatt.dev/")]
    found += [key for key in meta.get("labels", {}) if key.startswith("kwatt.dev/")]
    found += [taint["key"] for taint in spec.get("taints", []) if taint["key"].startswith("kwatt.dev/")]
    if spec.get("unschedulable"):
        found.append("cordon")
    found += [c["type"] for c in node["status"]["conditions"] if c["type"] == "Suspended"]
    return found


def test_recommend_changes_nothing_but_status(case):
    case.add_machines(2)
    # A new node sheds its not-ready taint a moment after it is Ready.
    case.wait(lambda: not any(case.node(m)["spec"].get("taints") for m in case.machines), 20, "no taints")
    before = {m: case.node(m) for m in case.machines}
    case.apply_policy({"mode": "Recommend", **DVFS})
    case.wait(lambda: case.status().get("powerOff"), 40, "a recommendation")
    case.wait(lambda: any(case.reason(m) == "RecommendOnly" for m in case.machines), 20, "the reason")
    assert case.condition("Enforcing")["status"] == "False"
    assert case.condition("Enforcing")["reason"] == "RecommendOnly"
    for machine in case.machines:
        assert traces_of_kwatt(case.node(machine)) == []
        assert case.node(machine)["spec"] == before[machine]["spec"]
        assert case.commands(machine) == []
        assert case.site.room.machine(machine)["state"] == "On"
    assert "finalizers" not in case.site.policy(case.name)["metadata"]


def test_suspend_keeps_everything_as_it_is_and_names_the_off_nodes_while_pods_pend(case):
    case.add_machines(2, cpu=4)
    case.apply_policy()
    off = one_off(case)
    case.apply_policy({"suspend": True})
    case.deploy("web", replicas=2, cpu="3")
    case.wait(lambda: off in case.condition("Enforcing").get("message", ""), 30, "the off node to be named")
    case.stays(lambda: case.site.room.machine(off)["state"] == "Off", 4, "off")
    case.apply_policy({"suspend": False})
    case.wait_running("web", 2, seconds=60)


def test_deleting_the_policy_restores_everything_but_what_people_set_by_hand(case):
    first, second, third = case.add_machines(3)
    case.bed.kubectl("annotate", "node", first, "kwatt.dev/max-frequency-mhz=2000")
    case.wait(lambda: case.power(first).get("report", {}).get("maxMHz") == 2000, 20, "the hand-set limit")
    case.apply_policy({"powerOff": {"minAwake": 2}, **DVFS})
    one_off(case)
    awake = [m for m in case.machines if case.power(m).get("powerState") == "On"]
    case.wait(lambda: any(case.site.governor(m) == "powersave" for m in awake), 40, "a slow machine")
    case.bed.kubectl("delete", "energypolicy", case.name, "--timeout=60s", timeout=70)
    for machine in case.machines:
        case.wait_on(machine)
        case.wait(lambda m=machine: [t for t in traces_of_kwatt(case.node(m))
                                     if (m, t) != (first, "kwatt.dev/max-frequency-mhz")] == [], 20,
                  f"nothing of ours on {machine}")
        case.wait(lambda m=machine: case.site.governor(m) == "performance"
                  or case.site.governor(m) == case.power(m)["report"]["original"]["governor"], 20, "governor restored")
    assert case.node(first)["metadata"]["annotations"]["kwatt.dev/max-frequency-mhz"] == "2000"


def test_from_enforce_to_recommend_everything_is_released(case):
    case.add_machines(2)
    case.apply_policy()
    off = one_off(case)
    case.apply_policy({"mode": "Recommend"})
    case.wait_on(off)
    case.wait(lambda: traces_of_kwatt(case.node(off)) == [], 20, "nothing of ours left")
    case.stays(lambda: case.site.room.machine(off)["state"] == "On", 4, "on")


def test_two_policies_on_one_node_the_higher_priority_wins(case):
    machine, = case.add_machines(1)
    case.apply_policy({"mode": "Recommend", "priority": 1}, name=f"{case.name}-low")
    case.apply_policy({"mode": "Recommend", "priority": 5}, name=f"{case.name}-high")
    case.wait(lambda: case.condition("Conflict", f"{case.name}-low").get("status") == "True", 20, "the loser to say so")
    assert machine in case.condition("Conflict", f"{case.name}-low")["message"]
    assert f"{case.name}-high" in case.condition("Conflict", f"{case.name}-low")["message"]
    case.wait(lambda: case.condition("Conflict", f"{case.name}-high").get("status") == "False", 20, "the winner")
    assert case.status(f"{case.name}-high")["nodes"]["selected"] == 1
    assert case.status(f"{case.name}-low")["nodes"]["selected"] == 0


def test_kubectl_wait_for_ready_returns_and_the_lists_read_well(case):
    case.add_machines(1)
    case.apply_policy({"mode": "Recommend"})
    case.bed.kubectl("wait", "--for=condition=Ready", f"enp/{case.name}", "--timeout=30s")
    header, row = [line for line in case.bed.kubectl("get", "enp", "-o", "wide").splitlines()
                   if line.startswith(("NAME", case.name))]
    for column in ("MODE", "NODES", "OFF", "SLOW", "CAPPED", "WATTS", "SAVED", "READY", "AGE", "REASON", "LAST-ACTION"):
        assert column in header
    assert "Recommend" in row and "True" in row
    case.wait(lambda: "On" in case.bed.kubectl("get", "npw", case.machines[0]), 20, "the machine's row")


@pytest.mark.parametrize("spec, path", [
    ({"disruption": {"budgets": [{"nodes": "10%", "schedule": "61 25 * * *", "duration": "1h"}]}},
     "spec.disruption.budgets[0].schedule"),
    ({"placement": {"plugins": [{"name": "Carbon"}, {"name": "Magic"}]}}, "spec.placement.plugins[1].name"),
])
def test_a_policy_the_api_server_cannot_refuse_says_accepted_false_and_disturbs_nobody(case, spec, path):
    machine, = case.add_machines(1)
    case.apply_policy({"mode": "Recommend", **spec}, name=f"{case.name}-bad")
    case.apply_policy({"mode": "Recommend"}, name=f"{case.name}-good")
    case.wait(lambda: case.condition("Accepted", f"{case.name}-bad").get("status") == "False", 20, "Accepted=False")
    assert path in case.condition("Accepted", f"{case.name}-bad")["message"]
    case.wait(lambda: case.condition("Ready", f"{case.name}-good").get("status") == "True", 20, "the other policy")
    assert case.status(f"{case.name}-good")["nodes"]["selected"] == 1


@pytest.mark.parametrize("spec, sentence", [
    ({"dvfs": {"lowUtilizationPercent": 70, "highUtilizationPercent": 60}}, "lowUtilizationPercent"),
    ({"capping": {"releasePercentOfMax": 85, "capPercentOfMax": 80}}, "releasePercentOfMax"),
    ({"capping": {"capPercentOfMax": 101}}, "capPercentOfMax"),
])
def test_what_cel_can_see_is_refused_by_the_api_server(case, spec, sentence):
    with pytest.raises(CommandError) as refused:
        case.apply_policy(spec)
    assert sentence in refused.value.stderr
