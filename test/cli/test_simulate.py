"""kubectl-kwatt simulate and compare as people call them: figures, files, errors. No cluster is needed."""
import csv
import io
import json
import math
import os
import re
import statistics
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import gen_reference

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "simulate"
PROGRAM = gen_reference.program_path("kubectl-kwatt")
BASE = ("--machines", str(EXAMPLES / "machines.csv"))
JOBS = str(EXAMPLES / "jobs.csv")

pytestmark = [pytest.mark.skipif(not PROGRAM.exists(), reason="kubectl-kwatt is not built")]


def run(*words, cwd=None):
    # No kubeconfig and no HOME: nothing here may look for a cluster.
    return subprocess.run([PROGRAM, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})


def ok(*words, **options):
    done = run(*words, **options)
    assert (done.returncode, done.stderr) == (0, ""), f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def carbon(zone):
    """Hour → grams per kWh of an example's series."""
    lines = [line for line in (EXAMPLES / f"carbon-{zone}.csv").read_text().splitlines() if not line.startswith("#")]
    return {line.split(",")[0][:13]: float(line.split(",")[1]) for line in lines[1:]}


def test_simulate_prints_the_figures_of_one_strategy():
    document = json.loads(ok("simulate", JOBS, *BASE, "--strategy", "EnergyAware", "-o", "json"))
    figures, = document["runs"]
    assert (figures["strategy"], figures["jobsSubmitted"], figures["jobsCompleted"]) == ("EnergyAware", 160, 160)
    assert figures["energyKWh"] > 0 and figures["makespanSeconds"] >= 45274
    table = ok("simulate", JOBS, *BASE)
    assert re.search(r"^FIGURE +EnergyAware$", table, re.M) and re.search(r"^Jobs completed +160$", table, re.M)
    rows = list(csv.DictReader(io.StringIO(ok("simulate", JOBS, *BASE, "-o", "csv"))))
    assert len(rows) == 1 and float(rows[0]["energyKWh"]) == pytest.approx(figures["energyKWh"], rel=1e-6)


def test_idle_off_and_a_policy_save_energy_and_cost_power_cycles():
    def figures(*words):
        return json.loads(ok("simulate", JOBS, *BASE, "--strategy", "EnergyAware", "-o", "json", *words))["runs"][0]

    always_on, idle_off = figures(), figures("--idle-off", "10m")
    policy = figures("--policy", EXAMPLES / "policy.yaml")
    assert always_on["powerCycles"] == 0 and always_on["jobsCompleted"] == idle_off["jobsCompleted"] == 160
    for one in (idle_off, policy):
        assert one["powerCycles"] > 0 and one["jobsCompleted"] == 160
        assert one["energyKWh"] < 0.8 * always_on["energyKWh"]


def test_compare_gives_every_strategy_the_same_work_and_the_same_time():
    document = json.loads(ok("compare", "synthetic:jobs=300,per-hour=100", "--machines", "10x16x64",
                             "--strategies", "FCFS,RoundRobin,EnergyAware", "--seeds", "1-3", "-o", "json"))
    runs = document["runs"]
    assert len(runs) == 9
    for seed in (1, 2, 3):
        of_seed = [run for run in runs if run["seed"] == seed]
        assert len({run["jobsSubmitted"] for run in of_seed}) == 1
        assert len({run["lengthSeconds"] for run in of_seed}) == 1
    assert len({run["lengthSeconds"] for run in runs}) == 3
    summary = {one["strategy"]: one for one in document["summary"]}
    energies = [run["energyKWh"] for run in runs if run["strategy"] == "FCFS"]
    assert summary["FCFS"]["seeds"] == 3
    assert summary["FCFS"]["energyKWh"]["mean"] == pytest.approx(sum(energies) / 3, rel=1e-6)
    # Student's t with two degrees of freedom.
    assert summary["FCFS"]["energyKWh"]["halfWidth95"] == pytest.approx(
        4.303 * statistics.stdev(energies) / math.sqrt(3), rel=1e-3)
    table = ok("compare", "synthetic:jobs=50", "--machines", "4x16x64", "--strategies", "FCFS,EnergyAware", "--seeds", "1,2")
    assert re.search(r"^FIGURE +FCFS +EnergyAware$", table, re.M) and " ± " in table


def test_the_same_command_gives_the_same_bytes(tmp_path):
    def once(name):
        schedule = tmp_path / name
        out = ok("compare", "synthetic:jobs=400", "--machines", "6x16x64", "--strategies", "Default,EnergyAware",
                 "--seeds", "5", "-o", "json", "--schedule-csv", schedule, "--html", tmp_path / (name + ".html"))
        return out, schedule.read_bytes(), (tmp_path / (name + ".html")).read_bytes()

    assert once("a") == once("b")


