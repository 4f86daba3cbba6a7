"""Utilization forecasts: backtest over the VMs of PlanetLab and of Google's cluster, five and thirty minutes ahead.

Every step of every VM is predicted from those before it in its day. The combined forecast is to be no worse than the last
value, which is the usual choice, and its upper value must hold as often as it promises."""
import os
from pathlib import Path

from bench.figures import BenchError, Figure
from bench.programs import ROOT, program, run_json

DATA = Path(os.environ.get("KWATT_DATA") or ROOT.parent / "shared" / "data")
SETS = {"PlanetLab CPU": ("planetlab", "2*.csv"), "Google VMs CPU": ("google-vms", "day*_cpu.csv"),
        "Google VMs memory": ("google-vms", "day*_mem.csv")}
QUANTILE, TOLERANCE = 0.95, 0.02


def measure():
    found = []
    for name, (folder, pattern) in SETS.items():
        files = sorted((DATA / folder).glob(pattern))
        if not files:
            raise BenchError(f"no {pattern} in {DATA / folder}")
        answer = run_json([program("bench_sim_forecast"), *files, "--quantile", QUANTILE])
        found += figures(name, answer["backtests"])
    return found


def figures(name, rows):
    found = []
    for lead in sorted({row["lead"] for row in rows}):
        by = {row["forecaster"]: row for row in rows if row["lead"] == lead}
        ours, minutes = by["combined"], 5 * lead
        others = ", ".join(f"{other} {row['mae']:.2f}" for other, row in by.items() if other != "combined")
        found.append(Figure("forecast", f"{name}, {minutes} min ahead: mean absolute error", ours["mae"], "points",
                            by["naive"]["mae"], f"{others}; {ours['series']:,} series"))
        found.append(Figure("forecast", f"{name}, {minutes} min ahead: upper value held", 100 * ours["coverage"], "%",
                            100 * (QUANTILE - TOLERANCE), f"{ours['headroom']:.1f} points above the expected value",
                            at_least=True))
    return found
