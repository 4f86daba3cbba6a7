"""The scenario table on a real control plane: the live controller comes to the same decisions as the planner alone, and
as the planner that drives simulated machines (test/simulator/test_scenarios.cpp)."""
from pathlib import Path

import pytest
import yaml

from e2e.observer import Observer
from e2e.scenario_case import LEAST_SECONDS, ScenarioCase
from lab.site import Site

FOLDER = Path(__file__).resolve().parents[1] / "scenarios"
TABLE = [scenario for file in sorted(FOLDER.glob("*.yaml")) for scenario in yaml.safe_load(file.read_text())]
BESIDE = 8  # scenarios that run at the same time, each on machines of its own
DECIDED_SECONDS = 120  # high load is judged over a minute
QUIET_SECONDS = 10  # after the last decision, and longer than any idleFor: nothing more is begun


@pytest.fixture
def cases(tmp_path, request):
    """The scenarios of one group on a site of their own, machines and pods in place, loads measured for a whole window.
    The site goes as it is: nothing has to be woken and given back."""
    first = request.param
    with Site(tmp_path / "site", redfish=False) as site:
        site.start_controller(lease=("30s", "25s", "1s"))  # leaders are not what is tested here
        observer = Observer(site)
        observer.start()
        try:
            group = [ScenarioCase(site, scenario, first + i + 1)
                     for i, scenario in enumerate(TABLE[first:first + BESIDE])]
            for case in group:
                case.add_nodes()
            for case in group:
                case.wait_nodes()
                case.add_pods()
            for case in group:
                case.wait(lambda c=case: not c.missing(), 60, f"{case.scenario['name']}: pods and machines in place")
            group[0].stays(lambda: True, LEAST_SECONDS + 1, "")
            yield group
            violations = observer.take_violations()
        finally:
            observer.stop()
    assert not violations, "\n".join(violations)


def test_the_table_is_read_as_the_other_two_levels_read_it():
    names = [scenario["name"] for scenario in TABLE]
    assert len(set(names)) == len(names) >= 26
    known = {"name", "simulated", "nodes", "pods", "policy", "idleFor", "loadedFor", "expect", "left"}
    for scenario in TABLE:
        assert set(scenario) <= known, scenario["name"]
        assert all(isinstance(key, str) for node in scenario["nodes"] for key in node), scenario["name"]


@pytest.mark.xdist_group("scenarios")  # one of its sites at a time
@pytest.mark.long(150)
@pytest.mark.parametrize("cases", range(0, len(TABLE), BESIDE), indirect=True)
def test_the_live_controller_decides_as_the_table_says(cases):
    for case in cases:
        case.begin()
    try:
        cases[0].wait(lambda: all(case.agrees() for case in cases), DECIDED_SECONDS, "every decision of the table")
    except AssertionError:
        pass  # said below, for each
    cases[0].stays(lambda: True, QUIET_SECONDS, "")
    wrong = [case for case in cases if not case.agrees()]
    for case in wrong:
        print(case.story())
    assert not wrong, "\n".join(
        f"{case.scenario['name']}: begun {case.begun()}, expected {case.expected()}; left {case.left()}, "
        f"expected {case.scenario.get('left', {})}" for case in wrong)
