"""What ./dev bench prints and answers, without measuring anything."""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import estimator, full_build, history, planner, run, store
from bench.figures import BenchError, Figure


@pytest.mark.parametrize("figure, line, met", [
    (Figure("store", "resident", 84.04, "MiB", 100), "store: resident 84.0 MiB (target <= 100 MiB)", True),
    (Figure("store", "resident", 1234.5, "MiB", 100), "store: resident 1,234 MiB (target <= 100 MiB)  MISSED", False),
    (Figure("demo", "beyond", 5, "s", 5, "fine"), "demo: beyond 5 s (target <= 5 s), fine", True),
    (Figure("store", "ready after", 0.374, "s"), "store: ready after 0.37 s", True),
])
def test_a_figure_is_printed_beside_its_target(figure, line, met):
    assert figure.line() == line
    assert figure.met is met


def runs(resident, cpu):
    return [{"resident_bytes": resident << 20, "peak_bytes": resident << 20, "cpu_seconds": cpu, "wall_seconds": 9}]


@pytest.mark.parametrize("ours, theirs, stripped, missed", [
    ((84, 2.4), (1100, 4.8), (900, 3.5), []),
    ((101, 2.4), (1100, 4.8), (900, 3.5), ["resident"]),
    ((84, 3.6), (1100, 4.8), (900, 3.5), ["CPU time"]),  # the cheaper of client-go's two ways counts
])
def test_the_store_is_judged_by_its_size_and_by_client_go(ours, theirs, stripped, missed):
    figures = list(store.figures({"kwatt": runs(*ours), "client-go": runs(*theirs), "stripped": runs(*stripped)},
                                 full_size=True))
    assert [figure.what for figure in figures if not figure.met] == missed
    small = store.figures({"kwatt": runs(*ours), "client-go": runs(*theirs), "stripped": runs(*stripped)},
                          full_size=False)
    assert all(figure.target is None for figure in small), "a smaller cluster proves nothing"


def test_another_number_of_objects_is_no_result():
    result = {"nodes": 5, "pods": 49}
    assert store.checked(result, 5, 49) is result
    with pytest.raises(BenchError, match="5 nodes and 49 pods were loaded"):
        store.checked(result, 5, 50)


@pytest.mark.parametrize("script, outcome", [
    ("echo 'planner pass 9 nodes: 201.5 ms (target ≤ 200 ms)'", Figure("planner", "pass 9 nodes", 201.5, "ms", 200)),
    ("echo something else", None),
    ("echo 'planner pass 9 nodes: 1.5 ms (target ≤ 200 ms)'; exit 3", None),
])
def test_the_planner_figure_is_read_or_refused(tmp_path, monkeypatch, script, outcome):
    path = tmp_path / "bench_planner"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(planner, "program", lambda name: path)
    if outcome:
        assert planner.measure() == [outcome]
    else:
        with pytest.raises(BenchError, match="ended with"):
            planner.measure()


@pytest.mark.parametrize("cpu, met", [(0.3, True), (0.7, False)])
def test_the_history_is_judged_by_its_share_of_a_cpu(cpu, met):
    figure, = history.figures({"rows": 1_200_000, "wall_seconds": 10, "cpu_seconds": cpu * 120,
                               "cpu_seconds_per_minute": cpu, "file_bytes": 50 << 20})
    assert figure.met is met
    assert "120,000 rows/s" in figure.note and "50 MiB" in figure.note
    with pytest.raises(BenchError, match="7 rows were written"):
        history.figures({"rows": 7})


def test_the_slowest_steps_of_a_build_are_named_by_their_source(tmp_path):
    log = tmp_path / ".ninja_log"
    log.write_text("# ninja log v5\n" + "".join(f"{start}\t{end}\t0\t{output}\tabc\n" for start, end, output in [
        (0, 900, "bin/kwatt-agent"), (0, 2500, "agent/CMakeFiles/kwatt_agent.dir/agent.cpp.o"),
        (5, 1005, "api/CMakeFiles/kwatt_api.dir/sub/decode.cpp.o")]))
    assert full_build.slowest_steps(log) == [("agent/agent.cpp", 2.5), ("api/sub/decode.cpp", 1.0),
                                             ("bin/kwatt-agent", 0.9)]


