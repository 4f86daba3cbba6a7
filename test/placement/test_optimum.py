"""place_batch() beside the exact optimum on random instances; ./dev bench placement does the same with 1,000."""
from pathlib import Path

import pytest
from placement import highs, optimum

ROOT = Path(__file__).resolve().parents[2]
CURVES = ROOT.parent / "shared/data/specpower/specpower_curves.csv"
SEEDS = range(20)


@pytest.fixture(scope="module")
def rows():
    if not CURVES.exists():
        pytest.skip(f"the SPECpower curves are not there: {CURVES}")
    return highs.compare(ROOT / "build/dev/test/placement_probe", optimum.curves(CURVES), SEEDS)


def test_every_pod_is_placed_and_what_it_costs_is_within_two_percent_of_the_proven_bound(rows):
    assert len(rows) == len(SEEDS)
    for row in rows:
        assert row["batch"]["unplaced"] == 0, row
        assert row["bound"] * 0.999 <= row["batch"]["milliwatts"] <= row["bound"] * 1.02, row


def test_it_is_never_worse_than_the_fullest_or_the_emptiest_node_or_one_pod_after_another(rows):
    for row in rows:
        for other in ("mostAllocated", "leastAllocated", "oneByOne"):
            if row[other]["unplaced"] == 0:
                assert row["batch"]["milliwatts"] <= row[other]["milliwatts"] + 1, (other, row)


def test_the_least_increase_of_each_pod_beats_both_allocation_strategies_on_the_whole(rows):
    """Not on each instance: who comes one by one cannot know what comes after."""
    whole = [row for row in rows if all(row[other]["unplaced"] == 0
                                        for other in ("oneByOne", "mostAllocated", "leastAllocated"))]
    assert len(whole) > len(rows) / 2
    total = {name: sum(row[name]["milliwatts"] for row in whole)
             for name in ("oneByOne", "mostAllocated", "leastAllocated")}
    assert total["oneByOne"] < min(total["mostAllocated"], total["leastAllocated"])


def test_the_judge_refuses_a_placement_that_is_none():
    node = {"milliwatts": [1000 * i for i in range(10, 21)], "millicores": 4000, "memory": 8 << 30, "pods": 2,
            "awake": True, "loadPermille": 0, "requestedMillicores": 0, "requestedMemory": 0, "standbyMilliwatts": 0,
            "bootMillijoules": 0}
    problem = {"bootOverSeconds": 600, "nodes": [node], "pods": [{"millicores": 1000, "memory": 1 << 30,
                                                                 "replicas": 3}]}
    assert "holds more than fits" in optimum.cost(problem, [[3]])
    assert "2 of 3 replicas" in optimum.cost(problem, [[2]])
    node["pods"] = 110
    assert optimum.cost(problem, [[3]]) == pytest.approx(7500)  # a straight line: 10 W for 4 CPUs
