"""Our min-cost flow beside an independent solver, OR-tools."""
from pathlib import Path

import pytest
from placement import ortools_flow
from placement.highs import Pipe

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(1000)


@pytest.fixture(scope="module")
def answers():
    """[(problem, OR-tools' cost, ours)]"""
    ours = Pipe([ROOT / "build/dev/test/flow_probe"])
    theirs = Pipe([ortools_flow.python(), Path(ortools_flow.__file__)])
    try:
        found = []
        for seed in SEEDS:
            problem = ortools_flow.instance(seed)
            found.append((problem, theirs.ask(problem)["cost"], ours.ask(problem)))
        return found
    finally:
        ours.close()
        theirs.close()


def test_on_a_thousand_random_instances_the_cost_is_the_optimum_of_or_tools(answers):
    assert len(answers) == 1000
    for seed, (_, optimum, ours) in enumerate(answers):
        assert ours == {"assign": optimum, "simplex": optimum, "checked": optimum}, seed


def test_the_instances_are_of_all_kinds(answers):
    """Else agreement would say little: some leave jobs out though there are units, some have costs below 0."""
    costs = [optimum for _, optimum, _ in answers]
    assert sum(cost < 0 for cost in costs) > 50
    left_out = [problem for problem, cost, _ in answers
                if problem["unplaced"][0] == 10**12 and cost >= 10**12]
    assert 50 < len(left_out) < 950
    assert len(set(costs)) > 500