def broken():
    raise BenchError("no such program")


@pytest.mark.parametrize("benches, status, said", [
    ({"a": lambda: [Figure("a", "x", 1, "s", 2)]}, 0, "1 of 1 targets met"),
    ({"a": lambda: [Figure("a", "x", 3, "s", 2)]}, 1, "missed: a: x 3 s (target <= 2 s)"),
    ({"a": broken, "b": lambda: [Figure("b", "x", 3, "s", 2)]}, 2, "not measured: a: BenchError: no such program"),
])
def test_the_exit_status_says_whether_all_targets_were_met(monkeypatch, capsys, benches, status, said):
    monkeypatch.setattr(run, "BENCHES", {name: (measure, name) for name, measure in benches.items()})
    monkeypatch.setattr(sys, "argv", ["run.py"])
    assert run.main() == status
    assert said in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["run.py", "-o", "json"])
    assert run.main() == status
    assert {figure["bench"] for figure in json.loads(capsys.readouterr().out)["figures"]} == set(benches) - {
        name for name, measure in benches.items() if measure is broken}


def test_an_unknown_name_lists_the_known_ones(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run.py", "speed"])
    with pytest.raises(SystemExit) as refused:
        run.main()
    assert refused.value.code == 2
    names = "planner, history, placement, estimator, extender, sim, demo, agent, store, build"
    assert f"unknown name 'speed'; one of: {names}" in capsys.readouterr().err


@pytest.mark.parametrize("rate, p99, missed", [
    (25_000, 0.4, []), (9_000, 0.4, ["time per cached request"]), (25_000, 1.2, ["cached p99"])])
def test_the_estimator_is_judged_by_rate_and_latency(rate, p99, missed):
    result = {"clients": 4, "requests": 9, "wrong": 0, "per_second": rate, "p50_ms": 0.1, "p99_ms": p99, "worst_ms": 3}
    figures = estimator.figures(result, alone=True)
    assert [figure.what for figure in figures if not figure.met] == missed
    assert f"{rate:,} requests/s" in figures[0].line()
    with pytest.raises(BenchError, match="1 of 9 answers were wrong"):
        estimator.figures({**result, "wrong": 1}, alone=True)


def test_the_exact_estimate_is_judged_by_its_median():
    assert estimator.exact_figure({"median_seconds": 0.019, "worst_seconds": 0.3}).met
    assert not estimator.exact_figure({"median_seconds": 0.021, "worst_seconds": 0.3}).met


def test_every_program_that_is_measured_is_built_for_it():
    assert run.PROGRAMS.keys() == run.BENCHES.keys()
    root = Path(run.__file__).parent
    used = {name for path in root.glob("*.py") for name in re.findall(r'program\("([\w-]+)"\)', path.read_text())}
    built = {name for names in run.PROGRAMS.values() for name in names}
    assert used <= built
    known = set(re.findall(r"kwatt_program\((\w+)", (root / "CMakeLists.txt").read_text()))
    assert known == {name for name in built if name.startswith("bench_")}


def test_a_bench_says_what_has_to_be_built(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["run.py", "--programs", "extender", "estimator"])
    assert run.main() == 0
    assert capsys.readouterr().out == "bench_estimator bench_extender kwatt-controller\n"


def test_the_command_of_the_readme_starts():
    told = subprocess.run(["./dev", "bench", "--help"], cwd=Path(run.__file__).parent.parent, capture_output=True,
                          text=True, timeout=60)
    assert (told.returncode, told.stderr) == (0, "")
    assert all(f"  {name}" in told.stdout for name in run.BENCHES)
