"""Faults and plans as text, and the planner."""
import itertools

import pytest
from chaos.plan import KILLS, Plan, Planner
from support.faults import Fault


@pytest.mark.parametrize("text", ["kill-between@7", "refuse-429*3/nodes@2", "delay=1.5@0", "bmc-drop@SoftOff",
                                  "hang=2*6/leases@12"])
def test_a_fault_is_read_as_it_is_written(text):
    assert str(Fault.parse(text)) == text


@pytest.mark.parametrize("text", ["", "kill-between", "unheard-of@3", "delay=x@1"])
def test_what_is_no_fault_is_refused(text):
    with pytest.raises(ValueError):
        Fault.parse(text)


def test_a_plan_is_read_as_it_is_written():
    text = "drain/kill-between@7/refuse-409*2:leases@3/seed=12"
    plan = Plan.parse(text)
    assert str(plan) == text
    assert plan.faults[1] == Fault("refuse-409", 3, count=2, resource="leases")


def test_a_seed_gives_the_same_plans_again_and_all_can_be_read():
    requests = {"poweroff": 9, "wake": 4}
    first, second = ([str(plan) for plan in itertools.islice(Planner(5, requests), 300)] for _ in range(2))
    assert first == second
    assert [str(Plan.parse(text)) for text in first] == first
    assert first != [str(plan) for plan in itertools.islice(Planner(6, requests), 300)]


def test_kills_visit_every_request_and_every_moment_before_they_repeat():
    requests = {"poweroff": 5, "wake": 3}
    planner = Planner(1, requests)
    points = []
    while len(points) < 8 * len(KILLS):
        plan = next(planner)
        points += [(plan.scenario, f.kind, f.at) for f in plan.faults[:1] if f.kind in KILLS]
    assert len(set(points)) == len(points) == planner.points == planner.visited