def test_a_scenario_file_holds_the_options_and_the_command_line_wins(tmp_path):
    files = {name: tmp_path / f"{name}.csv" for name in ("schedule", "metrics")}
    document = json.loads(ok("compare", "--scenario", EXAMPLES / "scenario.yaml", "--strategies", "FCFS,EnergyAware",
                             "-o", "json", "--schedule-csv", files["schedule"], "--metrics-csv", files["metrics"]))
    assert [run["strategy"] for run in document["runs"]] == ["FCFS", "EnergyAware"]
    assert all(run["co2Kg"] > 0 and run["ciAdjustedCost"] > 0 for run in document["runs"])
    with files["schedule"].open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["JobID", "AssignedNode", "Strategy", "CIscore", "Timestamp"]
    assert {row["Strategy"] for row in rows} == {"FCFS", "EnergyAware"}
    assert all(float(row["CIscore"]) > 0 and row["Timestamp"].startswith("2026-01-0") for row in rows)
    # A row for each task of a job, with the intensity of its machine's zone when it began.
    with Path(JOBS).open() as stream:
        tasks = {row["id"]: int(row["tasks"] or 1)
                 for row in csv.DictReader(line for line in stream if not line.startswith("#"))}
    for run_ in document["runs"]:
        mine = Counter(row["JobID"] for row in rows if row["Strategy"] == run_["strategy"])
        assert mine == tasks and len(tasks) == run_["jobsCompleted"]
    intensity = {"large": carbon("north"), "small": carbon("south")}
    for row in rows:
        assert float(row["CIscore"]) == intensity[row["AssignedNode"].rsplit("-", 1)[0]][row["Timestamp"][:13]], row
    with files["metrics"].open() as stream:
        rows = list(csv.DictReader(stream))
    for run_ in document["runs"]:
        mine = [row for row in rows if row["strategy"] == run_["strategy"]]
        for by in ("strategy", "node", "time"):
            energy = sum(float(row["energy_kwh"]) for row in mine if row["by"] == by)
            assert energy == pytest.approx(run_["energyKWh"], rel=1e-4), by
            grams = sum(float(row["co2_g"]) for row in mine if row["by"] == by)
            assert grams == pytest.approx(1000 * run_["co2Kg"], rel=1e-4), by
        for row in mine:
            assert float(row["average_intensity"] or 0) * float(row["energy_kwh"]) == pytest.approx(
                float(row["co2_g"]), rel=1e-4, abs=1e-6), row
    single = json.loads(ok("simulate", "--scenario", EXAMPLES / "scenario.yaml", "-o", "json"))
    assert [run["strategy"] for run in single["runs"]] == ["EnergyAware"]


def test_jobs_that_fit_nowhere_are_reported(tmp_path):
    trace = tmp_path / "jobs.csv"
    trace.write_text("id,arrival_s,duration_s,cpu\nsmall,0,10,1\nhuge,1,10,4000\n")
    table = ok("simulate", trace, "--machines", "2x8x32")
    assert re.search(r"^Jobs rejected +1$", table, re.M)
    assert "huge: 1 × 4000000 millicores" in table and "fit on no machine, even empty" in table


