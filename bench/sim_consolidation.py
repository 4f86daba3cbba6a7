"""Consolidation on PlanetLab's days: how near the published figures our ports come, how fast they are, and what kwatt's
own policy saves.

kwatt's settings were chosen on TRAIN; the targets hold on all days, and the other half is printed apart."""
import csv

from bench.figures import BenchError, Figure
from bench.programs import ROOT, program, run_json

DATA = ROOT.parent / "shared/data"
TRAIN = ("20110303", "20110309", "20110325", "20110409")
PORTS = {"dvfs": "dvfs", "thr_mmt_0.8": "thr-mmt-0.8", "iqr_mmt_1.5": "iqr-mmt-1.5", "mad_mmt_2.5": "mad-mmt-2.5",
         "lr_mmt_1.2": "lr-mmt-1.2", "lrr_mmt_1.2": "lrr-mmt-1.2", "lr_mu_1.2": "lr-mu-1.2", "lr_mc_1.2": "lr-mc-1.2"}
JUDGED = ("thr-mmt-0.8", "lr-mmt-1.2")
BENCH = "sim consolidation"


def measure():
    published = DATA / "planetlab/baselines_cloudsim303.csv"
    if not published.exists():
        raise BenchError(f"the published figures are not there: {published}")
    rows = run_json([program("bench_sim_consolidation"), str(DATA)])
    with published.open(encoding="utf-8") as file:
        return figures(rows, list(csv.DictReader(file)))


def figures(rows, published):
    runs = {(row["experiment"], row["day"], row["policy"]): row for row in rows}
    planetlab = {(day, policy): row for (experiment, day, policy), row in runs.items() if experiment == "planetlab"}
    return [*fidelity(planetlab, published), *speed(planetlab), *saved(planetlab), *others(runs)]


def fidelity(planetlab, published):
    """How far from CloudSim 3.0.3, in percent of its figure; rounded there to 2, 0 and 7 digits."""
    found = [nothing_off(planetlab)]
    for row in published:
        policy = PORTS.get(row["policy"])
        if policy is None:  # rs is random
            continue
        ours = planetlab[row["day"], policy]
        for what, value, theirs, limit in (("energy", ours["kwh"], float(row["energy_kwh"]), 1),
                                           ("migrations", ours["migrations"], float(row["migrations"]), 3),
                                           ("SLAV", ours["slav"], float(row["slav"]), 5)):
            if theirs == 0:
                if value != 0:
                    raise BenchError(f"{row['day']} {policy}: {what} {value}, CloudSim has none")
                continue
            off = abs(value / theirs - 1) * 100
            found.append(Figure(BENCH, f"{row['day']} {policy}: {what} off CloudSim's", off, "%",
                                limit if policy in JUDGED else None, f"{value:.7g}, CloudSim {theirs:.7g}"))
    return found


def nothing_off(planetlab):
    """No migration, no power-off ("NPA"): all hosts at full power all day, which needs no run."""
    hosts, watts = 800, (117 + 135) / 2
    days = len({day for day, _ in planetlab})
    return Figure(BENCH, "NPA (all hosts at full power)", hosts * watts * 24 / 1000, "kWh", None,
                  f"CloudSim 2419.2, on each of {days} days")


def speed(planetlab):
    row = planetlab["20110303", "lr-mmt-1.2"]
    ours = planetlab["20110303", "kwatt"]
    return [Figure(BENCH, "a day of 800 hosts and 1,052 VMs, lr-mmt-1.2, CPU time", row["cpuSeconds"], "s", 0.4,
                   f"CloudSim 21.7 s; kwatt's own policy {ours['cpuSeconds']:.2f} s"),
            Figure(BENCH, "a decision of lr-mmt-1.2, mean CPU time", row["decisionMillis"], "ms", 1,
                   f"CloudSim 52 ms; kwatt's own policy {ours['decisionMillis']:.2f} ms")]


def saved(planetlab):
    days = sorted({day for day, _ in planetlab})
    held_out = [day for day in days if day not in TRAIN]
    found = []
    for what, key, target in (("energy", "kwh", -15), ("ESV", "esv", -70), ("migrations", "migrations", -75)):
        def mean(chosen, key=key):
            return sum(change(planetlab, day, key) for day in chosen) / len(chosen)
        worst = max(days, key=lambda day, key=key: change(planetlab, day, key))
        found.append(Figure(BENCH, f"{what} beside lr-mmt-1.2, mean of {len(days)} days", mean(days), "%", target,
                            f"tuned on {mean(TRAIN):.1f} %, held out {mean(held_out):.1f} %, "
                            f"worst {worst} {change(planetlab, worst, key):.1f} %"))
    for policy in ("kwatt", "lr-mmt-1.2", "thr-mmt-0.8"):
        runs = [planetlab[day, policy] for day in days]
        over = sum(run["kwh"] / run["lowerBoundKwh"] - 1 for run in runs) / len(runs)
        found.append(Figure(BENCH, f"{policy}: energy above the lower bound, mean", 100 * over, "%", None,
                            f"CPU not given {100 * sum(run['lacking'] for run in runs) / len(runs):.3f} %, "
                            f"{sum(run['shutdowns'] for run in runs) / len(runs):.0f} shutdowns a day"))
    return found


def change(planetlab, day, key):
    return 100 * (planetlab[day, "kwatt"][key] / planetlab[day, "lr-mmt-1.2"][key] - 1)


def others(runs):
    """Fleets without a published table: ours must not cost more than the better of the ports."""
    found = []
    for experiment, label in (("modern", "PlanetLab on servers of 2019-22 that take 2 min to boot"),
                              ("google-vms", "Google's VMs, CPU and memory")):
        days = sorted({day for name, day, _ in runs if name == experiment})
        def total(policy, key, experiment=experiment, days=days):
            return sum(runs[experiment, day, policy][key] for day in days)
        ours = total("kwatt", "kwh")
        for key, unit in (("kwh", "kWh"), ("esv", ""), ("migrations", "")):
            least = min(total("lr-mmt-1.2", key), total("thr-mmt-0.8", key))
            found.append(Figure(BENCH, f"{label}: {'energy' if key == 'kwh' else key}, {len(days)} days",
                                total("kwatt", key), unit, least,
                                f"lr-mmt-1.2 {total('lr-mmt-1.2', key):.4g}, thr-mmt-0.8 {total('thr-mmt-0.8', key):.4g}"
                                + (f", lower bound {total('kwatt', 'lowerBoundKwh'):.4g}, "
                                   f"{100 * (ours / total('kwatt', 'lowerBoundKwh') - 1):.0f} % above"
                                   if key == "kwh" else "")))
    return found
