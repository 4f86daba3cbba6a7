"""Placement: how long a choice takes, and how near batches come to the exact optimum of 1,000 random instances.

The instances, and what HiGHS is asked, are in test/placement/optimum.py. The gap is measured to what HiGHS proves, so
the distance to the optimum itself is never larger than what is printed."""
import os
import sys

from placement import highs, optimum

from bench.figures import BenchError, Figure
from bench.programs import ROOT, program, run_json

CURVES = ROOT.parent / "shared/data/specpower/specpower_curves.csv"
INSTANCES = 1000


def measure():
    return [*speed(), *nearness()]


def speed():
    few, many = run_json([program("bench_placement")])
    for row in (few, many):
        if row["chosen"] != row["pods"]:
            raise BenchError(f"of {row['pods']} pods on {row['nodes']} nodes only {row['chosen']} found one")
    return [Figure("placement", "filter and score of 500 nodes, median CPU time", few["medianMicros"], "µs", 100,
                   f"p99 {few['p99Micros']:.0f} µs"),
            Figure("placement", "filter and score of 5,000 nodes, median CPU time", many["medianMicros"], "µs", 2000,
                   f"p99 {many['p99Micros']:.0f} µs"),
            Figure("placement", "pods a second, each among 500 nodes", 1e6 / few["medianMicros"], "")]


def nearness():
    if not CURVES.exists():
        raise BenchError(f"the SPECpower curves are not there: {CURVES}")
    probe = ROOT / "build" / os.environ["KWATT_PRESET"] / "test/placement_probe"
    if not probe.exists():
        raise BenchError(f"{probe} does not exist: run ./dev build {os.environ['KWATT_PRESET']}")
    systems, rows = optimum.curves(CURVES), []
    for first in range(0, INSTANCES, 100):
        rows += highs.compare(probe, systems, range(first, first + 100))
        print(f"  {len(rows)} of {INSTANCES} instances", file=sys.stderr, flush=True)
    return figures(rows)


def figures(rows):
    ours = highs.gaps(rows, "batch")
    worse = {name: sum(row["batch"]["milliwatts"] > row[name]["milliwatts"] + 1
                       for row in rows if row[name]["unplaced"] == 0)
             for name in ("mostAllocated", "leastAllocated")}
    whole = sum(row["whole"] for row in rows)
    found = [Figure("placement", f"increase above the proven bound, worst of {len(rows)} instances", 100 * ours[-1],
                    "%", 2, f"mean {100 * sum(ours) / len(ours):.2f} %, p99 {100 * ours[len(ours) * 99 // 100]:.2f} %"
                    f", {whole} needed whole replicas"),
             Figure("placement", "instances in which a pod found no room", len(rows) - len(ours), "", 0),
             *(Figure("placement", f"instances in which {label} costs less", worse[name], "", 0)
               for name, label in (("mostAllocated", "MostAllocated"), ("leastAllocated", "LeastAllocated"))),
             Figure("placement", "CPU time of a batch, worst", max(row["batch"]["seconds"] for row in rows), "s")]
    for name, label in (("oneByOne", "EnergyIncrease, one pod after another"), ("mostAllocated", "MostAllocated"),
                        ("leastAllocated", "LeastAllocated")):
        gap = highs.gaps(rows, name)
        found.append(Figure("placement", f"{label}: mean above the bound", 100 * sum(gap) / len(gap), "%", None,
                            f"worst {100 * gap[-1]:.0f} %"))
    return found
