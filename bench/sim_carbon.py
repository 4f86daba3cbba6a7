"""Carbon: what waiting for clean electricity saves, on measured intensities of past years.

An arrival every hour, jobs of 4 hours in one piece, 24 hours from arrival to end, life-cycle intensity. The last year
of each zone is scored, earlier ones are history. Every decision sees only hours that had ended. Beside it an oracle that
knows the future, and a ridge regression on lags that decides once. The forecasts were chosen on the second half of
2022; nothing in them is of a zone."""
import os
import re
from pathlib import Path

from bench.figures import BenchError, Figure
from bench.programs import ROOT, program, run_json

DATA = Path(os.environ.get("KWATT_DATA") or ROOT.parent / "shared" / "data") / "carbon-intensity"
FILE = re.compile(r"^(?P<zone>.+)_(?P<year>\d{4})\.csv$")
VALUE = "ci_lca"
WORTH = 0.15        # zones whose oracle saves less say little about forecasts
MEAN, LEAST = 85, 60
HISTORY_DAYS = 28   # of a zone with a single year
# Let's Wait Awhile, scenario I: base g/kWh, and savings in percent for ±2, 4, 6 and 8 hours.
AWHILE = {"fr": (52.11, (4.53, 5.89, 6.93, 7.59)), "gb": (184.29, (6.53, 8.37, 8.87, 10.16))}


def measure():
    return [*shifting(DATA / "electricitymaps"), *awhile(DATA)]


def zones(folder):
    """The files of each zone, oldest first."""
    found = {}
    for path in sorted(Path(folder).glob("*.csv")):
        if match := FILE.match(path.name):
            found.setdefault(match["zone"], []).append((int(match["year"]), path))
    if not found:
        raise BenchError(f"no carbon intensities ZONE_YEAR.csv in {folder}")
    return {zone: sorted(files) for zone, files in found.items()}


def value_column(path):
    header = path.open(encoding="utf-8").readline().strip().split(",")
    for name in header:
        if name.startswith(VALUE):
            return name
    raise BenchError(f"{path.name} has no column {VALUE}…: {', '.join(header)}")


def trial(files):
    """The trials of one zone by (learner, decided again each hour)."""
    year = files[-1][0]
    start = f"{year}-01-01T00:00:00Z" if len(files) > 1 else f"{year}-01-{HISTORY_DAYS + 1:02}T00:00:00Z"
    answer = run_json([program("bench_sim_carbon"), *(path for _, path in files), "--time-column", "datetime_utc",
                       "--value-column", value_column(files[-1][1]), "--from", start,
                       "--to", f"{year + 1}-01-01T00:00:00Z", "--learner", "blend", "--learner", "lag-ridge"])
    return {(row["learner"], row["decideAgain"]): row for row in answer["trials"]}


def shifting(folder):
    return figures({zone: trial(files) for zone, files in zones(folder).items()})


def figures(by_zone):
    found, ours, ridge = [], {}, {}
    for zone, trials in by_zone.items():
        chosen, once, plain = trials["blend", True], trials["blend", False], trials["lag-ridge", False]
        worth = chosen["oracleSaving"] >= WORTH
        if worth:
            ours[zone], ridge[zone] = 100 * chosen["ratio"], 100 * plain["ratio"]
        found.append(Figure(
            "carbon", f"{zone}: of the oracle's saving", 100 * chosen["ratio"], "%", LEAST if worth else None,
            f"saves {100 * chosen['saving']:.1f} % of {100 * chosen['oracleSaving']:.1f} %, "
            f"{chosen['waitHours']:.1f} h mean wait, decided once {100 * once['ratio']:.1f} %, "
            f"ridge on lags {100 * plain['ratio']:.1f} %, {chosen['jobs']:,} jobs", at_least=True))
    if not ours:
        raise BenchError(f"no zone whose oracle saves {100 * WORTH:.0f} %")
    count = f"{len(ours)} zones whose oracle saves at least {100 * WORTH:.0f} %"
    mean = [sum(values.values()) / len(values) for values in (ours, ridge)]
    worst = min(ours, key=ours.get)
    return [*found,
            Figure("carbon", f"mean over {count}", mean[0], "%", MEAN, f"ridge on lags {mean[1]:.1f} %", at_least=True),
            Figure("carbon", f"least of {count}", ours[worst], "%", LEAST,
                   f"{worst}, ridge on lags at least {min(ridge.values()):.1f} %", at_least=True)]


def awhile(folder):
    """The published oracle figures, which this program must find again: it counts windows and means right."""
    found = []
    for zone, (base, savings) in AWHILE.items():
        answer = run_json([program("bench_sim_carbon"), Path(folder) / f"{zone}_ci.csv", "--time-column", "Time",
                           "--value-column", "Carbon Intensity", "--step-minutes", 30, "--skip-bad", "--daily",
                           "--from", "2020-01-01T00:00:00Z", "--to", "2021-01-01T00:00:00Z"])
        off = max(abs(100 * ours - theirs) for ours, theirs in zip(answer["savings"], savings, strict=True))
        found.append(Figure("carbon", f"Let's Wait Awhile, {zone}: oracle off the known savings", off, "points", 0.01,
                            f"{', '.join(f'{100 * one:.2f}' for one in answer['savings'])} % for ±2, 4, 6, 8 h, "
                            f"base {answer['base']:.2f} g/kWh (known {base:.2f})"))
    return found
