"""HiGHS, the exact solver beside which placements are judged, and the comparison itself.

From PyPI, in a virtual environment of its own in the cache: only this needs it."""
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from placement import optimum, solver_env

PACKAGES = ("highspy==1.15.1",)
# Each solve's limit; a bound proven until then is a bound. Nearly all need less than two seconds.
SECONDS = 60


def python():
    """The interpreter that has highspy."""
    return solver_env.interpreter("highspy-1.15.1", PACKAGES)


class Pipe:
    """A program that answers each line of JSON with one."""

    def __init__(self, command):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args[0]} ended with {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def compare(probe, systems, seeds, workers=2):
    """For each seed, in their order: {"seed", "start", "nodes", "pods", "bound", "whole", and by strategy
    {"milliwatts" (by optimum.cost, not by the probe), "unplaced", "seconds"}}. A placement that is none raises."""
    parts = [list(seeds)[i::workers] for i in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        found = [row for part in pool.map(lambda part: _compare(probe, systems, part), parts) for row in part]
    return sorted(found, key=lambda row: row["seed"])


def _compare(probe, systems, seeds):
    ours, solver = Pipe([probe]), Pipe([python(), Path(optimum.__file__), SECONDS])
    rows = []
    try:
        for seed in seeds:
            rows.append(_one(ours, solver, optimum.instance(seed, systems)))
    finally:
        ours.close()
        solver.close()
    return rows


def _one(ours, solver, problem):
    row = {"seed": problem["seed"], "start": problem["start"], "nodes": len(problem["nodes"]),
           "pods": sum(kind["replicas"] for kind in problem["pods"])}
    for strategy, answer in ours.ask(problem).items():
        milliwatts = None
        if answer["unplaced"] == 0:
            milliwatts = optimum.cost(problem, answer["counts"])
            if isinstance(milliwatts, str):
                raise AssertionError(f"seed {problem['seed']}, {strategy}: {milliwatts}")
            if abs(milliwatts - answer["milliwatts"]) > 10 * len(problem["nodes"]):
                raise AssertionError(f"seed {problem['seed']}, {strategy}: says {answer['milliwatts']} mW, "
                                     f"but it is {milliwatts:.0f}")
        row[strategy] = {"milliwatts": milliwatts, "unplaced": answer["unplaced"], "seconds": answer["seconds"]}
    row.update(solver.ask({"instance": problem, "milliwatts": row["batch"]["milliwatts"] or 0}))
    return row


def gaps(rows, strategy):
    """How far above the proven bound, as fractions, ascending; only where every pod was placed."""
    return sorted(row[strategy]["milliwatts"] / row["bound"] - 1 for row in rows if row[strategy]["unplaced"] == 0)
