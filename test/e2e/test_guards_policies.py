"""Guards of whole policies: each holds the same idle machines that go once it is lifted."""
import urllib.request

import pytest

from bed import objects


def apply(case, group, spec):
    """A policy over the machines labelled so."""
    case.apply_policy(spec | {"nodeSelector": {"matchLabels": {"group": group}}}, name=f"{case.name}-{group}")


def off(case, machines):
    return sum(case.power(m).get("powerState") == "Off" for m in machines)


def test_each_guard_of_a_policy_holds_idle_machines_until_it_is_lifted(case):
    none = {"powerOff": {"minAwake": 0}}
    guards = {
        "awake": ("MinAwake", {"powerOff": {"minAwake": 2}}, none),
        "zone": ("MinAwake", {"powerOff": {"minAwake": 0, "minAwakePerZone": 1}}, none),
        "budget": ("BudgetExhausted", none | {"disruption": {"budgets": [
            {"name": "none", "nodes": "0"}, {"name": "wide", "nodes": "100%"}]}}, none),
        "window": ("Window", none | {"disruption": {"budgets": [
            {"name": "never", "schedule": "* * * * *", "duration": "2m", "allow": False,
             "timeZone": "Europe/Berlin"}]}}, none),
        "test": ("WakeNotVerified", {"powerOff": {"minAwake": 0, "wakeTest": "Manual"}}, none),
        "room": ("Headroom", {"powerOff": {"minAwake": 0},
                              "powerOn": {"headroom": {"cpuPercent": 60, "memoryPercent": 0}}},
                 {"powerOff": {"minAwake": 0}, "powerOn": {"headroom": {"cpuPercent": 0, "memoryPercent": 0}}}),
    }
    groups = [*guards, "rate"]
    made = case.add_each(*({"labels": {"group": name}, "zone": f"{case.name}-z" if name == "zone" else None}
                           for name in groups for _ in range(2)))
    machines = {name: made[2 * i:2 * i + 2] for i, name in enumerate(groups)}
    for machine in case.machines:
        case.bed.wait_node_ready(machine)
    # Half of one machine is needed, so the other one is more than half of what is free.
    user, idle = machines["room"]
    case.bed.kubectl("apply", "-f", "-", input=objects.pod("user", namespace=case.name, node_name=user, cpu="6"))
    for name, (_, spec, _) in guards.items():
        apply(case, name, spec)
    apply(case, "rate", {"powerOff": {"minAwake": 0, "maxPerMinute": 1}})
    watched = {name: [idle] if name == "room" else machines[name] for name in guards}
    for name, (reason, _, _) in guards.items():
        for machine in watched[name] if name != "zone" else watched[name][-1:]:
            if name == "zone":  # one of the two goes
                case.wait(lambda: off(case, machines["zone"]) == 1, 40, "one of the zone to be off")
                machine = next(m for m in machines["zone"] if case.power(m)["powerState"] != "Off")
            case.wait_reason(machine, reason)
    case.wait(lambda: off(case, machines["rate"]) == 1, 40, "one of the two that may go in a minute")
    late = next(m for m in machines["rate"] if case.power(m)["powerState"] != "Off")
    case.wait_reason(late, "RateLimited")
    assert [off(case, machines[name]) for name in guards] == [1 if name == "zone" else 0 for name in guards]
    budgets = {b["name"]: b for b in case.status(f"{case.name}-budget")["budgets"]}
    assert budgets["none"].get("binds") is True and not budgets["wide"].get("binds"), budgets
    never, = case.status(f"{case.name}-window")["budgets"]
    assert never["binds"] is True and never["allowed"] == 0 and never["activeUntil"], never
    for name, (_, _, lifted) in guards.items():
        apply(case, name, lifted)
    apply(case, "rate", {"powerOff": {"minAwake": 0, "maxPerMinute": 60}})
    for machine in [m for name in guards for m in watched[name]] + machines["rate"]:
        case.wait_off(machine, seconds=60)


def halted_metric(case, policy):
    with urllib.request.urlopen(f"{case.site.health_url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((line.split()[-1] for line in lines
                 if line.startswith("kwatt_halted{") and f'"{policy}"' in line), None)


def test_too_many_unready_nodes_halt_everything_that_takes_capacity_and_timers_start_anew(case):
    ready = case.add_machines(4)
    # Four that nobody has switched off, and that do not report.
    dark = case.add_machines(4, bmc=None, model=None, initial_state="Off")
    case.apply_policy({"powerOff": {"minAwake": 1, "idleFor": "4s"}})
    for machine in ready:
        case.wait_reason(machine, "TooManyUnready")
    case.wait(lambda: case.condition("Halted").get("status") == "True", 20, "the condition")
    assert case.condition("Halted")["reason"] == "TooManyUnready"
    assert "4 of 8 nodes are not Ready" in case.condition("Halted")["message"]
    assert halted_metric(case, case.name) == "1"

    def events():
        return case.bed.kubectl("get", "events", "-A", "--field-selector", f"involvedObject.name={case.name}")
    case.wait(lambda: "TooManyUnready" in events(), 20, "an event")
    case.stays(lambda: all(case.commands(m) == [] for m in ready), 5, "nothing is switched off")
    case.bed.kubectl("delete", "node", dark[0], "--wait=false")
    case.wait(lambda: case.condition("Halted").get("status") == "False", 20, "the breaker to close")
    # Idle since long before the halt, but that does not count.
    for machine in ready:
        case.wait_reason(machine, "IdleWait", seconds=5)
    assert halted_metric(case, case.name) == "0"
    case.wait(lambda: off(case, ready) == 3, 40, "all but one to be off")
    assert "timers start anew" in events()


def test_with_no_node_ready_nothing_is_done_at_all(case):
    case.add_machines(2, cpu=8)
    case.apply_policy()
    case.wait(lambda: off(case, case.machines) == 1, 40, "one off")
    asleep = next(m for m in case.machines if case.power(m).get("powerState") == "Off")
    awake = next(m for m in case.machines if m != asleep)
    commands = case.commands(asleep)
    case.site.room.power(awake, "ForceOff")  # somebody pulls the plug
    case.wait(lambda: not objects.node_is_ready(case.node(awake)), 40, "the last node to be lost")
    case.deploy("web", replicas=2, cpu="5")
    case.wait(lambda: case.condition("Halted").get("status") == "True", 20, "the condition")
    case.stays(lambda: case.commands(asleep) == commands, 4, "nothing to be done")
    case.site.room.power(awake, "On")
    case.wait_running("web", 2, seconds=60)
    assert case.commands(asleep) == [*commands, "On"]


@pytest.mark.long(50)
def test_a_machine_whose_agent_is_silent_is_not_switched_off(case):
    silent, heard = case.add_machines(2)
    for machine in case.machines:
        case.wait(lambda m=machine: case.power(m).get("report", {}).get("governor"), 20, f"a report of {machine}")
    case.site.room.signal_agent(silent, "SIGSTOP")
    # Readings are stale after 30 s; by then the machine would have been idle for long enough.
    case.apply_policy({"powerOff": {"minAwake": 0, "idleFor": "34s"}})
    case.wait_reason(silent, "StaleTelemetry", seconds=45)
    case.wait_off(heard, seconds=60)
    case.stays(lambda: case.commands(silent) == [], 2, "the silent one to stay on")
    case.site.room.signal_agent(silent, "SIGCONT")
    case.wait_off(silent)