def test_bad_rows_end_the_run_or_are_counted(tmp_path):
    trace = tmp_path / "jobs.csv"
    trace.write_text("id,arrival_s,duration_s,cpu\na,0,10,1\nb,5,nan,1\nc,6,10,-1\nd,3,10,1\ne,7,10,1\n")
    done = run("simulate", trace, "--machines", "2x8x32")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f'error: {trace}:3: duration_s: expected a number, got "nan" (--skip-bad leaves such rows '
                           "out)\n")
    done = run("simulate", trace, "--machines", "2x8x32", "--skip-bad", "-o", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["runs"][0]["jobsCompleted"] == 3
    assert "2 bad rows were left out" in done.stderr and f"{trace}:4: cpu" in done.stderr


HEADER = "id,arrival_s,duration_s,cpu\n"


@pytest.mark.parametrize("rows, line, what, left", [
    ("a,10,5,1\nb,5,5,1\nc,12,5,1\n", 3, "it arrives at 5 s, before the job before it (10 s)", 2),
    ("a,0,0,1\nb,1,5,1\n", 2, "duration_s: expected a number from 0.001", 1),
    ("a,0,5,0\nb,1,5,1\n", 2, "cpu: expected a number from 0.001", 1),
    ("a,0,5\nb,1,5,1\n", 2, "expected 4 fields, got 3", 1),
    ("a,0,5,1\nb,1,5,NaN\n", 3, 'cpu: expected a number, got "NaN"', 1),
    ("a,0,5,1\nb,1,inf,1\n", 3, 'duration_s: expected a number, got "inf"', 1),
    ("a,0,5,1\n,1,5,1\n", 3, 'column "id" is empty', 1),
])
def test_what_is_wrong_with_a_row_is_said_with_file_and_line(tmp_path, rows, line, what, left):
    trace = tmp_path / "jobs.csv"
    trace.write_text(HEADER + rows)
    done = run("simulate", trace, "--machines", "2x8x32")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {trace}:{line}: {what}"), done.stderr
    done = run("simulate", trace, "--machines", "2x8x32", "--skip-bad", "-o", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["runs"][0]["jobsCompleted"] == left
    assert "1 bad row was left out" in done.stderr and f"{trace}:{line}: {what}" in done.stderr


@pytest.mark.parametrize("text, sentence", [
    ("", "the file is empty"),
    (" \n\n", "the file is empty"),
    (HEADER, "there is no job in it"),
    ("id,arrival_s,cpu\na,0,1\n", ':1: column "duration_s" is missing; the header must have id, arrival_s, duration_s'),
    (HEADER.replace("cpu", "cpu,colour"), ':1: there is no column "colour"'),
])
@pytest.mark.parametrize("options", [(), ("--skip-bad",)])
def test_a_file_without_work_or_columns_is_no_trace(tmp_path, text, sentence, options):
    trace = tmp_path / "jobs.csv"
    trace.write_text(text)
    done = run("simulate", trace, "--machines", "2x8x32", *options)
    assert (done.returncode, done.stdout) == (1, "") and f"error: {trace}" in done.stderr and sentence in done.stderr


@pytest.mark.parametrize("words, status, sentence", [
    ((JOBS,), 1, "the trace has no machines: say --machines"),
    (BASE, 1, "there is no trace"),
    (("none.csv", *BASE), 1, "cannot read the trace none.csv"),
    ((JOBS, "--machines", "none.csv"), 1, "--machines: cannot read none.csv"),
    ((JOBS, "--machines", "0x1x1"), 1, "a count of at least 1"),
    ((JOBS, *BASE, "--strategy", "Nonsense"), 1, "Nonsense"),
    ((JOBS, *BASE, "--idle-off", "soon"), 1, "--idle-off: expected a duration such as 10m or 48h"),
    ((JOBS, *BASE, "--carbon", "none.csv"), 1, "--carbon: cannot read none.csv"),
    ((JOBS, *BASE, "--carbon", str(EXAMPLES / "carbon-north.csv"), "--start", "2020-01-01T00:00:00Z"), 1, "say --start"),
    ((JOBS, *BASE, "--policy", str(EXAMPLES / "scenario.yaml")), 1, "there is no EnergyPolicy in it"),
    ((JOBS, *BASE, "--policy", "p.yaml", "--idle-off", "1m"), 1, "only one of them can switch machines"),
    ((JOBS, *BASE, "--start", "today"), 1, "--start: expected a time such as"),
    ((JOBS, *BASE, "--seed", "x"), 1, "seeds: expected numbers such as"),
    (("synthetic:speed=1", *BASE), 1, 'there is no "speed"'),
    ((JOBS, *BASE, "-o", "xml"), 2, "xml"),
    ((JOBS, *BASE, "--nonsense"), 2, "nonsense"),
    ((JOBS, *BASE, "--html", "/nonexistent/x.html"), 1, "cannot write /nonexistent/x.html"),
])
def test_errors_say_what_was_wrong(words, status, sentence):
    done = run("simulate", *words)
    assert done.returncode == status and sentence in done.stderr, done.stderr


def test_a_scenario_with_a_wrong_key_names_its_line(tmp_path):
    scenario = tmp_path / "s.yaml"
    scenario.write_text("traces: [x.csv]\nmachinery: 3\n")
    done = run("compare", "--scenario", scenario)
    assert (done.returncode, done.stderr) == (1, f"error: {scenario}:2: machinery: there is no such option\n")


def test_completion_and_help_know_the_verbs():
    assert ok("__complete", "simul").splitlines() == ["simulate", ":4"]
    assert "json" in ok("__complete", "simulate", "-o", "").splitlines()
    assert "EnergyAware" in ok("__complete", "compare", "--strategies", "").splitlines()
    text = ok("compare", "--help")
    assert "Examples:" in text and "--schedule-csv" in text


def test_a_snapshot_of_slurm_is_a_trace(tmp_path):
    trace = tmp_path / "slurm.json"
    nodes = [{"name": f"c{i}", "cpus": 16, "real_memory": 64000, "state": "idle"} for i in range(4)]
    jobs = [{"job_id": i, "job_state": "PENDING", "submit_time": 100 + i, "time_limit": 30, "cpus": 32, "node_count": 2}
            for i in range(4)]
    trace.write_text(json.dumps({"nodes": nodes}) + json.dumps({"jobs": jobs}))
    figures = json.loads(ok("simulate", trace, "-o", "json"))["runs"][0]
    assert (figures["jobsCompleted"], figures["makespanSeconds"]) == (4, 3600)


def test_the_report_is_one_page_without_network(tmp_path):
    page = tmp_path / "report.html"
    ok("compare", JOBS, *BASE, "--strategies", "FCFS,EnergyAware", "--html", page, "-o", "csv")
    text = page.read_text()
    assert text.count('<svg class="plot"') == 13 and "://" not in text and "prefers-color-scheme:dark" in text
